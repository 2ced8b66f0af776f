"""Oracles: pairs of routes through the library that must give the same answer, on random problems.

The problem of a seed is always the same one. Which one of tied candidates is found does not matter: chosen candidates
are compared by their distances. A difference counts where the problem is conditioned well enough.
"""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import ShuffleSplit

from psilearn import IOKRCV, KDECV, OELCV, Landmarks, load_model, save_model
from psilearn.decoding import AllLabelSets, PerExampleCandidates, has_all_rankings
from psilearn.kernels import Linear
from psilearn_lab.fuzz.harness import ACCEPTED, CLEAR, DEFECT, Result, Tally
from psilearn_lab.oracles.problems import (
    EPSILON,
    Problem,
    block,
    concatenate,
    make_problem,
    model_distances,
    select,
    size_of,
)

FLOAT32_EPSILON = float(np.finfo(np.float32).eps)
ROUNDING = 1000 * EPSILON  # of distances of one embedding, relative to |z|² + k(y, y)
MAX_TOLERANCE = 0.03  # relative; what rounding may change by more is not compared
TINY_MEMORY = 5e-4  # MiB: a few rows per block
MANY = 1000  # landmarks: more than there are objects
SEARCHES = {"IOKR": IOKRCV, "KDE": KDECV, "OEL": OELCV}
CV = ShuffleSplit(1, test_size=0.3, random_state=0)


@dataclass(frozen=True)
class Comparison:
    """Two arrays, the allowed differences relative to a scale (0: equal bits), one each or one per entry."""

    actual: Any
    expected: Any
    tolerance: Any
    scale: Any = 1.0

    @property
    def worst(self) -> float:
        """The largest difference relative to the scale; ∞ for other shapes or NaN."""
        actual, expected = np.asarray(self.actual), np.asarray(self.expected)
        if actual.shape != expected.shape:
            return float("inf")
        with np.errstate(invalid="ignore"):
            differences = np.where(actual == expected, 0.0, np.abs(np.subtract(actual, expected, dtype=float)))
        return float(np.nan_to_num(differences / self.scale, nan=np.inf).max(initial=0.0))

    def judge(self, name: str) -> Result:
        """Return whether the arrays agree; a "clear error" if the problem is conditioned too badly to tell."""
        if not np.all(np.less_equal(self.tolerance, MAX_TOLERANCE)):
            return Result(CLEAR)
        if self.worst <= np.min(self.tolerance, initial=np.inf):
            return Result(ACCEPTED)
        reason = f"{name}: relative difference {self.worst:.1e}, tolerance {np.max(self.tolerance):.1e}"
        return Result(DEFECT, reason, name)


Oracle = Callable[[Problem], Comparison | None]


def compare_models(problem: Problem, other: Any, epsilon: float | None = None) -> Comparison:
    """Compare the distances of another route to the same model with those of the model of the problem."""
    known = None if epsilon is None else problem.reference.tolerance(problem.X_test, problem.candidates, epsilon)
    actual = model_distances(other, problem.X_test, problem.candidates)
    return Comparison(actual, problem.distances, problem.tolerance if known is None else known, problem.scale)


def compare_nearest(D: Any, indices: Any, distances: Any, tolerance: float, scale: float) -> Comparison:
    """Compare found candidates (indices and their distances) with the nearest ones by the full matrix of distances."""
    chosen = np.take_along_axis(D, np.asarray(indices), axis=1)
    excess = chosen - np.sort(D, axis=1)[:, : chosen.shape[1]]  # 0 for ties, whatever their indices
    found = np.concatenate([excess, distances - chosen])
    return Comparison(found, np.zeros_like(found), tolerance, scale)


def all_equal(*pairs: tuple[Any, Any]) -> Comparison:
    """Compare arrays or collections for equal bits."""
    return Comparison([_is_equal(a, b) for a, b in pairs], [True] * len(pairs), 0.0)


