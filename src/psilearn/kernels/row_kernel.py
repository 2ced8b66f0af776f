"""Kernels on rows of numbers: validation, and rows as the device computes with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import assert_all_finite, check_array

from psilearn._backend import Compute, array_namespace, is_tensor, tensor_to_numpy
from psilearn._utils.samples import Samples, check_csr, check_not_empty, check_not_masked, check_real
from psilearn.kernels.device_rows import rows_on_device
from psilearn.kernels.kernel import Kernel

MAX_NUMBER = 1e100  # the largest absolute value of numbers whose squares are summed
CSR_TYPES = (sparse.csr_matrix, sparse.csr_array)


class RowKernel(Kernel):
    """A kernel on rows of numbers: dense arrays, CSR matrices, and 1-D arrays as rows of one number.

    A subclass implements ``_block`` and ``_diag`` for 2-D rows: arrays, CSR matrices or, if it sets ``supports_torch``,
    tensors and :class:`~psilearn.kernels.device_rows.DeviceRows`.

    See Also
    --------
    Kernel : The base class of all kernels.

    Examples
    --------
    >>> class Product(RowKernel):
    ...     def _block(self, A, B, compute):
    ...         return A @ B.T
    ...     def _diag(self, A):
    ...         return (A**2).sum(axis=1)
    >>> Product()([[1.0, 2.0]])
    array([[5.]])
    """

    _accepts_sparse = True
    _accepts_nan = False

    @property
    def _label(self) -> str:
        """The name of the kernel in errors."""
        return type(self).__name__

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        return check_rows(
            A,
            name,
            f"cannot be used with {self._label}, a kernel on rows of numbers",
            "For other objects give a kernel that takes them, or a function k(a, b).",
            accept_sparse="csr" if self._accepts_sparse else False,
            ensure_2d=not allow_1d,
            ensure_all_finite="allow-nan" if self._accepts_nan else True,
        )

    def _place(self, A: Samples, compute: Compute) -> Any:
        rows = A.reshape(-1, 1) if A.ndim == 1 else A
        if compute.device is None or not self.supports_torch:
            return rows if isinstance(rows, np.ndarray) else tensor_to_numpy(rows)
        return rows_on_device(rows, compute.device)

    def _check_pair(self, A: Any, B: Any) -> None:
        if A.shape[1] != B.shape[1]:
            raise ValueError(
                f"{self._label} compares rows of the same width: A has {A.shape[1]} columns (shape "
                f"{tuple(A.shape)}), B has {B.shape[1]} (shape {tuple(B.shape)})."
            )


def check_rows(
    A: Samples,
    name: str,
    problem: str,
    advice: str = "",
    *,
    accept_sparse: Any = False,
    ensure_2d: bool = True,
    ensure_all_finite: bool | str = True,
) -> Samples:
    """Validate rows of numbers as scikit-learn's ``check_array`` does; errors name the argument."""
    if not isinstance(A, np.ndarray) or 0 in A.shape[:1] or A.ndim == 0:
        check_not_empty(A, name)
    check_not_masked(A, name)
    check_real(A, name)
    if is_tensor(A):
        return _check_tensor(A, name, ensure_all_finite, ensure_2d)
    try:
        check_csr(A, name)
        rows = A
        if not _is_plain(A, accept_sparse, ensure_2d):
            rows = check_array(
                A, accept_sparse, dtype="numeric", input_name=name, ensure_all_finite=False, ensure_2d=ensure_2d
            )
        if rows.dtype.kind not in "bifu":
            raise TypeError(f"its dtype is {rows.dtype}.")
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} {problem}: {error} {advice}".rstrip()) from error
    if ensure_all_finite is not False:
        _check_finite(rows.data if sparse.issparse(rows) else rows, name, ensure_all_finite == "allow-nan")
    return rows


def _is_plain(A: Samples, accept_sparse: Any, ensure_2d: bool) -> bool:
    """Return whether ``check_array`` would return the rows unchanged: it takes longer than a small block."""
    is_accepted = type(A) is np.ndarray or (accept_sparse == "csr" and type(A) in CSR_TYPES)
    if not is_accepted or A.dtype.kind not in "bifu":
        return False
    return A.shape[1] > 0 if A.ndim == 2 else A.ndim == 1 and not ensure_2d


def _check_finite(values: Any, name: str, allow_nan: bool) -> None:
    """Raise if an array of numbers contains infinity, or NaN unless it is allowed."""
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        # The product of BLAS reads long vectors in several threads.
        total = values.dot(values) if values.ndim == 1 else values.sum()
    if not np.isfinite(total):  # a sum of finite numbers may overflow, so each number is tested
        assert_all_finite(values, input_name=name, allow_nan=allow_nan)


def check_numbers(A: Samples, name: str, *, ensure_2d: bool = False, accept_sparse: Any = "csr") -> Samples:
    """Return rows of finite numbers, dense or CSR, in the form in which they were given; tensors become arrays."""
    problem = "must be rows of numbers, dense or CSR"
    if hasattr(A, "__array__") and not hasattr(A, "shape"):
        A = np.asarray(A)
    rows = check_rows(tensor_to_numpy(A), name, problem, accept_sparse=accept_sparse, ensure_2d=ensure_2d)
    if rows.dtype.kind == "f" and rows.dtype not in (np.float64, np.float32):
        rows = rows.astype(np.float64)
    if max(float(rows.max()), -float(rows.min())) > MAX_NUMBER:
        raise ValueError(f"{name} contains numbers beyond {MAX_NUMBER:g}, whose squares overflow: scale {name}.")
    return rows


def _check_tensor(A: Any, name: str, ensure_all_finite: bool | str, ensure_2d: bool) -> Any:
    """Validate a tensor as ``check_array`` validates an array."""
    xp = array_namespace(A)
    if str(A.layout) != "torch.strided":
        raise TypeError(f"{name} is a tensor with the layout {A.layout}; give sparse rows as a SciPy CSR matrix.")
    if A.ndim != 2 and (ensure_2d or A.ndim != 1):
        raise ValueError(f"{name} must have two dimensions, one row per object; got shape {tuple(A.shape)}.")
    if not xp.isdtype(A.dtype, ("bool", "integral", "real floating")):
        raise TypeError(f"{name} must hold real numbers; got {A.dtype}.")
    if ensure_all_finite is True and xp.isdtype(A.dtype, "real floating") and not bool(xp.all(xp.isfinite(A))):
        raise ValueError(f"{name} contains NaN or infinity; shape {tuple(A.shape)}. Remove or replace them.")
    return A.detach()
