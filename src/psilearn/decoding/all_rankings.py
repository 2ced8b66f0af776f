"""All K! rankings as candidates; the nearest one is found without a list of them.

Let ψ(σ) ∈ R^D be the embedding of a ranking by a kernel of :mod:`psilearn.kernels.ranking_kernels`, and let a model
have landmarks S with g(y) = Gψ(y) = Bᵀk(S, y), where B is its basis (r, p). Since k(S, y) = Ψ(S)ψ(y), G = BᵀΨ(S), and

    G*z = Ψ(S)ᵀB z =: w(z) ∈ R^D,
    |G*z − ψ(σ)|² = |z|² − 2⟨w(z), ψ(σ)⟩ + |ψ(σ)|²          (GG* = I, so |G*z| = |z|).

So for any learned embedding, and for the full one, the nearest ranking maximizes 2⟨w, ψ(σ)⟩ − |ψ(σ)|² in the
coordinates of the kernel, where it has structure:

- Kemeny: |ψ(σ)|² = 1 for every ranking; Σ_{i<j} w_ij sign(σⱼ − σᵢ) is maximized by :mod:`psilearn.decoding.kemeny`.
- Hamming: |ψ(σ)|² = 1; Σ_i w_{i,σᵢ} is a linear assignment of items to ranks.
- Lehmer: |w − ψ(σ)|² is a sum over coordinates, and every code (c₁, …, c_K), 0 ≤ cᵢ < i, belongs to one ranking: each
  cᵢ is rounded to the nearest allowed integer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from psilearn._backend import Compute, iter_blocks, to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Index, Samples, distinct, take
from psilearn.decoding.kemeny import best_kemeny
from psilearn.decoding.path_decoder import DecodedStep, PathDecoder
from psilearn.decoding.shared import RuleCandidates, SharedCandidates
from psilearn.decoding.top_k import TopK
from psilearn.embedding import Embedding
from psilearn.kernels import Hamming, Kemeny, Kernel, Lehmer, RankingKernel
from psilearn.rankings import all_rankings

MAX_LISTED_ITEMS = 8  # all rankings of at most so many items, 40,320, are listed if more than the nearest is needed
DEFINING_METHODS = (  # a subclass that overrides one of them has another embedding
    *("__call__", "diag", "paired", "features"),
    *("_block", "_diag", "_paired", "_code", "_scale", "_width"),
)


class FoundRows:
    """The distinct rows that a solver has found so far, in the order in which they first appeared.

    A decoder without a list of candidates numbers its predictions with it. Memory: the distinct rows.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._rows: list[NDArray[Any]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def number(self, rows: NDArray[Any]) -> Index:
        """Return the number of each row (q, K), (q,); rows that are new get the next numbers."""
        first, inverse = distinct(rows)
        numbers = np.empty(len(first), dtype=np.intp)
        for i, row in enumerate(rows[first]):
            numbers[i] = self._numbers.setdefault(row.tobytes(), len(self._rows))
            if numbers[i] == len(self._rows):
                self._rows.append(row)
        return numbers[inverse]

    def take(self, numbers: Index) -> NDArray[Any]:
        """Return rows by their numbers, of shape (q, K)."""
        return np.stack([self._rows[i] for i in numbers])


def best_hamming(W: Array) -> Index:
    """Return the ranks (q, K) that maximize Σᵢ w_{i,σᵢ} for weights W (q, K²): linear assignment, K³ per query."""
    K = round(np.sqrt(W.shape[1]))
    return np.array([linear_sum_assignment(weights, maximize=True)[1] + 1 for weights in W.reshape(-1, K, K)])


def best_lehmer(W: Array) -> Index:
    """Return the ranks (q, K) whose centered Lehmer code, scaled as in the kernel, is nearest to W (q, K).

    With i earlier items the code is 2c − i, c ∈ {0, …, i}, so c is (w√scale + i)/2, rounded; halves are rounded down.
    """
    q, K = W.shape
    code = W * np.sqrt(Lehmer()._scale(K))
    ranks = np.empty((q, K), dtype=np.intp)
    for i in range(K):
        c = np.clip(np.ceil((code[:, i] + i) / 2 - 0.5 - 1e-12 * K), 0, i).astype(np.intp)
        rank = i - c + 1  # c of the i earlier items come after item i
        ranks[:, :i] += ranks[:, :i] >= rank[:, None]
        ranks[:, i] = rank
    return ranks


SOLVERS: dict[type[RankingKernel], Callable[[Array], Index]] = {
    Kemeny: best_kemeny,
    Hamming: best_hamming,
    Lehmer: best_lehmer,
}


def find_solver(kernel: Kernel) -> Callable[[Array], Index] | None:
    """Return the solver of a kernel, or of the class with the same embedding that it is a subclass of; or None."""
    for kind, solver in SOLVERS.items():
        if isinstance(kernel, kind) and all(getattr(type(kernel), m) is getattr(kind, m) for m in DEFINING_METHODS):
            return solver
    return None


def has_all_rankings(kernel: Kernel) -> bool:
    """Return whether the nearest of all rankings can be found with an output kernel.

    Parameters
    ----------
    kernel : Kernel
        The output kernel.

    Returns
    -------
    bool
        True for Kemeny, Hamming and Lehmer, and for subclasses of them with the same embedding.

    See Also
    --------
    AllRankings : All rankings as candidates.

    Examples
    --------
    >>> from psilearn.decoding import has_all_rankings
    >>> from psilearn.kernels import Gaussian, Kemeny
    >>> has_all_rankings(Kemeny()), has_all_rankings(Gaussian(1.0, base=Kemeny()))
    (True, False)
    """
    return find_solver(kernel) is not None


class AllRankings(RuleCandidates):
    """All rankings of the items of a model.

    The nearest ranking is found by a solver, without a list. For everything else, such as the k > 1 nearest rankings or
    the position of a true one, all rankings are listed, which is possible for at most 8 items.

    Parameters
    ----------
    embedding : Embedding
        The embedding of a model whose output kernel is Kemeny, Hamming or Lehmer.
    known : array of shape (n, K) or sequence of n orders
        Some rankings, in the form in which predictions are returned.

    Attributes
    ----------
    lift : ndarray of shape (D, p)
        The matrix of G*: w(z) = lift @ z.

    See Also
    --------
    psilearn.kernels.Kemeny : Rankings by the order of each pair of items.
    psilearn.kernels.Hamming : Rankings by the rank of each item.
    psilearn.kernels.Lehmer : Rankings by Lehmer codes.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.decoding import AllRankings
    >>> from psilearn.embedding import Embedding
    >>> from psilearn.kernels import Kemeny
    >>> known = np.array([[1, 2, 3], [1, 3, 2]])
    >>> embedding = Embedding(Kemeny(), known[:1], np.eye(1))
    >>> rankings = AllRankings(embedding, known)
    >>> rankings.nearest(np.array([[1.0], [-1.0]]), k=1).nearest
    array([[1, 2, 3],
           [3, 2, 1]])
    >>> rankings.max_size
    6
    """

    def __init__(self, embedding: Embedding, known: Samples) -> None:
        self.embedding: Embedding = embedding
        self.known = known

    def __repr__(self) -> str:
        return f"AllRankings({self._n_items} items)"

    @property
    def kernel(self) -> Any:
        """The output kernel."""
        return self.embedding.kernel

    @cached_property
    def lift(self) -> Array:
        """The matrix of G*, of shape (D, p); r·D·p flops, one block of landmarks at a time."""
        basis = to_numpy(self.embedding.basis)
        lift = np.zeros((self.kernel.n_features(self.known), basis.shape[1]))
        for rows in iter_blocks(len(basis), 12 * len(lift)):
            lift += self.kernel.features(take(self.embedding.landmarks, rows)).T @ basis[rows]
        return lift

    @cached_property
    def listed(self) -> SharedCandidates:
        """All rankings as a list, for at most 8 items."""
        self._require_listable("Give candidates")
        return SharedCandidates(self.kernel.to_form_of(self.known, all_rankings(self._n_items)), self.embedding)

    @cached_property
    def _n_items(self) -> int:
        return int(self.kernel.n_items(self.known))

    def _require_listable(self, remedy: str) -> None:
        """Raise if there are too many rankings to list; the remedy is part of the message."""
        if self._n_items > MAX_LISTED_ITEMS:
            raise ValueError(
                f"All rankings of {self._n_items} items are too many to list: only the nearest one can be found among "
                f"them. {remedy}; model.candidates_ are the known rankings."
            )

    def _max_size(self) -> int:
        return factorial(self._n_items)

    def _for_embedding(self, embedding: Embedding) -> AllRankings:
        return AllRankings(embedding, self.known)

    def _match(self, truth: Samples) -> Index:
        self.kernel.check_full(truth, "y")
        return super()._match(truth)

    def _nearest(self, Z: Any, k: int, compute: Compute) -> TopK:
        if k > 1:
            self._require_listable("Ask for k=1, or give candidates")
            return self.listed._nearest(Z, k, compute)
        ranks, distances = nearest_rankings(self.kernel, self.lift, to_numpy(Z), self._n_items)
        nearest = SharedCandidates(self.kernel.to_form_of(self.known, ranks))
        return TopK(np.arange(len(ranks))[:, None], distances[:, None], nearest)

    def _path_decoder(
        self, embedding: Embedding, sizes: Sequence[int] | None, compute: Compute, truth: Index | None
    ) -> PathDecoder:
        rankings = self if embedding is self.embedding else AllRankings(embedding, self.known)
        if truth is not None:
            return rankings.listed._path_decoder(embedding, sizes, compute, truth)
        return RankingPathDecoder(rankings, sizes, compute)


class RankingPathDecoder(PathDecoder):
    """Decodes among all rankings with a solver; the lift is rotated to the directions of each step.

    ``nearest`` has the numbers of the rankings that were found.
    """

    def __init__(self, rankings: AllRankings, sizes: Sequence[int] | None, compute: Compute) -> None:
        super().__init__(rankings, sizes, compute, None)
        self.rankings = rankings
        self._found = FoundRows()  # of ranks (K,)

    def take(self, examples: Index, indices: Index) -> Samples:
        """Return rankings that were found, by their numbers."""
        return self.rankings.kernel.to_form_of(self.rankings.known, self._found.take(indices))

    def _add(self, V: Any, Z: Any, sizes: list[int]) -> None:
        kernel, lift, Z = self.rankings.kernel, self.rankings.lift, to_numpy(Z)
        lift = lift if V is None else lift @ to_numpy(V)
        nearest = [
            self._found.number(nearest_rankings(kernel, lift[:, :p], Z[:, :p], self.rankings._n_items)[0])
            for p in sizes
        ]
        self._steps.append(DecodedStep(np.stack(nearest)))


def nearest_rankings(kernel: Any, lift: Array, Z: Array, n_items: int) -> tuple[Index, Array]:
    """Return the ranks (q, K) of the nearest ranking of each query, rows of Z (q, p), and its squared distance (q,).

    Memory: ``working_memory`` and the answer.
    """
    solve: Any = find_solver(kernel)
    ranks, distances = np.empty((len(Z), n_items), dtype=np.intp), np.empty(len(Z))
    for rows in iter_blocks(len(Z), 40 * len(lift)):
        W = np.asarray(Z[rows], dtype=np.float64) @ lift.T  # (b, D)
        ranks[rows] = solve(W)
        W -= kernel.features(ranks[rows])
        distances[rows] = np.einsum("ij,ij->i", W, W)
    return ranks, distances
