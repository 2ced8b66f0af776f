"""The application: command line, models of tables, HTTP service and demo."""

import sys


def main() -> None:
    """Run the command line; a missing extra, or Ctrl-C while it is imported, ends it without a traceback."""
    try:
        from psilearn.app.cli import app
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("psilearn"):
            raise
        print(f"Error: The command psilearn needs {error.name}: pip install 'psilearn[app]'.", file=sys.stderr)
        sys.exit(2)
    app()
