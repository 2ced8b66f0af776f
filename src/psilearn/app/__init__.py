"""The application: command line, models of tables, HTTP service and demo."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends it without a traceback."""
    try:
        from psilearn.app.cli import app
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    app()
