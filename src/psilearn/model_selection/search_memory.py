"""The peak memory of a search, from sizes; :mod:`psilearn.memory` documents the formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from psilearn._backend import Compute, block_rows
from psilearn._utils.samples import n_samples
from psilearn.decoding.component_path import BYTES_PER_DISTANCE, MAX_SCORED_CANDIDATES
from psilearn.embedding.subspace_path import AXES_PER_VECTOR, MAX_DENSE_ORDER
from psilearn.estimators.fit_memory import (
    FitSizes,
    eigenvector_bytes,
    exact_outputs,
    fit_memory,
    landmark_outputs,
    probable_rank,
    row_bytes,
)
from psilearn.kernels.gram_matrix import gram_bytes
from psilearn.model_selection.grids import MAX_COMPONENTS
from psilearn.model_selection.regression_routes import prefers_factors
from psilearn.model_selection.search_problem import SearchProblem
from psilearn.regression.kernel_regression import MAX_REGRESSION_ROWS

RITZ_VECTORS = 6  # vectors that a space along a path keeps per component


@dataclass(frozen=True)
class SearchSizes:
    """The sizes that determine the memory of a search; ``fit`` has those of the final fit of all n pairs."""

    fit: FitSizes
    n_train: int
    n_held: int
    n_alphas: int
    supervisions: Sequence[float]
    n_output_kernels: int = 1
    max_components: int | None = None  # None keeps every direction
    has_default_components: bool = False  # p is chosen by the spectrum of the outputs
    decodes: bool = False
    leaves_one_out: bool = False
    n_jobs: int = 1
    refit: bool = True

    @property
    def mixes(self) -> bool:
        """Whether some c is below 1."""
        return min(self.supervisions) < 1

    @property
    def is_shared(self) -> bool:
        """Whether one rotation of the exact coordinates serves all splits."""
        return self.fit.output_landmarks is None and self.fit.has_unlabeled and self.mixes

    @property
    def width(self) -> int:
        """s, the number of coordinates of a split."""
        r, p = self.fit.rank, self.max_components
        if not self.is_shared:
            return min(r, self.n_train) if self.mixes else r
        if p is None or self.has_default_components:
            return r
        size = AXES_PER_VECTOR * min(p, r) + self.fit.n_labeled
        return r if r <= MAX_DENSE_ORDER or 2 * size > r else size

    @property
    def p(self) -> int:
        """The largest number of components."""
        return self.width if self.max_components is None else min(self.max_components, self.width)


def search_memory(sizes: SearchSizes) -> int:
    """Return the peak memory of a search."""
    fit = _spanning(sizes)
    known = fit.d * (fit.row_bytes + 16)
    building, kept = (0, 0) if fit.output_landmarks is not None else _output_paths(sizes, fit)
    splitting = kept + sizes.n_jobs * _split(sizes, fit)
    return max(known + building, known + splitting, _refit(sizes))


def _refit(sizes: SearchSizes) -> int:
    """Return the peak of the final fit, with any c of the grid."""
    if not sizes.refit:
        return 0
    if sizes.fit.supervision is None:
        return fit_memory(sizes.fit).peak
    return max(fit_memory(sizes.fit.with_supervision(c)).peak for c in sizes.supervisions)


def _spanning(sizes: SearchSizes) -> FitSizes:
    """Return the sizes of a fit whose coordinates span the same outputs as those of the search."""
    return replace(sizes.fit, supervision=0.5 if sizes.mixes else 1.0, itemsize=8)


def _output_paths(sizes: SearchSizes, fit: FitSizes) -> tuple[int, int]:
    """Return the peak of the exact coordinates of all output kernels, and what they keep."""
    r, d, s = fit.rank, fit.n_spanned, sizes.width
    peak, coordinates = exact_outputs(fit)
    kept = coordinates + (8 * d * s + 8 * r * s) * sizes.is_shared
    rotating = coordinates + _rotation(d, r, s) if sizes.is_shared else 0
    before = (sizes.n_output_kernels - 1) * kept
    spectrum = 0
    if sizes.has_default_components and not sizes.is_shared:
        spectrum = sizes.n_output_kernels * kept + 8 * fit.n * r + 24 * r * r
    return max(before + max(peak, rotating), spectrum), before + kept


def _rotation(d: int, r: int, s: int) -> int:
    """Return the memory of the rotation of (d, r) coordinates to s axes."""
    if s < r:
        return 8 * d * r + 8 * r * r + 40 * r * s + 24 * s * s
    return 8 * d * r + max(8 * r * r + eigenvector_bytes(r, r), 8 * r * r + 8 * d * r)


def _split(sizes: SearchSizes, fit: FitSizes) -> int:
    """Return the peak of one split, in addition to what all splits share."""
    outputs, kept = _split_outputs(sizes, fit)
    s, n_cached = sizes.width, sizes.n_output_kernels
    if s > MAX_DENSE_ORDER:
        n_cached = 1
    before = n_cached * kept + sizes.n_output_kernels * _candidates(sizes, fit)
    widths = [fit.rank if not sizes.is_shared else s] * sizes.n_output_kernels
    n_held = None if sizes.leaves_one_out else sizes.n_held
    if fit.input_landmarks is not None:
        return max(n_cached * kept + outputs, before + _nystrom(sizes, sum(widths)))
    n_problems = 0 if sizes.max_components is None else sizes.n_alphas * len(sizes.supervisions)
    if prefers_factors(sizes.n_train, n_held, widths, sizes.n_alphas, n_problems):
        route = _factors(sizes, sum(widths))
    else:
        route = _eigenvectors(sizes)
    return max(8 * sizes.n_train**2 + n_cached * kept + outputs, before + route)


def _split_outputs(sizes: SearchSizes, fit: FitSizes) -> tuple[int, int]:
    """Return the peak of the outputs of a split, and what they keep."""
    r = fit.rank
    if fit.output_landmarks is not None:
        peak, moments = landmark_outputs(fit)
        values = 8 * fit.n_labeled * r
        rotating = moments + values + max(16 * r * r + eigenvector_bytes(r, r), 24 * r * r + values)
        return max(peak, rotating), values + 16 * r * r
    if sizes.is_shared:
        return 0, 0
    if not sizes.mixes:
        return 8 * r * r, 8 * r * r
    return _rotation(fit.n_spanned, r, r), 8 * fit.n_spanned * r + 8 * r * r


def _candidates(sizes: SearchSizes, fit: FitSizes) -> int:
    """Return the memory of the embedded candidates of a split."""
    return 8 * (fit.d + fit.rank) * sizes.width if sizes.decodes else 0


def _eigenvectors(sizes: SearchSizes) -> int:
    """Return the peak of a split with one eigendecomposition of K_x."""
    n, q = sizes.n_train, 0 if sizes.leaves_one_out else sizes.n_held
    left_out = 8 * n * n + 8 * n * sizes.width if sizes.leaves_one_out else 0
    return max(gram_bytes(n), 24 * n * n, 8 * n * n + max(16 * q * n, 8 * q * n + left_out + _decomposed(sizes, n)))


def _nystrom(sizes: SearchSizes, width: int) -> int:
    """Return the peak of a split with input landmarks, for output paths of this total width."""
    assert sizes.fit.input_landmarks is not None
    q, n_queries = min(sizes.fit.input_landmarks.n, sizes.n_train), sizes.n_held
    rows = block_rows(8 * (3 * q + 2 * width), min(sizes.n_train, MAX_REGRESSION_ROWS))
    crosses = 8 * q * width
    reading = 16 * q * q + crosses + 8 * rows * (q + sizes.width) + 8 * q * sizes.width
    kept = 16 * q * q + crosses + 8 * n_queries * q
    rotating = 16 * q * block_rows(24 * q, min(n_queries, MAX_REGRESSION_ROWS))
    return max(reading, kept + rotating, 40 * q * q + crosses, 16 * q * q + 2 * crosses, kept + _decomposed(sizes, q))


def _decomposed(sizes: SearchSizes, n: int) -> int:
    """Return the memory of the steps of one output path, whose rotated targets have n rows."""
    s, n_held = sizes.width, sizes.n_held
    targets = 8 * n * s + 8 * n_held * s
    rotating = 8 * n * s + 8 * n_held * s
    if sizes.max_components is None:
        return targets + max(rotating, 8 * n_held * s + _scoring(sizes))
    return targets + 8 * n_held * s + max(rotating, 8 * n * s + 8 * s * s, _subspaces(sizes, n), _scoring(sizes))


def _subspaces(sizes: SearchSizes, n: int) -> int:
    """Return the memory of the eigenvectors of M_c along a path."""
    s, p = sizes.width, sizes.p
    outer = 32 * n * n if n < s and max(sizes.supervisions) == 1 else 0
    if s > max(MAX_DENSE_ORDER, 10 * p):
        return max(outer, 8 * (n + s) * RITZ_VECTORS * p + 8 * n * n * (n < s))
    if max(sizes.supervisions) == 0:
        return 8 * s * p
    return max(outer, 16 * s * s + eigenvector_bytes(s, p))


def _factors(sizes: SearchSizes, width: int) -> int:
    """Return the peak of a split with one Cholesky factor of K_x per λ, for output paths of this total width."""
    n, q, s = sizes.n_train, sizes.n_held, sizes.width
    kept = 8 * sizes.n_alphas * sizes.n_output_kernels * s * (s + q)
    solving = 8 * n * n + 8 * q * n + 16 * n * width + max(8 * n * n + 8 * n * width, 24 * n * width)
    small = 0 if sizes.max_components is None else 8 * s * s + eigenvector_bytes(s, sizes.p)
    return kept + max(gram_bytes(n), solving, 8 * q * s + max(small, _scoring(sizes)))


def _scoring(sizes: SearchSizes) -> int:
    """Return the memory of the scores of one step."""
    q, p, d = sizes.n_held, sizes.p, sizes.fit.d
    errors = 8 * q * p * 5
    if not sizes.decodes:
        return errors
    n_columns = min(d, MAX_SCORED_CANDIDATES)
    block = BYTES_PER_DISTANCE * n_columns * block_rows(BYTES_PER_DISTANCE * n_columns, q)
    return max(errors, 8 * d * p * (sizes.max_components is not None) + 24 * q * p + block)


def sizes_of(problem: SearchProblem, fit: FitSizes, n_jobs: int, refit: bool, leaves_one_out: bool) -> SearchSizes:
    """Return the sizes of a search; of its splits, those with the most training examples count."""
    train, held = max(problem.splits, key=lambda split: len(split[0]))
    sizes = problem.sizes
    return SearchSizes(
        fit,
        len(train),
        len(held),
        len(problem.alphas),
        problem.supervisions,
        len(problem.output_kernels),
        None if sizes is None else max(sizes, default=MAX_COMPONENTS),
        sizes == [],
        any(scoring.decodes for scoring in problem.scorings),
        leaves_one_out,
        n_jobs,
        refit,
    )


def fit_sizes(problem: SearchProblem, itemsize: int) -> FitSizes:
    """Return the sizes of the final fit with the smallest c and the largest p; the rank is a bound."""
    known = problem.known
    d, landmarks = n_samples(known.outputs), problem.output_landmarks
    rank = d if min(problem.supervisions) < 1 else known.n_labeled
    if landmarks is not None:
        is_open = problem.unlabeled is not None and problem.unlabeled.in_memory is None
        rank = landmarks.n if is_open else min(landmarks.n, rank)
    return FitSizes(
        n=problem.n,
        d=d,
        n_labeled=known.n_labeled,
        rank=rank,
        n_components=None if problem.sizes is None else max(problem.sizes, default=MAX_COMPONENTS),
        supervision=None if problem.sizes is None else min(problem.supervisions),
        input_landmarks=problem.input_landmarks,
        output_landmarks=landmarks,
        itemsize=itemsize,
        has_unlabeled=problem.unlabeled is not None,
        row_bytes=row_bytes(known.outputs),
    )


def require_search_memory(sizes: SearchSizes, problem: SearchProblem, compute: Compute) -> None:
    """Raise MemoryError before a search whose peak exceeds the available memory.

    As before a fit, the rank of a sample decides if the search fits only with outputs of a low rank.
    """
    free = None if compute.on_gpu else compute.available_bytes()
    if free is None or search_memory(sizes) <= free:
        return
    if problem.output_landmarks is None:
        kernels, outputs = (kernel.fit(problem.Y) for kernel in problem.output_kernels), problem.known.outputs
        rank = max(probable_rank(kernel, outputs, sizes.fit.rank, free) for kernel in kernels)
        sizes = replace(sizes, fit=replace(sizes.fit, rank=rank))
    fit = sizes.fit
    what = (
        f"This search (n = {fit.n:,} pairs, {sizes.n_train:,} of them in a training split, d = {fit.d:,} distinct "
        f"outputs, r = {fit.rank:,}, {sizes.n_output_kernels} output kernels, {sizes.n_jobs} processes)"
    )
    compute.require_bytes(search_memory(sizes), what, _remedy(sizes))


def _remedy(sizes: SearchSizes) -> str:
    """Return what reduces the memory of a search, with the bytes of half of the pairs."""
    parts = ["set n_jobs=1"] if sizes.n_jobs > 1 else []
    if sizes.n_output_kernels > 1:
        parts.append("search fewer output kernels at a time")
    names = [name for name in ("input_landmarks", "output_landmarks") if getattr(sizes.fit, name) is None]
    if names:
        parts.append(f"set {' and '.join(names)}")
    half = replace(sizes.fit, n=-(-sizes.fit.n // 2), d=-(-sizes.fit.d // 2), n_labeled=-(-sizes.fit.n_labeled // 2))
    half = replace(half, rank=min(half.rank, half.d))
    halved = replace(sizes, fit=half, n_train=-(-sizes.n_train // 2), n_held=-(-sizes.n_held // 2))
    parts.append(
        f"search on a random part of the rows (half of them: {search_memory(halved):,} bytes) and fit the best setting "
        f"with landmarks on all of them"
    )
    sentence = ", or ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."