def _is_equal(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is_equal, a, b))
    a, b = (part.toarray() if sparse.issparse(part) else np.asarray(part) for part in (a, b))
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f" and b.dtype.kind == "f"))


def dense_formulas(problem: Problem) -> Comparison:
    """Check that the estimator is the dense formula in the eigenvectors of one Gram matrix."""
    actual = problem.reference.distances(problem.X_test, problem.candidates)
    return Comparison(problem.distances, actual, problem.tolerance, problem.scale)


def all_landmarks(problem: Problem) -> Comparison:
    """Check that Nyström with all inputs and all outputs as landmarks is exact."""
    rng = np.random.default_rng(problem.seed)
    methods = ["uniform", "kmeans++", "leverage", "pivoted"]
    changes = {"input_landmarks": Landmarks(MANY, str(rng.choice(methods)))}
    changes["output_landmarks"] = Landmarks(MANY, str(rng.choice([*methods, "labeled"])))
    if rng.random() < 0.5:
        del changes[list(changes)[rng.integers(2)]]
    comparison = compare_models(problem, problem.fit_model(**changes))
    return replace(comparison, tolerance=comparison.tolerance + problem.reference.landmark_tolerance())


def torch_cpu(problem: Problem) -> Comparison:
    """Check that torch on the CPU computes what NumPy computes."""
    return compare_models(problem, problem.fit_model(device="cpu"))


def float32(problem: Problem) -> Comparison:
    """Check that float32 computes what float64 computes; it requires a larger λ, and p at the largest gap."""
    problem = replace(problem, alpha=max(problem.alpha, 0.01 * float(np.mean(np.diag(problem.reference.K_x)))))
    values = problem.reference.spectrum[0]
    if problem.n_components is not None and len(values):
        problem = replace(problem, n_components=1 + int(np.argmax(values - np.append(values[1:], 0.0))))
    return compare_models(problem, problem.fit_model(dtype="float32"), FLOAT32_EPSILON)


def permuted_pairs(problem: Problem) -> Comparison:
    """Check that the order of the labeled pairs and of the unlabeled outputs does not matter."""
    rng = np.random.default_rng(problem.seed)
    order, unlabeled = rng.permutation(size_of(problem.y)), problem.unlabeled
    unlabeled = None if unlabeled is None else select(unlabeled, rng.permutation(size_of(unlabeled)))
    permuted = replace(problem, X=select(problem.X, order), y=select(problem.y, order), unlabeled=unlabeled)
    return compare_models(fix_widths(problem), fix_widths(permuted, problem).model)


def repeated_pairs(problem: Problem) -> Comparison:
    """Check that each pair and each unlabeled output twice is the same distribution, and gives the same model."""
    X, y = (concatenate(part, part) for part in (problem.X, problem.y))
    unlabeled = None if problem.unlabeled is None else concatenate(problem.unlabeled, problem.unlabeled)
    repeated = replace(problem, X=X, y=y, unlabeled=unlabeled)
    return compare_models(fix_widths(problem), fix_widths(repeated, problem).model)


def fix_widths(problem: Problem, other: Problem | None = None) -> Problem:
    """Return the problem with the widths that kernels take from the data of another (by default the same) problem."""
    model = (problem if other is None else other).model
    kernels = [
        clone(kernel).set_params(gamma=kernel.gamma_) if hasattr(kernel, "gamma_") else kernel
        for kernel in (model.regression_.kernel, model.output_kernel_)
    ]
    return replace(problem, input_kernel=kernels[0], output_kernel=kernels[1])


def streamed_outputs(problem: Problem) -> Comparison | None:
    """Check that unlabeled outputs that come in batches are the same outputs."""
    if problem.unlabeled is None:
        return None
    m = size_of(problem.unlabeled)
    step = 1 + problem.seed % m
    batches = (select(problem.unlabeled, np.arange(i, min(i + step, m))) for i in range(0, m, step))
    return compare_models(problem, problem.make_model().fit(problem.X, problem.y, unlabeled=batches))


