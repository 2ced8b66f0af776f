"""Protocols of regressions, and the fitted function of a kernel regression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from psilearn._backend import Compute, current_compute, like_input, row_blocks, stream, to_numpy
from psilearn._distributed import ChunkedRows
from psilearn._linalg import Array, Moment, solve_transposed
from psilearn._utils.progress import track
from psilearn._utils.samples import Samples, n_samples
from psilearn.kernels import Kernel

MAX_REGRESSION_ROWS = 4096  # inputs that are processed at a time


class Targets(Protocol):
    """Rows of target coordinates: an array, or an object that computes rows on request."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, r)."""

    def __getitem__(self, rows: slice) -> Any:
        """Return the rows as an array."""


@runtime_checkable
class ComputedTargets(Protocol):
    """Targets that are computed on request, where they are used."""

    def factor(self, rows: slice) -> Any:
        """Return the rows on the device as a factor of products: an array, a tensor or a split matrix."""


@runtime_checkable
class ChunkedTargets(Protocol):
    """Targets that are functions of outputs in chunks."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, r)."""

    @property
    def chunks(self) -> ChunkedRows:
        """The outputs."""

    def without_rows(self) -> Self:
        """Return the function alone, as an input of tasks."""

    def of(self, outputs: Samples) -> Targets:
        """Return the targets of the outputs of one chunk."""


class Regressor(Protocol):
    """A regression method that is fitted in two steps: first to the inputs, then to the targets."""

    def fit(self, X: Samples) -> Self:
        """Store the inputs, and compute what does not depend on targets."""

    def regress(self, V: Targets, with_moment: bool = True) -> Regression:
        """Regress onto targets V (n, r), with the moment of the fitted values if requested."""


class Regression(Protocol):
    """A fitted function x ↦ ĥ(x) ∈ Rʳ."""

    @property
    def moment(self) -> Moment | None:
        """1/n Σᵢ ĥ(xᵢ)ĥ(xᵢ)ᵀ over the training inputs, (r, r); None if it was not requested."""

    @property
    def approximation_error(self) -> float:
        """The share of Σ k_x(x, x) that landmarks do not span; 0 without landmarks."""

    def rotate(self, V: Array | None, compute: Compute) -> Self:
        """Return x ↦ ĥ(x)V for directions V (r, p), or for V = I if V is None, with NumPy arrays and no moment."""

    def compact(self) -> Self:
        """Return the same function and moment in as few numbers as possible, with NumPy arrays."""

    def check(self, X: Samples) -> Samples:
        """Validate inputs."""

    def predict_blocks(self, X: Samples, compute: Compute) -> Iterator[tuple[slice, Array]]:
        """Yield consecutive rows of validated inputs and their ĥ(x), (b, r), in blocks that fit into memory."""


