"""The output side of a fit: coordinates of the labeled outputs, and the second moment of what counts as unlabeled.

:class:`SpannedOutputs` works on all distinct outputs and is exact. :class:`LandmarkOutputs` works in the span of a few
landmarks, in one pass over batches, so that the number of outputs is limited by time only.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from psilearn._backend import asarray, on_host, require_memory, rows_of, stream, to_host, working_dtype
from psilearn._linalg import Array, squared_norm
from psilearn._linalg.moments import GramSum, MixedMoment
from psilearn._utils.progress import track
from psilearn._utils.samples import Samples, concat, distinct, n_samples, take
from psilearn.embedding.coordinates import KnownOutputs, OutputCoordinates, embedding_in
from psilearn.embedding.embedding import Embedding
from psilearn.embedding.output_stream import OutputStream, counted
from psilearn.kernels.blocks import diagonal
from psilearn.kernels.kernel import Kernel
from psilearn.landmarks import LandmarkFeatures, Landmarks, pool_size


class SpannedOutputs:
    """Exact: coordinates that span every output which has a say in the embedding.

    Parameters
    ----------
    kernel : Kernel
    Y : labeled outputs
    unlabeled : OutputStream or None
    spans_unlabeled : bool
        whether the coordinates must span the unlabeled outputs too.
    """

    approximation_error = 0.0

    def __init__(self, kernel: Kernel, Y: Samples, unlabeled: OutputStream | None, spans_unlabeled: bool) -> None:
        self.known = KnownOutputs.of(Y, None if unlabeled is None else unlabeled.collect())
        self.outputs = self.known.outputs
        self._n_spanned = n_samples(self.outputs) if spans_unlabeled else self.known.n_labeled
        self.psi = OutputCoordinates(kernel, take(self.outputs, slice(0, self._n_spanned)))

    @property
    def labeled(self) -> Array:
        """Ψ(Y), (n, r)."""
        return rows_of(self.psi.values, self.known.labeled)

    def moment(self) -> MixedMoment:
        """Return 1/m Σⱼ ψ(yⱼ)ψ(yⱼ)ᵀ over the unlabeled outputs; over Y where there are none."""
        return MixedMoment(((self.psi.values, asarray(self.known.frequencies)),))

    def embedding(self, V: Array | None) -> Embedding:
        """Return y ↦ Vᵀψ(y)."""
        return self.psi.embedding(V)

    def embedded(self, V: Array | None, embedding: Embedding) -> Any:
        """Return g(y) for the distinct outputs, (d, p)."""
        g = to_host(self.psi.values if V is None else self.psi.values @ V)
        if self._n_spanned < n_samples(self.outputs):
            g = np.concatenate([g, embedding(take(self.outputs, slice(self._n_spanned, None)))])
        return g.astype(working_dtype(), copy=False)


class LandmarkOutputs:
    """In the span of landmarks: r² numbers and one batch, however many outputs there are.

    Parameters
    ----------
    kernel, Y, unlabeled, spans_unlabeled :
        as in :class:`SpannedOutputs`; landmarks are chosen among the unlabeled outputs too where these have a say.
    landmarks : Landmarks
    alpha : float
        λ, for leverage scores.
    """

    def __init__(
        self,
        kernel: Kernel,
        Y: Samples,
        unlabeled: OutputStream | None,
        spans_unlabeled: bool,
        landmarks: Landmarks,
        alpha: float,
    ) -> None:
        self.kernel = kernel
        known = KnownOutputs.of(Y, None if unlabeled is None else unlabeled.in_memory)
        self.outputs = known.outputs  # d distinct ones: the default candidates
        pool = _pool(take(known.outputs, slice(0, known.n_labeled)), unlabeled if spans_unlabeled else None, landmarks)
        chosen = landmarks.choose(kernel, pool, alpha, "output_kernel", min(known.n_labeled, n_samples(pool)))
        self.features = LandmarkFeatures.of(kernel, take(pool, chosen), "output_kernel")
        self.labeled = LandmarkTargets(self.features.placed(), Y)
        self.of_labeled = RunningMoment(self.features)
        self.of_labeled.add(OutputStream(Y, kernel, Y, "y"))
        self.of_unlabeled = RunningMoment(self.features)
        if unlabeled is not None and spans_unlabeled:
            self.of_unlabeled.add(unlabeled)

    @property
    def approximation_error(self) -> float:
        """1 − Σ|φ(y)|² / Σ k(y, y) over all outputs seen: the share that the landmarks do not span."""
        captured, total = (
            getattr(self.of_labeled, part) + getattr(self.of_unlabeled, part) for part in ("captured", "total")
        )
        return max(0.0, 1 - captured / total) if total else 0.0

    def forget_labeled(self) -> None:
        """Let go of Y, once the regression has seen it."""
        del self.labeled

    def moment(self) -> MixedMoment:
        """Return 1/m Σⱼ φ(yⱼ)φ(yⱼ)ᵀ over the unlabeled outputs seen so far; over Y where there are none."""
        return (self.of_unlabeled if self.of_unlabeled.count else self.of_labeled).mean()

    def embedding(self, V: Array | None) -> Embedding:
        """Return y ↦ Vᵀφ(y)."""
        return embedding_in(self.features, V)

    def embedded(self, V: Array | None, embedding: Embedding) -> Any:
        """Return g(y) for the distinct outputs, (d, p)."""
        shape = n_samples(self.outputs), embedding.n_components
        remedy = "Lower n_components, or give unlabeled outputs as a path or an iterator: these are not kept."
        with on_host():
            require_memory(shape, "The embedding of the known outputs", remedy, working_dtype().itemsize)
        return embedding(self.outputs)

    def parked(self) -> LandmarkOutputs:
        """Return the same output side in NumPy: nothing of it on a device."""
        parked = copy(self)
        parked.features = self.features.parked()
        parked.of_labeled, parked.of_unlabeled = (
            moment.parked(parked.features) for moment in (self.of_labeled, self.of_unlabeled)
        )
        return parked

    def with_unlabeled(self, unlabeled: OutputStream) -> LandmarkOutputs:
        """Return the output side with further unlabeled outputs in its moment, and those in memory among the outputs.

        This one is left as it was, so that nothing has changed where an output is refused.
        """
        new = copy(self)
        new.of_unlabeled = RunningMoment(self.features)
        new.of_unlabeled.add(unlabeled)
        new.of_unlabeled.merge(self.of_unlabeled)
        if unlabeled.in_memory is not None:
            new.outputs = KnownOutputs.of(self.outputs, unlabeled.in_memory).outputs
        return new


@dataclass(frozen=True)
class LandmarkTargets:
    """φ(yᵢ) of the labeled outputs as rows, (n, r), made when they are asked for."""

    features: LandmarkFeatures
    outputs: Samples

    @property
    def shape(self) -> tuple[int, int]:
        """(n, r)."""
        return n_samples(self.outputs), self.features.rank

    def __getitem__(self, rows: slice) -> Any:
        return self.features.columns(take(self.outputs, rows), "output_kernel").T


class RunningMoment:
    """Σ φ(y)φ(y)ᵀ over batches of outputs, r² numbers, with what the landmarks capture of Σ k(y, y)."""

    def __init__(self, features: LandmarkFeatures) -> None:
        self.features = features
        self.sum = GramSum(features.rank)
        self.count = 0
        self.captured = 0.0
        self.total = 0.0

    def add(self, outputs: OutputStream) -> None:
        """Add every output of a stream: m·r kernel values and 2m·r² flops."""
        features = self.features.placed()

        def work(batch: Samples) -> tuple[Any, float]:
            phi = features.columns(batch, "output_kernel")  # (r, b)
            return phi, float(np.sum(diagonal(features.kernel, batch, "output_kernel")))

        batches = track(outputs.batches(3 * features.rank * working_dtype().itemsize), outputs.name)
        for rows, (phi, lengths) in stream(counted(batches), work, features.kernel._on_device):
            self.sum.add(phi)
            self.count += rows.stop - rows.start
            self.captured += squared_norm(phi)
            self.total += lengths

    def merge(self, other: RunningMoment) -> None:
        """Add what another one has seen."""
        self.sum.merge(other.sum)
        self.count += other.count
        self.captured += other.captured
        self.total += other.total

    def mean(self) -> MixedMoment:
        """Return the sum over the count."""
        return MixedMoment(matrix=self.sum.symmetric() / self.count)

    def parked(self, features: LandmarkFeatures) -> RunningMoment:
        """Return the same in NumPy, with these features: nothing of it on a device."""
        parked = copy(self)
        parked.features, parked.sum = features, self.sum.parked()
        return parked


def _pool(labeled: Samples, unlabeled: OutputStream | None, landmarks: Landmarks) -> Samples:
    """Return distinct outputs to choose landmarks from: all, or a sample of each side where there are many."""
    rng = check_random_state(landmarks.random_state)
    size = pool_size(landmarks.n)
    n = n_samples(labeled)
    pool = take(labeled, np.sort(rng.choice(n, size, replace=False))) if n > size else labeled
    sample = None if unlabeled is None else unlabeled.sample(size, rng)
    if sample is None:
        return pool
    pool = concat([pool, sample])
    return take(pool, distinct(pool).first)
