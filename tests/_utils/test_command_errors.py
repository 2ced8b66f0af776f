"""Errors of commands are reported in one line with exit status 2; other errors keep their traceback."""

import pytest
import typer

from psilearn._utils.command_errors import report_errors


@pytest.mark.parametrize("error", [ValueError("wrong value"), FileNotFoundError("no file"), ImportError("no package")])
def test_user_errors_are_one_line(error, capsys):
    with pytest.raises(typer.Exit) as exit_info, report_errors():
        raise error
    assert exit_info.value.exit_code == 2
    assert capsys.readouterr().err == f"Error: {error}\n"


def test_other_errors_are_not_caught():
    with pytest.raises(ZeroDivisionError), report_errors():
        raise ZeroDivisionError
