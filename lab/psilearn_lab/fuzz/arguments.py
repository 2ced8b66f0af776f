"""Wrong arguments: the calls in the examples of all public names, with one argument at a time replaced.

The examples of the documentation are run with every call recorded whose function, class or object is public. So each
public name that has an example is attacked, by each of its parameters, also those that the example leaves at their
default. A call must succeed with a result without NaN, or raise an error that names the argument. It must not warn
about its computations, run for long, change its arguments or, when it fails, its object.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import io
import os
import re
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from importlib import import_module
from itertools import count
from pathlib import Path
from pkgutil import walk_packages
from typing import Any
from unittest.mock import patch

import joblib
import numpy as np
from scipy import sparse
from sklearn.base import clone

from psilearn_lab.fuzz.harness import ACCEPTED, CLEAR, DEFECT, Attempt, Result, defect_of
from psilearn_lab.fuzz.values import Hostile, hostile_values

PACKAGES = ("psilearn", "psilearn_chem")
NOT_ATTACKED = ("psilearn.app", "psilearn.utils")  # options and requests instead; helpers whose callers validate


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LAYERS = _words(
    "Algorithm1 Embedding KernelRegression KernelRidge KnownOutputs NystromPath NystromRidge OutputCoordinates "
    "OutputStream PathDecoder SklearnRegression SklearnRegressor AllRankings Problem Ranking "
    "ConsistentLabelSets NearLabelSets StringBeam EditedOutputs TopK SharedCandidates as_candidates ranked_candidates "
    "join_rankings prediction_sets scores_of_truth ArrayFile FileFormat Codec register register_class "
    "pack_texts unpack_texts"
)  # contracts between two layers of the library, and records of results: their callers validate
LAYER_METHODS = _words(
    "block_of_checked diag_of_checked check_same_kind to_device check_full features n_features n_items to_form_of "
    "path_decoder for_embedding require_embedding validate ranked positions restrict take groups outputs_of"
)
PASSED_ON = frozenset(("name", "compute", "embedding"))  # arguments by which the library calls itself
CLEAR_ERRORS = (ValueError, TypeError, FileNotFoundError, FileExistsError, IsADirectoryError, MemoryError)
ROWS = ("objects", "one finite number per")  # a kernel names itself and the objects whose value is not finite
KERNELS = ("Pairwise", "kernel function", "output kernels")
ALIASES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ["A", "B", "X", "y", "Y", "candidates", "unlabeled", "outputs", "Y_true", "Y_pred", "sets", "examples"],
        (*ROWS, "candidates"),
    ),
    **dict.fromkeys(
        ["input_kernel", "output_kernel", "input_kernels", "output_kernels", "kernel", "function"], KERNELS
    ),
    "A": ("X", *ROWS),  # the name that the example passes on
    "Y_true": ("A", *ROWS),
    "Y_pred": ("B", *ROWS),
    "y": ("the known outputs", *ROWS),
    "adducts": ("adduct",),
    "metric": ("distance function",),
    "text": ("adduct", "formula"),
    "weights": ("Scaled",),
    "mz": ("m/z",),
    "intensity": ("intensities",),
    **dict.fromkeys(["above_precursor", "around_precursor", "noise", "max_peaks"], ("min_peaks",)),
}  # what messages may call an argument instead of its name
ENDLESS = frozenset(
    ["epochs", "energy_epochs", "steps", "n_rounds", "n_chains", "n_unlabeled", "unlabeled", "max_rounds", "max_steps"]
)
TIME_LIMIT = 20  # seconds per call; a usual one takes milliseconds
RESULT_TOLERANCE = 1e-6


@dataclass
class Call:
    """A valid call: a function, or a method of a subject whose state a failing call must not change."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    subject: Any = None
    fresh: frozenset[str] = frozenset()  # arguments that are paths of files to be written

    def run(self, arguments: dict[str, Any], subject: Any = None) -> Any:
        """Call the function, and consume what it returns if that is an iterator."""
        result = self.function(**arguments) if subject is None else self.function(subject, **arguments)
        return list(result) if isinstance(result, Iterator) else result

    def valid_arguments(self) -> dict[str, Any]:
        """Return copies of the arguments, so that no call sees what another one did to them."""
        return deepcopy(self.arguments) | {name: _new_path() for name in self.fresh}

    def attempts(self) -> Iterator[tuple[str, Hostile]]:
        """Yield each argument with each of its hostile values."""
        for argument, valid in self.arguments.items():
            for hostile in () if argument in PASSED_ON else hostile_values(deepcopy(valid)):
                starts_processes = argument == "n_jobs" and "-1" in hostile.label  # all cores: valid, and slow
                is_endless = argument in ENDLESS and hostile.label == "10**30"
                if not (starts_processes or is_endless or (argument in self.fresh and hostile.label == "text")):
                    yield argument, hostile


