"""One training split and one input kernel: the scores of every output kernel, λ, c and p."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from psilearn._backend import array_namespace, asarray, eye, rows_of, to_host, zeros
from psilearn._linalg import Array
from psilearn._utils.samples import Index, Samples, concat, distinct, match, n_samples, take
from psilearn.decoding import CandidateSets
from psilearn.decoding.all_rankings import AllRankings, has_all_rankings
from psilearn.decoding.component_path import nearest_path, rank_path
from psilearn.embedding import KnownOutputs, OutputCoordinates
from psilearn.embedding.subspace_path import SMALL, DiagonalMoment
from psilearn.kernels import Kernel
from psilearn.kernels.blocks import diagonal
from psilearn.metrics import top_k_accuracy
from psilearn.model_selection.regression_routes import Step, route_for
from psilearn.model_selection.scoring import Scoring


@dataclass(frozen=True)
class Candidates:
    """Outputs to decode to, in coordinates; each example looks at all of them or at its own slice."""

    outputs: Samples
    values: Array  # (c, r)
    squared_norms: Array  # (c,)
    slices: list[slice] | None = None  # one an example, where each has a set of its own


class OutputSide:
    """Everything about the outputs that all splits and input kernels share, for one output kernel.

    One factorisation of the output Gram matrix, d²r flops; with c < 1 one eigendecomposition of order r more, or what
    takes its place, once if there are unlabeled outputs and once a split if not. Memory: 4 matrices of d·r numbers.
    """

    def __init__(self, kernel: Kernel, known: KnownOutputs, has_unlabeled: bool, supervisions: Sequence[float]) -> None:
        self.kernel = kernel
        self.known = known
        self.has_unlabeled = has_unlabeled
        self._mixes = min(supervisions) < 1
        self.n_spanning = n_samples(known.outputs) if self._mixes else known.n_labeled
        self.psi = OutputCoordinates(kernel, take(known.outputs, slice(0, self.n_spanning)))
        self.squared_norms = diagonal(kernel, known.outputs, "output_kernel")  # (d,)
        self._shared: DiagonalMoment | None = None

    @property
    def rank(self) -> int:
        """r, the dimension that the outputs span."""
        return self.psi.rank

    @property
    def width(self) -> int:
        """How many coordinates the moment has: r, or fewer after :meth:`turn`."""
        return self.rank if self._shared is None else self._shared.values.shape[1]

    def turn(self, k: int | None) -> None:
        """Do once what serves every split: make the moment of the unlabeled outputs diagonal.

        Where k is given, only the coordinates that k leading eigenvectors need are kept: ``DiagonalMoment.leading``.
        """
        if self.has_unlabeled and self._mixes:
            values, frequencies = self.psi.values, self.known.frequencies
            if k is None:
                self._shared = DiagonalMoment.of(values, frequencies)
            else:
                self._shared = DiagonalMoment.leading(values, frequencies, self.known.n_labeled, k)

    def spectrum(self) -> Array:
        """Return the eigenvalues of the outputs' moment, descending, down to the rank."""
        if self._shared is not None:
            sigma = self._shared.sigma
        else:
            labeled = rows_of(self.psi.values, self.known.labeled)
            sigma = array_namespace(labeled).linalg.eigvalsh(labeled.T @ labeled / len(labeled))
        sigma = np.sort(to_host(sigma))[::-1]
        return sigma[sigma > len(sigma) * np.finfo(float).eps * sigma[0]] if len(sigma) else sigma

    def moment(self, train: Index) -> DiagonalMoment:
        """Return the coordinates in which the moment of what counts as unlabeled is diagonal."""
        if self._shared is not None:
            return self._shared
        if not self._mixes:  # c = 1 alone: the moment plays no part, any coordinates do
            return DiagonalMoment(self.psi.values, zeros((self.rank,)), eye(self.rank))
        labeled = self.known.labeled[train]
        return DiagonalMoment.of(self.psi.values, np.bincount(labeled, minlength=self.n_spanning) / len(labeled))

    def candidates(
        self, given: Samples | CandidateSets | None, moment: DiagonalMoment, train: Index
    ) -> Candidates | AllRankings:
        """Return what validation examples are decoded to: the default candidates of a model of this split."""
        if given is None and has_all_rankings(self.kernel):
            return AllRankings.of(self.psi.embedding(moment.rotation), self.known.outputs)
        if given is None:
            is_known = np.zeros(n_samples(self.known.outputs), dtype=bool)
            is_known[self.known.labeled[train]] = True
            if self.has_unlabeled:
                is_known |= self.known.frequencies > 0
            index = np.flatnonzero(is_known)
            spanning, beyond = index[index < self.n_spanning], index[index >= self.n_spanning]
            values = rows_of(moment.values, spanning)
            if len(beyond):
                projected = asarray(self.psi.embedding()(take(self.known.outputs, beyond))) @ moment.rotation
                values = array_namespace(values).concat([values, projected])
            return Candidates(take(self.known.outputs, index), values, asarray(self.squared_norms[index]))
        slices = None
        if isinstance(given, CandidateSets):
            sets = [_without_repetitions(one) for one in given.sets]
            ends = np.cumsum([n_samples(one) for one in sets])
            slices = [slice(int(b) - n_samples(one), int(b)) for one, b in zip(sets, ends, strict=True)]
            given = concat(sets)
        else:
            given = _without_repetitions(given)
        values = asarray(self.psi.embedding()(given)) @ moment.rotation
        return Candidates(given, values, asarray(diagonal(self.kernel, given, "output_kernel")), slices)


