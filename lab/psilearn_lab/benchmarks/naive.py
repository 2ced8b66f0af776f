"""IOKR and OEL as typical research code: dense float64, repeated outputs kept, explicit inverses, all scores.

The mathematics is that of psilearn, with the correct distance (k(y,y) included), so the predictions are the same; only
the cost differs. Outputs are 0/1 rows with the Dice kernel, inputs have a Gaussian kernel.
"""

import numpy as np

from psilearn._linalg import Array


def gaussian(A: Array, B: Array, gamma: float) -> Array:
    """Return exp(−γ|a − b|²) of dense rows."""
    squared = (A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T
    K: Array = np.exp(-gamma * squared)
    return K


def dice(A: Array, B: Array) -> Array:
    """Return 2|A∩B| / (|A| + |B|) of dense 0/1 rows, none of which is empty."""
    K: Array = 2 * (A @ B.T) / (A.sum(1)[:, None] + B.sum(1))
    return K


class NaiveIOKR:
    """IOKR with weights K_test,train (K_x + nλI)⁻¹ on all n training outputs."""

    def __init__(self, gamma: float, alpha: float) -> None:
        self.gamma = gamma
        self.alpha = alpha

    def fit(self, X: Array, Y: Array) -> "NaiveIOKR":
        """Invert K_x + nλI and form K_y."""
        self.X, self.Y = X, Y
        K_x = gaussian(X, X, self.gamma)
        self.W = np.linalg.inv(K_x + len(X) * self.alpha * np.eye(len(X)))
        self.K_y = dice(Y, Y)
        return self

    def predict(self, X: Array) -> Array:
        """Return the training output that minimizes k(y,y) − 2⟨ĥ(x), ψ(y)⟩."""
        scores = gaussian(X, self.X, self.gamma) @ self.W @ self.K_y  # (tests, n)
        nearest = np.argmin(np.diag(self.K_y) - 2 * scores, axis=1)
        predicted: Array = self.Y[nearest]
        return predicted


class NaiveOEL0:
    """Algorithm 1 with c = 1: the p leading eigenvectors of the (n, n) Gram matrix of the fitted values."""

    def __init__(self, gamma: float, alpha: float, n_components: int) -> None:
        self.gamma = gamma
        self.alpha = alpha
        self.n_components = n_components

    def fit(self, X: Array, Y: Array) -> "NaiveOEL0":
        """Compute all eigenvectors of K_h = (W K_x)ᵀ K_y (W K_x) / n and keep the leading ones."""
        self.X, self.Y = X, Y
        n = len(X)
        K_x = gaussian(X, X, self.gamma)
        self.W = np.linalg.inv(K_x + n * self.alpha * np.eye(n))
        smoother = self.W @ K_x
        K_y = dice(Y, Y)
        mu, U = np.linalg.eigh(smoother.T @ K_y @ smoother / n)
        mu, U = mu[::-1][: self.n_components], U[:, ::-1][:, : self.n_components]
        self.G = K_y @ smoother @ (U / np.sqrt(mu * n))  # (n, p)  g(yᵢ)
        self.squared_norms = np.diag(K_y)
        return self

    def predict(self, X: Array) -> Array:
        """Return the training output that minimizes k(y,y) − 2⟨z(x), g(y)⟩."""
        Z = gaussian(X, self.X, self.gamma) @ self.W @ self.G  # (tests, p)
        nearest = np.argmin(self.squared_norms - 2 * Z @ self.G.T, axis=1)
        predicted: Array = self.Y[nearest]
        return predicted
