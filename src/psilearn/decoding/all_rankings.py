"""The nearest of all K! rankings, found without listing them.

Let ψ(σ) ∈ R^D be the embedding of a ranking by a kernel of :mod:`psilearn.kernels.ranking_kernels`, and let a model know
landmarks S with g(y) = Gψ(y) = Bᵀk(S, y), B its basis (r, p). Since k(S, y) = Ψ(S)ψ(y), G = BᵀΨ(S), and

    G*z = Ψ(S)ᵀB z =: w(z) ∈ R^D,
    |G*z − ψ(σ)|² = |z|² − 2⟨w(z), ψ(σ)⟩ + |ψ(σ)|²          (GG* = I, so |G*z| = |z|).

So whatever embedding was learned, and also in the full one, the nearest ranking maximises 2⟨w, ψ(σ)⟩ − |ψ(σ)|² in the
coordinates of the kernel, where it has structure:

- Kemeny: |ψ(σ)|² = 1 for every ranking; Σ_{i<j} w_ij sign(σⱼ − σᵢ) is maximised by :mod:`psilearn.decoding.kemeny`.
- Hamming: |ψ(σ)|² = 1; Σ_i w_{i,σᵢ} is a linear assignment of items to ranks.
- Lehmer: |w − ψ(σ)|² is a sum over coordinates, and every code (c₁, …, c_K), 0 ≤ cᵢ < i, belongs to one ranking: each
  cᵢ is rounded to the nearest allowed integer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.optimize import linear_sum_assignment

from psilearn._backend import row_blocks
from psilearn._linalg import Array
from psilearn._utils.samples import Index, Samples, take
from psilearn.decoding.candidates import CandidateSet
from psilearn.decoding.kemeny import best_kemeny
from psilearn.decoding.nearest import TopK
from psilearn.embedding import Embedding
from psilearn.kernels import Hamming, Kemeny, Kernel, Lehmer, RankingKernel
from psilearn.kernels.blocks import diagonal
from psilearn.rankings import all_rankings

LISTED = 8  # items up to which all rankings are listed where more than the nearest is wanted: 40,320


def best_hamming(W: Array) -> Index:
    """Return the ranks (q, K) that maximise Σᵢ w_{i,σᵢ} for weights W (q, K²): linear assignment, K³ a query."""
    K = round(np.sqrt(W.shape[1]))
    return np.array([linear_sum_assignment(weights, maximize=True)[1] + 1 for weights in W.reshape(-1, K, K)])


def best_lehmer(W: Array) -> Index:
    """Return the ranks (q, K) whose centred Lehmer code, scaled as in the kernel, is nearest to W (q, K).

    With i earlier items the code is 2c − i, c ∈ {0, …, i}, so c is (w√scale + i)/2, rounded; a half goes down.
    """
    q, K = W.shape
    code = W * np.sqrt(Lehmer()._scale(K))
    ranks = np.empty((q, K), dtype=np.intp)
    for i in range(K):
        c = np.clip(np.ceil((code[:, i] + i) / 2 - 0.5 - 1e-12 * K), 0, i).astype(np.intp)
        own = i - c + 1  # c of the i earlier items come after item i
        ranks[:, :i] += ranks[:, :i] >= own[:, None]
        ranks[:, i] = own
    return ranks


SOLVERS: dict[type[RankingKernel], Callable[[Array], Index]] = {
    Kemeny: best_kemeny,
    Hamming: best_hamming,
    Lehmer: best_lehmer,
}


EMBEDDING = ("__call__", "diag", "paired", "features", "_code", "_scale", "_width")  # what makes a kernel another one


def _solver(kernel: Kernel) -> Callable[[Array], Index] | None:
    """Return the solver of a kernel, or of the one that it is a subclass of with the same embedding."""
    for kind, solver in SOLVERS.items():
        if isinstance(kernel, kind) and all(getattr(type(kernel), m) is getattr(kind, m) for m in EMBEDDING):
            return solver
    return None


def has_all_rankings(kernel: Kernel) -> bool:
    """Return whether all rankings can be searched with this output kernel."""
    return _solver(kernel) is not None


@dataclass(frozen=True)
class AllRankings:
    """All rankings of the items that a model knows, as candidates that need not be listed."""

    kernel: RankingKernel
    lift: Array  # (D, p)  w(z) = lift @ z
    known: Samples  # some rankings, in the form in which predictions are wanted

    @classmethod
    def of(cls, embedding: Embedding, known: Samples) -> Self:
        """Take G* from an embedding; r·D·p flops, a block of landmarks at a time."""
        kernel: Any = embedding.kernel
        lift = np.zeros((kernel.n_features(known), embedding.n_components))
        for rows in row_blocks(len(embedding.basis), 12 * len(lift)):
            lift += kernel.features(take(embedding.landmarks, rows)).T @ embedding.basis[rows]
        return cls(kernel, lift, known)

    def turned(self, V: Array | None, p: int) -> Self:
        """Return the candidates of the embedding V[:, :p]ᵀG; of its first p coordinates without V."""
        return replace(self, lift=self.lift[:, :p] if V is None else self.lift @ V[:, :p])

    def nearest(self, Z: Array) -> TopK:
        """Return the nearest ranking of each query z(x), rows of Z (q, p), with its squared distance.

        ``candidates`` are the rankings found, in the form of the known ones. Memory: ``working_memory`` and the answer.
        """
        solve: Any = _solver(self.kernel)
        ranks = np.empty((len(Z), self.kernel.n_items(self.known)), dtype=np.intp)
        distances = np.empty(len(Z))
        for rows in row_blocks(len(Z), 40 * len(self.lift)):
            W = np.asarray(Z[rows], dtype=np.float64) @ self.lift.T  # (b, D)
            ranks[rows] = solve(W)
            W -= self.kernel.features(ranks[rows])
            distances[rows] = np.einsum("ij,ij->i", W, W)
        indices = np.arange(len(Z))[:, None]
        return TopK(indices, distances[:, None], self.kernel.in_form_of(self.known, ranks))

    def listed(self, embedding: Embedding) -> CandidateSet:
        """Return all rankings as a candidate set, up to 8 items."""
        K = self.kernel.n_items(self.known)
        if K > LISTED:
            raise ValueError(
                f"All rankings of {K} items are too many to list: only the nearest is found among them. Ask for k=1, "
                f"or give candidates; those that the model knows are model.candidates_."
            )
        rankings = self.kernel.in_form_of(self.known, all_rankings(K))
        return CandidateSet(rankings, embedding, diagonal(self.kernel, rankings, "output_kernel"))
