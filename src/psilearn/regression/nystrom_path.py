"""Kernel ridge regression in the span of landmarks for a whole path of λ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from psilearn._backend import Compute, current_compute, row_blocks, stream
from psilearn._linalg import Array, GramSum, clip_negative, eigh
from psilearn._utils import validation
from psilearn._utils.progress import track
from psilearn._utils.samples import Samples, n_samples, take
from psilearn.kernels import Kernel
from psilearn.landmarks import Landmarks
from psilearn.landmarks.features import LandmarkFeatures
from psilearn.regression.kernel_regression import MAX_REGRESSION_ROWS, Targets


class NystromPath:
    """Kernel ridge regression over the functions that q landmarks span, for every λ at once.

    With the features φ(x) = L⁻¹k_x(S, x) of :class:`NystromRidge` and one decomposition ΦᵀΦ = U diag(s) Uᵀ of order q,
    ĥ(x) = φ(x)ᵀU diag(1/(s + nλ)) B for B = UᵀΦᵀV, and 1/n Σ ĥĥᵀ = Bᵀ diag(s/(s + nλ)²/n) B. Predictions are those of
    NystromRidge with each λ.

    Cost: n·q kernel values and 2n·q² + 2nqr flops for r targets, once for all λ, and 9q³. Memory: 3q² + 2qr numbers and
    blocks within ``working_memory``.

    Parameters
    ----------
    kernel : Kernel
        The input kernel k_x, fitted if it takes a width from data.
    landmarks : Landmarks
        The number of landmarks and how they are chosen.
    alpha : float, default=1.0
        The ridge parameter of leverage scores, if these choose the landmarks.
    compute : Compute, default=None
        The device. The regression is always float64. By default as set by :func:`psilearn.computing`.

    Attributes
    ----------
    spectrum_ : array of shape (q,)
        The eigenvalues s, ascending, at least 0.
    vectors_ : array of shape (q, q)
        The eigenvectors U, one per column.
    targets_ : list of arrays of shape (q, r)
        B for each of the targets.

    See Also
    --------
    NystromRidge : The same for one λ.
    RidgePath : The same without landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.kernels import Linear
    >>> from psilearn.landmarks import Landmarks
    >>> from psilearn.regression import NystromPath
    >>> path = NystromPath(Linear(), Landmarks(2)).fit(np.eye(2), [np.eye(2)])
    >>> path.rotated(np.eye(2)) @ (path.inverse(0.5)[:, None] * path.targets_[0])
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    def __init__(
        self, kernel: Kernel, landmarks: Landmarks, alpha: float = 1.0, compute: Compute | None = None
    ) -> None:
        self.kernel = kernel
        self.landmarks = landmarks
        self.alpha = alpha
        self.compute = (current_compute() if compute is None else compute).with_dtype(np.float64)

    def fit(self, X: Samples, targets: Sequence[Targets]) -> Self:
        """Choose the landmarks, and decompose ΦᵀΦ in one pass over the inputs and all targets.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The training inputs.
        targets : sequence of arrays of shape (n, r), or of objects that return rows on request
            The targets V of each regression.

        Returns
        -------
        NystromPath
            The object itself.

        See Also
        --------
        NystromPath.rotated : What new inputs contribute to predictions.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.landmarks import Landmarks
        >>> from psilearn.regression import NystromPath
        >>> NystromPath(Linear(), Landmarks(1)).fit(np.array([[1.0], [2.0]]), []).spectrum_
        array([5.])
        """
        chosen = self.landmarks.choose(self.kernel, X, alpha=self.alpha, compute=self.compute)
        self.features_ = LandmarkFeatures.of(self.kernel, take(X, chosen), "input", self.compute)
        self.n_ = n_samples(X)
        q, compute = self.features_.rank, self.compute
        width = sum(V.shape[1] for V in targets)
        compute.require_bytes(
            8 * (3 * q * q + 2 * q * width),
            f"a path with {q} input landmarks onto {width} output coordinates",
            "Lower input_landmarks or output_landmarks.",
        )
        gram, crosses = GramSum(q, compute), [compute.zeros((q, V.shape[1])) for V in targets]
        for rows, phi in self._feature_blocks(X, width):
            gram.add(phi)
            for cross, V in zip(crosses, targets, strict=True):
                cross += phi @ compute.asarray(V[rows], compute.dtype)
            del phi  # before the next block is computed
        spectrum, self.vectors_ = eigh(gram.symmetric(), overwrite=True)
        self.spectrum_ = clip_negative(spectrum)
        self.targets_ = [self.vectors_.T @ cross for cross in crosses]
        return self

    def _feature_blocks(self, X: Samples, width: int) -> Any:
        """Yield consecutive rows and φ(x) as columns, (q, b)."""
        features, compute = self.features_.to_device(self.compute), self.compute
        per_row = (3 * features.rank + 2 * width) * compute.itemsize + compute.transfer_bytes(X)
        blocks = list(compute.iter_blocks(n_samples(X), per_row, MAX_REGRESSION_ROWS))
        parts = row_blocks(X, track(blocks, "regression", len(blocks)))
        return stream(parts, lambda part: features.columns(part, compute), compute, self.kernel.supports_torch)

    def rotated(self, X: Samples) -> Array:
        """Return φ(x)ᵀU; multiplied with ``inverse(alpha)`` and ``targets_`` it gives the predictions.

        Parameters
        ----------
        X : array, CSR matrix or sequence of m inputs
            The inputs.

        Returns
        -------
        array of shape (m, q)
            The rotated features.

        See Also
        --------
        NystromPath.inverse : The factor that depends on λ.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.landmarks import Landmarks
        >>> from psilearn.regression import NystromPath
        >>> abs(NystromPath(Linear(), Landmarks(1)).fit(np.array([[2.0]]), []).rotated([[3.0]]))
        array([[3.]])
        """
        rotated = self.compute.zeros((n_samples(X), self.features_.rank))
        for rows, phi in self._feature_blocks(X, 0):
            rotated[rows] = phi.T @ self.vectors_
            del phi  # before the next block is computed
        return rotated

    def inverse(self, alpha: float) -> Array:
        """Return the eigenvalues 1/(s + nλ) of (ΦᵀΦ + nλI)⁻¹.

        Parameters
        ----------
        alpha : float
            The ridge parameter λ > 0.

        Returns
        -------
        array of shape (q,)
            One value per eigenvector.

        See Also
        --------
        NystromPath.moment_weights : The weights of the moment of the fitted values.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.landmarks import Landmarks
        >>> from psilearn.regression import NystromPath
        >>> NystromPath(Linear(), Landmarks(2)).fit(np.eye(2), []).inverse(0.5)
        array([0.5, 0.5])
        """
        return 1 / (self.spectrum_ + self.n_ * validation.check_regularization(alpha, "alpha"))

    def moment_weights(self, alpha: float) -> Array:
        """Return the weights of the moment of the fitted values, 1/n Σ ĥ(xᵢ)ĥ(xᵢ)ᵀ = Bᵀ diag(weights) B.

        Parameters
        ----------
        alpha : float
            The ridge parameter λ > 0.

        Returns
        -------
        array of shape (q,)
            The weights s/(s + nλ)²/n.

        See Also
        --------
        NystromPath.inverse : The eigenvalues of the inverse.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.landmarks import Landmarks
        >>> from psilearn.regression import NystromPath
        >>> NystromPath(Linear(), Landmarks(2)).fit(np.eye(2), []).moment_weights(0.5)
        array([0.125, 0.125])
        """
        return self.spectrum_ * self.inverse(alpha) ** 2 / self.n_
