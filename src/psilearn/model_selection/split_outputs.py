"""The outputs of a search in coordinates: exact ones for all splits at once, or those of landmarks for each split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, Protocol

import numpy as np

from psilearn._backend import Compute, array_namespace, take_rows, to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Index, Samples, n_samples, take
from psilearn.decoding import SharedCandidates
from psilearn.embedding import Embedding, KnownOutputs, OutputCoordinates, OutputStream
from psilearn.embedding.coordinates import embedding_in
from psilearn.embedding.output_sides import LandmarkOutputs
from psilearn.embedding.subspace_path import DiagonalMoment
from psilearn.kernels import Kernel
from psilearn.landmarks import Landmarks
from psilearn.landmarks.features import LandmarkFeatures


@dataclass(frozen=True)
class UnlabeledOutputs:
    """Unlabeled outputs that can be read any number of times, once per split and for the final fit."""

    source: Any  # a collection or a path
    in_memory: Samples | None  # those that are default candidates
    is_iterator: bool  # whether the user gave an iterator, whose outputs are not default candidates

    @classmethod
    def of(cls, stream: OutputStream | None, source: Any, stores_all: bool) -> UnlabeledOutputs | None:
        """Read an iterator into memory; with ``stores_all`` every output becomes a default candidate."""
        if stream is None:
            return None
        is_iterator = not (isinstance(source, str | PathLike) or hasattr(source, "shape") or hasattr(source, "__len__"))
        if not is_iterator and not stores_all:
            return cls(source, stream.in_memory, is_iterator)
        outputs = stream.collect()
        if outputs is None:
            return None
        return cls(outputs if is_iterator else source, outputs if stores_all else stream.in_memory, is_iterator)

    def for_fit(self) -> Any:
        """Return the outputs in the form that the user gave."""
        return iter([self.source]) if self.is_iterator else self.source

    def stream(self, kernel: Kernel, Y: Samples) -> OutputStream:
        """Return a new stream of the outputs, as a fit on the labeled outputs Y reads them."""
        return OutputStream(self.for_fit(), kernel, Y)


@dataclass(frozen=True)
class SearchedOutputs:
    """The outputs of a search with one output kernel.

    ``known`` holds the distinct outputs that are in memory, labeled ones first, and ``squared_norms`` their k(y, y).
    """

    kernel: Kernel
    labeled: Samples  # (n,)
    known: KnownOutputs
    squared_norms: Array  # (d,)
    has_unlabeled: bool

    @classmethod
    def of(cls, kernel: Kernel, Y: Samples, known: KnownOutputs, has_unlabeled: bool) -> SearchedOutputs:
        """Fit the kernel to the labeled outputs."""
        fitted = kernel.fit(Y)
        return cls(fitted, Y, known, fitted.diag(known.outputs), has_unlabeled)

    def candidate_rows(self, train: Index) -> Index:
        """Return the rows of the known outputs of a training split: its labeled outputs and the unlabeled ones."""
        is_known = np.zeros(n_samples(self.known.outputs), dtype=bool)
        is_known[self.known.labeled[train]] = True
        if self.has_unlabeled:
            is_known |= self.known.frequencies > 0
        return np.flatnonzero(is_known)


@dataclass(frozen=True)
class TrainingRows:
    """Rows of an array by their numbers, (n, s), taken on request."""

    values: Array  # (d, s)
    numbers: Index  # (n,)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, s)."""
        return len(self.numbers), self.values.shape[1]

    def __getitem__(self, rows: slice) -> Array:
        part: Array = take_rows(self.values, self.numbers[rows])
        return part


