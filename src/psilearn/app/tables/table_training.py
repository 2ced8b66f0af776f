"""Train a model on a table: split the rows, learn the columns from the training rows only, fit or search."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn import IOKR, IOKRCV, KDE, KDECV, OEL, OELCV, Landmarks, kernels
from psilearn.app.tables.column_choice import ColumnOptions, fit_inputs, fit_outputs, read_training_table
from psilearn.app.tables.output_forms import OutputForm
from psilearn.app.tables.table import Table
from psilearn.app.tables.table_formats import read_table
from psilearn.app.tables.table_model import TableModel, file_sha256
from psilearn.kernels import Kernel
from psilearn.utils import hold_out, to_json_value

METHODS: dict[str, tuple[type[Any], type[Any]]] = {"oel": (OEL, OELCV), "kde": (KDE, KDECV), "iokr": (IOKR, IOKRCV)}
MIN_ROWS = 2  # of a training
SET_SCORINGS = ("f1", "jaccard")
RANKING_SCORINGS = ("kendall_tau", "spearman_rho", "pairwise_accuracy")
SCORINGS: dict[str, tuple[str, tuple[str, ...]]] = {  # the default, and those that are not defined for all kinds
    **dict.fromkeys(("labels", "tags"), ("f1", SET_SCORINGS)),
    "classes": ("subset_accuracy", SET_SCORINGS),
    **dict.fromkeys(("orders", "ranks"), ("kendall_tau", RANKING_SCORINGS)),
    "numbers": ("loss", ()),
}
LOSSES = ("mse", "loss", "hamming")  # scores of a search that are minus a loss

Learner = Callable[[Any, Any, Any, OutputForm], "Learned"]
PLAIN = ("Gaussian", "Laplacian", "Linear", "Polynomial", "Dice", "Tanimoto", "Kemeny", "Hamming", "Lehmer")
KERNELS: dict[str, Callable[[], Kernel]] = {
    **{name.lower(): getattr(kernels, name) for name in PLAIN},
    "cosine": lambda: kernels.Linear().normalized(),
    "gaussian-cosine": lambda: kernels.Gaussian(base=kernels.Linear().normalized()),
    "gaussian-tanimoto": kernels.GaussianTanimoto,
}
WITH_WIDTH = ("gaussian", "laplacian", "gaussian-cosine")  # may be followed by γ


@dataclass(frozen=True)
class Learned:
    """A fitted estimator, the candidates of its predictions, and a record of how it was learned."""

    model: Any
    candidates: str | None
    record: dict[str, Any]


@dataclass(frozen=True)
class Split:
    """Row numbers of a table by purpose."""

    train: NDArray[Any]
    calibration: NDArray[Any]
    test: NDArray[Any]


@dataclass(frozen=True)
class SplitOptions:
    """The shares of the rows that are held out, and the random seed."""

    test_size: float = 0.0
    calibration: float = 0.0
    seed: int = 0

    def split(self, n: int) -> Split:
        """Return a random partition of n rows."""
        shares = {"--test-size": self.test_size, "--calibration": self.calibration}
        for name, share in shares.items():
            if not 0 <= share < 1:
                raise ValueError(f"{name} must be a share of the rows, at least 0 and below 1; got {share}.")
        rows, test = self._hold_out(np.arange(n), self.test_size)
        train, calibration = self._hold_out(rows, self.calibration)
        if n < MIN_ROWS:
            raise ValueError(f"The training table has {n} row; at least {MIN_ROWS} are required.")
        if len(train) < MIN_ROWS:
            used = [f"{option} {share:g}" for option, share in shares.items() if share]
            raise ValueError(
                f"{' and '.join(used)} leave{'s' if len(used) == 1 else ''} {len(train)} of {n:,} rows for training; "
                f"at least {MIN_ROWS} are required: hold out fewer."
            )
        return Split(np.sort(train), np.sort(calibration), np.sort(test))

    def _hold_out(self, rows: NDArray[Any], share: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the rows that are kept and those that are held out, in random order."""
        if not share or len(rows) < 2:
            return rows, rows[:0]
        kept, held = hold_out(len(rows), share, self.seed)
        return rows[kept], rows[held]