@dataclass(frozen=True)
class KernelRegression:
    """The fitted function x ↦ k_x(x, anchors) L⁻ᵀ coefficients.

    Parameters
    ----------
    kernel : Kernel
        The input kernel k_x, fitted.
    anchors : array, CSR matrix or sequence of a inputs
        The training inputs, or the landmarks among them.
    coefficients : ndarray of shape (a, r)
        The coefficients.
    triangle : ndarray of shape (a, a), default=None
        The lower triangular matrix L. None stands for the identity.
    moment : Moment, default=None
        The moment 1/n Σᵢ ĥ(xᵢ)ĥ(xᵢ)ᵀ of the fitted values, of size r, if it was computed.
    approximation_error : float, default=0.0
        The share of Σ k_x(x, x) over the training inputs that the anchors do not span.

    See Also
    --------
    KernelRidge : Exact kernel ridge regression.
    NystromRidge : Kernel ridge regression in the span of landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.kernels import Linear
    >>> from psilearn.regression import KernelRegression
    >>> KernelRegression(Linear(), np.eye(2), np.array([[1.0], [2.0]])).predict(np.array([[1.0, 1.0]]))
    array([[3.]])
    """

    kernel: Kernel
    anchors: Samples
    coefficients: Array
    triangle: Array | None = None
    moment: Moment | None = None
    approximation_error: float = 0.0

    def rotate(self, V: Array | None, compute: Compute) -> KernelRegression:
        """Return the function x ↦ ĥ(x)V.

        Parameters
        ----------
        V : array of shape (r, p) or None
            Directions. None stands for the identity.
        compute : Compute
            Precision of the coefficients, and device.

        Returns
        -------
        KernelRegression
            The function with NumPy arrays, without triangle and moment.

        See Also
        --------
        KernelRegression.predict : Evaluate the function.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn._backend import NUMPY
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import KernelRegression
        >>> regression = KernelRegression(Linear(), np.eye(2), np.eye(2))
        >>> regression.rotate(np.array([[1.0], [1.0]]), NUMPY).coefficients
        array([[1.],
               [1.]])
        """
        coefficients = to_numpy(compute.asarray(self._dual_coefficients(V, compute), compute.dtype))
        return KernelRegression(self.kernel, self.anchors, coefficients, None, None, self.approximation_error)

    def compact(self) -> KernelRegression:
        """Return the same function in a·r + r² numbers, without triangle and fitted values; a²r flops.

        Returns
        -------
        KernelRegression
            The function with NumPy arrays and its moment as a matrix.

        See Also
        --------
        KernelRegression.rotate : Keep some directions only.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import KernelRegression
        >>> KernelRegression(Linear(), np.eye(2), np.eye(2), triangle=2 * np.eye(2)).compact().coefficients
        array([[0.5, 0. ],
               [0. , 0.5]])
        """
        return replace(
            self,
            coefficients=to_numpy(self._dual_coefficients(None, None)),
            triangle=None,
            moment=None if self.moment is None else self.moment.as_matrix().to_numpy(),
        )

    def check(self, X: Samples) -> Samples:
        """Validate inputs.

        Parameters
        ----------
        X : array, CSR matrix or sequence of inputs
            The inputs.

        Returns
        -------
        array, CSR matrix or sequence
            The inputs as the kernel takes them.

        See Also
        --------
        psilearn.kernels.Kernel.check : The validation of the kernel.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import KernelRegression
        >>> KernelRegression(Linear(), np.eye(2), np.eye(2)).check([[1, 2]])
        array([[1, 2]])
        """
        return self.kernel.check(X, "X", allow_1d=False)

    def predict_blocks(self, X: Samples, compute: Compute) -> Iterator[tuple[slice, Array]]:
        """Evaluate the function block by block; the kernel values are never stored as a whole.

        Parameters
        ----------
        X : array, CSR matrix or sequence of inputs
            Validated inputs.
        compute : Compute
            Precision and device.

        Returns
        -------
        iterator of (slice, array)
            Consecutive rows and the values ĥ(x) of these rows, shape (b, r), on the device.

        See Also
        --------
        KernelRegression.predict : All values as one array.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn._backend import NUMPY
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import KernelRegression
        >>> list(KernelRegression(Linear(), np.eye(2), np.eye(2)).predict_blocks(np.eye(2)[:1], NUMPY))
        [(slice(0, 1, None), array([[1., 0.]]))]
        """
        anchors = self.kernel.to_device(self.anchors, compute)
        coefficients = compute.asarray(self._dual_coefficients(None, compute), compute.dtype)

        def evaluate(block: Samples) -> Array:
            if not len(coefficients):  # every landmark has length zero
                return compute.zeros((n_samples(block), coefficients.shape[1]))
            return self.kernel(block, anchors, compute=compute) @ coefficients

        per_row = 3 * compute.itemsize * len(coefficients) + compute.transfer_bytes(X)
        blocks = list(compute.iter_blocks(n_samples(X), per_row))
        parts = row_blocks(X, track(blocks, "embedding of inputs", len(blocks)))
        return stream(parts, evaluate, compute, self.kernel.supports_torch)

    def predict(self, X: Samples, compute: Compute | None = None) -> Array:
        """Evaluate the function.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        compute : Compute, default=None
            Precision and device. By default float64 with NumPy, on the device of tensors, or as set by
            :func:`psilearn.computing`.

        Returns
        -------
        array of shape (n, r)
            The values ĥ(x), a tensor if X is one.

        See Also
        --------
        KernelRegression.predict_blocks : The same block by block.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> from psilearn.regression import KernelRegression
        >>> KernelRegression(Linear(), np.eye(2), np.eye(2)).predict(np.eye(2)[:1])
        array([[1., 0.]])
        """
        compute = current_compute(X) if compute is None else compute
        values = [to_numpy(block) for _, block in self.predict_blocks(self.check(X), compute)]
        return like_input(X, np.concatenate(values))

    def _dual_coefficients(self, V: Array | None, compute: Compute | None) -> Array:
        """Return L⁻ᵀ · coefficients · V, (a, p)."""
        coefficients = self.coefficients if compute is None else compute.asarray(self.coefficients)
        rotated = coefficients if V is None else coefficients @ V
        return rotated if self.triangle is None else solve_transposed(self.triangle, rotated)