@dataclass(frozen=True)
class SplitOutputs:
    """The outputs of one split, in s coordinates in which the moment of the unlabeled outputs is diagonal.

    ``moment.values`` are the coordinates of the first known outputs, at least of all labeled ones; ``features`` are the
    coordinates of any output before they are rotated by ``moment.rotation``.
    """

    outputs: SearchedOutputs
    features: LandmarkFeatures
    moment: DiagonalMoment
    train: Index
    held: Index
    compute: Compute

    def training_targets(self) -> Array:
        """Return the coordinates of the training outputs, (n, s)."""
        return self._targets(self.train)

    def training_rows(self) -> TrainingRows:
        """Return the coordinates of the training outputs, rows on request."""
        return TrainingRows(self.moment.values, self.outputs.known.labeled[self.train])

    def held_out_targets(self) -> Array:
        """Return the coordinates of the held-out outputs, (q, s)."""
        return self._targets(self.held)

    def _targets(self, examples: Index) -> Array:
        values: Array = take_rows(self.moment.values, self.outputs.known.labeled[examples])
        return values

    def mean_held_out_norm(self) -> float:
        """Return the mean of k(y, y) over the held-out outputs."""
        return float(np.mean(self.outputs.squared_norms[self.outputs.known.labeled[self.held]]))

    @cached_property
    def embedding(self) -> Embedding:
        """The map from any output to its s coordinates."""
        return embedding_in(self.features, self.moment.rotation)

    def known_candidates(self) -> SharedCandidates:
        """Return the embedded known outputs of this split, the default candidates of its models."""
        rows, n_embedded = self.outputs.candidate_rows(self.train), len(self.moment.values)
        outputs, norms = take(self.outputs.known.outputs, rows), self.outputs.squared_norms[rows]
        g = take_rows(self.moment.values, rows[rows < n_embedded])
        beyond = rows[rows >= n_embedded]
        if len(beyond):
            others = self.embedding(take(self.outputs.known.outputs, beyond), self.compute)
            g = array_namespace(g).concat([g, self.compute.asarray(others)])
        return SharedCandidates(outputs, self.embedding, norms, g)


class OutputPath(Protocol):
    """The outputs of a search for some values of c; picklable, for searches in several processes."""

    @property
    def supervisions(self) -> Sequence[float]:
        """The values of c."""

    @property
    def rank(self) -> int:
        """The largest p that exists."""

    @property
    def width(self) -> int:
        """The number of coordinates of a split, or a bound on it."""

    def spectrum(self) -> Array:
        """Return the eigenvalues of the moment of the outputs, descending."""

    def split(self, train: Index, held: Index) -> SplitOutputs:
        """Return the outputs of one split."""


class ExactOutputPath:
    """Exact coordinates that all splits and input kernels share.

    One factorization of the output Gram matrix, d²r flops; with c < 1 also one eigendecomposition of order r, or what
    replaces it, once if there are unlabeled outputs and once per split otherwise. Memory: 4 matrices of d·r numbers.
    """

    def __init__(self, outputs: SearchedOutputs, supervisions: Sequence[float], compute: Compute) -> None:
        known = outputs.known
        self.outputs = outputs
        self.supervisions = supervisions
        self.compute = compute
        self._mixes = min(supervisions) < 1
        self._n_spanned = n_samples(known.outputs) if self._mixes else known.n_labeled
        self._psi = OutputCoordinates(outputs.kernel, take(known.outputs, slice(0, self._n_spanned)), compute)
        self._shared: DiagonalMoment | None = None

    @property
    def rank(self) -> int:
        """The dimension r of the span of the outputs."""
        return self._psi.rank

    @property
    def width(self) -> int:
        """The number of coordinates: r, or fewer after :meth:`diagonalize`."""
        return self.rank if self._shared is None else self._shared.values.shape[1]

    def diagonalize(self, max_size: int | None) -> None:
        """Make the moment of the unlabeled outputs diagonal, once for all splits.

        If the largest p is given, only the coordinates that its eigenvectors need are kept: ``DiagonalMoment.leading``.
        """
        if not (self.outputs.has_unlabeled and self._mixes):
            return
        values, known = self._psi.values, self.outputs.known
        if max_size is None:
            self._shared = DiagonalMoment.of(values, known.frequencies, self.compute)
        else:
            size = min(max_size, self.rank)
            self._shared = DiagonalMoment.leading(values, known.frequencies, known.n_labeled, size, self.compute)

    def spectrum(self) -> Array:
        """Return the eigenvalues of the moment of the outputs, descending, without those that are rounding errors."""
        if self._shared is not None:
            sigma = self._shared.sigma
        else:
            labeled = take_rows(self._psi.values, self.outputs.known.labeled)
            sigma = array_namespace(labeled).linalg.eigvalsh(labeled.T @ labeled / len(labeled))
        return significant(sigma)

    def split(self, train: Index, held: Index) -> SplitOutputs:
        """Return the outputs of one split."""
        return SplitOutputs(self.outputs, self._psi.features, self._moment(train), train, held, self.compute)

    def _moment(self, train: Index) -> DiagonalMoment:
        if self._shared is not None:
            return self._shared
        if not self._mixes:  # c = 1 only: the moment is not used, and any coordinates serve
            return DiagonalMoment(self._psi.values, self.compute.zeros((self.rank,)), self.compute.eye(self.rank))
        labeled = self.outputs.known.labeled[train]
        frequencies = np.bincount(labeled, minlength=self._n_spanned) / len(labeled)
        return DiagonalMoment.of(self._psi.values, frequencies, self.compute).without_null_space()


