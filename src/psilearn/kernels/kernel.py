"""The class that kernels derive from, and sums, products, multiples and normalizations of kernels."""

from __future__ import annotations

from functools import partial
from inspect import signature
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from psilearn._backend import (
    NUMPY,
    Compute,
    current_compute,
    device_of,
    is_tensor,
    iter_slices,
    tensor_to_numpy,
    to_device,
    to_numpy,
)
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
from psilearn.kernels.gram_matrix import (
    RANGES,
    check_block,
    check_range,
    check_symmetric_matrix,
    gram_bytes,
    symmetric_matrix,
)
from psilearn.kernels.inner_products import fill_diagonal, in_strips, match_block, to_gaussians, to_squared_distances

PAIRED_BLOCK = 64  # rows of the blocks whose diagonals are k(aᵢ, bᵢ)


class Kernel(BaseEstimator):
    """A positive semi-definite similarity k(a, b) = ⟨ψ(a), ψ(b)⟩ of two objects.

    A subclass stores its parameters in ``__init__`` and implements ``_block`` and ``_diag``:

    - ``_block(A, B, compute)`` returns k(A, B), shape (len(A), len(B)). A and B are validated collections, and ``B is
      A`` for a symmetric block. ``compute.dtype`` is the requested precision; any other one is converted.
    - ``_diag(A)`` returns k(a, a), shape (len(A),).

    It may also override ``_paired(A, B)``, which returns k(aᵢ, bᵢ); ``_check(A, name, allow_1d)``, which validates a
    collection; ``_check_same_kind(A, name, B, other)``, which compares two of them; and ``fit``. A kernel that computes
    with torch tensors sets ``supports_torch = True``; any other one receives NumPy arrays, and its blocks are moved to
    the device.

    Attributes
    ----------
    supports_torch : bool
        Whether rows may be torch tensors, in which case blocks are tensors too.

    See Also
    --------
    Pairwise : A kernel from a Python function of two objects.
    Precomputed : A kernel from a matrix.

    Examples
    --------
    A kernel on strings, by the letters that they share:

    >>> import numpy as np
    >>> class Letters(Kernel):
    ...     def _block(self, A, B, compute):
    ...         return np.array([[len(set(a) & set(b)) for b in B] for a in A])
    ...     def _diag(self, A):
    ...         return np.array([len(set(a)) for a in A])
    >>> Letters()(["tea", "cat"], ["eat", "dog"])
    array([[3., 0.],
           [2., 0.]])
    """

    supports_torch: bool = False
    _is_stored = False  # whether values are looked up in a matrix, so that symmetry can be checked everywhere
    _has_pre_image: bool = False  # whether _pre_image is implemented
    _returns_new_block = False  # whether each call of _block returns a new array, which may be overwritten
    _is_always_finite = False  # whether no value of _block can overflow, so that blocks are not checked

    def __call__(self, A: Samples, B: Samples | None = None, *, compute: Compute | None = None) -> Array:
        """Compute the block k(A, B).

        Parameters
        ----------
        A : array, CSR matrix or sequence of objects
            The rows of the block.
        B : array, CSR matrix or sequence of objects, default=None
            The columns of the block. None stands for A.
        compute : Compute, default=None
            Precision and device. By default float64, on the device of the first tensor, or as set by
            :func:`psilearn.computing`.

        Returns
        -------
        array of shape (len(A), len(B))
            The values, all finite, as a new array or tensor.

        See Also
        --------
        Kernel.gram : The symmetric matrix k(A, A), checked and in float64.
        Kernel.diag : The diagonal of k(A, A).

        Examples
        --------
        >>> from psilearn.kernels import Linear
        >>> Linear()([[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]])
        array([[11., 17.]])
        """
        if compute is None:
            compute = current_compute(A, B)
        A = self.check(A, "A")
        return self.block_of_checked(A, A if B is None else self.check(B, "B"), compute)

    @property
    def looks_up_values(self) -> bool:
        """Whether values, of this kernel or of a part, are looked up in a matrix: symmetry is checked everywhere."""
        return any(getattr(part, "_is_stored", False) for part in (self, *self.get_params().values()))

    def block_of_checked(self, A: Samples, B: Samples, compute: Compute) -> Array:
        """Compute the block k(A, B) of collections that :meth:`check` returned, without validating them again.

        Parameters
        ----------
        A : array, CSR matrix or sequence of objects
            The rows of the block.
        B : array, CSR matrix or sequence of objects
            The columns of the block. The diagonal is exact if this is A itself.
        compute : Compute
            Precision and device.

        Returns
        -------
        array of shape (len(A), len(B))
            The values, all finite, as a new array or tensor.

        See Also
        --------
        Kernel.__call__ : The same with validation.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn._backend import NUMPY
        >>> from psilearn.kernels import Linear
        >>> Linear().block_of_checked(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]]), NUMPY)
        array([[11., 17.]])
        """
        left = self._place(A, compute)
        right = left if B is A else self._place(B, compute)
        if right is not left:
            self._check_pair(left, right)
        return self._evaluate(left, right, compute)

    def gram(self, A: Samples, *, compute: Compute | None = None, remedy: str = "Use fewer objects.") -> Array:
        """Compute the symmetric matrix k(A, A) in float64.

        Each pair is evaluated once, in panels of rows. The matrix is checked: finite, symmetric, and with the diagonal
        that :meth:`diag` returns. Memory: n² float64 numbers and a panel within ``working_memory``.

        Parameters
        ----------
        A : array, CSR matrix or sequence of n objects
            The objects.
        compute : Compute, default=None
            Precision of the panels, and device. By default float64, on the device of the first tensor, or as set by
            :func:`psilearn.computing`.
        remedy : str, default="Use fewer objects."
            What the error suggests if memory does not suffice.

        Returns
        -------
        array of shape (n, n)
            The matrix in float64.

        See Also
        --------
        Kernel.__call__ : A block k(A, B).

        Examples
        --------
        >>> from psilearn.kernels import Linear
        >>> Linear().gram([[1.0, 2.0], [0.0, 1.0]])
        array([[5., 2.],
               [2., 1.]])
        """
        compute = current_compute(A) if compute is None else compute
        checked = self.check(A)
        n = n_samples(checked)
        needed = gram_bytes(n, compute.itemsize) if compute.device is None else 16 * n * n  # no factor in place there
        compute.require_bytes(needed, f"The Gram matrix of {self!r} over {n} objects", remedy)
        objects = self.to_device(checked, compute)

        def block(rows: slice, columns: slice) -> Array:
            left = self._place(take(objects, rows), compute)
            right = left if columns == rows else self._place(take(objects, columns), compute)
            return self._evaluate(left, right, compute, rows.start, columns.start)

        K, gap = symmetric_matrix(block, n, compute, self.looks_up_values)
        diagonal = self._checked_diag(objects)
        self._check_lengths(objects, diagonal)
        check_symmetric_matrix(K, gap, diagonal, compute.dtype, self)
        return K

    def diag(self, A: Samples) -> Array:
        """Compute k(a, a) for each object.

        Parameters
        ----------
        A : array, CSR matrix or sequence of n objects
            The objects.

        Returns
        -------
        ndarray of shape (n,)
            The squared lengths |ψ(a)|² in float64.

        See Also
        --------
        Kernel.gram : The whole matrix.

        Examples
        --------
        >>> from psilearn.kernels import Linear
        >>> Linear().diag([[1.0, 2.0], [0.0, 1.0]])
        array([5., 1.])
        """
        return self.diag_of_checked(self.check(A))

    def diag_of_checked(self, A: Samples) -> Array:
        """Compute k(a, a) for each object of a collection that :meth:`check` returned, without validating it again.

        Parameters
        ----------
        A : array, CSR matrix or sequence of n objects
            The objects.

        Returns
        -------
        ndarray of shape (n,)
            The squared lengths |ψ(a)|² in float64.

        See Also
        --------
        Kernel.diag : The same with validation.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn.kernels import Linear
        >>> Linear().diag_of_checked(np.array([[1.0, 2.0], [0.0, 1.0]]))
        array([5., 1.])
        """
        return self._checked_diag(A)

    def paired(self, A: Samples, B: Samples) -> Array:
        """Compute k(aᵢ, bᵢ) for each i.

        Parameters
        ----------
        A : array, CSR matrix or sequence of n objects
            The first object of each pair.
        B : array, CSR matrix or sequence of n objects
            The second object of each pair.

        Returns
        -------
        ndarray of shape (n,)
            The values in float64.

        See Also
        --------
        Kernel.paired_squared_distances : |ψ(aᵢ) − ψ(bᵢ)|².

        Examples
        --------
        >>> from psilearn.kernels import Linear
        >>> Linear().paired([[1.0, 2.0]], [[3.0, 4.0]])
        array([11.])
        """
        left, right = self._prepare_pairs(A, B)
        with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite raise an error
            values = self._paired(left, right)
        return self._checked_pairs(values, n_samples(A))

    def squared_distances(self, A: Samples, B: Samples | None = None, *, compute: Compute | None = None) -> Array:
        """Compute |ψ(a) − ψ(b)|² = k(a,a) + k(b,b) − 2k(a,b) as a block.

        Parameters
        ----------
        A : array, CSR matrix or sequence of objects
            The rows of the block.
        B : array, CSR matrix or sequence of objects, default=None
            The columns of the block. None stands for A.
        compute : Compute, default=None
            Precision and device, as in :meth:`__call__`.

        Returns
        -------
        array of shape (len(A), len(B))
            The squared distances, at least 0.

        See Also
        --------
        Kernel.paired_squared_distances : The same for pairs of objects.

        Examples
        --------
        >>> from psilearn.kernels import Linear
        >>> Linear().squared_distances([[0.0], [3.0]])
        array([[0., 9.],
               [9., 0.]])
        """
        compute = current_compute(A, B) if compute is None else compute
        left = self._prepare(A, "A", compute)
        right = left if B is None else self._prepare(B, "B", compute)
        if B is not None:
            self._check_pair(left, right)
        with np.errstate(over="ignore", invalid="ignore"):  # values that overflow are reported below
            distances = self._squared_distances(left, right, compute)
        check_block(distances, (n_samples(left), n_samples(right)), self)
        return distances

    def paired_squared_distances(self, A: Samples, B: Samples) -> Array:
        """Compute |ψ(aᵢ) − ψ(bᵢ)|² for each i.

        Parameters
        ----------
        A : array, CSR matrix or sequence of n objects
            The first object of each pair.
        B : array, CSR matrix or sequence of n objects
            The second object of each pair.

        Returns
        -------
        ndarray of shape (n,)
            The squared distances in float64, at least 0.

        See Also
        --------
        Kernel.squared_distances : The same for all pairs.

        Examples
        --------
        >>> from psilearn.kernels import Linear
        >>> Linear().paired_squared_distances([[0.0]], [[3.0]])
        array([9.])
        """
        left, right = self._prepare_pairs(A, B)
        with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite raise an error
            values = self._paired_squared_distances(left, right)
        return self._checked_pairs(values, n_samples(A))

    def fit(self, A: Samples, y: Samples | None = None) -> Self:
        """Learn what the kernel takes from data, such as a median width or weights.

        Parameters
        ----------
        A : array, CSR matrix or sequence of n objects
            The objects.
        y : array, CSR matrix or sequence of n outputs, default=None
            The outputs of the objects, for kernels that are learned with them.

        Returns
        -------
        Kernel
            The kernel itself.

        See Also
        --------
        Gaussian : Its ``gamma="median"`` is learned by ``fit``.
        Aligned : Its weights are learned by ``fit``.

        Examples
        --------
        >>> from psilearn.kernels import Gaussian
        >>> Gaussian(gamma="median").fit([[0.0], [1.0], [2.0]]).gamma_
        1.0
        """
        for part in self.get_params(deep=False).values():
            if isinstance(part, Kernel):
                part.fit(A, y)
        return self

    def normalized(self) -> Kernel:
        """Return the cosine k(a, b) / √(k(a, a) k(b, b)) as a kernel.

        Returns
        -------
        Normalized
            The kernel of cosines.

        See Also
        --------
        Normalized : The class of the returned kernel.

        Examples
        --------
        >>> from psilearn.kernels import Linear
        >>> Linear().normalized()([[3.0, 4.0]], [[1.0, 0.0]])
        array([[0.6]])
        """
        return Normalized(self)

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

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the class and the parameters that differ from their defaults; scikit-learn prints whole matrices."""
        defaults = {name: parameter.default for name, parameter in signature(type(self)).parameters.items()}
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if value is not defaults[name] and not (isinstance(value, int | float | str) and value == defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __radd__(self, other: Any) -> Kernel:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # sum() starts with 0

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, other) if isinstance(other, int | float) else NotImplemented

    __rmul__ = __mul__

    def _distances_without_rounding(self, A: Samples) -> Array:
        """Return |ψ(a) − ψ(b)|² of all pairs in float64; what may be a rounding error of equal objects is 0."""
        distances = to_numpy(self.squared_distances(A, compute=NUMPY))
        lengths = 1e-12 * self.diag(A)
        distances[distances <= lengths[:, None] + lengths] = 0
        return distances

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


class _Composite(Kernel):
    """A kernel that is computed from the blocks of other kernels, which prepare the objects themselves."""

    _returns_new_block = True

    @property
    def supports_torch(self) -> bool:  # type: ignore[override]
        """Whether all parts support torch."""
        return all(part.supports_torch for part in self._parts())

    def _parts(self) -> tuple[Kernel, ...]:
        named = {name: getattr(self, name) for name in ("left", "right", "kernel") if hasattr(self, name)}
        for name, part in named.items():
            if not isinstance(part, Kernel):
                raise TypeError(
                    f"{name} of {type(self).__name__} must be a kernel of psilearn.kernels; got {part!r:.80}."
                )
        return tuple(named.values())

    def _prepare(self, A: Samples, name: str, compute: Compute) -> Any:
        return self.check(A, name)

    def _underflows(self, A: Samples) -> bool:
        return any(part._underflows(A) for part in self._parts())

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        for part in self._parts():
            A = part.check(A, name, allow_1d=allow_1d)
        return A

    def _check_same_kind(self, A: Samples, name: str, B: Samples, other: str) -> None:
        for part in self._parts():
            part.check_same_kind(A, name, B, other)


def _part_block(part: Kernel, A: Any, B: Any, compute: Compute) -> Any:
    return part(A, None if B is A else B, compute=compute)


class Sum(_Composite):
    """The kernel k(a, b) = left(a, b) + right(a, b), whose feature space is the direct sum of theirs.

    Parameters
    ----------
    left : Kernel
        The first term.
    right : Kernel
        The second term.

    See Also
    --------
    uniform : The mean of several kernels.
    weighted : A weighted sum of several kernels.

    Examples
    --------
    >>> from psilearn.kernels import Linear, Tanimoto
    >>> 0.5 * Linear() + Tanimoto()
    Sum(left=Scaled(kernel=Linear(), scale=0.5), right=Tanimoto())
    """

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        block = _part_block(self.left, A, B, compute)
        block += _part_block(self.right, A, B, compute)
        return block

    def _diag(self, A: Any) -> Any:
        return self.left.diag(A) + self.right.diag(A)

    def _paired(self, A: Any, B: Any) -> Any:
        return self.left.paired(A, B) + self.right.paired(A, B)


class Product(_Composite):
    """The kernel k(a, b) = left(a, b) · right(a, b), whose feature space is the tensor product of theirs.

    Parameters
    ----------
    left : Kernel
        The first factor.
    right : Kernel
        The second factor.

    See Also
    --------
    Sum : The sum of two kernels.

    Examples
    --------
    >>> from psilearn.kernels import Dice, Tanimoto
    >>> (Dice() * Tanimoto())([[1, 1, 0]], [[0, 1, 1]]).round(4)
    array([[0.1667]])
    """

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        block = _part_block(self.left, A, B, compute)
        block *= _part_block(self.right, A, B, compute)
        return block

    def _diag(self, A: Any) -> Any:
        return self.left.diag(A) * self.right.diag(A)

    def _paired(self, A: Any, B: Any) -> Any:
        return self.left.paired(A, B) * self.right.paired(A, B)


class Scaled(_Composite):
    """The kernel k(a, b) = scale · kernel(a, b) with scale > 0.

    Parameters
    ----------
    kernel : Kernel
        The kernel that is multiplied.
    scale : float
        The factor, greater than 0.

    See Also
    --------
    Sum : The sum of two kernels.

    Examples
    --------
    >>> from psilearn.kernels import Linear
    >>> (3 * Linear())([[2.0]])
    array([[12.]])
    """

    def __init__(self, kernel: Kernel, scale: float) -> None:
        self.kernel = kernel
        self.scale = scale

    @property
    def _has_pre_image(self) -> bool:  # type: ignore[override]
        return self.kernel._has_pre_image

    def _pre_image(self, A: Any, weights: Array) -> Array:
        return self.kernel._pre_image(A, weights)  # all features have the same factor

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        block = _part_block(self.kernel, A, B, compute)
        block *= validation.check_positive(self.scale, "scale")
        return block

    def _diag(self, A: Any) -> Any:
        return validation.check_positive(self.scale, "scale") * self.kernel.diag(A)

    def _paired(self, A: Any, B: Any) -> Any:
        return validation.check_positive(self.scale, "scale") * self.kernel.paired(A, B)


class Normalized(_Composite):
    """The kernel k(a, b) = kernel(a, b) / √(kernel(a, a) · kernel(b, b)): the cosine in the feature space.

    An object of length zero stays at zero: its similarity to every object, itself included, is 0.

    Parameters
    ----------
    kernel : Kernel
        The kernel that is normalized.

    See Also
    --------
    Kernel.normalized : Returns this kernel.

    Examples
    --------
    >>> from psilearn.kernels import Linear
    >>> Linear().normalized()([[3.0, 4.0]], [[1.0, 0.0]])
    array([[0.6]])
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        block = _part_block(self.kernel, A, B, compute)
        column = match_block(self._inverse_lengths(A), block)[:, None]
        row = column[:, 0] if B is A else match_block(self._inverse_lengths(B), block)

        def normalize(strip: Array, part: slice) -> None:
            strip *= column[part]
            strip *= row

        return in_strips(block, normalize)

    def _diag(self, A: Any) -> Any:
        return (self._squared_lengths(A) > 0).astype(np.float64)

    def _paired(self, A: Any, B: Any) -> Any:
        return self.kernel.paired(A, B) * self._inverse_lengths(A) * self._inverse_lengths(B)

    def _inverse_lengths(self, A: Any) -> Array:
        diagonal = self._squared_lengths(A)
        return np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1)), 0.0)

    def _squared_lengths(self, A: Any) -> Array:
        """Return the kernel's k(a, a); raise if float64 is too coarse for one of them: its cosines would be wrong."""
        diagonal = self.kernel.diag(A)
        is_zero = diagonal == 0
        if is_zero.any():
            self.kernel._check_lengths(take(self.kernel.check(A), np.flatnonzero(is_zero)), diagonal[is_zero])
        check_range(float(diagonal[~is_zero].min(initial=1.0)), diagonal.dtype, self.kernel)
        return diagonal