def partial_fit(problem: Problem) -> Comparison | None:
    """Check that unlabeled outputs in the span of the landmarks may come later."""
    if problem.unlabeled is None or problem.estimator == "IOKR":
        return None
    model = problem.fit_model(output_landmarks=MANY)
    return compare_models(problem, model.partial_fit(problem.unlabeled))


def small_blocks(problem: Problem) -> Comparison:
    """Check that the sizes of blocks do not matter in a fit, exact or with landmarks."""
    with config_context(working_memory=TINY_MEMORY):
        landmarks = [None, MANY][problem.seed % 2]
        return compare_models(problem, problem.fit_model(input_landmarks=landmarks, output_landmarks=landmarks))


def sparse_rows(problem: Problem) -> Comparison | None:
    """Check that rows of inputs and of outputs in CSR form are the same rows."""
    names = ["X", "X_test"] if problem.input_kind.split()[-1] in ("rows", "sets") else []
    names += ["y", "candidates", "unlabeled"] if problem.output_kind.split()[-1] in ("rows", "sets") else []
    parts = {name: getattr(problem, name) for name in names if getattr(problem, name) is not None}
    if not parts:
        return None
    changed = {
        name: part.toarray() if sparse.issparse(part) else sparse.csr_matrix(part) for name, part in parts.items()
    }
    return Comparison(replace(problem, **changed).distances, problem.distances, problem.tolerance, problem.scale)


def scikit_learn_ridge(problem: Problem) -> Comparison | None:
    """Check that ridge regression of scikit-learn is kernel ridge regression with the linear kernel."""
    linear = replace(problem, input_kernel=Linear())
    is_rows = problem.input_kind.split()[-1] in ("rows", "sets")
    if not is_rows or problem.supervision not in (None, 0.0) or linear.reference.has_no_factor:
        return None
    ridge = Ridge(size_of(problem.y) * problem.alpha, fit_intercept=False)
    return compare_models(linear, problem.fit_model(input_kernel=None, regressor=ridge))


