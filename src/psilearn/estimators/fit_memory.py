"""The peak memory of a fit and of a prediction, from sizes; :mod:`psilearn.memory` documents the formulas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

import numpy as np

from psilearn._backend import NUMPY, Compute, block_rows
from psilearn._linalg import FULL_SOLVER_ORDER, MAX_DEPTH, is_iterated
from psilearn._utils.samples import Samples, collection_bytes, n_samples, take
from psilearn.decoding.bounded_search import LONE_BLOCKS, MAX_BLOCK_BOUNDS, MAX_WIDE_BOUNDS
from psilearn.embedding import OutputCoordinates
from psilearn.embedding.embedding import MAX_EMBEDDED_ROWS
from psilearn.embedding.output_stream import MAX_BATCH_ROWS
from psilearn.kernels import Kernel
from psilearn.kernels.gram_matrix import gram_bytes
from psilearn.landmarks.selection import MAX_PROPOSALS, Landmarks, pool_size
from psilearn.regression.kernel_regression import MAX_REGRESSION_ROWS

KEY_BYTES = 250  # of each distinct output while they are searched for: a digest, its place in a dictionary, an index
KRYLOV_BLOCKS = 19  # blocks of vectors that the iteration for leading eigenvectors keeps
LANDMARK_NUMBERS = (20_000, 10_000, 5000, 3000, 2000, 1000, 500, 300, 200, 100, 50, 20, 10)  # that are suggested
MAX_PROBED = 1000  # outputs whose rank is computed
STEPS = {
    "outputs": "the coordinates of the outputs",
    "regression": "the regression",
    "directions": "the directions of the embedding",
    "candidates": "the embedded outputs",
}


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


def require_fit_memory(sizes: FitSizes, kernel: Kernel, outputs: Samples, compute: Compute) -> None:
    """Raise MemoryError before a fit whose peak exceeds the available memory.

    The rank of the outputs is not known yet. If the fit fits only with a low rank, the rank of a sample decides whether
    to start it. A GPU is not considered: what does not fit there is reported when it occurs.
    """
    free = None if compute.on_gpu else compute.available_bytes()
    if free is None or fit_memory(sizes).peak <= free:
        return
    if sizes.output_landmarks is None:
        sizes = replace(sizes, rank=probable_rank(kernel, outputs, sizes.n_spanned, free))
    _require(fit_memory(sizes).peak, fit_memory(sizes), sizes, free, compute)


def require_remaining_memory(sizes: FitSizes, compute: Compute) -> None:
    """Raise MemoryError after the output side, whose rank is known now, if the rest of the fit does not fit."""
    free = None if compute.on_gpu else compute.available_bytes()
    memory = fit_memory(sizes)
    if free is not None:
        _require(memory.after_outputs - memory.kept_outputs, memory, sizes, free, compute)


def _require(needed: int, memory: FitMemory, sizes: FitSizes, free: int, compute: Compute) -> None:
    if needed <= free:
        return
    step = max(STEPS, key=lambda name: getattr(memory, name))
    shape = (
        f"n = {sizes.n:,} pairs, d = {sizes.d:,} distinct outputs, q = {sizes.q:,}, r = {sizes.rank:,}, p = {sizes.p:,}"
    )
    compute.require_bytes(needed, f"This fit ({shape}), in {STEPS[step]},", suggestion(sizes, free))


def suggestion(sizes: FitSizes, free: int) -> str:
    """Return numbers of landmarks and the precision with which the fit would fit into the available memory."""
    options = []
    for number in LANDMARK_NUMBERS:
        reduced = with_landmarks(sizes, number)
        if reduced != sizes and fit_memory(reduced).peak <= free:
            options.append(f"{_changes(sizes, reduced)}: {fit_memory(reduced).peak:,} bytes")
            break
    single = fit_memory(replace(sizes, itemsize=4)).peak
    if not sizes.is_single and single <= free:
        options.append(f'set dtype="float32": {single:,} bytes')
    if not options:
        return (
            "No number of landmarks is enough: lower n_components, give unlabeled outputs as a path or an iterator "
            "(these are not stored), or use a machine with more memory."
        )
    sentence = ", or ".join(options)
    return f"{sentence[0].upper()}{sentence[1:]}."


def with_landmarks(sizes: FitSizes, number: int) -> FitSizes:
    """Return the sizes with at most this number of landmarks on each side."""
    if sizes.q > number and not sizes.has_regressor:
        method = "uniform" if sizes.input_landmarks is None else sizes.input_landmarks.method
        sizes = replace(sizes, input_landmarks=Landmarks(number, method))
    if (sizes.n_spanned if sizes.output_landmarks is None else sizes.rank) > number:
        method = "pivoted" if sizes.output_landmarks is None else sizes.output_landmarks.method
        sizes = replace(sizes, output_landmarks=Landmarks(number, method), rank=min(sizes.rank, number))
    return replace(sizes, without_coordinates=sizes.without_coordinates and sizes.may_skip_coordinates)


def _changes(before: FitSizes, after: FitSizes) -> str:
    changes = []
    for name in ("input_landmarks", "output_landmarks"):
        old, new = getattr(before, name), getattr(after, name)
        if new is not old:
            changes.append(f"set {name}={new.n}" if old is None else f"lower {name} to {new.n}")
    return " and ".join(changes)


def probable_rank(kernel: Kernel, outputs: Samples, n: int, free: int | None = None, compute: Compute = NUMPY) -> int:
    """Return the rank of a sample of the outputs if that is not full, else the number of outputs."""
    size = min(n, MAX_PROBED) if free is None else min(n, MAX_PROBED, isqrt(free // 64))
    if size < 2:
        return n
    sample = take(outputs, np.linspace(0, n - 1, size).astype(np.intp))
    rank = OutputCoordinates(kernel, sample, compute).rank
    return n if rank == size else rank


def row_bytes(outputs: Any) -> int:
    """Return the mean size of an output in bytes; 0 if it is not known."""
    return collection_bytes(outputs) // max(1, n_samples(outputs))
