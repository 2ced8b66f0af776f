"""The values of kernels: public methods that validate their arguments and results."""

from __future__ import annotations

from typing import Self

import numpy as np

from psilearn._backend import NUMPY, Compute, current_compute, to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Samples, n_samples, take
from psilearn.kernels.gram_matrix import check_block, check_symmetric_matrix, gram_bytes, symmetric_matrix
from psilearn.kernels.kernel_evaluation import KernelEvaluation


class BaseKernel(KernelEvaluation):
    """The values of a kernel: blocks, matrices, diagonals and distances of collections that are validated."""

    _is_stored = False  # whether values are looked up in a matrix, so that symmetry can be checked everywhere

    @property
    def looks_up_values(self) -> bool:
        """Whether values, of this kernel or of a part, are looked up in a matrix: symmetry is checked everywhere."""
        return any(getattr(part, "_is_stored", False) for part in (self, *self.get_params().values()))

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
            if isinstance(part, BaseKernel):
                part.fit(A, y)
        return self

    def _distances_without_rounding(self, A: Samples) -> Array:
        """Return |ψ(a) − ψ(b)|² of all pairs in float64; what may be a rounding error of equal objects is 0."""
        distances = to_numpy(self.squared_distances(A, compute=NUMPY))
        lengths = 1e-12 * self.diag(A)
        distances[distances <= lengths[:, None] + lengths] = 0
        return distances