@dataclass(frozen=True)
class Method:
    """What fit and search have in common: the estimator, its landmarks, the random seed and the device."""

    name: str = "oel"
    landmarks: int | None = None
    output_landmarks: int | None = None
    seed: int = 0
    device: str | None = None

    def check(self, components: object, supervision: object) -> None:
        """Raise a ValueError for an unknown method, or for options that the method does not have."""
        if self.name not in METHODS:
            raise ValueError(f"--method must be one of {', '.join(METHODS)}; got {self.name!r}.")
        if self.name == "iokr" and components is not None:
            raise ValueError("--components has no effect with --method iokr, which keeps all directions.")
        if self.name != "oel" and supervision is not None:
            raise ValueError(f"--supervision has no effect with --method {self.name}.")

    def make(self, is_search: bool, *kernels: Any, **parameters: Any) -> Any:
        """Return an estimator or a search; a parameter that is None keeps its default."""
        inputs, outputs = self.landmarks, self.output_landmarks
        return METHODS[self.name][is_search](
            *kernels,
            **{name: value for name, value in parameters.items() if value is not None},
            input_landmarks=None if inputs is None else Landmarks(inputs, "uniform", self.seed),
            output_landmarks=None if outputs is None else Landmarks(outputs, "pivoted", self.seed),
            device=self.device,
            verbose=1,
        )


@dataclass(frozen=True)
class Fit:
    """Fits an estimator with given parameters."""

    method: Method
    input_kernel: Kernel | None
    output_kernel: Kernel | None
    alpha: float
    components: int | None = None
    supervision: float | None = None
    candidates: str | None = None

    def __post_init__(self) -> None:
        self.method.check(self.components, self.supervision)

    def __call__(self, X: Any, Y: Any, unlabeled: Any, form: OutputForm) -> Learned:
        """Return the fitted estimator."""
        output_kernel = form.default_kernel() if self.output_kernel is None else self.output_kernel
        chosen = {"alpha": self.alpha, "n_components": self.components, "supervision": self.supervision}
        model = self.method.make(False, self.input_kernel, output_kernel, **chosen).fit(X, Y, unlabeled)
        return Learned(model, self.candidates, {"parameters": _describe(model)})


@dataclass(frozen=True)
class Search:
    """Chooses the parameters of an estimator by validation."""

    method: Method
    input_kernels: Sequence[Kernel] | None
    output_kernels: Sequence[Kernel] | None
    alphas: Sequence[float] | None = None
    components: Sequence[int] | None = None
    supervisions: Sequence[float] | None = None
    candidates: Sequence[str] | None = None
    scoring: str | None = None
    folds: int | None = None
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        self.method.check(self.components, self.supervisions)

    def __call__(self, X: Any, Y: Any, unlabeled: Any, form: OutputForm) -> Learned:
        """Return the best estimator."""
        name = self.scoring or SCORINGS[form.kind][0]
        _check_scoring(name, form.kind)
        if self.folds is not None and self.folds > X.shape[0]:
            raise ValueError(f"--folds must be at most the number of training rows, {X.shape[0]}; got {self.folds}.")
        search = self.method.make(
            True,
            self.input_kernels,
            [form.default_kernel()] if self.output_kernels is None else self.output_kernels,
            alphas=self.alphas,
            n_components=self.components,
            supervisions=self.supervisions,
            cv=self.folds,
            scoring=name,
            candidates=self.candidates,
            n_jobs=self.n_jobs,
            random_state=self.method.seed,
        ).fit(X, Y, unlabeled)
        best = search.best_params_.get("candidates", self.candidates[0] if self.candidates else None)
        record = {"parameters": _describe(search.best_estimator_), "search": _describe_search(search, name)}
        return Learned(search.best_estimator_, best, record)


def _check_scoring(name: str, kind: str) -> None:
    """Raise an error for a metric of another kind of outputs."""
    if name in (*SET_SCORINGS, *RANKING_SCORINGS) and name not in SCORINGS[kind][1]:
        allowed = ", ".join((*SCORINGS[kind][1], "subset_accuracy", "hamming", "loss", "mse"))
        raise ValueError(f"--scoring {name} is not defined for {kind}; use one of {allowed} or top_1.")


