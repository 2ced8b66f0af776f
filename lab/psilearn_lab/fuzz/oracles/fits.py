"""Oracles of fits: other routes to the same model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import Ridge

from psilearn import Landmarks
from psilearn.kernels import Linear
from psilearn_lab.fuzz.oracles.comparison import Comparison, compare_models
from psilearn_lab.fuzz.oracles.objects import concatenate, select
from psilearn_lab.fuzz.oracles.problems import Problem

FLOAT32_EPSILON = float(np.finfo(np.float32).eps)
TINY_MEMORY = 5e-4  # MiB: a few rows per block
MANY = 1000  # landmarks: more than there are objects


def dense_formulas(problem: Problem) -> Comparison:
    """Check that the estimator is the dense formula in the eigenvectors of one Gram matrix."""
    actual = problem.reference.distances(problem.X_test, problem.candidates)
    return Comparison(problem.distances, actual, problem.tolerance, problem.scale)


def all_landmarks(problem: Problem) -> Comparison:
    """Check that Nyström with all inputs and all outputs as landmarks is exact."""
    rng = np.random.default_rng(problem.seed)
    inputs = Landmarks(MANY, str(rng.choice(["uniform", "kmeans++", "leverage", "pivoted"])))
    outputs = Landmarks(MANY, str(rng.choice(["uniform", "kmeans++", "leverage", "pivoted", "labeled"])))
    changes = [{"input_landmarks": inputs}, {"output_landmarks": outputs}]
    chosen = changes[0] | changes[1] if rng.random() < 0.5 else changes[rng.integers(2)]
    comparison = compare_models(problem, problem.fit_model(**chosen))
    return replace(comparison, tolerance=comparison.tolerance + problem.reference.landmark_tolerance())


def torch_cpu(problem: Problem) -> Comparison:
    """Check that torch on the CPU computes what NumPy computes."""
    return compare_models(problem, problem.fit_model(device="cpu"))


def float32(problem: Problem) -> Comparison:
    """Check that float32 computes what float64 computes; it requires a larger λ, and p at the largest gap."""
    problem = replace(problem, alpha=max(problem.alpha, 0.01 * float(np.mean(np.diag(problem.reference.K_x)))))
    values = problem.reference.eigenvalues
    if problem.n_components is not None and len(values):
        problem = replace(problem, n_components=1 + int(np.argmax(values - np.append(values[1:], 0.0))))
    return compare_models(problem, problem.fit_model(dtype="float32"), FLOAT32_EPSILON)


def permuted_pairs(problem: Problem) -> Comparison:
    """Check that the order of the labeled pairs and of the unlabeled outputs does not matter."""
    rng = np.random.default_rng(problem.seed)
    order = rng.permutation(problem.n)
    unlabeled = problem.unlabeled
    if unlabeled is not None:
        m = len(unlabeled) if isinstance(unlabeled, list) else unlabeled.shape[0]
        unlabeled = select(unlabeled, rng.permutation(m))
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
    if not any(hasattr(kernel, "gamma_") for kernel in (model.regression_.kernel, model.output_kernel_)):
        return problem
    return replace(problem, input_kernel=_fixed(model.regression_.kernel), output_kernel=_fixed(model.output_kernel_))


def _fixed(kernel: Any) -> Any:
    """Return the kernel with its learned width as a parameter."""
    return clone(kernel).set_params(gamma=kernel.gamma_) if hasattr(kernel, "gamma_") else kernel


def streamed_outputs(problem: Problem) -> Comparison | None:
    """Check that unlabeled outputs that come in batches are the same outputs."""
    if problem.unlabeled is None:
        return None
    U = problem.unlabeled
    m = len(U) if isinstance(U, list) else U.shape[0]
    step = 1 + problem.seed % m
    batches = (select(U, np.arange(start, min(start + step, m))) for start in range(0, m, step))
    return compare_models(problem, problem.make_model().fit(problem.X, problem.y, unlabeled=batches))


def partial_fit(problem: Problem) -> Comparison | None:
    """Check that unlabeled outputs in the span of the landmarks may come later."""
    if problem.unlabeled is None or problem.estimator == "IOKR":
        return None
    model = problem.make_model(output_landmarks=MANY)
    model.fit(problem.X, problem.y, unlabeled=problem.unlabeled).partial_fit(problem.unlabeled)
    return compare_models(problem, model)


def small_blocks(problem: Problem) -> Comparison:
    """Check that the sizes of blocks do not matter in a fit, exact or with landmarks."""
    with config_context(working_memory=TINY_MEMORY):
        landmarks = [None, MANY][problem.seed % 2]
        return compare_models(problem, problem.fit_model(input_landmarks=landmarks, output_landmarks=landmarks))


def sparse_inputs(problem: Problem) -> Comparison | None:
    """Check that rows of inputs in CSR form are the same rows."""
    parts = [_to_sparse(part, problem.input_kind) for part in (problem.X, problem.X_test)]
    if parts[0] is None:
        return None
    other = replace(problem, X=parts[0], X_test=parts[1])
    return Comparison(other.distances, problem.distances, problem.tolerance, problem.scale)


def sparse_outputs(problem: Problem) -> Comparison | None:
    """Check that rows of outputs in CSR form are the same rows."""
    parts = [_to_sparse(part, problem.output_kind) for part in (problem.y, problem.candidates, problem.unlabeled)]
    if parts[0] is None:
        return None
    other = replace(problem, y=parts[0], candidates=parts[1], unlabeled=parts[2])
    return Comparison(other.distances, problem.distances, problem.tolerance, problem.scale)


def scikit_learn_ridge(problem: Problem) -> Comparison | None:
    """Check that ridge regression of scikit-learn is kernel ridge regression with the linear kernel."""
    if problem.input_kind not in ("rows", "sets", "sparse sets") or problem.supervision not in (None, 0.0):
        return None
    linear = replace(problem, input_kernel=Linear())
    if linear.reference.has_no_factor:
        return None
    ridge = Ridge(problem.n * problem.alpha, fit_intercept=False)
    return compare_models(linear, problem.fit_model(input_kernel=None, regressor=ridge))


def _to_sparse(part: Any, kind: str) -> Any:
    """Return rows in the other form, CSR or dense; None for objects that are not rows."""
    if part is None or kind not in ("rows", "sets", "sparse sets"):
        return None
    return part.toarray() if sparse.issparse(part) else sparse.csr_matrix(part)


ORACLES = (
    dense_formulas,
    all_landmarks,
    torch_cpu,
    float32,
    permuted_pairs,
    repeated_pairs,
    streamed_outputs,
    partial_fit,
    small_blocks,
    sparse_inputs,
    sparse_outputs,
    scikit_learn_ridge,
)
