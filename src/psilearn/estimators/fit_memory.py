"""The peak memory of a fit and of a prediction, from sizes; :mod:`psilearn.memory` documents the formulas."""

from __future__ import annotations

from dataclasses import dataclass, replace

from psilearn._backend import block_rows, working_bytes
from psilearn._linalg import DENSE_LIMIT
from psilearn.embedding.embedding import MAX_BLOCK_ROWS as MAX_EMBEDDED_ROWS
from psilearn.embedding.output_stream import MAX_BATCH_ROWS
from psilearn.kernels.gram_matrix import panel_rows
from psilearn.landmarks.selection import MAX_PROPOSALS, Landmarks, pool_size
from psilearn.regression.nystrom import MAX_BLOCK_ROWS as MAX_REGRESSION_ROWS

KEY_BYTES = 250  # of the key of a distinct output, while they are searched for
KRYLOV_BLOCKS = 27  # blocks of vectors that the iteration for leading eigenvectors keeps
FULL_SOLVER_ORDER = 1000  # up to this order all eigenvectors are computed


@dataclass(frozen=True)
class FitSizes:
    """The sizes that determine the memory of a fit."""

    n: int  # labeled pairs
    d: int  # distinct outputs in memory
    n_labeled: int  # distinct outputs among the labeled ones
    rank: int  # r, of the outputs that the coordinates span, or the number of output landmarks
    n_components: int | None  # p; None for all
    supervision: float | None  # c; None keeps every direction
    input_landmarks: Landmarks | None
    output_landmarks: Landmarks | None
    itemsize: int  # bytes per number of a block
    has_unlabeled: bool = False
    row_bytes: int = 0  # of one output
    pool: int = 0  # outputs among which output landmarks are chosen

    @property
    def q(self) -> int:
        """The number of inputs that the regression is a function of."""
        return self.n if self.input_landmarks is None else min(self.input_landmarks.n, self.n)

    @property
    def p(self) -> int:
        """The number of components."""
        return self.rank if self.n_components is None or self.supervision is None else min(self.n_components, self.rank)

    @property
    def uses_unlabeled(self) -> bool:
        """Whether the directions depend on the moment of the outputs."""
        return self.supervision is not None and self.supervision < 1

    @property
    def uses_fitted_values(self) -> bool:
        """Whether the directions depend on the fitted values."""
        return self.supervision is not None and self.supervision > 0

    @property
    def is_single(self) -> bool:
        """Whether blocks are float32."""
        return self.itemsize == 4

    @property
    def is_compact(self) -> bool:
        """Whether the regression is reduced to a matrix for ``partial_fit``."""
        return self.output_landmarks is not None and self.uses_unlabeled


@dataclass(frozen=True)
class FitMemory:
    """The peak of each step of a fit in bytes, with what the steps before it keep."""

    outputs: int
    regression: int
    directions: int
    candidates: int

    @property
    def peak(self) -> int:
        """The largest of them."""
        return max(self.outputs, self.regression, self.directions, self.candidates)


def fit_memory(sizes: FitSizes) -> FitMemory:
    """Return the memory of the steps of a fit."""
    known = sizes.d * (sizes.row_bytes + 16)
    outputs, kept_outputs = _exact_outputs(sizes) if sizes.output_landmarks is None else _landmark_outputs(sizes)
    regression, kept_regression = _exact_regression(sizes) if sizes.input_landmarks is None else _nystrom(sizes)
    before = known + kept_outputs
    return FitMemory(
        max(KEY_BYTES * sizes.d, known + outputs),
        before + regression,
        before + kept_regression + _directions(sizes),
        before + kept_regression + _candidates(sizes),
    )


def gram_bytes(n: int, itemsize: int = 8) -> int:
    """Return the memory of a symmetric (n, n) matrix with the panel that it is computed in."""
    step = panel_rows(n)
    return 8 * n * n + (0 if step >= n else itemsize * step * n)


def _exact_outputs(sizes: FitSizes) -> tuple[int, int]:
    """Return the peak of the exact output side, and what it keeps: coordinates and triangle."""
    r, d = sizes.rank, sizes.d if sizes.uses_unlabeled else sizes.n_labeled
    return max(gram_bytes(d), 8 * d * d + 8 * d * r), 8 * d * r + 8 * r * r