class LandmarkOutputPath:
    """Coordinates in the span of landmarks, which are chosen for each split as a fit of its training examples does.

    Cost per split: m·r kernel values and 2m·r² flops for m unlabeled outputs, which are streamed, and one
    eigendecomposition of order r. For c = 1 unlabeled outputs are not used, and landmarks are labeled outputs.
    """

    def __init__(
        self,
        outputs: SearchedOutputs,
        supervisions: Sequence[float],
        unlabeled: UnlabeledOutputs | None,
        landmarks: Landmarks,
        alpha: float,
        compute: Compute,
    ) -> None:
        self.outputs = outputs
        self.supervisions = supervisions
        self.unlabeled = unlabeled if min(supervisions) < 1 else None
        self.landmarks = landmarks
        self.alpha = alpha
        self.compute = compute

    @classmethod
    def of(
        cls,
        outputs: SearchedOutputs,
        supervisions: Sequence[float],
        unlabeled: UnlabeledOutputs | None,
        landmarks: Landmarks,
        alpha: float,
        compute: Compute,
    ) -> list[LandmarkOutputPath]:
        """Return one path for all values of c, or two if fits with c < 1 and with c = 1 choose other landmarks."""
        groups = [list(supervisions)]
        if unlabeled is not None:
            groups = [[c for c in supervisions if c < 1], [c for c in supervisions if c == 1]]
        return [cls(outputs, group, unlabeled, landmarks, alpha, compute) for group in groups if group]

    @property
    def rank(self) -> int:
        """The number of landmarks, or of labeled outputs if there are no others and they are fewer."""
        return self.landmarks.n if self.unlabeled is not None else min(self.landmarks.n, self.outputs.known.n_labeled)

    @property
    def width(self) -> int:
        """A bound on the number of coordinates."""
        return self.rank

    def spectrum(self) -> Array:
        """Return the eigenvalues of the moment of all outputs, descending, without those that are rounding errors."""
        everything = np.arange(n_samples(self.outputs.labeled))
        return significant(self.split(everything, everything).moment.sigma)

    def split(self, train: Index, held: Index) -> SplitOutputs:
        """Return the outputs of one split."""
        kernel, known, compute = self.outputs.kernel, self.outputs.known, self.compute
        Y = take(self.outputs.labeled, train)
        stream = None if self.unlabeled is None else self.unlabeled.stream(kernel, Y)
        split = KnownOutputs.of(Y, None if stream is None else stream.in_memory)
        side = LandmarkOutputs(kernel, Y, split, stream, True, self.landmarks, self.alpha, compute)
        labeled = take(known.outputs, slice(0, known.n_labeled))
        values = side.features.to_device(compute).columns(labeled, compute).T  # (d, r)
        moment = DiagonalMoment.of_matrix(values, compute.asarray(side.moment().to_matrix()))
        return SplitOutputs(self.outputs, side.features, moment, train, held, compute)


def significant(sigma: Array) -> Array:
    """Return eigenvalues as a descending NumPy array, without those that are rounding errors of the largest."""
    sigma = np.sort(to_numpy(sigma))[::-1]
    return sigma[sigma > len(sigma) * np.finfo(float).eps * sigma[0]] if len(sigma) else sigma
