"""Metrics of a model on a table with known outputs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from psilearn import metrics
from psilearn.app.tables.output_forms import ClassColumns, LabelColumns, NumberOutputs, OutputForm, TagColumn
from psilearn.app.tables.table import Table, require_columns
from psilearn.app.tables.table_model import TableModel
from psilearn.utils import match

HIGHER, LOWER = "higher is better", "lower is better"


@dataclass(frozen=True)
class Metric:
    """A metric with its standard error."""

    name: str
    value: metrics.Mean
    direction: str


@dataclass(frozen=True)
class OutputRow:
    """The quality of one output: a label, a class or a column of numbers."""

    name: str
    count: int  # rows in which it occurs
    value: float


@dataclass(frozen=True)
class Evaluation:
    """What a model achieves on the rows of a table."""

    n_rows: int
    metrics: Sequence[Metric]
    outputs: Sequence[OutputRow]
    output_metric: str  # the name of the values of ``outputs``
    distances: NDArray[np.float64]  # of each prediction
    is_correct: NDArray[np.bool_]  # whether it is exactly the true output
    known_share: float  # the share of rows whose true output is a known output of the model


def evaluate(model: TableModel, table: Table) -> Evaluation:
    """Predict the outputs of a table that has the true ones, and compare them."""
    require_columns(table, model.outputs.names)
    X, truth = model.inputs.transform(table), model.outputs.encode(table)
    top = model.model.predict_topk(X, 1, model.candidates)
    known = float(np.mean(match(*_same_width(truth, model.model.candidates_.outputs)) >= 0))
    truth, predicted = _same_width(truth, top.nearest)
    rated = _metrics(model.outputs, truth, predicted)
    loss = metrics.kernel_loss(truth, predicted, model.model.output_kernel_)
    rated.append(Metric("output-kernel loss", loss, LOWER))
    rows, name = _rate_outputs(model.outputs, truth, predicted)
    distances = np.asarray(top.distances[:, 0], dtype=np.float64)
    return Evaluation(len(table), rated, rows, name, distances, _are_equal(truth, predicted), known)


def _same_width(truth: Any, predicted: Any) -> tuple[Any, Any]:
    """Return both with the columns of tags that were not seen in training, which no prediction has."""
    missing = truth.shape[1] - predicted.shape[1]
    if missing <= 0:
        return truth, predicted
    return truth, sparse.hstack([predicted, sparse.csr_matrix((predicted.shape[0], missing), dtype=np.int8)], "csr")


def _are_equal(truth: Any, predicted: Any) -> NDArray[np.bool_]:
    """Return for each row whether both are equal."""
    different = sparse.csr_matrix(truth) != sparse.csr_matrix(predicted)
    return np.asarray(different.sum(axis=1)).ravel() == 0


def _metrics(form: OutputForm, truth: Any, predicted: Any) -> list[Metric]:
    """Return the usual metrics of a kind of outputs."""
    if isinstance(form, ClassColumns):
        return _class_metrics(form, truth, predicted)
    if isinstance(form, NumberOutputs):
        return _number_metrics(form, truth, predicted)
    if isinstance(form, LabelColumns | TagColumn):
        return [
            Metric("F1 of label sets", metrics.f1_score(truth, predicted), HIGHER),
            Metric("Jaccard score", metrics.jaccard_score(truth, predicted), HIGHER),
            Metric("exactly correct sets", metrics.subset_accuracy(truth, predicted), HIGHER),
            Metric("Hamming loss", metrics.hamming_loss(truth, predicted), LOWER),
        ]
    return [
        Metric("Kendall's τ", metrics.kendall_tau(truth, predicted), HIGHER),
        Metric("Spearman's ρ", metrics.spearman_rho(truth, predicted), HIGHER),
        Metric("pairs in the right order", metrics.pairwise_accuracy(truth, predicted), HIGHER),
    ]


def _class_metrics(form: ClassColumns, truth: Any, predicted: Any) -> list[Metric]:
    equal = [(truth[:, a:b] == predicted[:, a:b]).all(axis=1) for a, b in itertools.pairwise(form.starts)]
    named = zip(form.names, equal, strict=True)
    rated = [Metric(f"accuracy of {name}", metrics.Mean(part), HIGHER) for name, part in named]
    if len(equal) > 1:
        rated.insert(0, Metric("all classes correct", metrics.Mean(np.all(equal, axis=0)), HIGHER))
    return rated


def _number_metrics(form: NumberOutputs, truth: Any, predicted: Any) -> list[Metric]:
    errors = np.abs(form.unscale(truth) - form.unscale(predicted))
    if len(form.names) > 5:
        return [Metric("mean absolute error of all columns", metrics.Mean(errors.mean(axis=1)), LOWER)]
    named = zip(form.names, errors.T, strict=True)
    return [Metric(f"mean absolute error of {name}", metrics.Mean(column), LOWER) for name, column in named]


def _rate_outputs(form: OutputForm, truth: Any, predicted: Any) -> tuple[list[OutputRow], str]:
    """Return one row per label, class or column of numbers, the most frequent first."""
    if isinstance(form, NumberOutputs):
        return _rate_numbers(form, truth, predicted), "R²"
    if isinstance(form, LabelColumns):
        names = list(form.names)
    elif isinstance(form, TagColumn):
        names = [*form.tags, *("a tag not seen in training" for _ in range(truth.shape[1] - form.width))]
    elif isinstance(form, ClassColumns):
        names = [f"{n}: {c}" for n, classes in zip(form.names, form.classes, strict=True) for c in classes]
    else:
        return [], ""
    T, P = sparse.csr_matrix(truth, dtype=np.int64), sparse.csr_matrix(predicted, dtype=np.int64)
    both, n_true, n_predicted = (np.asarray(M.sum(axis=0)).ravel() for M in (T.multiply(P), T, P))
    f1 = 2 * both / np.maximum(1, n_true + n_predicted)
    rows = [OutputRow(*row) for row in zip(names, n_true.tolist(), f1.tolist(), strict=True)]
    return sorted((row for row in rows if row.count), key=lambda row: -row.count), "F1"


def _rate_numbers(form: NumberOutputs, truth: Any, predicted: Any) -> list[OutputRow]:
    squared = ((truth - predicted) ** 2).sum(axis=0)
    total = ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(total > 0, 1 - squared / total, np.nan)
    return [OutputRow(name, len(truth), float(score)) for name, score in zip(form.names, scores, strict=True)]
