"""The base class of kernels on objects that are described by rows of numbers, such as counts of substructures."""

from __future__ import annotations

import os
from collections import OrderedDict
from functools import partial
from threading import Lock
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.preprocessing import normalize as scale_rows

from psilearn._backend import Compute
from psilearn._distributed import ChunkedRows
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples, collection_bytes
from psilearn.kernels.kernel import Kernel
from psilearn.kernels.linear import Linear

MAX_RECENT = 4  # collections of a kernel whose features are kept: blocks are computed against the same landmarks
MAX_RECENT_BYTES = 2**26  # of the features of a collection that is kept

_recent: WeakKeyDictionary[Kernel, OrderedDict[Any, Any]] = WeakKeyDictionary()
_lock = Lock()  # chunks of a Dask collection are computed by several threads
if hasattr(os, "register_at_fork"):  # the thread that holds it does not exist in a child
    os.register_at_fork(after_in_child=lambda: globals().update(_lock=Lock()))


class FeatureKernel(Kernel):
    """The kernel k(a, b) = base(φ(a), φ(b)) of objects with features φ: rows of numbers, dense or CSR.

    Everything that a kernel on rows can do applies to the objects: landmarks, devices, medians of distances. Objects
    stay what they are: predictions and candidates are strings or graphs, not rows.

    A subclass has the parameters ``normalize`` and ``base`` and implements ``_features(A)``, which returns one row per
    validated object, and ``_check``, which validates objects. Features of the last few collections are kept, so that
    ``_features`` is called once for landmarks; they are recognized by the equality of hashable objects and of the
    parameters of the kernel.

    Attributes
    ----------
    normalize : bool
        Whether rows are divided by their Euclidean length.
    base : Kernel or None
        The kernel on rows. None stands for :class:`Linear`.

    See Also
    --------
    Substrings : Counts of the substrings of strings.
    RowKernel : Kernels on rows of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.kernels import FeatureKernel, Gaussian
    >>> class Lengths(FeatureKernel):
    ...     def __init__(self, normalize=False, base=None):
    ...         self.normalize = normalize
    ...         self.base = base
    ...     def _features(self, A):
    ...         return np.array([[float(len(a))] for a in A])
    >>> Lengths(base=Gaussian(1.0))(["tea", "cat"], ["milk"]).round(4)
    array([[0.3679],
           [0.3679]])
    """

    _returns_new_block = True
    normalize: Any
    base: Any

    @property
    def supports_torch(self) -> bool:  # type: ignore[override]
        """Whether the base kernel supports torch."""
        return self._base().supports_torch

    def features(self, A: Samples) -> Any:
        """Compute the features of objects.

        Parameters
        ----------
        A : sequence of n objects
            The objects.

        Returns
        -------
        ndarray or CSR matrix of shape (n, d)
            One row per object, of length 1 if ``normalize`` is set.

        See Also
        --------
        Kernel.__call__ : The kernel of these rows.

        Examples
        --------
        >>> from psilearn.kernels import Substrings
        >>> Substrings(max_length=1, alphabet="abc", normalize=False).features(["abba"]).toarray()
        array([[2., 2., 0.]])
        """
        return self._rows(self.check(A))

    def fit(self, A: Samples, y: Samples | None = None) -> Self:
        """Learn what the features and the base kernel take from data.

        Parameters
        ----------
        A : sequence of n objects
            The objects.
        y : array, CSR matrix or sequence of n outputs, default=None
            The outputs of the objects, for base kernels that are learned with them.

        Returns
        -------
        FeatureKernel
            The kernel itself.

        See Also
        --------
        Gaussian : As ``base``, its median width is learned from features.

        Examples
        --------
        >>> from psilearn.kernels import Gaussian, Substrings
        >>> Substrings(base=Gaussian()).fit(["tea", "tee", "cat"]).base.gamma_ > 0
        True
        """
        A = self.check(A)
        _recent.pop(self, None)
        self._fit_features(A)
        is_chunked = isinstance(A, ChunkedRows)
        self._base().fit(A.map(partial(_chunk_rows, kernel=self)) if is_chunked else self._rows(A), y)
        return self

    def _fit_features(self, A: Samples) -> None:
        """Learn what the features take from data; most take nothing."""

    def _features(self, A: Any) -> Any:
        """Return one row of numbers per validated object, dense or CSR."""
        raise TypeError(f"{type(self).__name__} must implement _features(A), one row of numbers per object.")

    def _rows(self, A: Any) -> Any:
        """Return the features of validated objects, from those that are kept if the collection was used before."""
        key = self._key(A)
        with _lock:
            kept = _recent.setdefault(self, OrderedDict())
            if key is not None and key in kept:
                kept.move_to_end(key)
                return kept[key]
        rows = self._features(A)
        if validation.check_bool(self.normalize, "normalize"):
            rows = scale_rows(rows, copy=False)
        if key is not None and collection_bytes(rows) <= MAX_RECENT_BYTES:
            with _lock:
                kept[key] = rows
                while len(kept) > MAX_RECENT:
                    kept.popitem(last=False)
        return rows

    def _key(self, A: Any) -> Any:
        """Return what the features depend on, or None if the objects are not hashable."""
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name != "base"}
        key = (repr(parameters), tuple(A.tolist() if isinstance(A, np.ndarray) and A.ndim == 1 else A))
        try:
            hash(key)
        except TypeError:
            return None
        return key

    def _base(self) -> Kernel:
        if self.base is None:
            return _LINEAR
        if not isinstance(self.base, Kernel):
            raise TypeError(f"base of {type(self).__name__} must be a kernel on rows or None; got {self.base!r:.80}.")
        return self.base

    def _place(self, A: Samples, compute: Compute) -> Any:
        return self._base()._place(self._rows(A), compute)

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        return self._base()._evaluate(A, B, compute)

    def _diag(self, A: Any) -> Any:
        return self._base()._diag(A)

    def _paired(self, A: Any, B: Any) -> Any:
        return self._base()._paired(A, B)

    def _paired_squared_distances(self, A: Any, B: Any) -> Any:
        return self._base()._paired_squared_distances(A, B)

    def _squared_distances(self, left: Any, right: Any, compute: Compute) -> Array:
        return self._base()._squared_distances(left, right, compute)

    def _gaussians(self, left: Any, right: Any, gamma: float, compute: Compute) -> Array:
        return self._base()._gaussians(left, right, gamma, compute)

    def _check_pair(self, A: Any, B: Any) -> None:
        self._base()._check_pair(A, B)

    def _distances_without_rounding(self, A: Samples) -> Array:
        return self._base()._distances_without_rounding(self._rows(self.check(A)))


_LINEAR = Linear()


def _chunk_rows(chunk: Samples, number: int, kernel: FeatureKernel) -> Any:
    """Return the features of one chunk of a chunked collection."""
    return kernel._rows(chunk)
