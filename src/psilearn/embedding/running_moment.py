"""Second moments of outputs in the coordinates of landmarks, summed over batches and chunks."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from psilearn._backend import Compute, stream, to_numpy
from psilearn._distributed import sum_chunks
from psilearn._linalg import Array, GramSum, Moment, block_copies, squared_column_norms
from psilearn._utils.progress import step, track
from psilearn._utils.samples import Samples
from psilearn.embedding.output_stream import OutputStream, number_batches
from psilearn.landmarks.features import LandmarkFeatures

MAX_KEPT_BYTES = 2**29  # of features of outputs that are kept for the embedding


class RunningMoment:
    """Σ φ(y)φ(y)ᵀ over batches of outputs, r² numbers, with the part of Σ k(y, y) that the landmarks capture.

    Without ``has_sum`` only that part: directions that depend on the inputs alone need no moment of the outputs.
    """

    has_sum = True  # of models that an earlier version pickled

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
