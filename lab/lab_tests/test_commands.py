"""The commands of the laboratory, as the command line finds them."""

import pytest
from typer.testing import CliRunner

from psilearn.app.cli import app


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("data", "nope"), "There is no dataset 'nope'; the datasets are"),
        (("reproduce", "nope"), "There is no experiment 'nope'; the experiments are usps"),
        (("reproduce", "usps", "--jobs", "0"), "--jobs must be at least 1"),
    ],
)
def test_errors_are_reported_in_one_line(arguments, message):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2 and message in result.output
    assert len(result.output.splitlines()) == 1