def _landmark_outputs(sizes: FitSizes) -> tuple[int, int]:
    """Return the peak of the output side with landmarks, and what it keeps: a triangle and the moments."""
    r, s, landmarks = sizes.rank, sizes.itemsize, sizes.output_landmarks
    assert landmarks is not None
    pool = min(sizes.pool or sizes.d, pool_size(landmarks.n))
    choosing = 0
    if landmarks.method == "pivoted" and landmarks.n < pool:
        choosing = 4 * pool * landmarks.n + 32 * pool * MAX_PROPOSALS
    n_moments = 1 + (sizes.has_unlabeled and sizes.uses_unlabeled)
    kept = (8 + 8 * n_moments + (4 + 4 * n_moments) * sizes.is_single) * r * r
    n_outputs = max(sizes.n, sizes.d)
    block = s * r * block_rows(3 * s * r, min(n_outputs, MAX_BATCH_ROWS))
    return max(choosing, gram_bytes(r, s), kept + block), kept


def _exact_regression(sizes: FitSizes) -> tuple[int, int]:
    """Return the peak of exact kernel ridge regression, and what it keeps: coefficients and fitted values."""
    n, r = sizes.n, sizes.rank
    kept = 8 * n * r * (1 + sizes.uses_fitted_values)
    return max(gram_bytes(n), 8 * n * n + 8 * n * r + kept), kept


def _nystrom(sizes: FitSizes) -> tuple[int, int]:
    """Return the peak of the regression with landmarks, and what it keeps."""
    n, q, r, s = sizes.n, sizes.q, sizes.rank, sizes.itemsize
    targets = 8 * n * r if sizes.output_landmarks is None else 0
    rows = block_rows((3 * q + 2 * r) * s, min(n, MAX_REGRESSION_ROWS))
    block = s * rows * (q + r) + s * q * r
    peak = targets + (16 + 8 * sizes.is_single) * q * q + max(8 * q * r + block, 24 * q * r)
    solution = 8 * q * q + 8 * q * r * (1 + sizes.uses_fitted_values)
    if not sizes.is_compact:
        return max(gram_bytes(q, s), peak), solution
    moment = 8 * r * r * sizes.uses_fitted_values
    return max(gram_bytes(q, s), peak, solution + 8 * q * r + moment), 8 * q * r + moment


def _directions(sizes: FitSizes) -> int:
    """Return the memory of the leading eigenvectors."""
    r, p = sizes.rank, sizes.p
    if sizes.supervision is None:
        return 0
    if r > DENSE_LIMIT and 20 * p < r:
        return 8 * KRYLOV_BLOCKS * r * (p + max(10, p // 10))
    computes_all = r <= FULL_SOLVER_ORDER or 2 * p > r
    solver = 32 * r * r if computes_all else 16 * r * r + 8 * r * p
    return max(solver, 24 * r * r if sizes.is_compact and sizes.uses_fitted_values else 0)


def _candidates(sizes: FitSizes) -> int:
    """Return the memory of the embedding, of the embedded known outputs and of the rotated regression."""
    r, p, s, d = sizes.rank, sizes.p, sizes.itemsize, sizes.d
    keeps_all = sizes.supervision is None
    basis = 16 * r * p
    if sizes.output_landmarks is not None:
        embedded = s * d * p + s * r * p + s * (r + p) * block_rows(s * (r + p), min(d, MAX_EMBEDDED_ROWS))
    else:
        embedded = 8 * d * p * (not keeps_all) + 4 * d * p * sizes.is_single
    rotated = 0 if keeps_all and sizes.input_landmarks is None else 8 * sizes.q * p
    return basis + embedded + rotated + 4 * sizes.q * p * sizes.is_single


def with_rank(sizes: FitSizes, rank: int) -> FitSizes:
    """Return the sizes with another rank of the outputs."""
    return replace(sizes, rank=rank)


__all__ = ["FitMemory", "FitSizes", "fit_memory", "gram_bytes", "with_rank", "working_bytes"]
