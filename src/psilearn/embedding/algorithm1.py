"""Algorithm 1 of the paper, to the letter: OEL from the mixed Gram matrix of all n + m points.

It needs (n+m)² numbers and up to (n+m)³ flops, and knows nothing of distinct outputs or coordinates: the reference
that the default form is tested against.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from psilearn._linalg import Array, ShiftedCholesky


@dataclass(frozen=True)
class Algorithm1:
    """What the training algorithm returns, and how it is used."""

    smoother: Array  # (n, n)  W K_x: ĥ(xᵢ) = Σₖ smoother[k, i] ψ(yₖ)
    beta: Array  # (n+m, p)  u_l / √μ_l
    eigenvalues: Array  # (p,)  μ_l
    GY: Array  # (n+m, p)  the embedding of the n + m scaled points
    supervised_scale: float  # √(c/n)
    unsupervised_scale: float  # √((1−c)/m)

    def embed_outputs(self, k_s: Array, k_u: Array) -> Array:
        """Return g(y) = Gψ(y), (q, p), from k(y, Y) (q, n) and k(y, U) (q, m)."""
        n = len(self.smoother)
        supervised = self.supervised_scale * (k_s @ self.smoother) @ self.beta[:n]
        return supervised + self.unsupervised_scale * k_u @ self.beta[n:]


def algorithm_1(
    K_x: Array, K_ss: Array, K_su: Array, K_uu: Array, alpha: float, n_components: int, supervision: float
) -> Algorithm1:
    """Learn the output embedding from Gram matrices.

    Parameters
    ----------
    K_x : (n, n), K_ss : (n, n), K_su : (n, m), K_uu : (m, m)
        the input kernel on X; the output kernel on labeled (s) and unlabeled (u) outputs.
    alpha : float
        λ > 0.
    n_components : int
        p, at most the rank of the mixed Gram matrix.
    supervision : float
        c in [0, 1].
    """
    n, m = K_su.shape
    smoother = ShiftedCholesky(K_x, n * alpha).solve(K_x)  # W K_x; W and K_x commute
    K_h = smoother.T @ K_ss @ smoother
    K_hy = smoother.T @ K_su
    a, b = np.sqrt(supervision / n), np.sqrt((1 - supervision) / m)
    K = np.block([[a * a * K_h, a * b * K_hy], [a * b * K_hy.T, b * b * K_uu]])  # (n+m, n+m)
    mu, U = eigh(K, subset_by_index=(n + m - n_components, n + m - 1))
    mu, U = mu[::-1], U[:, ::-1]
    beta = U / np.sqrt(mu)
    return Algorithm1(smoother, beta, mu, K @ beta, float(a), float(b))
