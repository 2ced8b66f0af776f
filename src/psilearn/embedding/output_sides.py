"""The output side of a fit: coordinates of the labeled outputs, and the second moment of the unlabeled ones.

:class:`ExactOutputs` works on all distinct outputs, as :class:`GramOutputs` does
without coordinates. :class:`LandmarkOutputs` works in the span of a few landmarks, in one pass over batches, so that
the number of outputs is limited by time only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from psilearn._backend import Compute, array_namespace, iter_slices, stream, take_rows, to_numpy
from psilearn._distributed import ChunkedRows, sum_chunks
from psilearn._linalg import (
    INDEFINITE,
    Array,
    GramSum,
    MixedGram,
    Moment,
    NotPositiveSemidefiniteError,
    Subspace,
    block_copies,
    matmul,
    mixed_moment,
    row_products,
    squared_column_norms,
)
from psilearn._utils import validation
from psilearn._utils.progress import step, track
from psilearn._utils.samples import Samples, concat, distinct, n_samples, take
from psilearn.embedding.coordinates import KnownOutputs, OutputCoordinates, embedding_in, output_gram
from psilearn.embedding.embedding import MAX_EMBEDDED_ROWS, Embedding
from psilearn.embedding.output_stream import OutputStream, number_batches
from psilearn.kernels import Kernel
from psilearn.landmarks.features import LandmarkFeatures, place_small
from psilearn.landmarks.selection import Landmarks, pool_size

MAX_KEPT_BYTES = 2**29  # of features of outputs that are kept for the embedding


class OutputSide(Protocol):
    """Output coordinates of r dimensions for one training set."""

    @property
    def outputs(self) -> Samples:
        """The d distinct outputs that are in memory: the default candidates."""

    @property
    def labeled(self) -> Any:
        """Coordinates of the labeled outputs, (n, r): an array, or an object that computes rows on request."""

    @property
    def approximation_error(self) -> float:
        """The share of Σ k(y, y) that the coordinates do not span."""

    @property
    def rank(self) -> int:
        """The number r of coordinates."""

    def leading_directions(
        self, supervised: Moment | None, supervision: float, n_components: int | None, compute: Compute
    ) -> Subspace:
        """Return the leading directions of M_c, given the moment of the fitted values."""

    def rotation(self, subspace: Subspace) -> Array | None:
        """Return the map from the coordinates of targets to the subspace; None for the identity."""

    def embedding(self, V: Array | None) -> Embedding:
        """Return y ↦ Vᵀψ(y)."""

    def embed_known(self, subspace: Subspace, embedding: Embedding) -> Any:
        """Return g(y) for the distinct outputs, (d, p), as a NumPy array."""

    def for_partial_fit(self) -> LandmarkOutputs | None:
        """Return what ``partial_fit`` continues from, or None if it is not supported."""


class CoordinateOutputs(ABC):
    """An output side whose targets are coordinates: the leading directions are those of a moment in them."""

    @abstractmethod
    def moment(self) -> Moment:
        """Return 1/m Σⱼ ψ(yⱼ)ψ(yⱼ)ᵀ over the unlabeled outputs, or over Y if there are none."""

    def leading_directions(
        self, supervised: Moment | None, supervision: float, n_components: int | None, compute: Compute
    ) -> Subspace:
        """Return the leading directions of M_c, given the moment of the fitted values."""
        return mixed_moment(supervised, self.moment, supervision, compute).top(n_components, compute)

    def rotation(self, subspace: Subspace) -> Array | None:
        """Return the directions: targets and directions have the same coordinates."""
        return subspace.directions


class ExactOutputs(CoordinateOutputs):
    """Exact coordinates, which span every output that contributes to the embedding."""

    approximation_error = 0.0

    def __init__(self, kernel: Kernel, known: KnownOutputs, spans_unlabeled: bool, compute: Compute) -> None:
        self.compute = compute
        self.known = known
        self.outputs = known.outputs
        self._n_spanned = len(known.frequencies) if spans_unlabeled else known.n_labeled
        self.psi = OutputCoordinates(kernel, take(self.outputs, slice(0, self._n_spanned)), compute)

    @property
    def labeled(self) -> Array:
        """Ψ(Y), (n, r)."""
        return take_rows(self.psi.values, self.known.labeled)

    @property
    def rank(self) -> int:
        """The number r of coordinates."""
        return self.psi.rank

    def moment(self) -> Moment:
        """Return 1/m Σⱼ ψ(yⱼ)ψ(yⱼ)ᵀ over the unlabeled outputs, or over Y if there are none."""
        return Moment(((self.psi.values, self.compute.asarray(self.known.frequencies)),))

    def embedding(self, V: Array | None) -> Embedding:
        """Return y ↦ Vᵀψ(y)."""
        return self.psi.embedding(V)

    def embed_known(self, subspace: Subspace, embedding: Embedding) -> Any:
        """Return g(y) for the distinct outputs, (d, p), as a NumPy array."""
        V = subspace.directions
        spanned = to_numpy(self.psi.values if V is None else self.psi.values @ V)
        n, d = self._n_spanned, len(self.known.frequencies)
        if n == d:
            return spanned.astype(self.compute.dtype, copy=False)
        g = np.empty((d, embedding.n_components), self.compute.dtype)
        g[:n] = spanned
        for part in iter_slices(d - n, MAX_EMBEDDED_ROWS):
            beyond = slice(n + part.start, n + part.stop)
            g[beyond] = embedding(take(self.outputs, beyond), self.compute)
        return g

    def for_partial_fit(self) -> None:
        """Return None: every output is stored, and a fit is exact."""


class LandmarkOutputs(CoordinateOutputs):
    """Coordinates in the span of landmarks: r² numbers and one batch, however many outputs there are.

    Landmarks are chosen among the unlabeled outputs too if these contribute to the embedding (``spans_unlabeled``).
    """

    _known_columns: Sequence[Any] = ()  # φ(y) of all distinct outputs, (r, d) in blocks, if they are on a GPU

    def __init__(
        self,
        kernel: Kernel,
        Y: Samples,
        known: KnownOutputs,
        unlabeled: OutputStream | None,
        spans_unlabeled: bool,
        landmarks: Landmarks,
        alpha: float,
        compute: Compute,
    ) -> None:
        self.compute = compute
        self.outputs = known.outputs
        labeled = take(known.outputs, slice(0, known.n_labeled))
        pool = _landmark_pool(labeled, unlabeled if spans_unlabeled else None, landmarks)
        n_labeled = min(known.n_labeled, n_samples(pool))
        chosen = landmarks.choose(kernel, pool, alpha=alpha, n_labeled=n_labeled, compute=compute)
        self.features = LandmarkFeatures.of(kernel, take(pool, chosen), "output", compute)
        features = self.features if isinstance(Y, ChunkedRows) else self.features.to_device(compute)
        self._labeled: LandmarkTargets | None = LandmarkTargets.make(features, Y, compute)
        self.labeled_moment = RunningMoment(features, compute, spans_unlabeled)
        if spans_unlabeled or isinstance(Y, ChunkedRows):
            self.labeled_moment.add(OutputStream(Y, kernel, Y, "y"))
        else:  # without a sum of products, distinct outputs are enough
            counts = np.bincount(known.labeled, minlength=known.n_labeled)
            columns = self.labeled_moment.add(OutputStream(labeled, kernel, labeled, "y"), counts, compute.on_gpu)
            self._known_columns = columns if n_samples(self.outputs) == known.n_labeled else ()
        self.unlabeled_moment = RunningMoment(self.features, compute, spans_unlabeled)
        if unlabeled is not None and spans_unlabeled:
            self.unlabeled_moment.add(unlabeled)

    @property
    def labeled(self) -> LandmarkTargets:
        """φ(Y), (n, r), computed on request."""
        if self._labeled is None:
            raise ValueError("The labeled outputs were released after the regression.")
        return self._labeled

    @property
    def rank(self) -> int:
        """The number r of coordinates."""
        return self.features.rank

    @property
    def approximation_error(self) -> float:
        """1 − Σ|φ(y)|² / Σ k(y, y) over all outputs seen: the share that the landmarks do not span."""
        captured = self.labeled_moment.captured + self.unlabeled_moment.captured
        total = self.labeled_moment.total + self.unlabeled_moment.total
        return max(0.0, 1 - captured / total) if total else 0.0

    def moment(self) -> Moment:
        """Return 1/m Σⱼ φ(yⱼ)φ(yⱼ)ᵀ over the unlabeled outputs seen so far, or over Y if there are none."""
        return (self.unlabeled_moment if self.unlabeled_moment.count else self.labeled_moment).mean()

    def embedding(self, V: Array | None) -> Embedding:
        """Return y ↦ Vᵀφ(y)."""
        return embedding_in(self.features, V)

    def embed_known(self, subspace: Subspace, embedding: Embedding) -> Any:
        """Return g(y) for the distinct outputs, (d, p), as a NumPy array."""
        shape = n_samples(self.outputs), embedding.n_components
        remedy = "Lower n_components, or give unlabeled outputs as a path or an iterator: these are not stored."
        what = "The embedding of the known outputs"
        self.compute.on_numpy().require_memory(shape, what, remedy, self.compute.itemsize)
        if self._known_columns and subspace.directions is not None:
            rows = self.compute.asarray(subspace.directions, self.compute.dtype).T.contiguous()
            return np.concatenate([to_numpy(matmul(rows, phi).T.contiguous()) for phi in self._known_columns])
        return embedding(self.outputs, self.compute)

    def for_partial_fit(self) -> LandmarkOutputs:
        """Return the same output side without Y and with NumPy arrays."""
        converted = copy(self)
        converted._labeled = None
        converted._known_columns = ()
        with step("copies for partial_fit"):
            converted.features = self.features.to_numpy()
            converted.compute = self.compute.on_numpy()
            converted.labeled_moment = self.labeled_moment.to_numpy(converted.features)
            converted.unlabeled_moment = self.unlabeled_moment.to_numpy(converted.features)
        return converted

    def with_unlabeled(self, unlabeled: OutputStream, compute: Compute) -> LandmarkOutputs:
        """Return the output side with further unlabeled outputs in its moment, and those in memory among the outputs.

        This one stays as it was, so that nothing has changed if an output is rejected.
        """
        extended = copy(self)
        extended.compute = compute
        extended._known_columns = ()
        extended.unlabeled_moment = RunningMoment(self.features, compute, self.unlabeled_moment.has_sum)
        extended.unlabeled_moment.add(unlabeled)
        extended.unlabeled_moment.merge(self.unlabeled_moment)
        if unlabeled.in_memory is not None:
            extended.outputs = KnownOutputs.of(self.outputs, unlabeled.in_memory).outputs
        return extended


@dataclass(frozen=True)
class LandmarkTargets:
    """φ(yᵢ) of the labeled outputs as rows, (n, r), computed on request."""

    features: LandmarkFeatures
    outputs: Samples
    compute: Compute

    @property
    def shape(self) -> tuple[int, int]:
        """(n, r)."""
        return n_samples(self.outputs), self.features.rank

    @classmethod
    def make(cls, features: LandmarkFeatures, outputs: Samples, compute: Compute) -> LandmarkTargets:
        """Return targets that are computed on the device, or in tasks if the outputs are in chunks."""
        if isinstance(outputs, ChunkedRows):
            return ChunkedLandmarkTargets(features.to_numpy(), outputs, compute)
        return cls(features.to_device(compute), place_small(features.kernel, outputs, compute), compute)

    def __getitem__(self, rows: slice) -> Any:
        return self.features.columns(take(self.outputs, rows), self.compute).T

    def factor(self, rows: slice) -> Any:
        """Return the rows as a factor of products: an array, a tensor or a split matrix."""
        phi, _ = self.features.factor_and_lengths(take(self.outputs, rows), self.compute, is_checked=True)
        return phi.T


class ChunkedLandmarkTargets(LandmarkTargets):
    """φ(yᵢ) of labeled outputs in chunks, computed in the tasks that use them."""

    @property
    def chunks(self) -> ChunkedRows:
        """The outputs."""
        return self.outputs

    def without_rows(self) -> ChunkedLandmarkTargets:
        """Return the features alone, as an input of tasks."""
        return replace(self, outputs=())

    def of(self, outputs: Samples) -> LandmarkTargets:
        """Return the targets of the outputs of one chunk."""
        return LandmarkTargets.make(self.features, outputs, self.compute)


def _landmark_pool(labeled: Samples, unlabeled: OutputStream | None, landmarks: Landmarks) -> Samples:
    """Return distinct outputs to choose landmarks from: all of them, or a sample of each side if there are many."""
    rng = validation.as_random_state(landmarks.random_state)
    size = pool_size(landmarks.n)
    n = n_samples(labeled)
    pool = take(labeled, np.sort(rng.choice(n, size, replace=False))) if n > size else labeled
    sample = None if unlabeled is None else unlabeled.sample(size, rng)
    if sample is None:
        return pool
    pool = concat([pool, sample])
    return take(pool, distinct(pool).first)


class GramOutputs:
    """All distinct outputs yⱼ as the coordinates eⱼ, with the inner product of their Gram matrix K.

    The directions are those of :class:`ExactOutputs`, without a factorization of K: d² kernel values and, for p
    directions, about 2d² flops for each of 10 to 12 products with p vectors. This is the faster exact method if the
    rank of K is near d and p is a small share of it. Targets of the regression are indicators of the labeled outputs,
    so the regression must be linear in them.
    """

    approximation_error = 0.0

    def __init__(self, kernel: Kernel, known: KnownOutputs, compute: Compute) -> None:
        self.kernel, self.compute = kernel, compute
        self.known = known
        self.outputs = known.outputs
        self.K = output_gram(kernel, known.outputs, compute)  # (d, d)

    @property
    def labeled(self) -> Array:
        """The indicators of the labeled outputs, (n, l)."""
        return take_rows(self.compute.eye(self.known.n_labeled), self.known.labeled)

    @property
    def rank(self) -> int:
        """The number d of coordinates."""
        return len(self.K)

    def leading_directions(
        self, supervised: Moment | None, supervision: float, n_components: int | None, compute: Compute
    ) -> Subspace:
        """Return the leading directions of M_c as coefficients of the outputs (d, p), and their values there."""
        mixed = MixedGram.of(self.K, supervised, self.known.frequencies, supervision, compute)
        subspace = mixed.top(self.rank if n_components is None else n_components, compute)
        self._check_residuals(subspace.values)
        return subspace

    def rotation(self, subspace: Subspace) -> Array | None:
        """Return g of the distinct labeled outputs, (l, p): the map from indicators to the embedding."""
        assert subspace.values is not None
        return subspace.values[: self.known.n_labeled]

    def embedding(self, V: Array | None) -> Embedding:
        """Return y ↦ Vᵀk(D, y)."""
        return Embedding(self.kernel, self.outputs, to_numpy(np.eye(self.rank) if V is None else V))

    def embed_known(self, subspace: Subspace, embedding: Embedding) -> Any:
        """Return g(y) for the distinct outputs, (d, p), as a NumPy array."""
        del embedding  # the values are known
        return to_numpy(subspace.values).astype(self.compute.dtype, copy=False)

    def for_partial_fit(self) -> None:
        """Return None: every output is stored, and a fit is exact."""

    def _check_residuals(self, values: Any) -> None:
        """Raise if some |g(y)|² exceeds k(y, y), which is impossible for a positive semi-definite kernel."""
        diagonal = array_namespace(self.K).linalg.diagonal(self.K)
        excess = float((row_products(values, values) - diagonal).max())
        if excess > INDEFINITE * float(diagonal.max()):
            raise NotPositiveSemidefiniteError(
                f"output_kernel = {self.kernel!r} is not positive semi-definite on the outputs: the squared length of "
                f"a projection of ψ(y) exceeds k(y, y) by {excess:.3g}."
            )


class RunningMoment:
    """Σ φ(y)φ(y)ᵀ over batches of outputs, r² numbers, with the part of Σ k(y, y) that the landmarks capture.

    Without ``has_sum`` only that part: directions that depend on the inputs alone need no moment of the outputs.
    """

    def __init__(self, features: LandmarkFeatures, compute: Compute, has_sum: bool = True) -> None:
        self.features = features
        self.compute = compute
        self.has_sum = has_sum
        self.sum = GramSum(features.rank if has_sum else 0, compute)
        self.count = 0
        self.captured = 0.0
        self.total = 0.0

    def add(self, outputs: OutputStream, counts: Any = None, keep: bool = False) -> list[Any]:
        """Add every output of a stream: m·r kernel values and 2m·r² flops.

        ``counts`` (m,) says how often each output in memory occurs; only a moment without a sum takes it. With
        ``keep``, φ(y) of all outputs is returned, (r, b) for each block, unless that takes much memory.
        """
        kept: list[Any] = []
        if outputs.chunks is not None:
            common = self.features.to_numpy(), self.compute, self.has_sum
            self._add_sums(*sum_chunks(_moment_of_chunk, outputs.chunks, common=common))
            return kept
        features, compute = self.features.to_device(self.compute), self.compute

        def factor_and_lengths(batch: Samples) -> tuple[Any, Array]:
            return features.factor_and_lengths(batch, compute)  # (r, b), k(y, y)

        batches = track(
            outputs.batches(block_copies(compute) * features.rank * compute.itemsize, compute), outputs.name
        )
        numbered = number_batches(batches)
        for rows, (phi, lengths) in stream(numbered, factor_and_lengths, compute, features.kernel.supports_torch):
            if self.has_sum:
                with step("moment of the outputs"):
                    self.sum.add(phi)
            captured = to_numpy(squared_column_norms(phi))
            weights = np.ones(len(lengths)) if counts is None else counts[rows]
            self.count += int(weights.sum())
            self.captured += float(weights @ captured)
            self.total += float(weights @ lengths)
            if keep and rows.stop * features.rank * compute.itemsize <= MAX_KEPT_BYTES:
                kept.append(phi)
            else:
                kept, keep = [], False
            del phi  # before the next block is computed
        return kept

    def merge(self, other: RunningMoment) -> None:
        """Add the sums of another moment."""
        self._add_sums(other.sum, other.count, other.captured, other.total)

    def _add_sums(self, gram: GramSum | Array, count: int, captured: float, total: float) -> None:
        self.sum.merge(gram if isinstance(gram, GramSum) else GramSum.of(gram))
        self.count += count
        self.captured += captured
        self.total += total

    def mean(self) -> Moment:
        """Return the sum divided by the count."""
        mean = self.sum.symmetric()
        mean /= self.count
        return Moment(matrix=mean)

    def to_numpy(self, features: LandmarkFeatures) -> RunningMoment:
        """Return the same moment with NumPy arrays and these features."""
        converted = copy(self)
        converted.features = features
        converted.sum = self.sum.to_numpy() if self.count else GramSum(len(self.sum.lower))
        converted.compute = self.compute.on_numpy()
        return converted


def _moment_of_chunk(
    Y: Samples, features: LandmarkFeatures, compute: Compute, has_sum: bool
) -> tuple[Any, int, float, float]:
    """Return the sums of a moment over one chunk of outputs."""
    with compute.active():
        moment = RunningMoment(features, compute, has_sum)
        moment.add(OutputStream(Y, features.kernel, Y))
        return moment.sum.to_numpy().lower, moment.count, moment.captured, moment.total
