"""One outer fold of the metabolite experiment: choose on the training folds, fit, and rank the test candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.dummy import DummyRegressor

from psilearn import IOKR, OEL
from psilearn.kernels import Kernel
from psilearn.utils import Index
from psilearn_chem.molecules.fingerprints import Bits
from psilearn_lab.experiments.competitors import has_torch
from psilearn_lab.experiments.experiment import Context
from psilearn_lab.experiments.metabolite_choice import Choice, InnerValidation, Setting, labeled_landmarks
from psilearn_lab.experiments.metabolite_evaluation import evaluate_model, measure_coverage
from psilearn_lab.experiments.metabolite_networks import run_networks
from psilearn_lab.experiments.metabolite_task import Task

COVERAGES = (0.8, 0.9, 0.95)
ALL = None  # as a number of unlabeled molecules


@dataclass(frozen=True)
class Fold:
    """An outer fold: its training and test spectra, and how it is computed."""

    task: Task
    number: int
    context: Context

    @cached_property
    def rng(self) -> np.random.Generator:
        """The random numbers that draw unlabeled molecules."""
        return np.random.default_rng([self.context.seed, self.number])

    @cached_property
    def train(self) -> Index:
        """The spectra of the other folds."""
        return np.flatnonzero(self.task.fold != self.number)

    @cached_property
    def test(self) -> Index:
        """The spectra of this fold."""
        return np.flatnonzero(self.task.fold == self.number)

    def sample_unlabeled(self, n: int | None) -> Bits:
        """Return n unlabeled molecules, drawn at random, or all of them."""
        chosen = self.rng.permutation(len(self.task.unlabeled))[:n]
        return self.task.unlabeled[np.sort(chosen)]

    def log(self, text: str) -> None:
        """Log a step of this fold."""
        self.context.log(f"fold {self.number}: {text}")


def run_fold(task: Task, number: int, context: Context) -> Mapping[str, Any]:
    """Choose on the training folds, fit every method there, and rank the candidates of the test fold."""
    fold = Fold(task, number, context)
    validation = InnerValidation(task, fold.train, context, fold.log)
    choice = validation.choose(fold.sample_unlabeled(context.config["select_unlabeled"]))
    kernel = task.make_kernel(choice.iokr.mixture).fit(fold.train, task.outputs[fold.train])
    models, results = [], []
    for name, (setting, n_unlabeled) in _select_methods(choice, context.config["unlabeled"]).items():
        fold.log(f"fitting {name}")
        start = perf_counter()
        models.append(_fit(fold, kernel, setting, n_unlabeled))
        seconds = perf_counter() - start
        fold.log(f"ranking candidates with {name}")
        details = {"setting": setting.describe(kernel), "edges": choice.describe_edges(setting), "seconds": seconds}
        results.append(evaluate_model(name, models[-1], task, fold.test, **details))
    fold.log("conformal sets")
    conformal = measure_coverage(models[-1], task, fold.test, COVERAGES)
    if has_torch():
        results += run_networks(task, kernel, fold.train, fold.test, context, fold.log)
    fold.log("ranking candidates without spectra")
    blind = evaluate_model("spectrum-blind", _fit_blindly(fold), task, fold.test)
    return {
        "test": fold.test,
        "methods": [result.name for result in (*results, blind)],
        "settings": [result.setting for result in results],
        "edges": [result.edges for result in results],
        "seconds": [choice.seconds, *(result.seconds for result in results)],
        "nearer": [result.positions.nearer for result in (*results, blind)],
        "tied": [result.positions.tied for result in (*results, blind)],
        "loss": [result.loss for result in (*results, blind)],
        "chance": task.mean_losses(fold.test),
        "conformal": conformal,
    }


def _select_methods(choice: Choice, sizes: Sequence[int | None]) -> dict[str, tuple[Setting, int | None]]:
    """Return the best setting of each method, and with how many unlabeled molecules it is fitted."""
    oel = {"OEL, all unlabeled" if m is ALL else f"OEL, {m:,} unlabeled": (choice.oel, m) for m in sizes}
    return {"IOKR": (choice.iokr, 0), "OEL₀": (choice.oel_0, 0), **oel}


def _fit(fold: Fold, kernel: Kernel, setting: Setting, n_unlabeled: int | None) -> IOKR | OEL:
    """Return the model fitted on the training spectra and this number of unlabeled molecules."""
    task, X, Y = fold.task, fold.train, fold.task.outputs[fold.train]
    if n_unlabeled == 0:
        return setting.make_model(kernel, task.output_kernel).fit(X, Y)
    landmarks = labeled_landmarks(len(X), fold.context.config)
    model = setting.make_model(kernel, task.output_kernel, landmarks)
    return model.fit(X, Y, unlabeled=iter([fold.sample_unlabeled(n_unlabeled)]))  # not as default candidates


def _fit_blindly(fold: Fold) -> IOKR:
    """Return a model that predicts the mean of the training molecules for every spectrum."""
    model = IOKR(output_kernel=fold.task.output_kernel, regressor=DummyRegressor())
    return model.fit(fold.train, fold.task.outputs[fold.train])
