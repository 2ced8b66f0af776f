"""The peak memory of a fit and of a prediction, from sizes; :mod:`psilearn.memory` documents the formulas."""

from __future__ import annotations

from dataclasses import dataclass, replace

from psilearn._backend import block_rows
from psilearn._linalg import FULL_SOLVER_ORDER, MAX_DEPTH, is_iterated
from psilearn.decoding.bounded_search import LONE_BLOCKS, MAX_BLOCK_BOUNDS, MAX_WIDE_BOUNDS
from psilearn.embedding.embedding import MAX_EMBEDDED_ROWS
from psilearn.embedding.output_stream import MAX_BATCH_ROWS
from psilearn.kernels.gram_matrix import gram_bytes
from psilearn.landmarks.pivots import MAX_PROPOSALS
from psilearn.landmarks.selection import Landmarks, pool_size
from psilearn.regression.kernel_regression import MAX_REGRESSION_ROWS

KEY_BYTES = 250  # of each distinct output while they are searched for: a digest, its place in a dictionary, an index
KRYLOV_BLOCKS = 19  # blocks of vectors that the iteration for leading eigenvectors keeps


@dataclass(frozen=True)
class FitSizes:
    """The sizes that determine the memory of a fit."""

    n: int  # labeled pairs
    d: int  # distinct outputs in memory
    n_labeled: int  # those of them that are labeled
    rank: int  # r: of the outputs that the coordinates span, or the number of output landmarks
    n_components: int | None  # p; None for all
    supervision: float | None  # c; None keeps every direction
    input_landmarks: Landmarks | None
    output_landmarks: Landmarks | None
    itemsize: int  # s: bytes per number of a block
    has_unlabeled: bool = False
    row_bytes: int = 0  # of one output
    has_regressor: bool = False  # instead of kernel ridge regression; its own memory is not known
    without_coordinates: bool = False  # an exact fit that does not factor the Gram matrix of the outputs

    def with_supervision(self, supervision: float) -> FitSizes:
        """Return the sizes of a fit with another c; without unlabeled outputs in its coordinates if c = 1."""
        changed = replace(self, supervision=supervision)
        return changed if self.output_landmarks else replace(changed, rank=min(self.rank, changed.n_spanned))

    @property
    def q(self) -> int:
        """The number of inputs that the regression is a function of."""
        return self.n if self.input_landmarks is None else min(self.input_landmarks.n, self.n)

    @property
    def p(self) -> int:
        """The number of components."""
        return self.rank if self.n_components is None or self.supervision is None else min(self.n_components, self.rank)

    @property
    def n_spanned(self) -> int:
        """The number of outputs whose Gram matrix is factored without output landmarks."""
        return self.d if self.uses_unlabeled else self.n_labeled

    @property
    def uses_unlabeled(self) -> bool:
        """Whether the directions depend on the moment of the outputs."""
        return self.supervision is not None and self.supervision < 1

    @property
    def uses_fitted_values(self) -> bool:
        """Whether the directions depend on the fitted values."""
        return self.supervision is not None and self.supervision > 0

    @property
    def may_skip_coordinates(self) -> bool:
        """Whether directions can be found from the Gram matrix of the outputs, faster than from its factor if r = d.

        The regression must be linear in its targets, and its moment a sum over the training inputs.
        """
        has_landmarks = self.output_landmarks is not None or self.input_landmarks is not None
        if has_landmarks or self.has_regressor or not self.uses_unlabeled or self.n_components is None:
            return False
        return self.rank == self.n_spanned and is_iterated(self.rank, self.n_components)

    @property
    def is_single(self) -> bool:
        """Whether blocks are float32."""
        return self.itemsize == 4

    @property
    def is_compact(self) -> bool:
        """Whether the regression is reduced to a matrix, for ``partial_fit``."""
        return self.output_landmarks is not None and self.uses_unlabeled


@dataclass(frozen=True)
class FitMemory:
    """The peak of each step of a fit in bytes, including what the steps before it keep."""

    outputs: int
    regression: int
    directions: int
    candidates: int
    kept_outputs: int  # by the first step

    @property
    def peak(self) -> int:
        """The largest peak of a step."""
        return max(self.outputs, self.after_outputs)

    @property
    def after_outputs(self) -> int:
        """The largest peak of a step after the first."""
        return max(self.regression, self.directions, self.candidates)


def fit_memory(sizes: FitSizes) -> FitMemory:
    """Return the memory of the steps of a fit."""
    known = sizes.d * (sizes.row_bytes + 16)
    outputs, kept = exact_outputs(sizes) if sizes.output_landmarks is None else landmark_outputs(sizes)
    regression, kept_regression = _regression(sizes)
    before = known + kept
    return FitMemory(
        outputs=max(KEY_BYTES * sizes.d, known + outputs),
        regression=before + regression,
        directions=before + kept_regression + _directions(sizes),
        candidates=before + kept_regression + _candidates(sizes),
        kept_outputs=before,
    )


def exact_outputs(sizes: FitSizes) -> tuple[int, int]:
    """Return the peak of the exact output side, and what it keeps: coordinates and triangle, or the Gram matrix."""
    r, d = sizes.rank, sizes.n_spanned
    if sizes.without_coordinates:
        return gram_bytes(d), 8 * d * d
    return max(gram_bytes(d), 8 * d * d + 8 * d * r), 8 * d * r + 8 * r * r


