"""One outer fold of the metabolite experiment: choose on the training folds, fit, and rank the test candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from psilearn import IOKR, OEL
from psilearn._utils.samples import Index
from psilearn.chem.metabolites.parameter_choice import (
    Grid,
    Setting,
    Split,
    Validated,
    fitted,
    validate_embeddings,
    validate_iokr,
)
from psilearn.chem.metabolites.similarity import COMBINATIONS, Mixture
from psilearn.conformal import conformal_scores, threshold, tied_runs, within
from psilearn.decoding import CandidateSets
from psilearn.decoding.expansions import Expansions, distances_in_sets, rank_in_sets
from psilearn.experiments.competitors import has_torch
from psilearn.experiments.experiment import Array, Config, Context
from psilearn.experiments.metabolite_networks import insert_networks, run_networks
from psilearn.experiments.metabolite_task import Task
from psilearn.kernels import Kernel

COVERAGES = (0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Fold:
    """An outer fold: its training and test spectra, and how it is computed."""

    task: Task
    number: int
    context: Context

    @cached_property
    def train(self) -> Index:
        """The spectra of the other folds."""
        return np.flatnonzero(self.task.fold != self.number)

    @cached_property
    def test(self) -> Index:
        """The spectra of this fold."""
        return np.flatnonzero(self.task.fold == self.number)

    @cached_property
    def inner_splits(self) -> list[Split]:
        """The inner splits of the training spectra."""
        splitter = KFold(self.context.config["inner"], shuffle=True, random_state=self.context.seed)
        return [(self.train[a], self.train[b]) for a, b in splitter.split(self.train)]

    @cached_property
    def grid(self) -> Grid:
        """The settings that are compared; p is at most the number of molecules of an inner training set."""
        return make_grid(self.context.config, len(self.train))

    def log(self, text: str) -> None:
        """Log a step of this fold."""
        self.context.log(f"fold {self.number}: {text}")


@dataclass(frozen=True)
class FoldChoice:
    """The validation losses of one fold."""

    iokr: Validated
    embeddings: Validated
    seconds: float

    @property
    def iokr_setting(self) -> Setting:
        """The best setting of IOKR, whose input kernel all methods use."""
        return self.iokr.best(None)

    def validation_loss(self, setting: Setting) -> float:
        """Return the mean validation loss of a setting."""
        return (self.iokr if setting == self.iokr_setting else self.embeddings).mean(setting)


def run_fold(task: Task, number: int, context: Context) -> Mapping[str, Any]:
    """Choose on the training folds, fit every method there, and rank the candidates of the test fold."""
    fold = Fold(task, number, context)
    rng = np.random.default_rng([context.seed, number])
    choice = _choose(fold, rng)
    kernel, weights = task.examples.mixed(choice.iokr_setting.mixture, fold.train)
    methods = _select_methods(choice, fold)
    models, seconds = {}, [choice.seconds]
    for name, (setting, m) in methods.items():
        fold.log(f"fitting {name}")
        start = perf_counter()
        models[name] = _fit(fold, kernel, setting, m, rng)
        seconds.append(perf_counter() - start)
    fold.log("ranking candidates")
    settings = [setting for setting, _ in methods.values()]
    results = {
        "test": fold.test,
        "methods": [*models, "spectrum-blind"],
        "settings": [_describe_setting(setting, weights) for setting in settings],
        "validation": [choice.validation_loss(setting) for setting in settings],
        "edges": [_describe_edges(setting, fold.grid, choice.iokr_setting) for setting in settings],
        "seconds": seconds,
        **_rank_candidates(fold, models),
    }
    if not has_torch():
        return results
    networks = run_networks(task.examples, kernel, fold.train, fold.test, context, fold.log)
    return insert_networks(results, networks)


def _choose(fold: Fold, rng: np.random.Generator) -> FoldChoice:
    """Compare the settings on the inner splits, with fewer candidates and some of the unlabeled molecules."""
    config, unlabeled = fold.context.config, fold.task.unlabeled
    start = perf_counter()
    examples = fold.task.examples.thinned(config["select_candidates"], fold.context.seed)
    iokr = validate_iokr(examples, fold.grid, fold.inner_splits, fold.log)
    sample = unlabeled[rng.permutation(len(unlabeled))[: config["select_unlabeled"]]]
    embeddings = validate_embeddings(examples, fold.grid, iokr.best(None), sample, fold.inner_splits, fold.log)
    return FoldChoice(iokr, embeddings, perf_counter() - start)


def _select_methods(choice: FoldChoice, fold: Fold) -> dict[str, tuple[Setting, int | None]]:
    """Return the best setting of each method, and with how many unlabeled molecules it is fitted; None for all."""
    below_one = [c for c in fold.grid.supervisions if c < 1]
    oel = {
        "OEL, all unlabeled" if m is None else f"OEL, {m:,} unlabeled": (choice.embeddings.best(*below_one), m)
        for m in fold.context.config["unlabeled"]
    }
    return {"IOKR": (choice.iokr_setting, 0), "OEL₀": (choice.embeddings.best(1.0), 0), **oel}


def make_grid(config: Config, n_train: int) -> Grid:
    """Return the settings that are compared; p is at most the number of molecules of an inner training set."""
    n_inner_train = n_train - -(-n_train // config["inner"])
    return Grid(
        [Mixture(combination, gamma) for combination in COMBINATIONS for gamma in config["gammas"]],
        config["alphas"],
        config["factors"],
        [p for p in config["sizes"] if p <= n_inner_train] or [n_inner_train],
        config["supervisions"],
        config["extra_landmarks"],
    )


def _fit(fold: Fold, kernel: Kernel, setting: Setting, m: int | None, rng: np.random.Generator) -> IOKR | OEL:
    """Return the model fitted on the training spectra and m unlabeled molecules; None for all."""
    examples, unlabeled = fold.task.examples, fold.task.unlabeled
    sample = unlabeled[np.sort(rng.permutation(len(unlabeled))[:m])] if m != 0 else None
    Y = examples.outputs[fold.train]
    extra_landmarks = fold.context.config["extra_landmarks"]
    model: IOKR | OEL = fitted(kernel, examples.kernel, fold.train, Y, setting, sample, extra_landmarks)
    return model


def _rank_candidates(fold: Fold, models: Mapping[str, IOKR | OEL]) -> dict[str, Any]:
    """Return loss, nearer and tied of each method and test spectrum, the loss by chance, and conformal coverage.

    The last method is spectrum-blind: it predicts the mean of the training molecules for every spectrum.
    """
    examples, test = fold.task.examples, fold.test
    truth = examples.truth[test]
    sets = CandidateSets([examples.sets.sets[i] for i in test])
    learned = [_single_precision(Expansions.of(model.embed(test), model.embedding_)) for model in models.values()]
    blind = _single_precision(_predict_blindly(fold))
    ranked = [rank_in_sets(predictions, sets, truth) for predictions in (*learned, blind)]
    chance = [
        np.mean(examples.kernel.squared_distances(examples.sets.sets[i], examples.outputs[i : i + 1])) for i in test
    ]
    return {
        "nearer": np.concatenate([method.nearer for method in ranked]),
        "tied": np.concatenate([method.tied for method in ranked]),
        "loss": np.concatenate([examples.losses(method, test) for method in ranked]),
        "chance": chance,
        "conformal": _measure_coverage(learned[-1], sets, truth),
    }


def _predict_blindly(fold: Fold) -> Expansions:
    """Return the mean of the training molecules as the prediction for every test spectrum."""
    examples, n = fold.task.examples, len(fold.train)
    Y = examples.outputs[fold.train]
    weights = np.full((len(fold.test), 1, n), 1 / n)
    squared = np.full((len(fold.test), 1), float(examples.kernel(Y).mean()))
    return Expansions(examples.kernel, Y, weights, squared)


def _single_precision(predictions: Expansions) -> Expansions:
    """Return the predictions in single precision, which suffices for kernel values of fingerprints."""
    return replace(predictions, weights=predictions.weights.astype(np.float32))


def _measure_coverage(predictions: Expansions, sets: CandidateSets, truth: Index) -> Array:
    """Return coverage, mean and median size of conformal sets, (coverages, 3), calibrated on every other spectrum."""
    scores, truth_scores = [], np.empty(len(truth))
    for i, D, slack in distances_in_sets(predictions, sets):
        order = np.argsort(D[0], kind="stable")
        ascending = D[0][order]
        scores.append(conformal_scores(ascending, *tied_runs(ascending, slack[0][order])))
        truth_scores[i] = scores[i][np.argmax(order == truth[i])]
    calibration, checked = np.arange(0, len(truth), 2), np.arange(1, len(truth), 2)
    result = []
    for coverage in COVERAGES:
        limit = threshold(truth_scores[calibration], coverage)
        sizes = [np.sum(within(scores[i], limit)) for i in checked]
        result.append((np.mean(within(truth_scores[checked], limit)), np.mean(sizes), np.median(sizes)))
    return np.array(result)


def _describe_setting(setting: Setting, weights: Array) -> str:
    """Return a setting as text."""
    parts = [str(setting.mixture), f"λ={setting.alpha:.2g}"]
    if setting.mixture.combination == "alignf":
        parts[0] += " (weights " + ", ".join(f"{weight:.2f}" for weight in weights) + ")"
    if setting.supervision is not None:
        parts.append(f"p={setting.n_components}")
    if setting.supervision not in (None, 1):
        parts.append(f"c={setting.supervision:g}")
    return ", ".join(parts)


def _describe_edges(setting: Setting, grid: Grid, iokr_setting: Setting) -> str:
    """Return which parameters are at an end of their grid, beyond which better values may exist."""
    factor = setting.alpha / iokr_setting.alpha
    compared: dict[str, tuple[float | None, Sequence[float]]] = {
        "γ": (setting.mixture.gamma, [m.gamma for m in grid.mixtures if m.gamma is not None]),
        "λ": (setting.alpha, grid.alphas) if setting.supervision is None else (factor, grid.factors),
        "p": (setting.n_components, grid.sizes),
        "c": (setting.supervision, [c for c in grid.supervisions if c < 1]),
    }
    edges = []
    for name, (value, values) in compared.items():
        matching = [v for v in values if value is not None and np.isclose(v, value)]
        if matching and len(set(values)) > 1 and matching[0] in (min(values), max(values)):
            edges.append(f"{name} at the {'low' if matching[0] == min(values) else 'high'} end")
    return ", ".join(edges)
