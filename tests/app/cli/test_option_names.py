"""Notes and errors of the library name options on the command line."""

import warnings

import pytest

from psilearn.app.cli.table_reports import name_options, options_in_errors, print_warnings, word_note

EDGE = "is the largest of its grid. Extend the grid to values beyond it."


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            f"The best alpha = 0.1 {EDGE}",
            "The best value of --alpha, 0.1, is the largest of its grid. Add values beyond it.",
        ),
        (f"The best n_components = 9 {EDGE}", "The best value of --components, 9, is the largest of its grid."),
        (f"The best input_kernel__gamma = 0.033 {EDGE}", ""),
        (
            "n_components=50 exceeds the rank of the outputs: 13 are used.",
            "--components 50 exceeds the rank of the outputs",
        ),
        ("the column 'alpha' is constant", "the column 'alpha' is constant"),
    ],
)
def test_notes_name_options_or_are_left_out(capsys, message, expected):
    with print_warnings():
        warnings.warn(message, UserWarning, stacklevel=1)
    printed = capsys.readouterr().err
    assert printed.startswith(f"Note: {expected}") if expected else printed == ""
    assert (word_note(message) is None) == (expected == "")


def test_the_message_about_a_missing_gpu_names_the_option():
    message = "device='cuda' requires a GPU, but torch finds none on this machine: leave device out."
    expected = "--device cuda requires a GPU, but torch finds none on this machine: leave --device out."
    assert name_options(message) == expected
    with pytest.raises(ValueError, match="--device cuda requires"), options_in_errors():
        raise ValueError(message)


def test_other_errors_are_raised_unchanged():
    error = ValueError("t.csv, line 2: alpha must be 1")
    with pytest.raises(ValueError) as raised, options_in_errors():
        raise error
    assert raised.value is error