def train(
    path: Path, options: ColumnOptions, splits: SplitOptions, learn: Learner, unlabeled: Path | None = None
) -> tuple[TableModel, Table]:
    """Return a model that was trained on a file, and the rows that were held out to test it.

    Everything is learned from the training rows: vocabularies, means, categories, kernel widths and the estimator.
    """
    table, columns = read_training_table(path, options)
    digest = file_sha256(path)
    split = splits.split(len(table))
    rows = table.take(split.train)
    inputs, outputs = fit_inputs(rows, columns, options), fit_outputs(rows, columns, options)
    further = None
    if unlabeled is not None:
        others = read_table(unlabeled, outputs.text_columns)
        outputs = outputs.extend(others)
        further = outputs.encode(others)
    learned = learn(inputs.transform(rows), outputs.encode(rows), further, outputs)
    if len(split.calibration):
        held = table.take(split.calibration)
        _calibrate(learned, inputs.transform(held), outputs.encode(held), outputs)
    record = {
        "file": path.name,
        "file_sha256": digest,
        "rows": len(split.train),
        "calibration_rows": len(split.calibration),
        "test_rows": len(split.test),
        "unlabeled_rows": 0 if unlabeled is None else len(others),
        "seed": splits.seed,
        "method": type(learned.model).__name__,
        **learned.record,
    }
    training: Any = to_json_value(record)
    return TableModel(learned.model, inputs, outputs, learned.candidates, training), table.take(split.test)


def _calibrate(learned: Learned, X: Any, Y: Any, form: OutputForm) -> None:
    """Calibrate conformal sets; rows with tags that no training row has are left out."""
    if Y.shape[1] > form.width:
        known = np.asarray(Y[:, form.width :].sum(axis=1)).ravel() == 0
        if not known.any():
            raise ValueError(
                f"--calibration: each of the {len(known)} rows that were held out has tags that no training row has; "
                f"hold out more rows, or use another --seed."
            )
        X, Y = X[known], Y[known][:, : form.width]
    learned.model.calibrate(X, Y, learned.candidates)


def _describe_search(search: Any, scoring: str) -> dict[str, Any]:
    """Return the best score, its standard error, and the best score for each λ and p."""
    results, sign = search.cv_results_, -1 if scoring in LOSSES else 1
    splits = np.array([results[name] for name in results if name.startswith("split") and name.endswith("_test_score")])
    errors = splits.std(axis=0, ddof=1) / np.sqrt(len(splits)) if len(splits) > 1 else np.full(splits.shape[1], np.nan)
    means, best = results["mean_test_score"], search.best_index_

    def curve(name: str) -> list[list[float]]:
        values = results.get(f"param_{name}")
        if values is None:
            return []
        tops = [max(np.flatnonzero(values == value), key=lambda row: means[row]) for value in np.unique(values)]
        return [[float(values[row]), float(sign * means[row]), float(errors[row])] for row in tops]

    return {
        "scoring": scoring,
        "is_loss": sign < 0,
        "settings": len(means),
        "score": float(sign * means[best]),
        "standard_error": float(errors[best]),
        "curves": {"λ": curve("alpha"), "p": curve("n_components"), "c": curve("supervision")},
        "edges": list(search.edges_),
    }


def _describe(model: Any) -> dict[str, Any]:
    """Return the parameters of a fitted estimator."""
    names = ("alpha", "n_components", "supervision")
    values = {name: getattr(model, name) for name in names if hasattr(model, name)}
    values["input_kernel"] = _describe_kernel(model.regression_.kernel)
    values["output_kernel"] = _describe_kernel(model.output_kernel_)
    return {**values, "n_components": model.n_components_}


def _describe_kernel(kernel: Kernel) -> str:
    """Return a kernel with short numbers, and with the width that it took from the data."""
    text = re.sub(r"[0-9]+\.[0-9]{5,}(e[-+]?[0-9]+)?", lambda match: f"{float(match[0]):.4g}", repr(kernel))
    gamma = getattr(kernel, "gamma_", None) if getattr(kernel, "gamma", None) == "median" else None
    return text if gamma is None else f"{text} with γ = {gamma:.4g}"


def make_kernel(text: str, option: str) -> Kernel:
    """Return the kernel of a name, or of a name and its parameter γ: ``gaussian:0.5``."""
    name, _, gamma = text.strip().partition(":")
    if name not in KERNELS or (gamma and name not in WITH_WIDTH):
        listed = ", ".join(KERNELS)
        raise ValueError(
            f"{option}: there is no kernel {text!r}; the kernels are {listed}, and gaussian:0.5 for γ = 0.5."
        )
    kernel = KERNELS[name]()
    if not gamma:
        return kernel
    try:
        return kernel.set_params(gamma=float(gamma))
    except ValueError as error:
        raise ValueError(f"{option}: γ in {text!r} must be a number.") from error


def make_kernels(texts: list[str] | None, option: str) -> list[Kernel] | None:
    """Return the kernels of several names, each also with commas; None if there are none."""
    names = [name for text in texts or () for name in text.split(",")]
    return [make_kernel(name, option) for name in names] or None