def public_names() -> dict[str, Any]:
    """Return the functions and classes that ``__all__`` of the public packages list, by their shortest name."""
    found: dict[int, tuple[str, Any]] = {}
    for package in map(import_module, PACKAGES):
        modules = (module.name for module in walk_packages(package.__path__, f"{package.__name__}."))
        for name in [package.__name__, *modules]:
            if "._" in name or name.startswith(NOT_ATTACKED):
                continue
            module = import_module(name)
            for public in getattr(module, "__all__", ()):
                value = getattr(module, public)
                if inspect.isclass(value) or inspect.isroutine(value):
                    found.setdefault(id(value), (f"{name}.{public}", value))
    return dict(found.values())


class Recorder(ast.NodeTransformer):
    """Runs examples, and keeps the first call of each public function, class and method in them."""

    def __init__(self) -> None:
        self.calls: dict[str, Call] = {}
        self.public = public_names()
        self._names = {id(value): name for name, value in self.public.items()}

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Replace f(...) by record(f, ...)."""
        self.generic_visit(node)
        return ast.copy_location(ast.Call(ast.Name("record", ast.Load()), [node.func, *node.args], node.keywords), node)

    def run_examples(self) -> None:
        """Run the examples of all public names and of the public methods of classes."""
        for value in self.public.values():
            members = inspect.getmembers(value, callable) if inspect.isclass(value) else []
            for documented in [value, *(member for name, member in members if not name.startswith("_"))]:
                self._run(inspect.getdoc(documented) or "")

    def _run(self, text: str) -> None:
        names = {"record": self.record, "__name__": "examples"}
        for example in doctest.DocTestParser().get_examples(text):
            if example.options.get(doctest.SKIP):
                continue
            tree = ast.parse(example.source)
            defines = any(isinstance(node, ast.ClassDef | ast.FunctionDef) for node in tree.body)
            tree = tree if defines else ast.fix_missing_locations(self.visit(tree))
            with redirect_stdout(io.StringIO()), suppress(Exception):  # without an optional package
                exec(compile(tree, "example", "exec"), names)

    def record(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function and keep the call if it is public."""
        name = self._name_of(function)
        call = None if name is None or name in self.calls else _describe_call(name, function, args, kwargs)
        if call is None:
            return function(*args, **kwargs)
        paths = {key: Path(value) for key, value in call.arguments.items() if isinstance(value, str | Path) and value}
        absent = [key for key, path in paths.items() if _is_absent(path)]
        result = function(*args, **kwargs)
        call.fresh = frozenset(key for key in absent if not _is_absent(paths[key]))
        self._keep(call)
        return result

    def _keep(self, call: Call) -> None:
        subject, arguments = call.subject, call.arguments
        if hasattr(call.function, "get_params"):  # such a constructor only stores
            return
        self.calls[call.name] = call
        name = f"{call.name.rpartition('.')[0]} (parameters)"
        if not hasattr(subject, "get_params") or name in self.calls or not subject.get_params(deep=False):
            return
        if call.name.endswith((".fit", ".__call__")):

            def refit(**parameters: Any) -> Any:
                model = clone(subject).set_params(**parameters)
                values = deepcopy(arguments)
                if call.name.endswith(".fit"):
                    fitted = call.function(model, **values)
                    return fitted.predict(values["X"]) if hasattr(fitted, "predict") else None
                with suppress(AttributeError):
                    model = model.fit(next(iter(values.values())))
                return call.function(model, **values)

            self.calls[name] = Call(name, refit, subject.get_params(deep=False))

    def _name_of(self, function: Any) -> str | None:
        """Return the public name of a function, class, method or object that is called; None if it is not attacked."""
        if id(function) in self._names:
            name = self._names[id(function)]
            return None if name.rpartition(".")[2] in LAYERS else name
        _, subject = _split_method(function)
        owner = subject if subject is not None else getattr(function, "__self__", None)
        owner = owner if inspect.isclass(owner) else type(owner)
        method = getattr(function, "__name__", "__call__")
        for base in owner.__mro__:
            if id(base) in self._names:
                skipped = base.__name__ in LAYERS or method in LAYER_METHODS or not hasattr(base, method)
                return None if skipped else f"{self._names[id(base)]}.{method}"
        return None


