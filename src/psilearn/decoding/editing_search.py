"""Local search: known outputs near a prediction are edited while they come closer to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import delayed
from scipy import sparse

from psilearn._backend import NUMPY, iter_slices, to_numpy
from psilearn._linalg import Array, row_products
from psilearn._utils import validation
from psilearn._utils.progress import track
from psilearn._utils.samples import Samples, n_samples, take
from psilearn._utils.worker_processes import run_parallel
from psilearn.decoding.candidates import Candidates
from psilearn.embedding import Embedding
from psilearn.kernels import FeatureKernel, Linear

BLOCK_QUERIES = 16  # predictions whose edited outputs are evaluated together
MIN_GAIN = 1e-9  # of the squared distance in relation to its size: smaller gains are rounding
DISTANCE_DIGITS = 12  # outputs of an example whose distances agree to so many digits are the same


@dataclass(frozen=True)
class EditedOutputs:
    """The results of a local search: one output per example, in general not the nearest of all outputs.

    Parameters
    ----------
    outputs : list
        The output that was found for each example.
    distances : ndarray of shape (q,)
        Its squared distance |G*z(x) − ψ(y)|².
    start_outputs : list
        The nearest candidate of each example.
    start_distances : ndarray of shape (q,)
        Its squared distance.
    n_steps : ndarray of int of shape (q,)
        The number of edits from the start that led to the output; 0 if no edit came closer.
    is_optimal : ndarray of bool of shape (q,)
        Whether no single edit of the output is closer. False where the number of steps ended the search.

    See Also
    --------
    local_search : The search.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.decoding import EditedOutputs
    >>> result = EditedOutputs(["b"], np.array([0.1]), ["a"], np.array([0.5]), np.array([1]), np.array([True]))
    >>> result.outputs
    ['b']
    """

    outputs: list[Any]
    distances: Array
    start_outputs: list[Any]
    start_distances: Array
    n_steps: Array
    is_optimal: Array


def local_search(
    Z: Array,
    candidates: Candidates,
    edits: Callable[[Any], list[Any]],
    *,
    n_starts: int = 3,
    max_steps: int = 20,
    n_jobs: int | None = None,
) -> EditedOutputs:
    """Edit the nearest candidates of predictions as long as an edit comes closer to the prediction.

    From each of the ``n_starts`` nearest candidates, the search takes the edited output with the smallest squared
    distance |G*z − ψ(y)|² until none is closer. The best of the ``n_starts`` results is returned. It is never farther
    than the nearest candidate and need not be a candidate, but it is only a local optimum: there may be nearer outputs.

    Cost per step and start: the features of all edited outputs, and one inner product each if the output kernel is a
    :class:`~psilearn.kernels.FeatureKernel` with CSR features and the linear base kernel; with other kernels r kernel
    values each, for r landmarks.

    Parameters
    ----------
    Z : array of shape (q, p)
        The predicted embeddings z(x), as :meth:`psilearn.OEL.embed` returns them.
    candidates : Candidates
        Where the search starts, such as ``model.candidates_``.
    edits : callable
        Takes an output and returns a list of outputs that differ a little from it, such as :class:`GraphEdits` or
        :class:`psilearn_chem.MoleculeEdits`.
    n_starts : int, default=3
        The number of nearest candidates from which the search starts.
    max_steps : int, default=20
        The largest number of edits from a start.
    n_jobs : int, default=None
        The number of processes that share the predictions, as in joblib. ``edits`` must then be an object that can be
        pickled.

    Returns
    -------
    EditedOutputs
        The outputs that were found, with their distances and where they started.

    See Also
    --------
    GraphEdits : The edits of graphs.
    psilearn_chem.MoleculeEdits : The edits of molecules.

    Examples
    --------
    >>> from psilearn import IOKR
    >>> from psilearn.decoding import GraphEdits, local_search
    >>> from psilearn.kernels import Graph, Linear, WeisfeilerLehman
    >>> chains = [Graph("C" * n, [(i, i + 1) for i in range(n - 1)]) for n in (2, 3, 4, 6, 7, 8)]
    >>> kernel = WeisfeilerLehman(1, normalize=False)
    >>> model = IOKR(Linear(), kernel, alpha=1e-9).fit([[2.0, 1], [3, 1], [4, 1], [6, 1], [7, 1], [8, 1]], chains)
    >>> found = local_search(model.embed([[5.0, 1]]), model.candidates_, GraphEdits("C"))
    >>> len(found.outputs[0]), found.n_steps.tolist()
    (5, [1])
    """
    if not isinstance(candidates, Candidates):
        raise TypeError(f"candidates must be Candidates, such as model.candidates_; got {type(candidates).__name__}.")
    if not callable(edits):
        raise TypeError(f"edits must be a function that returns edited outputs; got {edits!r:.80}.")
    max_steps = validation.check_count(max_steps, "max_steps")
    top = candidates.nearest(Z, validation.check_count(n_starts, "n_starts"))
    Z = to_numpy(Z)
    search, distances = _Search(edits, max_steps), _Objective(candidates._known_embedding())
    starts = [list(outputs) for outputs in top.outputs]
    blocks = track(iter_slices(len(Z), BLOCK_QUERIES), "local search")
    tasks = (delayed(search.run)(distances.of(Z[rows]), starts[rows]) for rows in blocks)
    results = [result for block in run_parallel(tasks, validation.check_n_jobs(n_jobs)) for result in block]
    return EditedOutputs(
        [state.output for state in results],
        np.array([state.distance for state in results], dtype=np.float64),
        [items[0] for items in starts],
        to_numpy(top.distances)[:, 0],
        np.array([state.n_steps for state in results], dtype=np.intp),
        np.array([state.is_optimal for state in results], dtype=bool),
    )


@dataclass
class _State:
    """One start of one example."""

    number: int
    example: int
    output: Any
    distance: float
    n_steps: int = 0
    is_optimal: bool = False


@dataclass(frozen=True)
class _Search:
    """The descent from all starts of some examples, one step at a time for all of them."""

    edits: Callable[[Any], list[Any]]
    max_steps: int

    def run(self, distance_to: _Distances, starts: list[list[Any]]) -> list[_State]:
        """Return the best result of each example."""
        pairs = [(i, output) for i, outputs in enumerate(starts) for output in outputs]
        states = [_State(number, *pair, np.inf) for number, pair in enumerate(pairs)]
        first = distance_to([state.output for state in states], [state.example for state in states])
        for state, distance in zip(states, first.tolist(), strict=True):
            state.distance = distance
        visited: set[tuple[int, float]] = set()
        states = active = _drop_repeated(states, visited)
        for _ in range(self.max_steps):
            self._step(active, distance_to)
            moved = [state for state in active if not state.is_optimal]
            active = _drop_repeated(moved, visited)
            states = [state for state in states if state.is_optimal] + active
            if not active:
                break
        states.sort(key=lambda state: state.number)
        best: dict[int, _State] = {}
        for state in states:  # of equally near ones the first, whose start was nearer
            if state.example not in best or state.distance < best[state.example].distance:
                best[state.example] = state
        return list(best.values())

    def _step(self, states: list[_State], distance_to: _Distances) -> None:
        """Replace the output of each state by its nearest edited output, if that one is nearer."""
        edited = [_check_edited(self.edits(state.output)) for state in states]
        owners = np.repeat([state.example for state in states], [len(items) for items in edited])
        distances = distance_to([item for items in edited for item in items], owners)
        stops = np.cumsum([len(items) for items in edited])
        for state, items, stop in zip(states, edited, stops, strict=True):
            values = distances[stop - len(items) : stop]
            best = int(np.argmin(values)) if len(items) else -1
            if best >= 0 and values[best] < state.distance - MIN_GAIN * (1 + abs(state.distance)):
                state.output, state.distance, state.n_steps = items[best], float(values[best]), state.n_steps + 1
            else:
                state.is_optimal = True


def _drop_repeated(states: list[_State], visited: set[tuple[int, float]]) -> list[_State]:
    """Return the states of outputs that no other start of the example has visited, known by their distance."""
    fresh = []
    for state in states:
        place = (state.example, round(state.distance, DISTANCE_DIGITS))
        if place not in visited:
            visited.add(place)
            fresh.append(state)
    return fresh


def _check_edited(outputs: Any) -> list[Any]:
    """Return what a function of edits returned; raise if it is not a list."""
    if not isinstance(outputs, list):
        raise TypeError(f"edits must return a list of outputs; got {type(outputs).__name__}.")
    return outputs


class _Objective:
    """What the squared distances |G*z − ψ(y)|² to all predictions have in common."""

    def __init__(self, embedding: Embedding) -> None:
        self.embedding = embedding
        self.features: Any = None  # (r, k)  of the landmarks, without columns that no landmark has
        kernel = embedding.kernel
        if isinstance(kernel, FeatureKernel) and type(kernel._base()) is Linear:
            features = kernel.features(embedding.landmarks)
            if sparse.issparse(features):
                self.columns = np.unique(features.indices)
                self.features = features.tocsc()[:, self.columns]

    def of(self, Z: Array) -> _Distances:
        """Return the distances to some predictions, with no more than a process needs for them."""
        kernel, lengths = self.embedding.kernel, row_products(Z, Z)
        weights = Z @ self.embedding.basis.T  # (q, r)
        if self.features is None:
            return _LandmarkDistances(kernel, lengths, weights, self.embedding.landmarks)
        vectors = np.pad((self.features.T @ weights.T).T, ((0, 0), (0, 1)))
        return _FeatureDistances(kernel, lengths, vectors, self.columns)


@dataclass(frozen=True)
class _Distances:
    """Squared distances |G*z − ψ(y)|² of pairs of a prediction and an output."""

    kernel: Any
    lengths: Array  # (q,)  |z|²

    def __call__(self, outputs: Samples, owners: Any) -> Array:
        """Return the distance of each output to the prediction with the number ``owners[i]``."""
        if not n_samples(outputs):
            return np.empty(0)
        owners = np.asarray(owners)
        products, squares = self._products(self.kernel.check(outputs, "the edited outputs"), owners)
        return self.lengths[owners] - 2 * products + squares

    def _products(self, outputs: Samples, owners: Any) -> tuple[Array, Array]:
        """Return ⟨G*z, ψ(y)⟩ and k(y, y) of each output."""
        raise NotImplementedError


@dataclass(frozen=True)
class _FeatureDistances(_Distances):
    """Distances from G*z in the space of sparse features."""

    vectors: Array  # (q, k + 1)  G*z in the columns that landmarks have, and zeros for all others
    columns: Array  # (k,)  the numbers of these columns

    def _products(self, outputs: Samples, owners: Any) -> tuple[Array, Array]:
        rows = self.kernel.features(outputs)
        place = np.full(rows.shape[1], len(self.columns))
        place[self.columns] = np.arange(len(self.columns))
        of_row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        terms = rows.data * self.vectors[owners[of_row], place[rows.indices]]
        products: Any = np.bincount(of_row, terms, rows.shape[0])
        return products, np.asarray(rows.multiply(rows).sum(axis=1)).ravel()


@dataclass(frozen=True)
class _LandmarkDistances(_Distances):
    """Distances from kernel values with all landmarks."""

    weights: Array  # (q, r)
    landmarks: Samples

    def _products(self, outputs: Samples, owners: Any) -> tuple[Array, Array]:
        parts = []
        for part in iter_slices(len(owners), 4096):
            values = to_numpy(self.kernel(take(outputs, part), self.landmarks, compute=NUMPY))
            parts.append(row_products(values, self.weights[owners[part]]))
        return np.concatenate(parts), self.kernel.diag(outputs)
