"""The application: command line, models of tables, HTTP service and demo."""
