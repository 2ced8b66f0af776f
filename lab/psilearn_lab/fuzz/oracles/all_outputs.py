"""Oracles of decoding without a list of candidates: solvers over all outputs against brute force."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
from scipy import sparse

from psilearn.decoding import AllLabelSets, has_all_rankings
from psilearn_lab.fuzz.oracles.comparison import Comparison
from psilearn_lab.fuzz.oracles.decoding import compare_nearest
from psilearn_lab.fuzz.oracles.problems import Problem
from psilearn_lab.fuzz.oracles.reference import Array, model_distances


def all_rankings(problem: Problem) -> Comparison | None:
    """Check that the solvers find the nearest of all rankings, which brute force lists."""
    if "rankings" not in problem.output_kind or not has_all_rankings(problem.output_kernel):
        return None
    n_items = problem.y.shape[1]
    rankings = np.array(list(permutations(range(1, n_items + 1))))
    D = model_distances(problem.model, problem.X_test, rankings)
    top = problem.model.predict_topk(problem.X_test, 1)
    chosen = (top.nearest[:, None] == rankings).all(axis=2).argmax(axis=1)[:, None]
    return compare_nearest(D, chosen, top.distances, problem.tolerance, problem.scale)


def all_label_sets(problem: Problem) -> Comparison | None:
    """Check that the k nearest of all label sets of some sizes are those that brute force lists."""
    if problem.output_kind not in ("sets", "sparse sets"):
        return None
    rng = np.random.default_rng(problem.seed)
    n_labels = problem.y.shape[1]
    low, high = np.sort(rng.integers(0, n_labels + 1, 2)) if rng.random() < 0.5 else (0, n_labels)
    rows = _list_sets(n_labels)
    rows = rows[(rows.sum(axis=1) >= low) & (rows.sum(axis=1) <= high)]
    given = "all" if len(rows) == 2**n_labels else AllLabelSets(min_labels=int(low), max_labels=int(high))
    return _compare_sets(problem, given, rows, int(rng.integers(1, 4)))


def near_label_sets(problem: Problem) -> Comparison | None:
    """Check that the k nearest of the sets that differ by one label from a known one are those of their list."""
    if problem.output_kind not in ("sets", "sparse sets"):
        return None
    known, rows = _to_dense(problem.model.candidates_.outputs), _list_sets(problem.y.shape[1])
    is_near = (np.abs(rows[:, None] - known).sum(axis=2) <= 1).any(axis=1)
    return _compare_sets(problem, "near", rows[is_near], 1 + problem.seed % 3)


def _list_sets(n_labels: int) -> Array:
    """Return all 2ᴸ label sets as rows."""
    return np.array(list(product([0.0, 1.0], repeat=n_labels)))


def _to_dense(rows: Any) -> Array:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)


def _compare_sets(problem: Problem, given: Any, rows: Array, k: int) -> Comparison:
    """Compare the k nearest sets of ``given`` with those of the listed rows, by distance."""
    listed = rows if problem.output_kind == "sets" else sparse.csr_matrix(rows)
    D = model_distances(problem.model, problem.X_test, listed)
    top = problem.model.predict_topk(problem.X_test, k, given)
    found = np.stack([_to_dense(outputs) for outputs in top.outputs])  # (q, k, L)
    is_equal = (found[:, :, None] == rows).all(axis=3)
    if not is_equal.any(axis=2).all() or found.shape[1] != min(k, len(rows)):
        return Comparison([False], [True], 0.0)  # a set that is not among the listed ones, or too few of them
    return compare_nearest(D, is_equal.argmax(axis=2), top.distances, problem.tolerance, problem.scale)


ORACLES = (all_rankings, all_label_sets, near_label_sets)
