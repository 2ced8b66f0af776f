"""One hostile call: what it does, and whether that is a clear error, an accepted value or a defect."""

from __future__ import annotations

import re
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import joblib
import numpy as np
from scipy import sparse

from psilearn_lab.fuzz.arguments.hostile_values import Hostile, hostile_values
from psilearn_lab.fuzz.arguments.tiny_data import X_NEW

CLEAR_ERRORS = (ValueError, TypeError, FileNotFoundError, FileExistsError, MemoryError, FloatingPointError)
ROWS = ("objects", "one finite number per")  # a kernel names itself and the objects whose value is not finite
ALIASES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("A", "B", "X", "y", "Y", "candidates", "unlabeled", "outputs", "Y_true", "Y_pred"), ROWS),
    **dict.fromkeys(
        ("input_kernel", "output_kernel", "input_kernels", "output_kernels", "kernel"),
        ("Pairwise", "kernel function", "output kernels"),
    ),
    "metric": ("distance function",),
    "weights": ("Scaled",),
    "xml": ("XML",),
}  # what messages may call an argument instead of its name
TIME_LIMIT = 20  # seconds per call; a usual one takes milliseconds
CACHING = ("library", "search", "iokr", "model")  # objects that may compute and keep what they need later
RESULT_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Fresh:
    """An argument that is made anew for each call, such as the path of a folder that must not exist."""

    make: Callable[[], Any]


