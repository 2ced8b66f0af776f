"""Kernel ridge regression in the span of landmarks (Nyström), in one pass over the inputs, for one λ or a path."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from scipy import sparse

from psilearn._backend import Compute, current_compute, row_blocks, stream, to_numpy
from psilearn._distributed import ChunkedRows, sum_chunks
from psilearn._linalg import (
    Array,
    GramSum,
    Moment,
    NotPositiveSemidefiniteError,
    block_copies,
    clip_negative,
    eigh,
    is_split_faster,
    matmul,
    shifted_factor,
    solve_both,
)
from psilearn._utils import validation
from psilearn._utils.progress import step, track
from psilearn._utils.samples import Samples, n_samples, take
from psilearn.kernels import Kernel
from psilearn.landmarks import Landmarks
from psilearn.landmarks.features import LandmarkFeatures, place_small
from psilearn.regression.kernel_regression import (
    MAX_REGRESSION_ROWS,
    ChunkedTargets,
    ComputedTargets,
    KernelRegression,
    Targets,
)


class NystromRidge:
    """Kernel ridge regression over the functions that q landmark inputs S span.

    ĥ(x) = Bᵀφ(x) with φ(x) = L⁻¹k_x(S, x) and LLᵀ = k_x(S, S), where B = (ΦᵀΦ + nλI)⁻¹ΦᵀV minimizes 1/n Σ|vᵢ − ĥ(xᵢ)|²
    + λ|ĥ|². With S = X this is exact kernel ridge regression. Working with φ instead of k_x(S, x) keeps the condition
    number of the system at 1 + |K_x|/nλ, as in the exact problem, instead of its square.

    Cost: n·q kernel values, 2n·q² + q³ flops (solution with L, Gram matrix, two Cholesky factors) and 2nqr for r
    targets. Memory: L and ΦᵀΦ, 2q² float64 numbers, as many float32 numbers if blocks are float32, 3qr for the targets,
    and blocks within ``working_memory``: nothing of size n·q.

    Parameters
    ----------
    kernel : Kernel
        The input kernel k_x, fitted if it takes a width from data.
    alpha : float
        The ridge parameter λ > 0.
    landmarks : Landmarks
        The number of landmarks and how they are chosen.
    compute : Compute, default=None
        Precision of the blocks, and device. By default as set by :func:`psilearn.computing`.
    validate : bool, default=True
        Whether the inputs are validated. Set to False for inputs that ``kernel.check`` has returned.

    See Also
    --------
    KernelRidge : Exact kernel ridge regression.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import Landmarks
    >>> from psilearn.kernels import Linear
    >>> from psilearn.regression import NystromRidge
    >>> ridge = NystromRidge(Linear(), 0.5, Landmarks(1)).fit(np.array([[1.0], [2.0]]))
    >>> ridge.regress(np.array([[1.0], [2.0]])).predict(np.array([[6.0]]))
    array([[5.]])
    """

    _placed: Samples | None = None  # the inputs as a tensor, if they were CSR rows and are on a GPU

    def __init__(
        self,
        kernel: Kernel,
        alpha: float,
        landmarks: Landmarks,
        compute: Compute | None = None,
        *,
        validate: bool = True,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.landmarks = landmarks
        self.compute = current_compute() if compute is None else compute
        self.validate = validate

    def fit(self, X: Samples) -> Self:
        """Choose the landmarks and factor k_x(S, S).

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The training inputs.

        Returns
        -------
        NystromRidge
            The object itself.

        See Also
        --------
        NystromRidge.regress : The second step, with targets.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import Landmarks
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import NystromRidge
        >>> NystromRidge(Linear(), 1.0, Landmarks(1)).fit(np.array([[1.0], [2.0]])).features_.rank
        1
        """
        self.X_fit_ = X
        self._placed = _place_rows(self.kernel, X, self.compute, self.validate)
        chosen = self.landmarks.choose(self.kernel, X, alpha=self.alpha, compute=self.compute)
        self.features_ = LandmarkFeatures.of(
            self.kernel, take(X, chosen), "input", self.compute, is_checked=not self.validate
        )
        return self

    def regress(self, V: Targets, with_moment: bool = True) -> KernelRegression:
        """Regress onto targets, in blocks of rows.

        Parameters
        ----------
        V : array of shape (n, r), or an object that returns rows on request
            The targets.
        with_moment : bool, default=True
            Whether the moment of the fitted values is needed.

        Returns
        -------
        KernelRegression
            The fitted function.

        See Also
        --------
        NystromRidge.fit : The first step, with inputs.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import Landmarks
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import NystromRidge
        >>> ridge = NystromRidge(Linear(), 1.0, Landmarks(2)).fit(np.eye(2))
        >>> ridge.regress(np.eye(2)).moment.to_matrix().round(4)
        array([[0.0556, 0.    ],
               [0.    , 0.0556]])
        """
        n, q, compute = n_samples(self.X_fit_), self.features_.rank, self.compute
        width = int(V.shape[1])
        single = 28 if is_split_faster((q, q), compute) else 16  # with a copy of the triangle while it is split
        compute.require_bytes(
            (single if compute.itemsize == 4 else 8) * q * q + 40 * q * width,
            f"Nyström regression with {q} landmarks onto {width} output coordinates",
            "Lower input_landmarks or output_landmarks.",
        )
        if isinstance(self.X_fit_, ChunkedRows):
            gram, cross, total = _sums_of_chunks(self.features_, self.X_fit_, V, compute)
        else:
            rows = self.X_fit_ if self._placed is None else self._placed
            is_checked = self._placed is not None or not self.validate
            gram, cross, total = _sums(self.features_, rows, V, compute, is_checked)
        trace = gram.trace()  # before the matrix is overwritten
        with step("ridge system"):
            factor = shifted_factor(gram.lower, n * self.alpha)
            captured = float(trace)  # without waiting: the device has factored the matrix
            D, B = self._solve(factor, cross)
        error = max(0.0, 1 - captured / total) if total else 0.0
        moment = Moment(((D, 1 / n), (B, -self.alpha))) if with_moment else None
        return KernelRegression(self.kernel, self.features_.landmarks, B, self.features_.triangle, moment, error)

    def _solve(self, R: Array | None, cross: Array) -> tuple[Array, Array]:
        """Solve with RRᵀ = ΦᵀΦ + nλI: D = R⁻¹ΦᵀV, B = R⁻ᵀD.

        The moment of the fitted values needs no second pass over the inputs: Σᵢ ĥ(xᵢ)ĥ(xᵢ)ᵀ = BᵀΦᵀΦB = DᵀD − nλBᵀB.
        """
        if not len(cross):
            return cross, cross
        if R is None:
            raise NotPositiveSemidefiniteError(
                f"alpha={self.alpha:g} is below the rounding errors of input_kernel = {self.kernel!r} over "
                f"{n_samples(self.X_fit_)} inputs: ΦᵀΦ + n·alpha·I has no Cholesky factor. Increase alpha, or use "
                f"dtype='float64'."
            )
        return solve_both(R, cross)


def _place_rows(kernel: Kernel, X: Samples, compute: Compute, validate: bool) -> Samples | None:
    """Return CSR rows as a tensor of a GPU if they are not large, so that blocks need not be moved; else None."""
    if not compute.on_gpu or not sparse.issparse(X) or not kernel.supports_torch:
        return None
    checked = kernel.check(X) if validate else X
    placed = place_small(kernel, checked, compute)
    return None if placed is checked else placed


def _sums(
    features: LandmarkFeatures, X: Samples, V: Targets, compute: Compute, is_checked: bool = False
) -> tuple[GramSum, Any, float]:
    """Return ΦᵀΦ, ΦᵀV and Σ k(x, x) over the rows of X and V."""
    q, width, kernel = features.rank, int(V.shape[1]), features.kernel
    gram, cross, total = GramSum(q, compute), compute.zeros((q, width)), 0.0
    features = features.to_device(compute)
    per_row = (block_copies(compute) * q + 2 * width) * compute.itemsize + compute.transfer_bytes(X)
    blocks = list(compute.iter_blocks(n_samples(X), per_row, MAX_REGRESSION_ROWS))
    features_of = partial(features.factor_and_lengths, compute=compute, is_checked=is_checked)  # (q, b), k(x, x)
    parts = row_blocks(X, track(blocks, "regression", len(blocks)))
    for rows, (phi, lengths) in stream(parts, features_of, compute, kernel.supports_torch):
        with step("Gram matrix of the features"):
            gram.add(phi)
        targets = V.factor(rows) if isinstance(V, ComputedTargets) else compute.asarray(V[rows], compute.dtype)
        with step("cross products with the targets"):
            cross += matmul(phi, targets)
        total += float(lengths.sum())
        del phi, targets
    return gram, cross, total


def _sums_of_chunks(
    features: LandmarkFeatures, X: ChunkedRows, V: Targets, compute: Compute
) -> tuple[GramSum, Any, float]:
    """Return the same sums, each chunk by the worker that has it."""
    if not isinstance(V, ChunkedTargets):
        raise TypeError("Inputs in chunks require targets in the same chunks: set output_landmarks.")
    common = features.to_numpy(), V.without_rows(), compute
    lower, cross, total = sum_chunks(_sums_of_chunk, X, V.chunks, common=common)
    gram = GramSum(features.rank, compute)
    gram.merge(GramSum.of(lower))
    return gram, compute.asarray(cross), total


def _sums_of_chunk(
    X: Samples, outputs: Samples, features: LandmarkFeatures, targets: ChunkedTargets, compute: Compute
) -> tuple[Array, Array, float]:
    with compute.active():
        gram, cross, total = _sums(features, X, targets.of(outputs), compute)
        return gram.to_numpy().lower, to_numpy(cross), total


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