def _to_float64(values: Any, kernel: Kernel) -> Array:
    """Return numbers that a kernel returned as a float64 array, without a copy where possible."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        return values
    return _new_array(to_numpy(values), np.float64, kernel)


def _new_array(values: Any, dtype: Any, kernel: Kernel) -> Any:
    """Return numbers that a kernel returned as a new array; an error names the kernel."""
    try:
        return np.array(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{kernel!r} must return numbers; got {type(values).__name__}: {error}") from error


def _check_chunk(chunk: Samples, number: int, kernel: Kernel, name: str, allow_1d: bool) -> Samples:
    """Validate one chunk of a chunked collection, in the task that uses it."""
    return kernel.check(chunk, f"chunk {number} of {name}", allow_1d=allow_1d)


def has_pre_image(kernel: Kernel) -> bool:
    """Return whether a kernel has pre-images in closed form.

    Parameters
    ----------
    kernel : Kernel
        The kernel.

    Returns
    -------
    bool
        True for Linear, Curves and Hellinger, and for multiples of them.

    See Also
    --------
    pre_image : Compute pre-images.

    Examples
    --------
    >>> from psilearn.kernels import Gaussian, Linear, has_pre_image
    >>> has_pre_image(2 * Linear()), has_pre_image(Gaussian())
    (True, False)
    """
    return isinstance(kernel, Kernel) and bool(kernel._has_pre_image)


def pre_image(kernel: Kernel, A: Samples, weights: Any) -> Array:
    """Return the objects y that minimize |Σ_l w_l ψ(a_l) − ψ(y)|², one for each row of weights.

    The minimum is over all objects of the kernel: all rows of numbers for Linear, all histograms for Hellinger.

    Parameters
    ----------
    kernel : Kernel
        A kernel with pre-images in closed form.
    A : array or CSR matrix of shape (r, d), or array of shape (r,)
        The objects a_l.
    weights : array of shape (q, r)
        The weights w.

    Returns
    -------
    ndarray of shape (q, d) or (q,)
        The pre-images, in float64.

    Raises
    ------
    TypeError
        If the kernel has no pre-images in closed form.

    See Also
    --------
    has_pre_image : Whether a kernel has pre-images in closed form.
    psilearn.OEL.predict_mean : The pre-images of predictions.

    Examples
    --------
    >>> from psilearn.kernels import Hellinger, Linear, pre_image
    >>> pre_image(Linear(), [[0.0, 2.0], [4.0, 0.0]], [[0.5, 0.5]])
    array([[2., 1.]])
    >>> pre_image(Hellinger(), [[1.0, 0.0], [0.0, 1.0]], [[3.0, 4.0]])
    array([[0.36, 0.64]])
    """
    if not has_pre_image(kernel):
        raise TypeError(
            f"kernel={kernel!r} has no pre-images in closed form. Linear, Curves and Hellinger have them; with other "
            f"kernels predict the nearest of candidates."
        )
    A = tensor_to_numpy(kernel.check(A, "A"))
    W = validation.check_array_of_numbers(tensor_to_numpy(weights), "weights", ndim=2)
    if W.shape[1] != n_samples(A):
        raise ValueError(
            f"weights has {W.shape[1]} columns, but A has {n_samples(A)} objects: give one weight per object."
        )
    return np.asarray(kernel._pre_image(A, W))
