"""Oracles of searches: scores along a path against a new fit for each setting and split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit

from psilearn import IOKRCV, KDECV, OELCV
from psilearn.decoding import PerExampleCandidates
from psilearn.kernels import RankingKernel
from psilearn_lab.fuzz.oracles.comparison import MAX_TOLERANCE, Comparison
from psilearn_lab.fuzz.oracles.fits import fix_widths
from psilearn_lab.fuzz.oracles.objects import concatenate, select
from psilearn_lab.fuzz.oracles.problems import Problem
from psilearn_lab.fuzz.oracles.reference import Array, block, model_distances

SEARCHES: dict[str, Any] = {"IOKR": IOKRCV, "KDE": KDECV, "OEL": OELCV}
CV = ShuffleSplit(1, test_size=0.3, random_state=0)
RESIDUAL = 1e-6  # of eigenvectors along a path


class GridSearch:
    """A search over few settings, and the problems of its settings and splits."""

    def __init__(self, problem: Problem, scoring: Any, cv: Any = CV, candidates: Any = None, **changes: Any) -> None:
        self.problem = fix_widths(problem)
        # known outputs are the default candidates, except with rankings
        of_rankings = isinstance(problem.output_kernel, RankingKernel)
        self.candidates = problem.candidates if problem.seed % 2 or of_rankings else None
        grid: dict[str, Any] = {"alphas": [problem.alpha, min(100 * problem.alpha, 1e3)]}
        if problem.estimator != "IOKR":
            grid["n_components"] = sorted({1, problem.n_components or 3})
        if problem.estimator == "OEL":
            grid["supervisions"] = sorted({0.3, problem.supervision or 0.0})
        kernels = self.problem.input_kernel, self.problem.output_kernel
        search = SEARCHES[problem.estimator](*kernels, **grid, cv=cv, scoring=scoring, refit=False, **changes)
        given = self.candidates if candidates is None else candidates
        self.search = search.fit(problem.X, problem.y, unlabeled=problem.unlabeled, candidates=given)

    def settings(self) -> Iterator[dict[str, Any]]:
        """Yield the fields of a problem that make each setting."""
        for params in self.search.cv_results_["params"]:
            yield {name: params[name] for name in ("alpha", "n_components", "supervision") if name in params}

    @cached_property
    def split_problems(self) -> list[tuple[int, int, Problem]]:
        """The row of the setting, the number of the split, and the problem with the held-out pairs as test pairs."""
        X, y, found = self.problem.X, self.problem.y, []
        for j, (train, held) in enumerate(CV.split(np.arange(self.problem.n))):
            parts = {"X": select(X, train), "y": select(y, train), "X_test": select(X, held), "y_test": select(y, held)}
            found += [(i, j, replace(self.problem, **parts, **fields)) for i, fields in enumerate(self.settings())]
        return found

    def score(self, row: int, split: int, scoring: str) -> float:
        """Return a score of a setting on a split."""
        return float(self.search.cv_results_[f"split{split}_test_{scoring}"][row])


@lru_cache(maxsize=1)
def _grid_search(problem: Problem) -> GridSearch:
    return GridSearch(problem, ["mse", "loss"])


def _compare_scores(rows: list[tuple[float, float, float, float]]) -> Comparison | None:
    """Compare rows of score, expected score, tolerance and scale; those with too large a tolerance are left out."""
    if not rows:
        return None
    table = np.array(rows).T
    decidable = table[:, table[2] <= MAX_TOLERANCE]
    return Comparison(*(decidable if decidable.size else table))


def path_squared_error(problem: Problem) -> Comparison | None:
    """Check that the squared error of every setting is that of a new fit."""
    if problem.n < 4:
        return None
    grid, rows = _grid_search(problem), []
    for row, split, one in grid.split_problems:
        tolerance = one.reference.tolerance(one.X_test, one.y_test) + RESIDUAL
        error = float(np.mean(np.diag(model_distances(one.model, one.X_test, one.y_test))))
        rows.append((grid.score(row, split, "mse"), -error, tolerance, one.reference.scale(one.X_test, one.y_test)))
    return _compare_scores(rows)


def path_decoded_loss(problem: Problem) -> Comparison | None:
    """Check that the loss of decoded outputs of every setting is that of a new fit, up to near ties."""
    if problem.n < 4:
        return None
    grid, rows = _grid_search(problem), []
    for row, split, one in grid.split_problems:
        outputs = one.model.candidates_.outputs if grid.candidates is None else grid.candidates
        tolerance = one.reference.tolerance(one.X_test, outputs) + RESIDUAL
        if tolerance <= MAX_TOLERANCE:
            slack = 2 * tolerance * one.reference.scale(one.X_test, outputs)
            best, worst = _loss_range(one, outputs, slack)
            score = grid.score(row, split, "loss")
            rows.append((score, float(np.clip(score, -worst, -best)), 1e-9, 1 + worst))
    return _compare_scores(rows)


def _loss_range(problem: Problem, outputs: Any, slack: float) -> tuple[float, float]:
    """Return the smallest and the largest mean loss of predictions that are nearest up to a slack."""
    D, losses = model_distances(problem.model, problem.X_test, outputs), _losses(problem, outputs)
    tied = D.min(axis=1, keepdims=True) + slack >= D
    best, worst = np.where(tied, losses, np.inf).min(axis=1), np.where(tied, losses, -np.inf).max(axis=1)
    return float(best.mean()), float(worst.mean())


def _losses(problem: Problem, outputs: Any) -> Array:
    """Return |ψ(y) − ψ(ŷ)|² for the test outputs (rows) and all outputs (columns)."""
    kernel = problem.output_kernel
    norms = kernel.diag(problem.y_test)[:, None] + kernel.diag(outputs)
    return np.maximum(norms - 2 * block(kernel, problem.y_test, outputs), 0)


def search_by_other_routes(problem: Problem) -> Comparison | None:
    """Check that the squared errors of a search are the same with torch and with all outputs as landmarks."""
    if problem.n < 4:
        return None
    uses_torch = problem.seed % 2 == 0 or problem.estimator == "IOKR"
    changes: dict[str, Any] = {"device": "cpu"} if uses_torch else {"output_landmarks": 1000}
    grid, other, rows = _grid_search(problem), GridSearch(problem, "mse", **changes), []
    for row, split, one in grid.split_problems:
        tolerance = one.reference.tolerance(one.X_test, one.y_test) + RESIDUAL
        actual = float(other.search.cv_results_[f"split{split}_test_score"][row])
        scale = one.reference.scale(one.X_test, one.y_test)
        rows.append((actual, grid.score(row, split, "mse"), tolerance, scale))
    return _compare_scores(rows)


def path_positions(problem: Problem) -> Comparison | None:
    """Check that top-2 accuracies of every setting, with one set per example, are those of a new fit up to ties."""
    if problem.n < 4:
        return None
    rng, n = np.random.default_rng(problem.seed), problem.n
    pool = concatenate(problem.candidates, problem.y)
    size = len(pool) if isinstance(pool, list) else pool.shape[0]
    sets = [select(pool, np.append(rng.permutation(size)[: rng.integers(1, size)], size - n + i)) for i in range(n)]
    candidates = PerExampleCandidates(sets)
    grid, rows = GridSearch(problem, "top_2", candidates=candidates), []
    for row, split, one in grid.split_problems:
        held = next(iter(CV.split(np.arange(n))))[1]
        tolerance = one.reference.tolerance(one.X_test, pool) + RESIDUAL
        if tolerance > MAX_TOLERANCE:
            continue
        low, high = _top_2_range(one, candidates.restrict(held), tolerance * one.reference.scale(one.X_test, pool))
        score = float(grid.search.cv_results_[f"split{split}_test_score"][row])
        rows.append((score, float(np.clip(score, low, high)), 1e-9, 1.0))
    return _compare_scores(rows)


def _top_2_range(problem: Problem, candidates: Any, slack: float) -> tuple[float, float]:
    """Return the smallest and the largest top-2 accuracy if distances may change by a slack."""
    distinct = candidates.distinct()
    truth, low, high = distinct.match(problem.y_test), [], []
    for i, j in enumerate(truth):
        D = model_distances(problem.model, select(problem.X_test, [i]), distinct.outputs_of(i))[0]
        low.append(np.sum(D[j] + 2 * slack >= D) <= 2)  # with the truth itself
        high.append(np.sum(D[j] - 2 * slack > D) < 2)
    return float(np.mean(low)), float(np.mean(high))


def leave_one_out(problem: Problem) -> Comparison | None:
    """Check that leave-one-out in closed form is n regressions without one pair, with the directions of all pairs."""
    if problem.n < 3:
        return None
    grid, rows = GridSearch(problem, "mse", cv="loo"), []
    for score, fields in zip(grid.search.cv_results_["mean_test_score"], grid.settings(), strict=True):
        one = replace(grid.problem, X_test=grid.problem.X, y_test=grid.problem.y, **fields)
        tolerance = one.reference.tolerance(one.X, one.y) + RESIDUAL
        errors = _leave_one_out_errors(one)
        scale = max(one.reference.scale(one.X, one.y), float(errors.max()))
        rows.append((float(score), -float(errors.mean()), tolerance, scale))
    return _compare_scores(rows)


def _leave_one_out_errors(problem: Problem) -> Array:
    """Return |G*z₋ᵢ(xᵢ) − ψ(yᵢ)|² of regressions without pair i, with the same ridge."""
    K, g = block(problem.input_kernel, problem.X), problem.model.transform_outputs(problem.y)
    norms, ridge, errors = problem.output_kernel.diag(problem.y), problem.n * problem.alpha, []
    for i in range(problem.n):
        rest = np.delete(np.arange(problem.n), i)
        weights = np.linalg.solve(K[np.ix_(rest, rest)] + ridge * np.eye(len(rest)), K[rest, i])
        z = weights @ g[rest]
        errors.append(z @ z - 2 * z @ g[i] + norms[i])
    return np.array(errors)


ORACLES = (path_squared_error, path_decoded_loss, path_positions, search_by_other_routes, leave_one_out)
