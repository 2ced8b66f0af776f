"""Random small problems of structured prediction, and their solution by dense formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import sparse
from sklearn.base import clone

from psilearn import IOKR, KDE, OEL
from psilearn.kernels import (
    Dice,
    Gaussian,
    GaussianTanimoto,
    Hamming,
    Kemeny,
    Laplacian,
    Lehmer,
    Linear,
    Pairwise,
    Polynomial,
    Precomputed,
    Tanimoto,
)

ESTIMATORS = {"IOKR": IOKR, "KDE": KDE, "OEL": OEL}
RELATIVE_GAP = 1e-3  # of the largest eigenvalue, that makes leading directions well-conditioned
EPSILON = float(np.finfo(np.float64).eps)
Objects = tuple[Any, list[Any]]  # a kernel and collections of objects
Maker = Callable[[Generator, list[int]], Objects]


def count_common_letters(a: str, b: str) -> float:
    """Return the number of places at which two texts of one length agree: a function that can be pickled."""
    return float(sum(x == y for x, y in zip(a, b, strict=True)))


def rows(rng: Generator, sizes: list[int]) -> Objects:
    """Return real rows: of full rank, of rank one, with a constant column, or at very different scales."""
    columns, form = int(rng.integers(1, 6)), rng.integers(6)
    direction, factor = rng.standard_normal(columns), rng.choice([1e-5, 1e5])
    changes: list[Callable[[Any], Any]] = [
        lambda part: part,
        lambda part: np.column_stack([np.full(len(part), 1.5), part[:, 1:]]),
        lambda part: part[:, :1] * direction,
        lambda part: np.round(part),
        lambda part: part * 10 ** rng.uniform(-2, 2, (len(part), 1)),
        lambda part: part * factor,
    ]
    kernels: list[Any] = [
        Linear(),
        Gaussian(float(10 ** rng.uniform(-2, 1))),
        Gaussian(),
        Polynomial(2, 0.3, 1.0),
        Laplacian(0.5),
    ]
    kernels += [Linear().normalized(), Linear() + 0.5 * Gaussian(0.3), Polynomial(2, 0.2, 1.0) * Gaussian(0.1)]
    return kernels[rng.integers(len(kernels))], [changes[form](rng.standard_normal((size, columns))) for size in sizes]


def sets(rng: Generator, sizes: list[int]) -> Objects:
    """Return rows of zeros and ones, dense or CSR, with at most 7 columns; some are empty, and many are equal."""
    columns, density = int(rng.integers(1, 8)), rng.uniform(0.1, 0.7)
    parts: list[Any] = [(rng.random((size, columns)) < density).astype(float) for size in sizes]
    kernel = (Dice(), Tanimoto(), GaussianTanimoto(), Linear(), Gaussian(0.5))[rng.integers(5)]
    return kernel, [sparse.csr_matrix(part) for part in parts] if rng.random() < 0.3 else parts


def rankings(rng: Generator, sizes: list[int]) -> Objects:
    """Return ranks of 2 to 5 items."""
    n_items = int(rng.integers(2, 6))
    kernel = (Kemeny(), Hamming(), Lehmer(), Gaussian(0.7, base=Kemeny()))[rng.integers(4)]
    return kernel, [rng.permuted(np.tile(np.arange(1, n_items + 1), (size, 1)), axis=1) for size in sizes]


def partial_rankings(rng: Generator, sizes: list[int]) -> Objects:
    """Return ranks of 3 to 5 items, some of them tied or unknown."""
    n_items, parts = int(rng.integers(3, 6)), []
    for size in sizes:
        ranks = rng.permuted(np.tile(np.arange(1.0, n_items + 1), (size, 1)), axis=1)
        last = rng.integers(2, n_items + 1, (size, 1))  # items after this rank are tied, or unknown
        parts.append(np.where(ranks > last, np.where(rng.random((size, 1)) < 0.5, last + 1, np.nan), ranks))
    return (Kemeny(True), Hamming(True))[rng.integers(2)], parts


def orders(rng: Generator, sizes: list[int]) -> Objects:
    """Return orders of items as texts."""
    items = list("abcd")[: rng.integers(2, 5)]
    parts = [[">".join(rng.permutation(items)) for _ in range(size)] for size in sizes]
    return (Kemeny(), Hamming(), Lehmer())[rng.integers(3)], parts


def packed_sets(rng: Generator, sizes: list[int]) -> Objects:
    """Return packed rows of zeros and ones."""
    columns = int(rng.integers(1, 20))
    parts = [np.packbits(rng.random((size, columns)) < 0.4, axis=1) for size in sizes]
    return (Dice(packed=True), Tanimoto(packed=True))[rng.integers(2)], parts


def numbers(rng: Generator, sizes: list[int]) -> Objects:
    """Return single numbers, integers or reals."""
    make = (lambda size: rng.integers(0, 6, size), rng.standard_normal)[rng.integers(2)]
    return (Gaussian(0.3), Gaussian(), Linear(), Laplacian(0.5))[rng.integers(4)], [make(size) for size in sizes]


def texts(rng: Generator, sizes: list[int]) -> Objects:
    """Return texts of three letters with a function as kernel."""
    parts = [["".join(rng.choice(list("abc"), 3)) for _ in range(size)] for size in sizes]
    return Pairwise(count_common_letters), parts


def indices(rng: Generator, sizes: list[int]) -> Objects:
    """Return row numbers of a known matrix, which may have a low rank."""
    F = rng.standard_normal((30, int(rng.integers(1, 31))))
    return Precomputed(F @ F.T), [rng.integers(0, 30, size) for size in sizes]


INPUTS: dict[Maker, float] = {rows: 10, sets: 3, rankings: 2, texts: 1, indices: 2, packed_sets: 1, partial_rankings: 1}
OUTPUTS: dict[Maker, float] = {rows: 5, sets: 5, rankings: 3, texts: 1, indices: 2, packed_sets: 1}
OUTPUTS |= {partial_rankings: 1, orders: 1, numbers: 1}  # with their frequencies


def select(part: Any, chosen: Any) -> Any:
    """Return the objects with these indices, in the form of the collection."""
    return [part[i] for i in chosen] if isinstance(part, list) else part[chosen]


def concatenate(first: Any, second: Any) -> Any:
    """Return two collections as one, in the form of the first."""
    if isinstance(first, list):
        return first + second
    return sparse.vstack([first, second]).tocsr() if sparse.issparse(first) else np.concatenate([first, second])


def size_of(part: Any) -> int:
    """Return the number of objects."""
    return len(part) if isinstance(part, list) else part.shape[0]


@dataclass(frozen=True, eq=False)
class Problem:
    """Labeled pairs, unlabeled outputs, test pairs and candidates, with the estimator to fit.

    Fields are changed with :func:`dataclasses.replace`; the fitted model and the reference are computed once.
    """

    seed: int
    X: Any
    y: Any
    unlabeled: Any
    X_test: Any
    y_test: Any
    candidates: Any
    input_kind: str
    output_kind: str
    input_kernel: Any
    output_kernel: Any
    estimator: str
    alpha: float
    n_components: int | None
    supervision: float | None  # c of OEL, 0 for KDE, None for IOKR

    def make_model(self, **changes: Any) -> Any:
        """Return the unfitted estimator, with some parameters changed."""
        parameters: dict[str, Any] = {"alpha": self.alpha, "n_components": self.n_components}
        parameters |= {"supervision": self.supervision, "input_kernel": clone(self.input_kernel)}
        parameters |= {"output_kernel": clone(self.output_kernel), **changes}
        known = ESTIMATORS[self.estimator]().get_params(deep=False)
        return ESTIMATORS[self.estimator](**{name: value for name, value in parameters.items() if name in known})

    def fit_model(self, **changes: Any) -> Any:
        """Return the fitted estimator, with some parameters changed."""
        return self.make_model(**changes).fit(self.X, self.y, unlabeled=self.unlabeled)

    @cached_property
    def model(self) -> Any:
        """The fitted estimator."""
        return self.fit_model()

    @cached_property
    def reference(self) -> Reference:
        """The same model by dense formulas, with its condition numbers."""
        return Reference(self)

    @cached_property
    def distances(self) -> Any:
        """The squared distances of the test inputs (rows) to the candidates (columns), by the fitted estimator."""
        return model_distances(self.model, self.X_test, self.candidates)

    @cached_property
    def scale(self) -> float:
        """What errors of distances are measured in."""
        return self.reference.scale(self.X_test, self.candidates)

    @cached_property
    def tolerance(self) -> float:
        """The relative error of distances that rounding can cause."""
        return self.reference.tolerance(self.X_test, self.candidates)

    def describe(self) -> str:
        """Return one line on the problem."""
        return (
            f"seed {self.seed}: {self.estimator}, n={size_of(self.y)}, {self.input_kind} {self.input_kernel} → "
            f"{self.output_kind} {self.output_kernel}, λ={self.alpha:.2g}, p={self.n_components}, c={self.supervision}"
        )


def make_problem(seed: int) -> Problem:
    """Return the random problem of a seed."""
    rng = np.random.default_rng(seed)
    n, m, q, c = (int(rng.integers(low, high)) for low, high in ((2, 26), (1, 26), (1, 9), (1, 31)))
    makers = [
        list(kinds)[rng.choice(len(kinds), p=np.array(list(kinds.values())) / sum(kinds.values()))]
        for kinds in (INPUTS, OUTPUTS)
    ]
    input_kernel, (X, X_test) = makers[0](rng, [n, q])
    output_kernel, (y, unlabeled, y_test, candidates) = makers[1](rng, [n, m, q, c])
    if rng.random() < 0.3:  # some objects repeat
        X, y = (select(part, rng.integers(0, max(1, n // int(rng.integers(1, 5))), n)) for part in (X, y))
    kind = str(rng.choice(list(ESTIMATORS), p=[0.25, 0.25, 0.5]))
    supervision = {"IOKR": None, "KDE": 0.0}.get(kind, float(rng.choice((0.0, 0.1, 0.5, 0.9, 1.0))))
    kinds = [
        f"{'sparse ' if sparse.issparse(part) else ''}{make.__name__}"
        for part, make in zip((X, y), makers, strict=True)
    ]
    fields = (seed, X, y, unlabeled if rng.random() < 0.6 else None, X_test, y_test, candidates, *kinds)
    parts: Any = (*fields, input_kernel, output_kernel, kind, float(10 ** rng.uniform(-10, 3)), None, supervision)
    problem = Problem(*parts)
    if kind == "IOKR" or rng.random() < 0.2:
        return problem
    # directions are defined by a gap in the spectrum: most of the problems have one, the others test what is left
    values = problem.reference.spectrum[0]
    gaps = np.flatnonzero(values - np.append(values[1:], 0.0) > RELATIVE_GAP * values[:1]) + 1
    chosen = int(rng.choice(gaps)) if len(gaps) and rng.random() < 0.9 else int(rng.integers(1, n + 1))
    return replace(problem, n_components=chosen)


def block(kernel: Any, A: Any, B: Any = None) -> Any:
    """Return k(A, B) in float64."""
    return np.asarray(kernel(A, B)).astype(np.float64)


class Reference:
    """A model by dense formulas in the eigenvectors of one Gram matrix, and the condition of its problem.

    Distinct outputs, pivots, triangles, landmarks and blocks do not occur here: only the kernels are the library's.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.input_kernel = clone(problem.input_kernel).fit(problem.X, problem.y)
        self.output_kernel = clone(problem.output_kernel).fit(problem.y)
        self.outputs = problem.y if problem.unlabeled is None else concatenate(problem.y, problem.unlabeled)
        self.K_x = block(self.input_kernel, problem.X)
        self.n, self.ridge = len(self.K_x), len(self.K_x) * problem.alpha
        values, vectors = np.linalg.eigh(block(self.output_kernel, self.outputs))
        kept = values > 4 * len(values) * EPSILON * max(values[-1], 0.0)
        self.to_coordinates = vectors[:, kept] / np.sqrt(values[kept])  # ψ(y) = to_coordinatesᵀ k(outputs, y)
        self.coordinates = vectors[:, kept] * np.sqrt(values[kept])
        self.input_values, self.input_vectors = np.linalg.eigh(self.K_x)

    def solve(self, B: Any) -> Any:
        """Return (K_x + nλI)⁻¹B."""
        values = np.maximum(self.input_values, 0) + self.ridge
        return self.input_vectors @ ((self.input_vectors.T @ B) / values[:, None])

    def weights(self, X: Any) -> Any:
        """Return α(x), one row per input."""
        return self.solve(block(self.input_kernel, self.problem.X, X)).T

    @cached_property
    def spectrum(self) -> tuple[Any, Any]:
        """The eigenvalues of M_c, descending, and its eigenvectors."""
        c = self.problem.supervision or 0.0
        fitted = self.weights(self.problem.X) @ self.coordinates[: self.n]
        known = self.coordinates if self.problem.unlabeled is None else self.coordinates[self.n :]
        values, vectors = np.linalg.eigh(c / self.n * fitted.T @ fitted + (1 - c) / len(known) * known.T @ known)
        return values[::-1], vectors[:, ::-1]

    def distances(self, X: Any, candidates: Any, smallest: float = EPSILON) -> Any:
        """Return |G*z(x) − ψ(y)|²; moments below ``smallest`` times their number and the largest one count as zero."""
        V, p = np.eye(self.coordinates.shape[1]), self.problem.n_components
        if self.problem.supervision is not None:
            values, vectors = self.spectrum
            rank = int(np.sum(values > len(values) * smallest * values[0])) if len(values) else 0
            V = vectors[:, : rank if p is None else min(p, rank)]
        Z = self.weights(X) @ self.coordinates[: self.n] @ V
        g = block(self.output_kernel, candidates, self.outputs) @ self.to_coordinates @ V
        return combine(Z, g, self.output_kernel.diag(candidates))

    def scale(self, X: Any, candidates: Any) -> float:
        """Return the largest |ĥ(x)|² + k(y, y), in which errors of distances are measured."""
        lengths = np.sum((self.weights(X) @ self.coordinates[: self.n]) ** 2, axis=1)
        diagonals = [self.output_kernel.diag(outputs).max() for outputs in (self.outputs, candidates)]
        return float(lengths.max() + max(diagonals) + 1e-300)

    def tolerance(self, X: Any, candidates: Any, epsilon: float = EPSILON) -> float:
        """Return the error of distances that rounding can cause, relative to :meth:`scale`.

        Solutions with K_x + nλI lose its condition number, leading directions lose 1/gap. Coordinates of outputs, and
        of inputs with landmarks, are known up to √(N·ε), because pivots below N·ε are dropped, and α(x) sums errors
        of n of them. The effect of directions whose moment may count as zero or not is measured.
        """
        values = np.maximum(self.input_values, 0) + self.ridge
        total = 1 + float(np.abs(self.weights(X)).sum(axis=1).max())
        rounding = self.n * epsilon * values[-1] / values[0] * self._inverse_gap(epsilon) * total
        rank = self.distances(X, candidates, 1000 * epsilon) - self.distances(X, candidates, epsilon / 100)
        undetermined = 10 * float(np.abs(rank).max()) / self.scale(X, candidates)
        return float(rounding + np.sqrt(len(self.coordinates) * epsilon) * total + undetermined)

    @property
    def has_no_factor(self) -> bool:
        """Whether rounding can make K_x + nλI indefinite if inputs repeat, so that an error is the right answer."""
        return bool(self.ridge <= 100 * self.n * EPSILON * max(self.input_values[-1], 0.0))

    def landmark_tolerance(self) -> float:
        """Return the additional relative error of predictions with all inputs as landmarks.

        An input that others span up to √(n·ε) is dropped. Its kernel values k(x, xᵢ) then change by √(n·ε), and the
        prediction by as much times its coefficients (K_x + nλI)⁻¹Ψ(Y), which are large for a small λ. Without small
        eigenvalues of K_x, other than those of rounding, no such input exists.
        """
        values = np.maximum(self.input_values, 0) / (self.n * EPSILON * self.input_values[-1] + 1e-300)
        if not np.any((values > 0.1) & (values < 1e5)):
            return 0.0
        targets = self.coordinates[: self.n]
        total = float(np.linalg.norm(self.solve(targets), axis=1).sum() * np.diag(self.K_x).max())
        return float(np.sqrt(self.n * EPSILON) * total / (np.linalg.norm(targets, axis=1).max(initial=0.0) + 1e-300))

    def _inverse_gap(self, epsilon: float) -> float:
        """Return μ₁/(μ_p − μ_{p+1}); 1 if every direction is kept, or none exists."""
        p, values = self.problem.n_components, self.spectrum[0]
        if self.problem.supervision is None or p is None or p >= len(values) or not len(values):
            return 1.0
        is_full = values[p] <= len(values) * epsilon * values[0]  # every direction with a moment is kept
        return 1.0 if is_full else float(values[0] / max(values[p - 1] - values[p], 1e-300))


def combine(Z: Any, g: Any, squared_norms: Any) -> Any:
    """Return |z|² − 2⟨z, g(y)⟩ + k(y, y) for rows z of Z and rows g(y) of g."""
    return np.sum(Z**2, axis=1)[:, None] - 2 * Z @ g.T + squared_norms


def model_distances(model: Any, X: Any, candidates: Any) -> Any:
    """Return |G*z(x) − ψ(y)|² of a fitted model for inputs (rows) and candidates (columns), in float64."""
    Z, g = (np.asarray(part, dtype=np.float64) for part in (model.embed(X), model.transform_outputs(candidates)))
    return combine(Z, g, model.output_kernel_.diag(candidates))