def landmark_outputs(sizes: FitSizes) -> tuple[int, int]:
    """Return the peak of the output side with landmarks, and what it keeps: a triangle and the moments."""
    r, s, landmarks = sizes.rank, sizes.itemsize, sizes.output_landmarks
    assert landmarks is not None
    pool = pool_size(landmarks.n) if sizes.has_unlabeled and sizes.uses_unlabeled else sizes.n_labeled
    pool = min(pool, pool_size(landmarks.n))
    choosing = 0
    if landmarks.method == "pivoted" and landmarks.n < pool:
        choosing = 4 * pool * r + 24 * pool * MAX_PROPOSALS
    n_moments = sizes.uses_unlabeled * (1 + sizes.has_unlabeled)
    kept = (8 + 8 * n_moments + (4 + 4 * n_moments) * sizes.is_single) * r * r
    block = s * r * block_rows(3 * s * r, min(max(sizes.n, sizes.d), MAX_BATCH_ROWS))
    return max(choosing, gram_bytes(r, s), kept + block), kept


def _regression(sizes: FitSizes) -> tuple[int, int]:
    """Return the peak of the regression, and what it keeps."""
    n, r = sizes.n, sizes.n_labeled if sizes.without_coordinates else sizes.rank
    if sizes.has_regressor:
        fitted = 8 * n * r * sizes.uses_fitted_values
        return 8 * n * r + fitted, fitted
    if sizes.input_landmarks is not None:
        return _nystrom(sizes)
    kept = 8 * n * r * (1 + sizes.uses_fitted_values)
    return max(gram_bytes(n), 8 * n * n + 8 * n * r + kept), kept


def _nystrom(sizes: FitSizes) -> tuple[int, int]:
    """Return the peak of the regression with landmarks, and what it keeps."""
    n, q, r, s = sizes.n, sizes.q, sizes.rank, sizes.itemsize
    targets = 8 * n * r if sizes.output_landmarks is None else 0
    block = s * (q + r) * block_rows((3 * q + 2 * r) * s, min(n, MAX_REGRESSION_ROWS)) + s * q * r
    peak = targets + (16 + 8 * sizes.is_single) * q * q + max(8 * q * r + block, 24 * q * r)
    solution = 8 * q * q + 8 * q * r * (1 + sizes.uses_fitted_values)
    if not sizes.is_compact:
        return max(gram_bytes(q, s), peak), solution
    moment = 8 * r * r * sizes.uses_fitted_values
    return max(gram_bytes(q, s), peak, solution + 8 * q * r + moment), 8 * q * r + moment


def _directions(sizes: FitSizes) -> int:
    """Return the memory of the moment and of its leading eigenvectors."""
    r, p = sizes.rank, sizes.p
    if sizes.supervision is None:
        return 0
    if is_iterated(r, p):
        n_points, width = r + sizes.n * sizes.without_coordinates, p + max(10, p // 10)
        return 8 * KRYLOV_BLOCKS * n_points * width + 24 * (MAX_DEPTH * width) ** 2
    return max(8 * r * r + eigenvector_bytes(r, p), 24 * r * r * sizes.is_compact * sizes.uses_fitted_values)


def eigenvector_bytes(r: int, p: int) -> int:
    """Return the memory of p leading eigenvectors of a matrix of order r, by a dense solver."""
    computes_all = r <= FULL_SOLVER_ORDER or 2 * p > r
    return 24 * r * r if computes_all else 8 * r * r + 8 * r * p


def _candidates(sizes: FitSizes) -> int:
    """Return the memory of the embedding, of the embedded known outputs and of the rotated regression."""
    r, p, s, d = sizes.rank, sizes.p, sizes.itemsize, sizes.d
    keeps_all = sizes.supervision is None
    is_rotated = not (keeps_all and sizes.input_landmarks is None) and not sizes.has_regressor
    rotated = (8 * is_rotated + 4 * sizes.is_single) * sizes.q * p
    block = 4 * r * p * sizes.is_single + s * (r + p) * block_rows(s * (r + p), min(d, MAX_EMBEDDED_ROWS))
    embedded = s * d * p
    if sizes.output_landmarks is None:
        spanned = 8 * sizes.n_spanned * p * (not keeps_all)
        is_complete = sizes.n_spanned == d
        block = spanned * sizes.is_single if is_complete else spanned + block
        embedded = embedded if sizes.is_single or not is_complete else spanned
    basis = 8 * r * p * (2 - keeps_all)
    return max(16 * r * p, basis + embedded + max(block, rotated))


@dataclass(frozen=True)
class PredictionSizes:
    """The sizes that determine the memory of a prediction."""

    n_queries: int
    n_components: int
    k: int
    itemsize: int
    n_anchors: int  # training inputs, or input landmarks
    n_candidates: int
    rank: int  # output landmarks, or 0 if the candidates are embedded


def prediction_memory(sizes: PredictionSizes) -> int:
    """Return the peak memory of a prediction."""
    n, p, s = sizes.n_queries, sizes.n_components, sizes.itemsize
    embedding = s * (sizes.n_anchors + p) * block_rows(3 * s * sizes.n_anchors, n)
    numbers = 2 * p + sizes.rank
    n_rows = block_rows(s * numbers, min(sizes.n_candidates, MAX_EMBEDDED_ROWS))
    block = n_rows * (s * (sizes.rank + p) * (sizes.rank > 0) + 4 * (p + 2))
    bounds = 4 * LONE_BLOCKS * MAX_WIDE_BOUNDS if sizes.k == 1 else 8 * MAX_BLOCK_BOUNDS  # bytes
    search = 24 * n * sizes.k + 16 * n + 8 * sizes.n_candidates + block + bounds
    return s * n * p + max(embedding, search)
