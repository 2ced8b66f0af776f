"""Predictions as combinations of landmarks, compared with candidates by kernel values alone.

A predicted embedding z stands for G*z = Σ_l β_l ψ(s_l) with β = basis·z, so that

    |G*z − ψ(y)|² = |z|² − 2 Σ_l β_l k(s_l, y) + k(y, y)

needs r kernel values a candidate and no embedding of it. Several models with the same landmarks (other λ, p or c) share
these values: the route of choice where many settings are compared, and where candidates are seen only once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from psilearn._backend import asarray, computing_rows, precision, to_host
from psilearn._linalg import Array
from psilearn._utils.progress import track
from psilearn._utils.samples import Index, Samples, concat, n_samples
from psilearn.decoding.bounds import tie
from psilearn.decoding.nearest import Ranks, count_nearer
from psilearn.decoding.per_example import CandidateSets
from psilearn.embedding import Embedding
from psilearn.kernels.blocks import block, diagonal, resident
from psilearn.kernels.kernel import Kernel

GROUP = 8192  # candidates whose kernel values are computed together at the most


@dataclass(frozen=True)
class Expansions:
    """s predictions for each of q examples, each a combination of the same r landmarks."""

    kernel: Kernel
    landmarks: Samples
    weights: Array  # (q, s, r)  β
    squared: Array  # (q, s)  |z|²

    @classmethod
    def of(cls, Z: Array, embedding: Embedding) -> Expansions:
        """Return the predictions Z (q, p) of one model."""
        weights = (Z @ embedding.basis.T)[:, None, :]
        return cls(embedding.kernel, embedding.landmarks, weights, np.einsum("ij,ij->i", Z, Z)[:, None])


@dataclass(frozen=True)
class RankedInSets:
    """What s settings make of the candidate sets of q examples."""

    nearest: Index  # (s, q)  the nearest candidate, the first of those that tie
    nearer: Array  # (s, q)  candidates nearer than the truth; ∞ where the truth is no candidate
    tied: Array  # (s, q)  candidates at the truth's distance, itself included

    def ranks(self, setting: int) -> Ranks:
        """Return the ranks of one setting, for ``metrics.top_k_accuracy``."""
        return Ranks(self.nearer[setting], self.tied[setting])


def rank_in_sets(predictions: Expansions, sets: CandidateSets, truth: Index) -> RankedInSets:
    """Find the nearest candidate of each example, and where its true output stands.

    Cost: r kernel values a candidate and 2·s·r flops; memory: ``working_memory`` and the answer.

    Parameters
    ----------
    predictions : Expansions
    sets : CandidateSets
        one an example; each row is a candidate of its own, and equal rows tie.
    truth : array (q,)
        the place of each true output in its set; −1 where it is not there.
    """
    return place_truth(distances_in_sets(predictions, sets), predictions.weights.shape[1], truth)


def place_truth(found: Iterable[tuple[int, Array, Array]], s: int, truth: Index) -> RankedInSets:
    """Return nearest candidates and ranks from each example's distances (s, c) and the slack within which they tie.

    Parameters
    ----------
    found : examples, distances and slacks, as :func:`distances_in_sets` yields them
    s : int
        settings.
    truth : as in :func:`rank_in_sets`
    """
    q = len(truth)
    nearest = np.zeros((s, q), dtype=np.intp)
    nearer, tied = np.full((s, q), np.inf), np.zeros((s, q))
    for i, D, slack in found:
        nearest[:, i] = np.argmax(D - slack <= D.min(axis=1, keepdims=True), axis=1)
        if truth[i] >= 0:
            at = np.full((s, 1), truth[i])
            own, own_slack = np.take_along_axis(D, at, axis=1), np.take_along_axis(slack, at, axis=1)
            nearer[:, i], tied[:, i] = count_nearer(D, slack, own, own_slack)
    return RankedInSets(nearest, nearer, tied)


def distances_in_sets(predictions: Expansions, sets: CandidateSets) -> Iterator[tuple[int, Array, Array]]:
    """Yield each example with the distances (s, c) of its candidates and the slack within which they tie."""
    r = n_samples(predictions.landmarks)
    sizes = np.array([n_samples(one) for one in sets.sets], dtype=np.intp)
    dtype = predictions.weights.dtype
    with precision(dtype):
        limit = computing_rows(2 * dtype.itemsize * r, GROUP)
        landmarks = resident(predictions.kernel, predictions.landmarks)
        for some in track(_groups(sizes, limit), "candidate sets"):
            pool = concat([sets.sets[i] for i in some])
            K = block(predictions.kernel, pool, landmarks, "output_kernel")
            norms = diagonal(predictions.kernel, pool, "output_kernel")
            ends = np.cumsum(sizes[some])
            for i, end in zip(some, ends, strict=True):
                own = slice(end - sizes[i], end)
                products = to_host(asarray(predictions.weights[i]) @ K[own].T)  # (s, c)
                lengths = predictions.squared[i][:, None] + norms[own]
                yield int(i), np.maximum(lengths - 2 * products, 0), tie(products) * lengths


def _groups(sizes: Index, limit: int) -> Iterator[Index]:
    """Cut the examples into groups whose candidates are at most ``limit``; one that has more stands alone."""
    start, total = 0, 0
    for i, size in enumerate(sizes):
        if i > start and total + size > limit:
            yield np.arange(start, i)
            start, total = i, 0
        total += size
    if start < len(sizes):
        yield np.arange(start, len(sizes))
