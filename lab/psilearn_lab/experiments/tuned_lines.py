"""Lines of a table: methods that were tuned on one held-out part of the training rows, and tested once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.utils.extmath import row_norms

from psilearn.metrics import Mean, f1_score
from psilearn.utils import Samples, n_samples
from psilearn_lab.experiments.experiment import Context
from psilearn_lab.experiments.protocol import Data
from psilearn_lab.experiments.results import Metric, Row

PRECISIONS = (1, 3, 5)


@dataclass(frozen=True)
class Tested:
    """A method with everything that the table needs; ``scores`` has one value per test example by metric."""

    name: str
    validation: float  # F1 on the held-out training rows
    scores: dict[str, Mean]
    parameters: dict[str, Any]
    seconds: dict[str, float]
    notes: list[str] = field(default_factory=list)

    @property
    def f1(self) -> Mean:
        """The F1 of the test examples."""
        return self.scores["F1"]

    def make_rows(self, dataset: str, scale: float) -> list[Row]:
        """Return one row per metric."""
        return [
            Row(
                dataset,
                self.name,
                Metric(metric, "higher", 1),
                scale * float(score),
                scale * score.standard_error,
                parameters={**self.parameters, "validation F1": round(self.validation, 5)},
                seconds=self.seconds,
            )
            for metric, score in self.scores.items()
        ]


def load_or_test(context: Context, name: str, test: Callable[[], Tested]) -> Tested:
    """Return a line of the table, tested now or in an interrupted run of the part."""

    def compute() -> dict[str, Any]:
        line = test()
        text = json.dumps([line.validation, line.parameters, line.seconds, line.notes])
        return {"text": text, **{metric: mean.values for metric, mean in line.scores.items()}}

    content = context.compute_once(file_name(name), compute)
    validation, parameters, seconds, notes = json.loads(str(content.pop("text")))
    scores = {metric: Mean(values) for metric, values in content.items()}
    return Tested(name, validation, scores, parameters, seconds, notes)


def file_name(name: str) -> str:
    """Return a name for a file of stored arrays."""
    return "".join(character if character.isalnum() else "-" for character in name)


def score_predictions(
    Y: Samples, predict: Callable[[], Samples], predict_top: Callable[[int], Any] | None
) -> tuple[dict[str, Mean], float]:
    """Return the F1 and, if ``predict_top`` is given, P@1, P@3 and P@5, and the seconds of the prediction for F1."""
    start = perf_counter()
    prediction = predict()
    seconds = perf_counter() - start
    scores = {"F1": f1_score(Y, prediction)}
    if predict_top is not None:
        scores |= {f"P@{k}": precision(Y, predict_top(k), k) for k in PRECISIONS if k <= Y.shape[1]}
    return scores, seconds


def precision(Y: Samples, top: Any, k: int) -> Mean:
    """Return the share of the k first labels that are true."""
    hits = Y.multiply(top) if hasattr(Y, "multiply") else Y * top
    return Mean(np.asarray(hits.sum(axis=1)).ravel() / k)


def top_labels(scores: Any, k: int) -> Any:
    """Return 0/1 rows with the k labels of the highest scores."""
    labels = np.zeros(scores.shape, dtype=np.int8)
    np.put_along_axis(labels, np.argsort(-scores, axis=1, kind="stable")[:, :k], 1, axis=1)
    return labels


def paired_note(line: Tested, reference: Tested, scale: float) -> str:
    """Return a note with the difference of two lines in F1 and its paired standard error."""
    difference = Mean(line.f1.values - reference.f1.values)
    return (
        f"“{line.name}” minus “{reference.name}”: {scale * difference:+.2f} ± "
        f"{scale * difference.standard_error:.2f} (F1, paired over {n_samples(difference.values)} test examples)."
    )


SCALINGS = ("rows", "unit rows", "columns")


def scale_data(data: Data, scaling: str | None) -> Data:
    """Return the data with scaled inputs; constants are taken from the training inputs.

    "rows" are the rows as they are, "unit rows" have length one, and "columns" are standardized. Then one factor gives
    the training rows a mean squared length of one. None returns the data as they are.
    """
    if scaling is None:
        return data
    if scaling not in SCALINGS:
        raise ValueError(f"There is no scaling {scaling!r}; there are {', '.join(SCALINGS)}.")
    X, X_test = data.X, data.X_test
    if scaling == "unit rows":
        X, X_test = normalize(X), normalize(X_test)
    elif scaling == "columns":
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    factor = 1 / np.sqrt(np.mean(row_norms(X, squared=True)))
    return Data(X * factor, data.Y, X_test * factor, data.Y_test, data.unlabeled)
