"""Messages of the library in the words of the command line: options instead of parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

OPTIONS = {
    "alpha": "--alpha",
    "alphas": "--alpha",
    "n_components": "--components",
    "supervision": "--supervision",
    "supervisions": "--supervision",
    "device": "--device",
    "n_jobs": "--jobs",
    "scoring": "--scoring",
}
_NAMES = "|".join(OPTIONS)
_EDGE = re.compile(r"The best (\w+) = (\S+) is the (\w+) of its grid\. Extend the grid to values beyond it\.")
_PHRASES = (  # patterns of messages, and how the command line words them
    (re.compile(rf"^(each value of )?({_NAMES}) must be (None, |None or )?"), r"\1<\2> must be "),
    (re.compile(rf"^({_NAMES})=['\"]?([^'\" ]+)['\"]? "), r"<\1> \2 "),
    (re.compile(r": leave (device) out\."), r": leave <\1> out."),
    (re.compile(r", a function \(y_true, .* such as \"f1_samples\" or make_scorer\(\.\.\.\)"), r', "f1_samples", …'),
    (re.compile(r"([Ss])et input_landmarks="), r"\1et --landmarks "),
    (re.compile(r"([Ss])et output_landmarks="), r"\1et --output-landmarks "),
    (re.compile(r"lower input_landmarks to"), "lower --landmarks to"),
    (re.compile(r"lower output_landmarks to"), "lower --output-landmarks to"),
    (re.compile(r'set dtype="float32"'), 'in Python, set dtype="float32"'),
)


def name_options(message: str) -> str:
    """Return a message of the library with the options of ``psilearn fit`` and ``psilearn search``."""
    for pattern, replacement in _PHRASES:
        message = pattern.sub(replacement, message)
    return re.sub(rf"<({_NAMES})>", lambda match: OPTIONS[match[1]], message)


def word_note(text: str) -> str | None:
    """Return a warning of the library for the command line; None if it suggests a grid that no option sets."""
    edge = _EDGE.fullmatch(text)
    if edge is None:
        return name_options(text)
    name, value, end = edge.groups()
    if name not in OPTIONS:
        return None
    return f"The best value of {OPTIONS[name]}, {value}, is the {end} of its grid. Add values beyond it."


@contextmanager
def options_in_errors() -> Iterator[None]:
    """Name options instead of parameters in the errors of a training."""
    try:
        yield
    except (ValueError, MemoryError) as error:
        message = name_options(str(error))
        if message == str(error):
            raise
        raise type(error)(message) from error