def _without_repetitions(outputs: Samples) -> Samples:
    return take(outputs, distinct(outputs).first)


@dataclass(frozen=True)
class Task:
    """One split and one input kernel, for every output kernel; picklable, so that it can be sent to another process."""

    outputs: Sequence[OutputSide]  # one an output kernel
    input_kernel: Kernel
    X: Samples
    y: Samples
    train: Index
    held: Index
    scorings: Sequence[Scoring]
    candidates: Samples | CandidateSets | None
    leaves_one_out: bool = False  # every example is held out by itself: train and held are all of them

    def scores(self, alphas: Sequence[float], supervisions: Sequence[float], sizes: Sequence[int] | None) -> Array:
        """Return the scores, shape (output kernels, len(alphas), len(supervisions), len(sizes), scorings).

        K_x is decomposed once for all of them, or factored once a λ. Without sizes everything is kept, as IOKR does:
        (…, 1, 1, scorings).
        """
        moments: dict[int, DiagonalMoment] = {}

        def moment_of(which: int) -> DiagonalMoment:
            if which not in moments:
                if self.outputs[which].width > SMALL:
                    moments.clear()  # one of the large ones at a time
                moments[which] = self.outputs[which].moment(self.train)
            return moments[which]

        def target(which: int) -> Array:
            return rows_of(moment_of(which).values, self.outputs[which].known.labeled[self.train])

        X_train = take(self.X, self.train)
        held = None if self.leaves_one_out else take(self.X, self.held)
        widths = [side.width for side in self.outputs]
        route = route_for(clone(self.input_kernel).fit(X_train), X_train, held, target, widths, alphas)
        n_supervisions = 1 if sizes is None else len(supervisions)
        results = []
        for i, side in enumerate(self.outputs):
            moment = moment_of(i)
            steps = route.steps(i, moment, alphas, supervisions, sizes)
            scores = list(self._score(side, moment, steps, sizes))
            results.append(np.array(scores).reshape(len(alphas), n_supervisions, -1, len(self.scorings)))
        return np.stack(results)

    def _score(
        self, side: OutputSide, moment: DiagonalMoment, steps: Iterator[Step], sizes: Sequence[int] | None
    ) -> Iterator[Array]:
        """Yield the scores of every p, shape (len(sizes), scorings), for each λ and c."""
        labeled = side.known.labeled
        truth = rows_of(moment.values, labeled[self.held])  # (q, r)
        truth_norms = side.squared_norms[labeled[self.held]]
        decodes = any(scoring.decodes for scoring in self.scorings)
        pool = side.candidates(self.candidates, moment, self.train) if decodes else None
        for V, Z in steps:
            g = truth if V is None else truth @ V  # (q, p)
            columns = [min(p, Z.shape[1]) for p in sizes] if sizes is not None else [Z.shape[1]]
            decoded: Iterator[list[float]] = iter(())
            if isinstance(pool, AllRankings):
                decoded = self._ranked(Z, V, columns, pool)
            elif pool is not None:
                decoded = self._decoded(Z, pool.values if V is None else pool.values @ V, columns, pool, side.kernel)
            squared = -_squared_errors(Z, g, columns, float(np.mean(truth_norms)))
            yield np.column_stack([next(decoded) if s.decodes else squared for s in self.scorings])

    def _decoded(self, Z: Array, g: Array, sizes: list[int], pool: Candidates, kernel: Kernel) -> Iterator[list[float]]:
        """Yield each decoded score for each p; the candidates are searched once for all metrics."""
        y = take(self.y, self.held)
        nearest = None
        for scoring in self.scorings:
            if scoring.top_k is not None:
                yield self._top_k(Z, g, sizes, pool, y, scoring.top_k)
            elif scoring.metric is not None:
                if nearest is None:
                    nearest = [take(pool.outputs, row) for row in self._nearest(Z, g, sizes, pool)]
                yield [float(scoring.metric(y, prediction, kernel)) for prediction in nearest]

    def _ranked(self, Z: Array, V: Array | None, sizes: list[int], pool: AllRankings) -> Iterator[list[float]]:
        """Yield each decoded score for each p, decoded over all rankings."""
        y = take(self.y, self.held)
        Z, V = to_host(Z), None if V is None else to_host(V)
        predictions = [pool.turned(V, p).nearest(Z[:, :p]).nearest for p in sizes]
        for scoring in self.scorings:
            if scoring.metric is not None:
                yield [float(scoring.metric(y, prediction, pool.kernel)) for prediction in predictions]

    def _nearest(self, Z: Array, g: Array, sizes: list[int], pool: Candidates) -> Index:
        """Return the nearest candidate of each held-out example for each p, shape (len(sizes), q)."""
        if pool.slices is None:
            return nearest_path(Z, g, pool.squared_norms, sizes)
        chosen = np.empty((len(sizes), len(Z)), dtype=np.intp)
        for i, example in enumerate(self.held):
            own = pool.slices[example]
            chosen[:, i] = nearest_path(Z[i : i + 1], g[own], pool.squared_norms[own], sizes)[:, 0] + own.start
        return chosen

    def _top_k(self, Z: Array, g: Array, sizes: list[int], pool: Candidates, y: Samples, k: int) -> list[float]:
        if pool.slices is None:
            ranks = rank_path(Z, g, pool.squared_norms, sizes, match(y, pool.outputs))
            return [float(top_k_accuracy(r, k)) for r in ranks]
        hits = np.zeros(len(sizes))
        for i, example in enumerate(self.held):
            own = pool.slices[example]
            place = match(take(y, slice(i, i + 1)), take(pool.outputs, own))
            for j, r in enumerate(rank_path(Z[i : i + 1], g[own], pool.squared_norms[own], sizes, place)):
                hits[j] += top_k_accuracy(r, k)
        return list(hits / len(self.held))


def _squared_errors(Z: Array, g: Array, sizes: list[int], mean_norm: float) -> Array:
    """Return the mean of |G*Gĥ(x) − ψ(y)|² = Σ_{l≤p} z_l² − 2 z_l g_l + k(y, y) for each p."""
    gains = np.concatenate([[0.0], np.cumsum(to_host((Z**2 - 2 * Z * g).mean(0)))])
    return gains[sizes] + mean_norm
