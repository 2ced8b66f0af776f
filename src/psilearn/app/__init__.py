"""The application: command line, models of tables, HTTP service and demo."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is imported, or a missing extra, ends it without a traceback."""
    try:
        from psilearn.app.cli import app
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print(f"The command needs {error.name}: pip install 'psilearn[app]'", file=sys.stderr)
        sys.exit(2)
    app()
