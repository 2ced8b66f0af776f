"""Errors of commands are reported in one line with exit status 2; other errors keep their traceback."""

import subprocess
import sys

import pytest
import typer

from psilearn.app.console import TerminatedError, report_errors
from psilearn.utils import MissingDependencyError, explain_missing


@pytest.mark.parametrize(
    "error", [ValueError("wrong value"), FileNotFoundError("no file"), MissingDependencyError("no package")]
)
def test_user_errors_are_one_line(error, capsys):
    with pytest.raises(typer.Exit) as exit_info, report_errors():
        raise error
    assert exit_info.value.exit_code == 2
    assert capsys.readouterr().err == f"Error: {error}\n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("two\nlines"), "two lines"),
        (ValueError("file \x1b[31mred"), r"file \x1b[31mred"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_every_message_is_one_printable_line(error, line, capsys):
    with pytest.raises(typer.Exit), report_errors():
        raise error
    assert capsys.readouterr().err == f"Error: {line}\n"


@pytest.mark.parametrize(("interrupt", "status"), [(KeyboardInterrupt(), 130), (TerminatedError(15), 143)])
def test_interruptions_say_how_to_resume(interrupt, status, capsys):
    with pytest.raises(typer.Exit) as exit_info, report_errors(resume="Run it again."):
        raise interrupt
    assert exit_info.value.exit_code == status
    assert capsys.readouterr().err.endswith(". Run it again.\n")


@pytest.mark.parametrize(
    "error", [ZeroDivisionError(), ImportError("cannot import name"), ModuleNotFoundError("a bug"), BrokenPipeError()]
)
def test_other_errors_are_not_caught(error):
    with pytest.raises(type(error)), report_errors():
        raise error


def test_only_missing_packages_are_explained():
    with pytest.raises(MissingDependencyError, match="Install it"), explain_missing("Install it."):
        import psilearn.no_such_module  # noqa: F401
    with pytest.raises(ImportError, match="cannot import name") as caught, explain_missing("Install it."):
        from psilearn._utils import no_such_name  # noqa: F401
    assert not isinstance(caught.value, MissingDependencyError)


def test_the_command_without_its_packages_names_the_extra():
    code = "import sys; sys.modules['typer'] = None; from psilearn.app import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "Error: The command psilearn needs typer: pip install 'psilearn[app]'.\n"
