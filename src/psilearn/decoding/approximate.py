"""Approximate search among very many candidates: an index proposes candidates, and exact distances decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from psilearn._backend import Compute, current_compute, explain_missing, iter_blocks, to_numpy
from psilearn._linalg import Array, row_products
from psilearn._utils import validation
from psilearn._utils.samples import Index
from psilearn._utils.validation import RandomStateLike
from psilearn.decoding.distances import k_smallest, tie_tolerance, to_distances
from psilearn.decoding.shared import SharedCandidates
from psilearn.decoding.top_k import TopK

KINDS = ("hnsw", "ivf")
TRAINING_POINTS = 64  # per list of an inverted file
LISTS_FACTOR = 4  # lists = 4·√c
NEIGHBORS = 32  # per node of a graph
BUILD_EFFORT = 100  # nodes that are kept while a graph is built
RESCORED = 4  # proposals per candidate that is asked for


@dataclass(frozen=True, eq=False, repr=False)
class ApproximateCandidates(SharedCandidates):
    """One set of very many candidates that an index of faiss searches approximately.

    The index holds the points [g(y), r(y)] in p + 1 dimensions as float32 numbers. For each query [z, 0] it proposes
    candidates, whose distances are then computed exactly, so that only a candidate that was not proposed can be missed.
    Only ``predict``, ``predict_topk`` and :meth:`nearest` use the index; positions of the truth and conformal sets are
    exact. Use :meth:`of`, which measures the recall. Needs faiss: ``pip install 'psilearn[ann]'``.

    Parameters
    ----------
    outputs : array, CSR matrix or sequence of c outputs
        The candidates.
    embedding : Embedding, default=None
        The embedding of a model.
    squared_norms : ndarray of shape (c,), default=None
        The values k(y, y).
    g : ndarray of shape (c, p), default=None
        The embedded candidates.
    index : object, default=None
        The index of faiss.
    effort : int, default=0
        The number of lists (IVF) or nodes (HNSW) that are visited per query.
    recall : float, default=nan
        The measured share of the true k nearest candidates that are found.

    See Also
    --------
    SharedCandidates : Exact search, the default.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import OEL
    >>> from psilearn.decoding import ApproximateCandidates
    >>> X = np.linspace(0, 1, 200).reshape(-1, 1)
    >>> model = OEL(n_components=3).fit(X, np.hstack([X, X**2]))
    >>> exact = model.candidate_set(np.hstack([X, X**2]))
    >>> candidates = ApproximateCandidates.of(exact, model.embed(X[::5]), k=5, verbose=False)
    >>> candidates.recall >= 0.95
    True
    """

    index: Any = None
    effort: int = 0
    recall: float = float("nan")

    @classmethod
    def of(
        cls,
        candidates: SharedCandidates,
        queries: Array,
        *,
        k: int = 10,
        kind: str = "hnsw",
        min_recall: float = 0.95,
        random_state: RandomStateLike = 0,
        verbose: bool = True,
    ) -> ApproximateCandidates:
        """Build an index of embedded candidates, and choose its effort by the recall on queries.

        The effort is doubled until the recall@k on the first half of the queries reaches ``min_recall``; the recall on
        the other half is measured and printed. Cost of the exact answers: 2·q·c·p flops for q queries. Memory: 4·c·(p +
        1) bytes, and as much again for the graph of "hnsw" if p is small.

        Parameters
        ----------
        candidates : SharedCandidates
            Candidates of a model, from :meth:`psilearn.OEL.candidate_set`.
        queries : array of shape (q, p)
            Predicted embeddings of inputs that were not used to fit the model, ``model.embed(X)``; at least two.
        k : int, default=10
            The number of nearest candidates that the recall counts.
        kind : {"hnsw", "ivf"}, default="hnsw"
            A graph of neighbors, or an inverted file with 4·√c lists, which is built faster and searched more slowly.
        min_recall : float, default=0.95
            The recall to reach. 1 visits as much as is needed to find all of them on the first half of the queries.
        random_state : int, RandomState or None, default=0
            The random seed of the clustering.
        verbose : bool, default=True
            Whether the measured recall is printed.

        Returns
        -------
        ApproximateCandidates
            The candidates with their index.

        See Also
        --------
        psilearn.OEL.predict_topk : Takes them as ``candidates``.

        Examples
        --------
        >>> from psilearn.decoding import ApproximateCandidates
        >>> candidates = ApproximateCandidates.of(model.candidate_set(Y), model.embed(X))  # doctest: +SKIP
        recall@10 on 500 held-out queries: 0.968 (hnsw, 256 of 1000000 nodes)
        """
        if not isinstance(candidates, SharedCandidates) or candidates.g is None:
            raise TypeError("candidates must be embedded: model.candidate_set(outputs).")
        k = min(validation.check_count(k, "k"), len(candidates))
        verbose = validation.check_bool(verbose, "verbose")
        validation.check_option(kind, KINDS, "kind")
        min_recall = validation.check_fraction(min_recall, "min_recall")
        Z = _as_queries(candidates, queries)
        index, max_effort = _build_index(candidates, kind, validation.as_random_state(random_state))
        make = _maker(cls, candidates, index)
        tuning, held_out = Z[: len(Z) // 2], Z[len(Z) // 2 :]
        truth = candidates.nearest(tuning, k).indices
        effort = 1
        while effort < max_effort and measure_recall(make(effort), tuning, truth) < min_recall:
            effort = min(2 * effort, max_effort)
        recall = measure_recall(make(effort), held_out, candidates.nearest(held_out, k).indices)
        if verbose:
            unit = "lists" if kind == "ivf" else "nodes"
            visited = f"{kind}, {effort} of {max_effort} {unit}"
            print(f"recall@{k} on {len(held_out)} held-out queries: {recall:.3f} ({visited})")
        return make(effort, recall)

    def __repr__(self) -> str:
        return f"ApproximateCandidates({len(self)} outputs, recall {self.recall:.3f})"

    def __reduce__(self) -> Any:
        raise TypeError("An index is not saved or sent to other processes: save the candidates, and build it again.")

    def _select(self, rows: slice | Index) -> Any:
        exact = SharedCandidates(self.outputs, self.embedding, self.squared_norms, self.g)
        return exact._select(rows)

    def _nearest(self, Z: Any, k: int, compute: Compute) -> TopK:
        Z, norms, found = to_numpy(Z), self._known_norms(), min(k, len(self))
        wanted = min(len(self), max(RESCORED * found, found + 16))
        indices, distances = np.empty((len(Z), found), dtype=np.intp), np.empty((len(Z), found))
        for rows in iter_blocks(len(Z), 8 * wanted * (Z.shape[1] + 4)):
            proposed = self._propose(Z[rows], wanted)
            D, slack = _exact_distances(Z[rows], self.g, norms, proposed)
            columns, distances[rows] = k_smallest(D, slack, found)
            indices[rows] = np.take_along_axis(proposed, columns, axis=1)
        indices[np.isinf(distances)] = -1
        return TopK(indices, distances, self, k)

    def _propose(self, Z: Array, n: int) -> Index:
        """Return the indices that the index finds, (q, n), ascending; −1 where it finds fewer."""
        name = "nprobe" if hasattr(self.index, "nprobe") else "efSearch"
        setattr(
            self.index if name == "nprobe" else self.index.hnsw, name, max(self.effort, 1 if name == "nprobe" else n)
        )
        queries = np.column_stack([Z, np.zeros(len(Z))]).astype(np.float32)
        proposed: Index = np.sort(self.index.search(queries, n)[1], axis=1)
        return proposed


def measure_recall(candidates: SharedCandidates, Z: Array, truth: Index) -> float:
    """Return the share of the true nearest candidates (q, k) that a search finds; ties count as they are decided."""
    found = candidates.nearest(Z, truth.shape[1], current_compute()).indices
    return float(np.mean([np.isin(expected, row).mean() for expected, row in zip(truth, found, strict=True)]))


def _as_queries(candidates: SharedCandidates, queries: Any) -> Any:
    """Return at least two validated queries as a NumPy array."""
    try:
        Z = to_numpy(queries)
    except ValueError as error:
        raise TypeError(f"queries must be an array, model.embed(X): {error}") from error
    candidates._check_queries(Z, "queries")
    if len(Z) < 2:
        raise ValueError(f"queries must be at least two embeddings, model.embed(X); got {len(Z)}.")
    return Z


def _maker(
    cls: type[ApproximateCandidates], candidates: SharedCandidates, index: Any
) -> Callable[..., ApproximateCandidates]:
    def make(effort: int, recall: float = float("nan")) -> ApproximateCandidates:
        return cls(
            candidates.outputs, candidates.embedding, candidates.squared_norms, candidates.g, index, effort, recall
        )

    return make


def _build_index(candidates: SharedCandidates, kind: str, generator: np.random.RandomState) -> tuple[Any, int]:
    """Return an index of all points, and the largest effort that makes sense."""
    with explain_missing("Approximate search needs faiss: pip install 'psilearn[ann]'."):
        import faiss
    c, g, norms = len(candidates), candidates.g, candidates._known_norms()
    assert g is not None
    width = g.shape[1] + 1
    if kind == "hnsw":
        index: Any = faiss.IndexHNSWFlat(width, NEIGHBORS)
        max_effort = c
        index.hnsw.efConstruction = BUILD_EFFORT
    else:
        max_effort = max(1, min(int(LISTS_FACTOR * np.sqrt(c)), c // 39 or 1))  # faiss asks for 39 points per list
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(width), width, max_effort, faiss.METRIC_L2)
        index.cp.seed = int(generator.randint(2**31))
        sample = generator.choice(c, min(c, TRAINING_POINTS * max_effort), replace=False)
        sample = np.sort(sample)
        index.train(_points(np.asarray(g[sample]), norms[sample]))
    for rows in iter_blocks(c, 16 * width):
        index.add(_points(np.asarray(g[rows]), norms[rows]))
    return index, max_effort


def _points(g: Array, norms: Array) -> Any:
    """Return [g(y), r(y)] in float32."""
    residual = np.sqrt(np.maximum(norms - row_products(g, g), 0))
    return np.ascontiguousarray(np.column_stack([g, residual]), dtype=np.float32)


def _exact_distances(Z: Array, g: Any, norms: Array, proposed: Index) -> tuple[Array, Array]:
    """Return the squared distances of proposals (q, n) in float64 and their slack; ∞ where there is no proposal."""
    rows = np.maximum(proposed, 0)
    G = np.asarray(g[rows.ravel()]).reshape(*rows.shape, -1)
    tolerance = tie_tolerance(Z, G)
    products = np.matmul(G.astype(float), Z.astype(float)[:, :, None])[:, :, 0]
    D, slack = to_distances(products, row_products(Z, Z)[:, None] + norms[rows], tolerance)
    D[proposed < 0] = np.inf
    return D, slack