def copied_model(problem: Problem) -> Comparison:
    """Check that a model that was saved and loaded, pickled, cloned, or fitted on other data before, is the model."""
    rng = np.random.default_rng(problem.seed)
    some = rng.integers(0, size_of(problem.y), 1 + size_of(problem.y) // 2)
    former = problem.make_model().fit(select(problem.X, some), select(problem.y, some))
    copies = [pickle.loads(pickle.dumps(problem.model))]
    for model in (clone(problem.model), former):
        copies.append(model.fit(problem.X, problem.y, unlabeled=problem.unlabeled))
    if "texts" not in (problem.input_kind, problem.output_kind):  # functions cannot be saved
        with tempfile.TemporaryDirectory() as folder:
            save_model(problem.model, Path(folder, "model.psi"))
            copies.append(load_model(Path(folder, "model.psi")))

    def results(model: Any) -> tuple[Any, ...]:
        top = model.predict_topk(problem.X_test, k=1)
        embedded = model.embed(problem.X_test), model.transform_outputs(problem.candidates)
        return (*embedded, top.indices, top.distances, top.nearest, model.candidates_.outputs)

    expected = results(problem.model)
    return all_equal(*(pair for model in copies for pair in zip(results(model), expected, strict=True)))


def _search(problem: Problem, model: Any, tolerance: float = ROUNDING) -> Comparison:
    """Compare the k nearest candidates of a model with those of its own full matrix of distances."""
    D = model_distances(model, problem.X_test, problem.candidates)
    top = model.predict_topk(problem.X_test, 1 + problem.seed % D.shape[1], problem.candidates)
    scale = problem.scale + float(np.sum(np.asarray(model.embed(problem.X_test), float) ** 2, axis=1).max())
    return compare_nearest(D, top.indices, top.distances, tolerance, scale)


def nearest_candidates(problem: Problem) -> Comparison:
    """Check that the k nearest candidates, in one block or many, are those of the full matrix of distances."""
    with config_context(working_memory=[TINY_MEMORY, 64][problem.seed % 2]):
        return _search(problem, problem.model)


def nearest_in_float32(problem: Problem) -> Comparison:
    """Check that the k nearest candidates of a float32 model are those of its own full matrix of distances."""
    return _search(problem, problem.fit_model(dtype="float32"), 100 * FLOAT32_EPSILON)


def torch_search(problem: Problem) -> Comparison:
    """Check that torch searches like NumPy."""
    return _search(problem, pickle.loads(pickle.dumps(problem.model)).set_params(device="cpu"))


def one_set_per_example(problem: Problem) -> Comparison:
    """Check that a set per example, here subsets of one set, is searched like the set alone."""
    rng, found = np.random.default_rng(problem.seed), []
    q, c = problem.distances.shape
    members = [rng.permutation(c)[: rng.integers(1, c + 1)] for _ in range(q)]
    sets = PerExampleCandidates([select(problem.candidates, chosen) for chosen in members])
    top = problem.model.predict_topk(problem.X_test, 1 + problem.seed % c, sets)
    for i, chosen in enumerate(members):
        k = min(top.indices.shape[1], len(chosen))
        parts = problem.distances[i : i + 1, chosen], top.indices[i : i + 1, :k], top.distances[i : i + 1, :k]
        found += compare_nearest(*parts, 0, 1).actual.ravel().tolist()
    return Comparison(found, np.zeros(len(found)), ROUNDING, problem.scale)


def first_of_ranked(problem: Problem) -> Comparison:
    """Check that ``predict`` and ``predict_topk`` return the beginning of ``rank_candidates``."""
    model, given = problem.model, (problem.X_test, problem.model.candidate_set(problem.candidates))
    c = problem.distances.shape[1]
    top, some = model.predict_topk(given[0], c, given[1]), model.predict_topk(given[0], 1 + problem.seed % c, given[1])
    ranked = np.array([row.distances for row in model.rank_candidates(*given)])
    first = select(problem.candidates, some.indices[:, 0])
    equal = all_equal((model.predict(*given), first), (model.predict_topk(given[0], 1, given[1]).nearest, first))
    found = np.concatenate([some.distances - top.distances[:, : some.distances.shape[1]], ranked - top.distances], 1)
    return Comparison(found, np.zeros_like(found), ROUNDING, problem.scale) if not equal.worst else equal


def truth_positions(problem: Problem) -> Comparison:
    """Check that the position of a true output counts nearer distinct candidates; near ties may count or not."""
    candidates = concatenate(problem.candidates, problem.y_test)
    positions = problem.model.truth_positions(problem.X_test, problem.y_test, candidates)
    distinct = problem.model.candidate_set(candidates).distinct()
    D = model_distances(problem.model, problem.X_test, distinct.outputs)
    own, slack = np.take_along_axis(D, distinct.match(problem.y_test)[:, None], axis=1), ROUNDING * problem.scale
    low, high = (np.sum(own + sign * slack > D, axis=1) for sign in (-1, 1))
    first, last = positions.nearer, positions.nearer + positions.tied
    outside = np.maximum(low - first, 0) + np.maximum(last - high, 0)
    return Comparison(outside, np.zeros_like(outside), EPSILON)


def conformal_sets(problem: Problem) -> Comparison:
    """Check that sets grow with the coverage, cover the calibration outputs, and agree with ranked lists."""
    candidates = problem.model.candidate_set(concatenate(problem.candidates, problem.y_test))
    model, X, y, levels = problem.fit_model(), problem.X_test, problem.y_test, [0.0, 0.2, 0.5, 0.7, 0.9, 1.0]
    model.calibrate(X, y, candidates)
    sets = [[set(row) for row in model.predict_set(X, level, candidates).indices] for level in levels]
    ranked = [set(row.indices[row.in_set]) for row in model.rank_candidates(X, candidates, coverage=0.7)]
    truth = candidates.match(y)
    nested = all(a <= b for low, high in pairwise(sets) for a, b in zip(low, high, strict=True))
    covered = [sum(t in row for t, row in zip(truth, members, strict=True)) for members in sets]
    required = [min(len(truth), np.ceil((len(truth) + 1) * level - 1e-9)) for level in levels]
    return Comparison([nested, np.greater_equal(covered, required).all(), ranked == sets[3]], [True] * 3, 0.0)


def all_rankings(problem: Problem) -> Comparison | None:
    """Check that the solvers find the nearest of all rankings, which brute force lists."""
    if problem.output_kind != "rankings" or not has_all_rankings(problem.output_kernel):
        return None
    listed = np.array(list(permutations(range(1, problem.y.shape[1] + 1))))
    top = problem.model.predict_topk(problem.X_test, 1)
    chosen = (top.nearest[:, None] == listed).all(axis=2).argmax(axis=1)[:, None]
    D = model_distances(problem.model, problem.X_test, listed)
    return compare_nearest(D, chosen, top.distances, problem.tolerance, problem.scale)


def all_label_sets(problem: Problem) -> Comparison | None:
    """Check that the k nearest of all label sets of some sizes, or of those near a known one, are in their list."""
    if problem.output_kind not in ("sets", "sparse sets"):
        return None
    rng, n_labels = np.random.default_rng(problem.seed), problem.y.shape[1]
    low, high = sorted(rng.integers(0, n_labels + 1, 2).tolist())
    listed = np.array(list(product([0.0, 1.0], repeat=n_labels)))
    given: list[tuple[Any, Any]] = [("all", np.ones(len(listed), bool))]
    sizes = listed.sum(axis=1)
    given.append((AllLabelSets(min_labels=low, max_labels=high), (sizes >= low) & (sizes <= high)))
    known = problem.model.candidates_.outputs
    known = known.toarray() if sparse.issparse(known) else known
    given.append(("near", (np.abs(listed[:, None] - known).sum(axis=2) <= 1).any(axis=1)))
    candidates, is_listed = given[rng.integers(3)]
    return _compare_label_sets(problem, candidates, listed[is_listed], int(rng.integers(1, 4)))


def _compare_label_sets(problem: Problem, candidates: Any, listed: Any, k: int) -> Comparison:
    top = problem.model.predict_topk(problem.X_test, k, candidates)
    found = np.stack([part.toarray() if sparse.issparse(part) else np.asarray(part, float) for part in top.outputs])
    is_equal = (found[:, :, None] == listed).all(axis=3)
    if not is_equal.any(axis=2).all() or found.shape[1] != min(k, len(listed)):
        return Comparison([False], [True], 0.0)  # a set that is not among the listed ones, or too few of them
    D = model_distances(
        problem.model, problem.X_test, listed if problem.output_kind == "sets" else sparse.csr_matrix(listed)
    )
    return compare_nearest(D, is_equal.argmax(axis=2), top.distances, problem.tolerance, problem.scale)


def _fit_search(problem: Problem, **options: Any) -> tuple[Any, list[Problem]]:
    """Return a search over few settings, and the problem of each setting."""
    grid: dict[str, Any] = {"alphas": [problem.alpha, min(100 * problem.alpha, 1e3)]}
    grid |= {"n_components": sorted({1, problem.n_components or 3})} if problem.estimator != "IOKR" else {}
    grid |= {"supervisions": sorted({0.3, problem.supervision or 0.0})} if problem.estimator == "OEL" else {}
    search = SEARCHES[problem.estimator](problem.input_kernel, problem.output_kernel, **grid, refit=False, **options)
    search.fit(problem.X, problem.y, unlabeled=problem.unlabeled)
    names = ("alpha", "n_components", "supervision")
    settings = [{name: row[name] for name in names if name in row} for row in search.cv_results_["params"]]
    return search, [replace(problem, **setting) for setting in settings]


def _compare_scores(found: list[tuple[float, float, float, float]]) -> Comparison:
    """Compare rows of score, expected score, tolerance and scale; those with too large a tolerance are left out."""
    table = np.array(found).T
    decidable = table[:, table[2] <= MAX_TOLERANCE]
    return Comparison(*(decidable if decidable.size else table))


def path_scores(problem: Problem) -> Comparison | None:
    """Check that the squared error of every setting of a search, by three routes, is that of a new fit."""
    if size_of(problem.y) < 4:
        return None
    routes: list[dict[str, Any]] = [{}, {"device": "cpu"}, {"output_landmarks": MANY}]
    route = routes[problem.seed % (2 if problem.estimator == "IOKR" else 3)]
    search, settings = _fit_search(fix_widths(problem), cv=CV, scoring="mse", **route)
    train, held = next(iter(CV.split(np.arange(size_of(problem.y)))))
    parts = {"X": train, "y": train, "X_test": held, "y_test": held}
    rows = []
    for score, setting in zip(search.cv_results_["split0_test_score"], settings, strict=True):
        one = replace(setting, **{name: select(getattr(setting, name[0]), chosen) for name, chosen in parts.items()})
        error = float(np.mean(np.diag(model_distances(one.model, one.X_test, one.y_test))))
        reference = one.reference
        tolerance = reference.tolerance(one.X_test, one.y_test) + 1e-6  # of eigenvectors along a path
        rows.append((float(score), -error, tolerance, reference.scale(one.X_test, one.y_test)))
    return _compare_scores(rows)


def leave_one_out(problem: Problem) -> Comparison | None:
    """Check that leave-one-out in closed form is n regressions without one pair, with the directions of all pairs."""
    n = size_of(problem.y)
    if n < 3:
        return None
    search, settings = _fit_search(fix_widths(problem), cv="loo", scoring="mse")
    rows = []
    for score, one in zip(search.cv_results_["mean_test_score"], settings, strict=True):
        K, g, norms = block(one.input_kernel, one.X), one.model.transform_outputs(one.y), one.output_kernel.diag(one.y)
        errors = []
        for i in range(n):
            rest = np.delete(np.arange(n), i)
            z = np.linalg.solve(K[np.ix_(rest, rest)] + n * one.alpha * np.eye(n - 1), K[rest, i]) @ g[rest]
            errors.append(float(z @ z - 2 * z @ g[i] + norms[i]))
        tolerance = one.reference.tolerance(one.X, one.y) + 1e-6
        rows.append((float(score), -float(np.mean(errors)), tolerance, max(one.reference.scale(one.X, one.y), *errors)))
    return _compare_scores(rows)


ORACLES: tuple[Oracle, ...] = (
    *(dense_formulas, all_landmarks, torch_cpu, float32, permuted_pairs, repeated_pairs, streamed_outputs, partial_fit),
    *(
        small_blocks,
        sparse_rows,
        scikit_learn_ridge,
        copied_model,
        nearest_candidates,
        nearest_in_float32,
        torch_search,
    ),
    *(one_set_per_example, first_of_ranked, truth_positions, conformal_sets, all_rankings, all_label_sets, path_scores),
    leave_one_out,
)


def judge(oracle: Oracle, problem: Problem) -> Result | None:
    """Return what an oracle finds on a problem; an error of the library is a defect. None if it does not apply."""
    name = oracle.__name__
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            comparison = oracle(problem)
    except Exception as error:
        if isinstance(error, np.linalg.LinAlgError | ValueError) and problem.reference.has_no_factor:
            return Result(CLEAR)  # λ is below the rounding errors of the kernel
        return Result(DEFECT, f"{name}: {type(error).__name__}: {error}", name)
    return None if comparison is None else comparison.judge(name)


def check_routes(seeds: Iterable[int], oracles: Iterable[Oracle] = ORACLES) -> Tally:
    """Run oracles on the random problem of each seed."""
    tally, oracles = Tally("two routes to one answer"), tuple(oracles)
    for seed in seeds:
        problem = make_problem(seed)
        for oracle in oracles:
            result = judge(oracle, problem)
            if result is not None:
                tally.add(result, problem.describe)
    return tally
