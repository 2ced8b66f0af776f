"""Algorithm 1 of the paper: OEL from the mixed Gram matrix of all n + m points.

It needs (n+m)² numbers and up to (n+m)³ flops, and uses neither distinct outputs nor coordinates: it is the reference
that the default algorithm is tested against.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from psilearn._linalg import Array, NotPositiveSemidefiniteError, ShiftedCholesky
from psilearn._utils.validation import check_array_of_numbers, check_count, check_fraction, check_positive


@dataclass(frozen=True)
class Algorithm1:
    """The result of Algorithm 1.

    Parameters
    ----------
    smoother : ndarray of shape (n, n)
        The matrix W K_x: ĥ(xᵢ) = Σₖ smoother[k, i] ψ(yₖ).
    beta : ndarray of shape (n + m, p)
        The scaled eigenvectors u_l / √μ_l.
    eigenvalues : ndarray of shape (p,)
        The eigenvalues μ_l of the mixed Gram matrix, descending.
    GY : ndarray of shape (n + m, p)
        The embedding of the n + m scaled points.
    supervised_scale : float
        The scale √(c/n) of the fitted values.
    unsupervised_scale : float
        The scale √((1−c)/m) of the unlabeled outputs.

    See Also
    --------
    algorithm_1 : Computes this result.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.embedding import algorithm_1
    >>> K = np.eye(2)
    >>> algorithm_1(K, K, K, K, alpha=0.5, n_components=1, supervision=0.5).GY.shape
    (4, 1)
    """

    smoother: Array
    beta: Array
    eigenvalues: Array
    GY: Array
    supervised_scale: float
    unsupervised_scale: float

    def embed_outputs(self, k_s: Array, k_u: Array) -> Array:
        """Compute the embedding g(y) = Gψ(y) of outputs.

        Parameters
        ----------
        k_s : ndarray of shape (q, n)
            The kernel of the outputs with the labeled outputs, k(y, Y).
        k_u : ndarray of shape (q, m)
            The kernel of the outputs with the unlabeled outputs, k(y, U).

        Returns
        -------
        ndarray of shape (q, p)
            The embedded outputs.

        See Also
        --------
        psilearn.OEL.transform_outputs : The same for the estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.embedding import algorithm_1
        >>> K = np.eye(2)
        >>> result = algorithm_1(K, K, K, K, alpha=0.5, n_components=1, supervision=0.5)
        >>> result.embed_outputs(K, K).shape
        (2, 1)
        """
        n = len(self.smoother)
        supervised = self.supervised_scale * (k_s @ self.smoother) @ self.beta[:n]
        return supervised + self.unsupervised_scale * k_u @ self.beta[n:]


def algorithm_1(
    K_x: Array, K_ss: Array, K_su: Array, K_uu: Array, alpha: float, n_components: int, supervision: float
) -> Algorithm1:
    """Learn the output embedding from Gram matrices, as in Algorithm 1 of the paper.

    Parameters
    ----------
    K_x : ndarray of shape (n, n)
        The input kernel on X.
    K_ss : ndarray of shape (n, n)
        The output kernel on the labeled outputs.
    K_su : ndarray of shape (n, m)
        The output kernel between labeled and unlabeled outputs.
    K_uu : ndarray of shape (m, m)
        The output kernel on the unlabeled outputs.
    alpha : float
        The ridge parameter λ > 0.
    n_components : int
        The dimension p, at most the rank of the mixed Gram matrix.
    supervision : float
        The weight c in [0, 1] of the fitted values.

    Returns
    -------
    Algorithm1
        The embedding.

    See Also
    --------
    psilearn.OEL : The same embedding from finite coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.embedding import algorithm_1
    >>> K = np.eye(2)
    >>> algorithm_1(K, K, K, K, alpha=0.5, n_components=1, supervision=0.5).eigenvalues.round(4)
    array([0.3125])
    """
    K_x, K_ss, K_su, K_uu = _check_grams(K_x, K_ss, K_su, K_uu)
    n, m = K_su.shape
    alpha, supervision = check_positive(alpha, "alpha"), check_fraction(supervision, "supervision")
    if check_count(n_components, "n_components") > n + m:
        raise ValueError(f"n_components={n_components} exceeds the order {n + m} of the mixed Gram matrix.")
    try:
        factor = ShiftedCholesky(K_x, n * alpha)
    except NotPositiveSemidefiniteError as error:
        raise ValueError(f"K_x + n·alpha·I must be positive definite: {error}") from error
    smoother = factor.solve(K_x)  # W K_x; W and K_x commute
    K_h = smoother.T @ K_ss @ smoother
    K_hy = smoother.T @ K_su
    a, b = np.sqrt(supervision / n), np.sqrt((1 - supervision) / m)
    K = np.block([[a * a * K_h, a * b * K_hy], [a * b * K_hy.T, b * b * K_uu]])  # (n+m, n+m)
    mu, U = eigh(K, subset_by_index=(n + m - n_components, n + m - 1))
    mu, U = mu[::-1], U[:, ::-1]
    if mu[-1] <= 0:
        raise ValueError(
            f"n_components={n_components} exceeds the rank {int(np.sum(mu > 0))} of the mixed Gram matrix."
        )
    beta = U / np.sqrt(mu)
    return Algorithm1(smoother, beta, mu, K @ beta, float(a), float(b))


def _check_grams(*matrices: Array) -> list[Array]:
    """Return K_x, K_ss, K_su and K_uu as arrays of matching shapes (n, n), (n, n), (n, m) and (m, m)."""
    names = ("K_x", "K_ss", "K_su", "K_uu")
    checked = [check_array_of_numbers(K, name, ndim=2) for K, name in zip(matrices, names, strict=True)]
    n, m = checked[2].shape
    for K, name, shape in zip(checked, names, ((n, n), (n, n), (n, m), (m, m)), strict=True):
        if K.shape != shape:
            raise ValueError(f"{name} must have the shape {shape} for K_su of shape {(n, m)}; got {K.shape}.")
    return checked
