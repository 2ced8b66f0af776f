"""Oracles of decoding: search among candidates against brute force, and against other ways to pass them.

Which one of tied candidates is found does not matter here: chosen candidates are compared by their distances.
"""

from __future__ import annotations

import warnings
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn import config_context

from psilearn.decoding import PerExampleCandidates
from psilearn_lab.fuzz.oracles.comparison import Comparison, all_equal, excess
from psilearn_lab.fuzz.oracles.fits import FLOAT32_EPSILON, TINY_MEMORY
from psilearn_lab.fuzz.oracles.objects import concatenate, select
from psilearn_lab.fuzz.oracles.problems import Problem
from psilearn_lab.fuzz.oracles.reference import EPSILON, Array, model_distances

ROUNDING = 1000 * EPSILON  # of distances of one embedding, relative to |z|² + k(y, y)


def compare_nearest(D: Array, indices: Array, distances: Array, tolerance: float, scale: float) -> Comparison:
    """Compare found candidates (indices and their distances) with the nearest ones by the full matrix of distances."""
    found = np.concatenate([excess(D, indices), distances - np.take_along_axis(D, indices, axis=1)])
    return Comparison(found, np.zeros_like(found), tolerance, scale)


def _search(problem: Problem, model: Any, tolerance: float = ROUNDING) -> Comparison:
    """Compare the k nearest candidates of a model with those of its own full matrix of distances."""
    D = model_distances(model, problem.X_test, problem.candidates)
    top = model.predict_topk(problem.X_test, _random_k(problem), problem.candidates)
    scale = problem.scale + float(np.sum(model.embed(problem.X_test).astype(np.float64) ** 2, axis=1).max())
    return compare_nearest(D, top.indices, top.distances, tolerance, scale)


def _random_k(problem: Problem) -> int:
    return 1 + problem.seed % problem.distances.shape[1]


def nearest_candidates(problem: Problem) -> Comparison:
    """Check that the k nearest candidates are those of the full matrix of distances."""
    return _search(problem, problem.model)


def nearest_in_float32(problem: Problem) -> Comparison:
    """Check that the k nearest candidates of a float32 model are those of its own full matrix of distances."""
    return _search(problem, problem.fit_model(dtype="float32"), 100 * FLOAT32_EPSILON)


def many_blocks(problem: Problem) -> Comparison:
    """Check that candidates in many small blocks are searched like those in one block."""
    with config_context(working_memory=TINY_MEMORY):
        return _search(problem, problem.model)


def torch_search(problem: Problem) -> Comparison:
    """Check that torch searches like NumPy."""
    return _search(problem, copy(problem.model).set_params(device="cpu"))


def one_set_per_example(problem: Problem) -> Comparison:
    """Check that a set per example, here subsets of one set, is searched like the set alone."""
    rng = np.random.default_rng(problem.seed)
    q, c = problem.distances.shape
    members = [rng.permutation(c)[: rng.integers(1, c + 1)] for _ in range(q)]
    sets = [select(problem.candidates, chosen) for chosen in members]
    top = problem.model.predict_topk(problem.X_test, _random_k(problem), PerExampleCandidates(sets))
    found = []
    for i, chosen in enumerate(members):
        D = problem.distances[i : i + 1, chosen]
        indices = top.indices[i : i + 1, : min(top.indices.shape[1], len(chosen))]
        found += [*excess(D, indices)[0], *(top.distances[i, : indices.shape[1]] - D[0, indices[0]])]
    return Comparison(found, np.zeros(len(found)), ROUNDING, problem.scale)


def known_candidates(problem: Problem) -> Comparison:
    """Check that the known outputs are searched in the same way if they are passed as outputs."""
    model = problem.model
    tops = [model.predict_topk(problem.X_test, 3, given) for given in (model.candidates_, model.candidates_.outputs)]
    return Comparison(tops[0].distances, tops[1].distances, problem.tolerance, problem.scale)


def first_of_ranked(problem: Problem) -> Comparison:
    """Check that ``predict`` and ``predict_topk`` return the beginning of ``rank_candidates``."""
    model, given = problem.model, (problem.X_test, problem.model.candidate_set(problem.candidates))
    c = problem.distances.shape[1]
    top, k = model.predict_topk(given[0], c, given[1]), _random_k(problem)
    some = model.predict_topk(given[0], k, given[1])
    ranked = list(model.rank_candidates(*given))
    first = select(problem.candidates, some.indices[:, 0])
    found = np.concatenate(
        [some.distances - top.distances[:, :k], [row.distances for row in ranked] - top.distances], 1
    )
    close = Comparison(found, np.zeros_like(found), ROUNDING, problem.scale)
    equal = all_equal((model.predict(*given), first), (model.predict_topk(given[0], 1, given[1]).nearest, first))
    return close if equal.agrees else equal


def truth_positions(problem: Problem) -> Comparison:
    """Check that the position of a true output counts nearer distinct candidates; near ties may count or not."""
    candidates = concatenate(problem.candidates, problem.y_test)
    with warnings.catch_warnings(action="ignore"):
        positions = problem.model.truth_positions(problem.X_test, problem.y_test, candidates)
    distinct = problem.model.candidate_set(candidates).distinct()
    D = model_distances(problem.model, problem.X_test, distinct.outputs)
    own = np.take_along_axis(D, distinct.match(problem.y_test)[:, None], axis=1)
    slack = ROUNDING * problem.scale
    low, high = (np.sum(own + sign * slack > D, axis=1) for sign in (-1, 1))
    first, last = positions.nearer, positions.nearer + positions.tied
    outside = np.maximum(low - first, 0) + np.maximum(last - high, 0)
    return Comparison(outside, np.zeros_like(outside), EPSILON)


def conformal_sets(problem: Problem) -> Comparison:
    """Check that sets grow with the coverage, cover the calibration outputs, and agree with ranked lists."""
    candidates = problem.model.candidate_set(concatenate(problem.candidates, problem.y_test))
    model, X, y = problem.fit_model(), problem.X_test, problem.y_test
    with warnings.catch_warnings(action="ignore"):
        model.calibrate(X, y, candidates)
        levels = [0.0, 0.2, 0.5, 0.7, 0.9, 1.0]
        sets = [[set(row) for row in model.predict_set(X, level, candidates).indices] for level in levels]
        ranked = list(model.rank_candidates(X, candidates, coverage=0.7))
    truth = candidates.match(y)
    nested = all(a <= b for low, high in pairwise(sets) for a, b in zip(low, high, strict=True))
    covered = [sum(t in row for t, row in zip(truth, members, strict=True)) for members in sets]
    required = [min(len(truth), np.ceil((len(truth) + 1) * level - 1e-9)) for level in levels]
    same = all(set(row.indices[row.in_set]) == members for row, members in zip(ranked, sets[3], strict=True))
    return all_equal((nested, True), (np.greater_equal(covered, required).all(), True), (same, True))


ORACLES = (
    nearest_candidates,
    nearest_in_float32,
    many_blocks,
    torch_search,
    one_set_per_example,
    known_candidates,
    first_of_ranked,
    truth_positions,
    conformal_sets,
)
