"""Evaluation of a model on test spectra: the loss, the position of the true molecule, and conformal sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psilearn import IOKR, OEL
from psilearn.decoding import TopK
from psilearn.metrics import TruthPositions, kernel_loss
from psilearn.utils import Index
from psilearn_lab.experiments.experiment import Array
from psilearn_lab.experiments.metabolite_task import Task


@dataclass(frozen=True)
class MethodResult:
    """The results of one method on the test spectra, and how it was fitted; empty text without parameters."""

    name: str
    positions: TruthPositions  # of the true molecules
    loss: Array  # (q,)  |ψ(ŷ) − ψ(y)|² of the nearest candidate
    setting: str = ""
    edges: str = ""
    seconds: float = 0.0  # of the fit


def evaluate_model(name: str, model: IOKR | OEL, task: Task, test: Index, **details: Any) -> MethodResult:
    """Rank all candidates of the test spectra; ``details`` are further fields of the result."""
    candidates = task.candidates_of(test)
    top = model.predict_topk(test, candidates.max_size, candidates)
    loss = kernel_loss(task.outputs[test], top.nearest, task.output_kernel)
    return MethodResult(name, truth_positions(top, task.truth[test]), loss.values, **details)


def truth_positions(top: TopK, truth: Index) -> TruthPositions:
    """Return the positions of true molecules in rankings of all candidates.

    ``model.truth_positions`` counts distinct outputs. Here every molecule counts: those with the fingerprint of the
    true one tie with it.
    """
    distance = np.take_along_axis(top.distances, np.argmax(top.indices == truth[:, None], axis=1)[:, None], axis=1)
    return TruthPositions(np.sum(top.distances < distance, axis=1), np.sum(top.distances == distance, axis=1))


def measure_coverage(model: IOKR | OEL, task: Task, test: Index, coverages: Sequence[float]) -> Array:
    """Return coverage, mean and median size of conformal sets, (coverages, 3), calibrated on every other spectrum."""
    calibration, checked = test[::2], test[1::2]
    model.calibrate(calibration, task.outputs[calibration], task.candidates_of(calibration))
    candidates, rows = task.candidates_of(checked), []
    for coverage in coverages:
        sets = model.predict_set(checked, coverage, candidates)
        covered = [truth in members for truth, members in zip(task.truth[checked], sets.indices, strict=True)]
        rows.append((np.mean(covered), np.mean(sets.sizes), np.median(sets.sizes)))
    return np.array(rows)
