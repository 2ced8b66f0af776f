"""Train a model on a table: split the rows, learn the columns from the training rows only, fit or search."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn import IOKR, IOKRCV, KDE, KDECV, OEL, OELCV, Landmarks
from psilearn.app.tables.column_choice import ColumnOptions, fit_inputs, fit_outputs, read_training_table
from psilearn.app.tables.output_forms import OutputForm
from psilearn.app.tables.table import Table
from psilearn.app.tables.table_formats import read_table
from psilearn.app.tables.table_model import TableModel, file_sha256
from psilearn.kernels import Kernel
from psilearn.utils import hold_out, to_json_value

METHODS: dict[str, tuple[type[Any], type[Any]]] = {"oel": (OEL, OELCV), "kde": (KDE, KDECV), "iokr": (IOKR, IOKRCV)}
DEFAULT_SCORINGS = {
    "labels": "f1",
    "tags": "f1",
    "classes": "subset_accuracy",
    "orders": "kendall_tau",
    "ranks": "kendall_tau",
    "numbers": "loss",
}
MIN_ROWS = 2  # of a training
SET_SCORINGS = ("f1", "jaccard")
RANKING_SCORINGS = ("kendall_tau", "spearman_rho", "pairwise_accuracy")
SCORINGS: dict[str, tuple[str, ...]] = {  # that are defined for a kind of outputs only
    **dict.fromkeys(("labels", "tags", "classes"), SET_SCORINGS),
    **dict.fromkeys(("orders", "ranks"), RANKING_SCORINGS),
    "numbers": (),
}
LOSSES = ("mse", "loss", "hamming")  # scores of a search that are minus a loss

Learner = Callable[[Any, Any, Any, OutputForm], "Learned"]


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
        for name, share in (("--test-size", self.test_size), ("--calibration", self.calibration)):
            if not 0 <= share < 1:
                raise ValueError(f"{name} must be a share of the rows, at least 0 and below 1; got {share}.")
        rows, empty = np.arange(n), np.array([], dtype=np.intp)
        rows, test = hold_out(n, self.test_size, self.seed) if self.test_size and n > 1 else (rows, empty)
        if not self.calibration or len(rows) < 2:
            return self._check_split(Split(np.sort(rows), empty, np.sort(test)), n)
        kept, held = hold_out(len(rows), self.calibration, self.seed)
        return self._check_split(Split(np.sort(rows[kept]), np.sort(rows[held]), np.sort(test)), n)

    def _check_split(self, split: Split, n: int) -> Split:
        """Return the split if enough rows are left for training."""
        if len(split.train) >= MIN_ROWS:
            return split
        if n < MIN_ROWS:
            raise ValueError(f"The training table has {n} row; at least {MIN_ROWS} are required.")
        shares = {"--test-size": self.test_size, "--calibration": self.calibration}
        used = [f"{option} {share:g}" for option, share in shares.items() if share]
        raise ValueError(
            f"{' and '.join(used)} leave{'s' if len(used) == 1 else ''} {len(split.train)} of {n:,} rows for training; "
            f"at least {MIN_ROWS} are required: hold out fewer."
        )


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

    def shared_parameters(self) -> dict[str, Any]:
        """Return the parameters that an estimator and a search have in common."""
        return {
            "input_landmarks": None if self.landmarks is None else Landmarks(self.landmarks, "uniform", self.seed),
            "output_landmarks": (
                None if self.output_landmarks is None else Landmarks(self.output_landmarks, "pivoted", self.seed)
            ),
            "device": self.device,
            "verbose": 1,
        }


def make_fit(
    method: Method,
    input_kernel: Kernel | None,
    output_kernel: Kernel | None,
    *,
    alpha: float,
    components: int | None,
    supervision: float | None,
    candidates: str | None,
) -> Learner:
    """Return a function that fits an estimator with given parameters."""
    method.check(components, supervision)
    chosen = {"n_components": components, "supervision": supervision}
    parameters = {"alpha": alpha, **{name: value for name, value in chosen.items() if value is not None}}

    def learn(X: Any, Y: Any, unlabeled: Any, form: OutputForm) -> Learned:
        cls, _ = METHODS[method.name]
        kernel = form.default_kernel() if output_kernel is None else output_kernel
        model = cls(input_kernel, kernel, **parameters, **method.shared_parameters()).fit(X, Y, unlabeled)
        return Learned(model, candidates, {"parameters": _describe(model)})

    return learn


def make_search(
    method: Method,
    input_kernels: Sequence[Kernel] | None,
    output_kernels: Sequence[Kernel] | None,
    *,
    alphas: Sequence[float] | None,
    components: Sequence[int] | None,
    supervisions: Sequence[float] | None,
    candidates: Sequence[str] | None,
    scoring: str | None,
    folds: int | None,
    n_jobs: int | None,
) -> Learner:
    """Return a function that chooses the parameters of an estimator by validation."""
    method.check(components, supervisions)
    grids = {"n_components": components, "supervisions": supervisions}
    parameters = {name: value for name, value in grids.items() if value is not None}

    def learn(X: Any, Y: Any, unlabeled: Any, form: OutputForm) -> Learned:
        _, cls = METHODS[method.name]
        name = scoring or DEFAULT_SCORINGS[form.kind]
        check_scoring(name, form.kind)
        if folds is not None and folds > X.shape[0]:
            raise ValueError(f"--folds must be at most the number of training rows, {X.shape[0]}; got {folds}.")
        search = cls(
            input_kernels,
            [form.default_kernel()] if output_kernels is None else output_kernels,
            alphas=alphas,
            **parameters,
            cv=folds,
            scoring=name,
            candidates=candidates,
            n_jobs=n_jobs,
            random_state=method.seed,
            **method.shared_parameters(),
        ).fit(X, Y, unlabeled)
        best = search.best_params_.get("candidates", candidates[0] if candidates else None)
        record = {"parameters": _describe(search.best_estimator_), "search": describe_search(search, name)}
        return Learned(search.best_estimator_, best, record)

    return learn


def check_scoring(name: str, kind: str) -> None:
    """Raise an error for a metric of another kind of outputs."""
    if name in (*SET_SCORINGS, *RANKING_SCORINGS) and name not in SCORINGS[kind]:
        allowed = ", ".join((*SCORINGS[kind], "subset_accuracy", "hamming", "loss", "mse"))
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
    return TableModel(learned.model, inputs, outputs, learned.candidates, record), table.take(split.test)


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


def describe_search(search: Any, scoring: str) -> dict[str, Any]:
    """Return the best score, its standard error, and the best score for each λ and p, as JSON data."""
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

    description = {
        "scoring": scoring,
        "is_loss": sign < 0,
        "settings": len(means),
        "score": float(sign * means[best]),
        "standard_error": float(errors[best]),
        "curves": {"λ": curve("alpha"), "p": curve("n_components"), "c": curve("supervision")},
        "edges": list(search.edges_),
    }
    described: dict[str, Any] = to_json_value(description)  # type: ignore[assignment]
    return described


def _describe(model: Any) -> dict[str, Any]:
    """Return the parameters of a fitted estimator as JSON data."""
    names = ("alpha", "n_components", "supervision")
    values = {name: getattr(model, name) for name in names if hasattr(model, name)}
    kernels = {
        "input_kernel": _describe_kernel(model.regression_.kernel),
        "output_kernel": _describe_kernel(model.output_kernel_),
    }
    described: dict[str, Any] = to_json_value({**kernels, **values, "n_components": model.n_components_})  # type: ignore[assignment]
    return described


def _describe_kernel(kernel: Kernel) -> str:
    """Return a kernel with short numbers, and with the width that it took from the data."""
    text = re.sub(r"[0-9]+\.[0-9]{5,}(e[-+]?[0-9]+)?", lambda match: f"{float(match[0]):.4g}", repr(kernel))
    gamma = getattr(kernel, "gamma_", None) if getattr(kernel, "gamma", None) == "median" else None
    return text if gamma is None else f"{text} with γ = {gamma:.4g}"