def _describe_call(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """Return a call with copies of all arguments, also of defaults; None if they cannot be copied."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
        given = [p.name for p in bound.signature.parameters.values() if p.kind not in kinds]
        given = [key for key in given if repr(bound.arguments[key]) != "<factory>"]  # of a dataclass
        bare, subject = _split_method(function)
        return Call(name, bare, {key: deepcopy(bound.arguments[key]) for key in given}, deepcopy(subject))
    except Exception:  # such as for a generator
        return None


def _split_method(function: Any) -> tuple[Callable[..., Any], Any]:
    """Return a method as a function and its subject; for functions, classes and class methods the subject is None."""
    subject = getattr(function, "__self__", None)
    if inspect.ismethod(function) and not inspect.isclass(subject):
        return function.__func__, subject
    if inspect.isroutine(function) or inspect.isclass(function):
        return function, None
    return type(function).__call__, function


def _is_absent(path: Path) -> bool:
    return not any(path.iterdir()) if path.is_dir() else not path.exists()


_COUNT = count()


def _new_path() -> Path:
    return Path(f"written-{next(_COUNT)}")


@cache
def public_calls() -> tuple[Call, ...]:
    """Return the recorded calls, sorted by name."""
    recorder, kept = Recorder(), patch.object(tempfile.TemporaryDirectory, "_rmtree")  # recorded calls read the files
    with warnings.catch_warnings(action="ignore"), patch("tempfile.tempdir", str(Path.cwd())), kept:
        recorder.run_examples()
    return tuple(call for _, call in sorted(recorder.calls.items()))


def select_attempts(seed: int, share: float = 1.0, only: str = "") -> list[tuple[int, str, Hostile]]:
    """Return numbers of calls with an argument and its hostile value: the calls in random order, a share of each."""
    rng = np.random.default_rng(seed)
    calls, chosen = public_calls(), []
    for number in rng.permutation(len(calls)).tolist():
        for argument, hostile in calls[number].attempts() if only in calls[number].name else ():
            if rng.random() < share:
                chosen.append((number, argument, hostile))
    return chosen


class Arguments:
    """The attempts of a child process, which records the calls in a folder of its own."""

    def __init__(self, seed: int, share: float = 1.0, only: str = "") -> None:
        self.selection = seed, share, only

    def __call__(self, folder: Path) -> Attempt:
        """Prepare the attempts; see :func:`run_attempts`."""
        os.environ["MPLBACKEND"] = "Agg"
        os.chdir(tempfile.mkdtemp(dir=folder))  # some calls write to relative paths
        selected = select_attempts(*self.selection)
        current: tuple[int, Any] = (-1, None)

        def attempt(index: int) -> Result:
            nonlocal current
            if index >= len(selected):
                return Result("end")
            number, argument, hostile = selected[index]
            call = public_calls()[number]
            if current[0] != number:
                try:
                    current = number, numbers_of(call.run(call.valid_arguments(), deepcopy(call.subject)))
                except Exception as error:
                    return defect_of(f"the call of the example {call.name} cannot be repeated", error)
            return try_argument(call, argument, hostile, current[1])

        return attempt


def try_argument(call: Call, argument: str, hostile: Hostile, expected: list[Any]) -> Result:
    """Replace one argument by a hostile value, and judge what the call does."""
    arguments, subject = {**call.valid_arguments(), argument: hostile.value}, deepcopy(call.subject)
    before, state = {name: _digest(value) for name, value in arguments.items()}, _public_state(subject)
    result, error = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with _time_limit():
                result = call.run(arguments, subject)
        except Exception as raised:
            error = raised
    defect = _noise(caught)
    if any(_digest(arguments[name]) != digest for name, digest in before.items() if name not in ("library", "search")):
        defect = defect or "an argument was modified"
    what = f"{call.name}({argument}={hostile.label})"
    if error is not None:
        after = _public_state(subject)
        changed = [name for name in state if after.get(name) != state[name]]
        defect = (
            _unclear(argument, hostile.value, error) or defect or (f"the state changed: {changed}" if changed else "")
        )
        return Result(DEFECT, f"{what}: {defect_of(defect, error).reason}", what) if defect else Result(CLEAR)
    defect = defect or _invalid(result, expected if hostile.keeps_result else None)
    return Result(DEFECT, f"{what}: {defect}", what) if defect else Result(ACCEPTED)


def numbers_of(result: Any) -> list[Any]:
    """Return all arrays of numbers in a result, and its strings as they are."""
    if is_dataclass(result) and not isinstance(result, type):
        return [part for item in fields(result) for part in numbers_of(getattr(result, item.name, None))]
    if isinstance(result, dict):
        return [part for value in result.values() for part in numbers_of(value)]
    if isinstance(result, list | tuple):
        return [part for value in result for part in numbers_of(value)]
    result = result.toarray() if sparse.issparse(result) else result
    if hasattr(result, "detach"):
        result = result.detach().cpu().numpy()
    if isinstance(result, str | int | float | np.ndarray | np.generic):
        return [np.asarray(result)]
    return [np.asarray(result)] if hasattr(result, "iloc") else []


def _digest(value: Any) -> Any:
    """Return a digest of an object graph; None for what cannot be compared, such as generators."""
    if isinstance(value, dict):
        return {key: _digest(item) for key, item in value.items()}
    if sparse.issparse(value):  # without the flags that SciPy caches
        value = [value.shape, *(array for array in vars(value).values() if isinstance(array, np.ndarray))]
    if hasattr(value, "__dict__") and not callable(value):
        return _public_state(value)
    try:
        return joblib.hash(value)
    except Exception:
        return None


def _public_state(subject: Any) -> dict[str, Any]:
    """Return digests of the public attributes of an object; caches are private or appear later."""
    state = {} if isinstance(subject, type) else getattr(subject, "__dict__", {})
    digests = {}
    for name, value in state.items():
        if not (name.startswith("_") or isinstance(getattr(type(subject), name, None), cached_property)):
            with suppress(Exception):
                is_own = type(value).__module__.startswith(PACKAGES) and hasattr(value, "__dict__")
                digests[name] = _public_state(value) if is_own else joblib.hash(value)
    return digests


def _noise(caught: list[warnings.WarningMessage]) -> str:
    """Return the first warning that a user could not understand: one of NumPy or SciPy about its computations."""
    for warning in caught:
        if issubclass(warning.category, RuntimeWarning | np.exceptions.ComplexWarning):
            return f"{warning.category.__name__}: {warning.message} ({warning.filename}:{warning.lineno})"
    return ""


def _unclear(argument: str, value: Any, error: Exception) -> str:
    """Return what is unclear about an error; empty if its type is right and it names the argument."""
    if not isinstance(error, CLEAR_ERRORS):
        return "another exception"
    if isinstance(error, FileNotFoundError) and str(value) in str(error):
        return ""
    names = (argument, *ALIASES.get(argument, ()))
    if any(re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", str(error)) for name in names):
        return ""
    return f"the message does not name {argument}"


def _invalid(result: Any, expected: list[Any] | None) -> str:
    """Return what is wrong with the result of an accepted call: NaN, or another result than the valid call's."""
    parts = numbers_of(result)
    if any(part.dtype.kind in "fc" and np.isnan(part).any() for part in parts):
        return "the result contains NaN"
    if expected is not None and not _are_close(*map(_flatten, (parts, expected))):
        return "the result differs from that of the same numbers in an array"
    return ""


def _flatten(parts: list[Any]) -> Any:
    """Return all numbers as one array: rows may come in another container."""
    return np.concatenate([part.ravel() for part in parts]) if parts else np.empty(0)


def _are_close(part: Any, other: Any) -> bool:
    if part.dtype.kind not in "bifu" or other.dtype.kind not in "bifu":
        return np.array_equal(part, other)
    close: dict[str, Any] = {"rtol": RESULT_TOLERANCE, "atol": RESULT_TOLERANCE, "equal_nan": True}
    return part.shape == other.shape and np.allclose(part.astype(float), other.astype(float), **close)


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
