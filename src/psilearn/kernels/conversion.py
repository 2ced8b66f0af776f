"""Kernels from what a user passes for a kernel parameter."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from psilearn._backend import tensor_to_numpy
from psilearn._distributed import ChunkedRows, map_chunks
from psilearn._utils.samples import Samples
from psilearn.kernels.binary import Dice
from psilearn.kernels.gaussian import Gaussian
from psilearn.kernels.kernel import Kernel
from psilearn.kernels.objects import Pairwise
from psilearn.kernels.ranking_kernels import Kemeny
from psilearn.rankings import is_orders


def as_kernel(kernel: Any, name: str) -> Kernel:
    """Return a copy of a kernel that a user passed for a parameter.

    Parameters
    ----------
    kernel : Kernel, callable or None
        A kernel is cloned, a function k(a, b) becomes :class:`Pairwise`, and None becomes a Gaussian kernel with the
        median width.
    name : str
        The name of the parameter, for errors.

    Returns
    -------
    Kernel
        A kernel that can be fitted without changing the original.

    See Also
    --------
    as_output_kernel : The same for outputs, where None depends on the kind of the outputs.

    Examples
    --------
    >>> from psilearn.kernels import as_kernel
    >>> as_kernel(None, "input_kernel")
    Gaussian()
    """
    if kernel is None:
        return Gaussian()
    if isinstance(kernel, Kernel):
        return clone(kernel)
    if callable(kernel) and not isinstance(kernel, type):
        return Pairwise(kernel)
    hint = f"{kernel.__name__}(...)" if isinstance(kernel, type) else "Gaussian(gamma=0.1)"
    raise TypeError(
        f"{name} must be a kernel of psilearn.kernels such as {hint}, a function k(a, b) or None; got {kernel!r}."
    )


def as_output_kernel(kernel: Any, y: Samples, name: str = "output_kernel") -> Kernel:
    """Return a copy of an output kernel, where None chooses one by the kind of the outputs.

    Rows of zeros and ones, at least two columns wide, are compared by :class:`Dice`; rankings, that is orders such as
    ``"b>c>a"`` and rows that are permutations of 1, …, K with K ≥ 3, by :class:`Kemeny`; all other outputs by a
    :class:`Gaussian` kernel with the median width.

    Parameters
    ----------
    kernel : Kernel, callable or None
        The parameter, see :func:`as_kernel`.
    y : array, CSR matrix or sequence of n outputs
        The outputs.
    name : str, default="output_kernel"
        The name of the parameter, for errors.

    Returns
    -------
    Kernel
        A kernel that can be fitted without changing the original.

    See Also
    --------
    as_kernel : The same for inputs.

    Examples
    --------
    >>> from psilearn.kernels import as_output_kernel
    >>> as_output_kernel(None, [[0, 1, 1], [1, 0, 0]])
    Dice()
    >>> as_output_kernel(None, [[2, 1, 3], [1, 2, 3]])
    Kemeny()
    >>> as_output_kernel(None, [[0.5, 1.0]])
    Gaussian()
    """
    if kernel is not None:
        return as_kernel(kernel, name)
    if isinstance(y, ChunkedRows):
        kinds = {type(kernel) for kernel in map_chunks(partial(as_output_kernel, None), y)}
        return kinds.pop()() if len(kinds) == 1 else Gaussian()
    y = tensor_to_numpy(y)
    if is_orders(y):
        return Kemeny() if all(isinstance(order, str) and ">" in order for order in y) else Gaussian()
    if sparse.issparse(y):
        return Dice() if _is_binary(y.data) and y.shape[1] > 1 else Gaussian()
    rows = _numeric_rows(y)
    if rows is not None and _is_binary(rows):
        return Dice()
    return Kemeny() if rows is not None and _are_permutations(rows) else Gaussian()


def _numeric_rows(y: Samples) -> Any:
    """Return rows of numbers, at least two columns wide, or None."""
    try:
        rows = np.asarray(y)
    except ValueError:  # rows of unequal lengths
        return None
    is_numeric = rows.ndim == 2 and rows.shape[1] > 1 and len(rows) > 0 and rows.dtype.kind in "bifu"
    return rows if is_numeric else None


def _is_binary(values: Any) -> bool:
    return values.dtype == bool or bool(((values == 0) | (values == 1)).all())


def _are_permutations(rows: Any) -> bool:
    n_items = rows.shape[1]
    return n_items > 2 and bool((np.sort(rows, axis=1) == np.arange(1, n_items + 1)).all())
