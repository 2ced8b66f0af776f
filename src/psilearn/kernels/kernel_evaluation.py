"""The evaluation of kernels: validation of objects, and the private methods that a kernel implements."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from psilearn._backend import NUMPY, Compute, device_of, is_tensor, iter_slices, tensor_to_numpy, to_device, to_numpy
from psilearn._distributed import ChunkedRows
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import (
    Samples,
    check_csr,
    check_not_empty,
    check_not_masked,
    describe_shape,
    n_columns,
    n_samples,
    take,
)
from psilearn.kernels.device_rows import dense_on_gpu
from psilearn.kernels.gram_matrix import RANGES, check_block, check_range
from psilearn.kernels.inner_products import fill_diagonal, to_gaussians, to_squared_distances

PAIRED_BLOCK = 64  # rows of the blocks whose diagonals are k(aᵢ, bᵢ)


class KernelEvaluation(BaseEstimator):
    """Validated objects, and blocks and diagonals of them from ``_block`` and ``_diag``."""

    supports_torch: bool = False
    _has_pre_image: bool = False  # whether _pre_image is implemented
    _returns_new_block = False  # whether each call of _block returns a new array, which may be overwritten
    _is_always_finite = False  # whether no value of _block can overflow, so that blocks are not checked

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = True) -> Samples:
        """Validate a collection of objects.

        Values are not changed: predictions are taken from what this method returns.

        Parameters
        ----------
        A : array, CSR matrix or sequence of objects
            The objects.
        name : str, default="A"
            What errors call the collection.
        allow_1d : bool, default=True
            Whether kernels on rows accept a 1-D array, as rows of one number.

        Returns
        -------
        array, CSR matrix or sequence
            The collection in a form that the kernel can work on: sparse matrices as CSR, data frames as arrays, tensors
            as arrays unless the kernel supports torch.

        See Also
        --------
        Kernel.check_same_kind : Validate that two collections can be compared.

        Examples
        --------
        >>> from psilearn.kernels import Linear
        >>> Linear().check([[1.0, 2.0]], "X")
        array([[1., 2.]])
        """
        allow_1d = validation.check_bool(allow_1d, "allow_1d")
        if isinstance(A, ChunkedRows):
            return A.map(partial(_check_chunk, kernel=self, name=name, allow_1d=allow_1d))
        check_not_masked(A, name)
        return self._check(A if self.supports_torch else tensor_to_numpy(A), name, allow_1d)

    def check_same_kind(self, A: Samples, name: str, B: Samples, other: str) -> None:
        """Raise if two validated collections cannot be compared, for example because their widths differ.

        Parameters
        ----------
        A : array, CSR matrix or sequence of objects
            A validated collection.
        name : str
            What errors call A.
        B : array, CSR matrix or sequence of objects
            Another validated collection.
        other : str
            What errors call B.

        See Also
        --------
        Kernel.check : Validate one collection.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> Linear().check_same_kind(np.ones((2, 3)), "Y", np.ones((5, 3)), "the candidates")
        """
        self._check_same_kind(A, name, B, other)

    def to_device(self, A: Samples, compute: Compute) -> Samples:
        """Return rows on the device if the kernel computes there, so that many blocks move them once.

        CSR rows become dense on a GPU if they take at most 1 GiB and more than one entry in 200 is not zero.

        Parameters
        ----------
        A : array, CSR matrix or sequence of objects
            The objects.
        compute : Compute
            Precision and device.

        Returns
        -------
        array, CSR matrix or sequence
            A tensor for rows of numbers, and any other collection unchanged.

        See Also
        --------
        psilearn.computing : Set the device of public calls.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn._backend import NUMPY
        >>> from psilearn.kernels import Linear
        >>> Linear().to_device(np.ones((1, 2)), NUMPY)
        array([[1., 1.]])
        """
        if compute.device is None or not self.supports_torch:
            return A
        if sparse.issparse(A):
            return dense_on_gpu(A, compute) if compute.on_gpu else A
        if not isinstance(A, np.ndarray):
            return A
        return to_device(A, compute.device) if A.dtype.kind in "bifu" else A

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        raise TypeError(f"{type(self).__name__} must implement _block(A, B, compute), which returns k(A, B).")

    def _diag(self, A: Any) -> Any:
        raise TypeError(f"{type(self).__name__} must implement _diag(A), which returns k(a, a) for each object.")

    def _pre_image(self, A: Any, weights: Array) -> Array:
        """Return the objects whose features are nearest to the combinations Σ_l w_l ψ(a_l), for weights (q, r)."""
        raise TypeError(f"{type(self).__name__} has no pre-images in closed form.")

    def _paired(self, A: Any, B: Any) -> Any:
        """Return k(aᵢ, bᵢ) from the diagonals of small blocks."""
        parts = [
            np.diagonal(to_numpy(self._block(take(A, step), take(B, step), NUMPY)))
            for step in iter_slices(n_samples(A), PAIRED_BLOCK)
        ]
        return np.concatenate(parts)

    def _paired_squared_distances(self, A: Any, B: Any) -> Any:
        """Return |ψ(aᵢ) − ψ(bᵢ)|² of prepared collections."""
        return np.maximum(to_numpy(self._diag(A)) + to_numpy(self._diag(B)) - 2 * to_numpy(self._paired(A, B)), 0)

    def _prepare_pairs(self, A: Samples, B: Samples) -> tuple[Any, Any]:
        """Return two collections of the same length, validated and as :meth:`_paired` takes them."""
        check_not_empty(A, "A")
        check_not_empty(B, "B")
        if n_samples(A) != n_samples(B):
            raise ValueError(
                f"Pairs require collections of the same length; A has {n_samples(A)} objects, B has {n_samples(B)}."
            )
        compute = Compute(device=device_of(A)) if is_tensor(A) and is_tensor(B) else NUMPY
        left, right = self._prepare(A, "A", compute), self._prepare(B, "B", compute)
        self._check_pair(left, right)
        return left, right

    def _checked_pairs(self, values: Any, n: int) -> Array:
        """Return one finite number per pair in float64."""
        values = _to_float64(values, self)
        if values.shape != (n,) or not np.isfinite(values).all():
            raise ValueError(
                f"{self!r} must return one finite number per pair; got shape {values.shape} for {n} pairs."
            )
        return values

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        """Accept any sequence or array with at least one object."""
        check_not_empty(A, name)
        check_csr(A, name)
        if sparse.issparse(A):
            return A.tocsr()
        return A.to_numpy() if hasattr(A, "iloc") else A

    def _check_same_kind(self, A: Samples, name: str, B: Samples, other: str) -> None:
        if n_columns(A) != n_columns(B):
            raise ValueError(
                f"{name} must have the same width as {other}: {describe_shape(A)} instead of {describe_shape(B)}."
            )

    def _check_pair(self, A: Any, B: Any) -> None:
        """Raise if the prepared rows and columns of a block cannot be compared."""

    def _prepare(self, A: Samples, name: str, compute: Compute) -> Any:
        """Return a collection, validated and as :meth:`_block` takes it."""
        return self._place(self.check(A, name), compute)

    def _place(self, A: Samples, compute: Compute) -> Any:
        """Return a validated collection as :meth:`_block` takes it."""
        return A

    def _checked_diag(self, A: Samples) -> Array:
        """Return k(a, a) of a validated collection in float64, checked."""
        compute = NUMPY if isinstance(A, np.ndarray) or not is_tensor(A) else Compute(device=A.device)
        with np.errstate(over="ignore", invalid="ignore"):  # values that overflow are reported below
            values = _to_float64(self._diag(self._place(A, compute)), self)
        if values.shape != (n_samples(A),) or not np.isfinite(values.sum()):
            raise ValueError(
                f"{self!r}: diag must return one finite number per object; got shape {values.shape} with "
                f"{int(np.sum(~np.isfinite(values)))} values that are not finite, for {describe_shape(A)}. "
                f"If the data are large, divide them by a constant."
            )
        return values

    def _check_lengths(self, A: Samples, diagonal: Array) -> None:
        """Raise if k(a, a) of a validated collection is 0 for all objects because it is too small for float64."""
        if diagonal.max() == 0 and self._underflows(A):
            raise ValueError(
                f"{self!r}: the data are so small that all values of the kernel are below the range of float64. "
                f"Rescale the data by a constant."
            )

    def _underflows(self, A: Samples) -> bool:
        """Return whether k(a, a) = 0 of all objects of a validated collection can only be a result of underflow."""
        return False

    def _evaluate(self, left: Any, right: Any, compute: Compute, row: int = 0, column: int = 0) -> Array:
        """Return the block of prepared collections, checked, in the requested precision and as a new array."""
        with np.errstate(over="ignore", invalid="ignore"):  # values that overflow are reported below
            K: Any = self._block(left, right, compute)
            if self._returns_new_block:
                K = compute.asarray(K, compute.dtype)
            elif is_tensor(K):
                K = compute.asarray(K.detach().clone(), compute.dtype)
            else:
                K = compute.asarray(_new_array(K, compute.dtype, self))
            if self._is_always_finite:
                return K
            total = check_block(K, (n_samples(left), n_samples(right)), self, row, column)
        if abs(total) < RANGES[compute.itemsize][0]:
            lengths = (to_numpy(self._diag(part)) for part in ((left,) if right is left else (left, right)))
            check_range(max(float(np.max(part)) for part in lengths), compute.dtype, self)
        return K

    def _squared_distances(self, left: Any, right: Any, compute: Compute) -> Array:
        """Return |ψ(a) − ψ(b)|² of prepared collections."""
        distances = to_squared_distances(*self._distance_parts(left, right, compute))
        if right is left:
            fill_diagonal(distances, 0)
        return distances

    def _gaussians(self, left: Any, right: Any, gamma: float, compute: Compute) -> Array:
        """Return exp(−γ|ψ(a) − ψ(b)|²) of prepared collections as a new block."""
        return to_gaussians(*self._distance_parts(left, right, compute), gamma)

    def _distance_parts(self, left: Any, right: Any, compute: Compute) -> tuple[Array, Any, Any]:
        """Return k(a, b) as a block that may be overwritten, k(a, a) and k(b, b), for prepared collections."""
        diagonal = _to_float64(self._diag(left), self)
        other = diagonal if right is left else _to_float64(self._diag(right), self)
        return self._evaluate(left, right, compute), diagonal, other


def _to_float64(values: Any, kernel: KernelEvaluation) -> Array:
    """Return numbers that a kernel returned as a float64 array, without a copy where possible."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        return values
    return _new_array(to_numpy(values), np.float64, kernel)


def _new_array(values: Any, dtype: Any, kernel: KernelEvaluation) -> Any:
    """Return numbers that a kernel returned as a new array; an error names the kernel."""
    try:
        return np.array(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{kernel!r} must return numbers; got {type(values).__name__}: {error}") from error


def _check_chunk(chunk: Samples, number: int, kernel: KernelEvaluation, name: str, allow_1d: bool) -> Samples:
    """Validate one chunk of a chunked collection, in the task that uses it."""
    return kernel.check(chunk, f"chunk {number} of {name}", allow_1d=allow_1d)
