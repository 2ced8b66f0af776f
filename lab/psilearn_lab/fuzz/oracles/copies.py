"""Oracles of copies: models that must be equal bit by bit."""

from __future__ import annotations

import pickle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import clone

from psilearn.decoding import SharedCandidates
from psilearn.io import load_model, save_model
from psilearn_lab.fuzz.oracles.comparison import Comparison, all_equal
from psilearn_lab.fuzz.oracles.objects import select
from psilearn_lab.fuzz.oracles.problems import Problem


def _results(problem: Problem, model: Any) -> tuple[Any, ...]:
    """Return what a model computes, and what it predicts among its default candidates."""
    top = model.predict_topk(problem.X_test, k=1)
    embedded = model.embed(problem.X_test), model.transform_outputs(problem.candidates)
    return (*embedded, top.indices, top.distances, top.nearest, model.candidates_.outputs)


def _same_results(problem: Problem, other: Any) -> Comparison:
    return all_equal(*zip(_results(problem, problem.model), _results(problem, other), strict=True))


def saved_model(problem: Problem) -> Comparison | None:
    """Check that a model that was saved and loaded is the model."""
    if "texts" in (problem.input_kind, problem.output_kind):  # functions cannot be saved
        return None
    with TemporaryDirectory() as folder:
        save_model(problem.model, Path(folder, "model"))
        return _same_results(problem, load_model(Path(folder, "model")))


def pickled_model(problem: Problem) -> Comparison:
    """Check that a pickled model is the model."""
    return _same_results(problem, pickle.loads(pickle.dumps(problem.model)))


def cloned_model(problem: Problem) -> Comparison:
    """Check that a clone, fitted on the same data, is the model."""
    return _same_results(problem, clone(problem.model).fit(problem.X, problem.y, unlabeled=problem.unlabeled))


def refitted_model(problem: Problem) -> Comparison:
    """Check that an estimator that was fitted on other data before is a new one after a fit."""
    rng = np.random.default_rng(problem.seed)
    chosen = rng.integers(0, problem.n, 1 + problem.n // 2)
    model = problem.make_model().fit(select(problem.X, chosen), select(problem.y, chosen))
    return _same_results(problem, model.fit(problem.X, problem.y, unlabeled=problem.unlabeled))


def stored_candidates(problem: Problem) -> Comparison:
    """Check that candidates on disk, also when they are opened again, are those in memory."""
    model, outputs = problem.model, problem.candidates
    k = 1 + problem.seed % 5
    expected = model.predict_topk(problem.X_test, k, model.candidate_set(outputs))
    with TemporaryDirectory() as folder:
        path = Path(folder, "candidates")
        built = model.predict_topk(problem.X_test, k, model.candidate_set(outputs, path))
        loaded = SharedCandidates.load(path, model.embedding_, outputs if isinstance(outputs, list) else None)
        opened = model.predict_topk(problem.X_test, k, loaded)
        return all_equal(
            *((top.indices, expected.indices) for top in (built, opened)),
            *((top.distances, expected.distances) for top in (built, opened)),
            *((top.nearest, expected.nearest) for top in (built, opened)),
        )


ORACLES = (saved_model, pickled_model, cloned_model, refitted_model, stored_candidates)