@dataclass(frozen=True)
class Call:
    """A valid call: a function of named arguments, and of a subject whose state a failing call must not change."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    make_subject: Callable[[], Any] | None = None
    not_attacked: Mapping[str, tuple[str, ...]] | None = None  # labels by argument, "*" for all of them
    aliases: Mapping[str, tuple[str, ...]] | None = None  # other words for an argument in messages
    may_be_nan: bool = False

    def valid_arguments(self) -> dict[str, Any]:
        """Return the arguments, copied or made anew, so that no call sees what another one did to them."""
        return {name: _renew(value) for name, value in self.arguments.items()}

    def attempts(self) -> Iterator[tuple[str, Hostile]]:
        """Yield each argument with each of its hostile values."""
        for argument in self.arguments:
            skipped = (self.not_attacked or {}).get(argument, ())
            for hostile in hostile_values(_renew(self.arguments[argument])):
                if "*" not in skipped and hostile.label not in skipped:
                    yield argument, hostile


@dataclass(frozen=True)
class Outcome:
    """What a hostile call did: "clear error", "accepted" or "defect", with the message or the defect."""

    name: str
    argument: str
    label: str
    verdict: str
    detail: str


def run_valid(call: Call) -> list[Any]:
    """Run a valid call and return the numbers of its result."""
    return numbers_of(_run(call, call.make_subject and deepcopy(call.make_subject()), call.valid_arguments()))


def attempt(call: Call, argument: str, hostile: Hostile, expected: list[Any]) -> Outcome:
    """Replace one argument by a hostile value, and judge what the call does."""
    arguments = {**call.valid_arguments(), argument: hostile.value}
    subject = call.make_subject and deepcopy(call.make_subject())
    watched = {name: value for name, value in arguments.items() if name not in CACHING}
    before, state = _digest(watched), _digest(subject)
    result, error = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with _time_limit():
                result = _run(call, subject, arguments)
        except Exception as raised:
            error = raised
    defect = _noise(caught) or _changed(before, watched, "an argument was modified")
    if error is not None:
        defect = _unclear(call, argument, hostile.value, error) or defect or _changed_state(call, state, subject)
        detail = f"{type(error).__name__}: {error}"
        verdict = "clear error"
    else:
        defect = defect or _invalid(call, result, expected if hostile.keeps_result else None)
        detail, verdict = "", "accepted"
    if defect:
        verdict, detail = "defect", f"{defect} | {detail}"
    return Outcome(call.name, argument, hostile.label, verdict, " ".join(detail.split())[:400])


def numbers_of(result: Any) -> list[Any]:
    """Return all arrays of numbers in a result, and its strings as they are."""
    if is_dataclass(result) and not isinstance(result, type):
        return [part for field in fields(result) for part in numbers_of(getattr(result, field.name))]
    if isinstance(result, dict):
        return [part for value in result.values() for part in numbers_of(value)]
    if isinstance(result, list | tuple):
        return [part for value in result for part in numbers_of(value)]
    if sparse.issparse(result):
        result = result.toarray()
    if hasattr(result, "detach"):
        result = result.detach().cpu().numpy()
    if isinstance(result, str):
        return [np.array(result)]
    if isinstance(result, int | float | np.ndarray | np.generic):
        return [np.asarray(result)]
    return [np.asarray(result)] if hasattr(result, "iloc") else []


def _run(call: Call, subject: Any, arguments: dict[str, Any]) -> Any:
    return call.function(**arguments) if call.make_subject is None else call.function(subject, **arguments)


def _renew(value: Any) -> Any:
    return value.make() if isinstance(value, Fresh) else deepcopy(value)


def _digest(value: Any) -> Any:
    """Return a digest of an object graph; None for what cannot be compared, such as generators."""
    if isinstance(value, dict):
        return {key: _digest(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_digest(item) for item in value]
    if sparse.issparse(value):  # without the flags that SciPy caches
        value = [value.shape, *(array for array in vars(value).values() if isinstance(array, np.ndarray))]
    try:
        return joblib.hash(value)
    except Exception:
        return None


def _changed(digest: Any, value: Any, message: str) -> str:
    return message if _digest(value) != digest else ""


def _changed_state(call: Call, state: Any, subject: Any) -> str:
    """Return whether a failing call has changed its object: its attributes and, where it predicts, its predictions."""
    if call.make_subject is None or _digest(subject) == state:
        return ""
    if not hasattr(subject, "predict"):
        return "the state changed"
    found, expected = (numbers_of(model.predict(X_NEW)) for model in (subject, call.make_subject()))
    return "" if _equal(found, expected) else "the state changed"


def _noise(caught: list[warnings.WarningMessage]) -> str:
    """Return the first warning that a user could not understand: one of NumPy or SciPy about its computations."""
    for warning in caught:
        if issubclass(warning.category, RuntimeWarning | np.exceptions.ComplexWarning):
            return f"{warning.category.__name__}: {warning.message} ({warning.filename}:{warning.lineno})"
    return ""


def _unclear(call: Call, argument: str, value: Any, error: Exception) -> str:
    """Return what is unclear about an error; empty if its type is right and it names the argument."""
    if not isinstance(error, CLEAR_ERRORS):
        return f"raises {type(error).__name__}{_place(error)}"
    if isinstance(error, FileNotFoundError) and str(value) in str(error):
        return ""
    names = (argument, *ALIASES.get(argument, ()), *(call.aliases or {}).get(argument, ()))
    if any(re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", str(error)) for name in names):
        return ""
    return f"the message does not name {argument}{_place(error)}"


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f" ({trace.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno})"


def _invalid(call: Call, result: Any, expected: list[Any] | None) -> str:
    """Return what is wrong with the result of an accepted call: NaN, or another result than the valid call's."""
    parts = numbers_of(result)
    if not call.may_be_nan and any(part.dtype.kind in "fc" and np.isnan(part).any() for part in parts):
        return "the result contains NaN"
    if expected is not None and not _equal(parts, expected):
        return "the result differs from that of the same numbers in an array"
    return ""


def _equal(parts: list[Any], expected: list[Any]) -> bool:
    return _close(_flatten(parts), _flatten(expected))


def _flatten(parts: list[Any]) -> Any:
    """Return all numbers as one array: rows may come in another container."""
    return np.concatenate([part.ravel() for part in parts]) if parts else np.empty(0)


def _close(part: Any, other: Any) -> bool:
    if part.dtype.kind not in "bifu" or other.dtype.kind not in "bifu":
        return np.array_equal(part, other)
    return part.shape == other.shape and np.allclose(
        part.astype(float), other.astype(float), RESULT_TOLERANCE, RESULT_TOLERANCE, equal_nan=True
    )


@contextmanager
def _time_limit() -> Iterator[None]:
    """Raise TimeoutError in a call that takes too long; only in the main thread."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"the call took more than {TIME_LIMIT} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, TIME_LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
