"""Kernels on rows of numbers, dense or CSR, and the Gaussian over any kernel's distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import manhattan_distances

from psilearn._backend import array_namespace, is_tensor, off_device, on_host, precision, to_host, working_dtype
from psilearn._linalg import row_products
from psilearn._utils import validation
from psilearn._utils.samples import Samples, n_samples, take
from psilearn.kernels.device_rows import DeviceRows, squared_lengths
from psilearn.kernels.inner_products import (
    TILE,
    each_thread,
    exponentiate,
    fill_diagonal,
    gaussians,
    in_strips,
    inner_products,
    paired_inner_products,
    slices,
)
from psilearn.kernels.kernel import Array, Kernel, RowKernel, same_length

MEDIAN_ROWS = 1000  # objects that a median distance is taken over: half a million pairs


class Linear(RowKernel):
    """k(a, b) = ⟨a, b⟩, the plain inner product; |ψ(a) − ψ(b)| is the Euclidean distance.

    Examples
    --------
    >>> from psilearn.kernels import Linear
    >>> Linear()([[1, 2], [0, 1]])
    array([[5., 2.],
           [2., 1.]])
    """

    _makes_blocks = True
    _on_device = True

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return A Bᵀ."""
        return inner_products(*self._row_pair(A, B))

    def diag(self, A: Samples) -> Array:
        """Return |a|²."""
        if is_tensor(A):
            return to_host(squared_lengths(self._rows(A)))
        with on_host():
            rows = self._rows(A)
        return paired_inner_products(rows, rows)

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return ⟨aᵢ, bᵢ⟩."""
        same_length(A, B)
        if is_tensor(A) and is_tensor(B):
            return to_host(row_products(*self._row_pair(A, B)))
        with on_host():
            return paired_inner_products(*self._row_pair(off_device(A), off_device(B)))

    def _distance_parts(self, A: Samples, B: Samples | None) -> tuple[Array, Array, Array]:
        """Return the parts of |a − b|²; dense rows are centred first, so that a common offset costs no digits.

        On the mean of B, which stays the same where A comes in blocks: so k(a, b) does not depend on the block of a.
        """
        rows, others = self._row_pair(A, B)
        if is_tensor(rows) and is_tensor(others):
            rows, others = _centred(rows, others, B is None)
        if is_tensor(rows) or isinstance(rows, DeviceRows):
            norms = squared_lengths(rows)
            return inner_products(rows, others), norms, norms if B is None else squared_lengths(others)
        if sparse.issparse(rows) or sparse.issparse(others):
            return super()._distance_parts(A, B)
        centre, dtype = others.mean(axis=0, dtype=np.float64), working_dtype()
        left = np.subtract(rows, centre, out=np.empty(rows.shape, dtype), casting="same_kind")
        right = left
        if B is not None:
            right = np.subtract(others, centre, out=np.empty(others.shape, dtype), casting="same_kind")
        norms = paired_inner_products(left, left)
        return left @ right.T, norms, norms if B is None else paired_inner_products(right, right)


def _centred(rows: Any, others: Any, same: bool) -> tuple[Any, Any]:
    """Return tensors less the mean of the second in the working dtype; subtracted in float64."""
    xp = array_namespace(rows)
    others = xp.astype(others, xp.float64)
    centre, dtype = xp.mean(others, axis=0), getattr(xp, working_dtype().name)
    right = xp.astype(others - centre, dtype)
    return right if same else xp.astype(xp.astype(rows, xp.float64) - centre, dtype), right


class Polynomial(Kernel):
    """k(a, b) = (γ⟨a, b⟩ + c₀)^degree, γ > 0, c₀ ≥ 0, degree a positive integer.

    Examples
    --------
    >>> from psilearn.kernels import Polynomial
    >>> Polynomial(degree=2)([[1, 2]], [[0, 1]])
    array([[9.]])
    """

    _makes_blocks = True
    _on_device = True

    def __init__(self, degree: int = 3, gamma: float = 1.0, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the block of powers."""
        return self._power(Linear()(A, B))

    def diag(self, A: Samples) -> Array:
        """Return (γ|a|² + c₀)^degree."""
        return self._power(Linear().diag(A))

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return the powers of the paired inner products."""
        return self._power(Linear().paired(A, B))

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = True) -> Samples:
        """Demand rows of finite numbers."""
        return Linear().check(A, name, allow_1d=allow_1d)

    def _power(self, products: Array) -> Array:
        degree, gamma = validation.check_count(self.degree, "degree"), validation.check_positive(self.gamma, "gamma")
        coef0 = validation.check_non_negative(self.coef0, "coef0")  # else the kernel is not positive semi-definite

        def change(strip: Array, part: slice) -> None:
            strip *= gamma
            strip += coef0
            base = 1.0 * strip
            for bit in f"{degree:b}"[1:]:  # squares and products: far cheaper than powers of floats
                strip *= strip
                if bit == "1":
                    strip *= base

        return in_strips(products, change)


class _WidthFromData(Kernel):
    """A kernel whose ``gamma`` is a number, or ``"median"``: one over the median distance of the data."""

    gamma: Any

    def fit(self, A: Samples) -> Self:
        """Set ``gamma_`` where ``gamma="median"``, from at most 1000 evenly spaced objects."""
        super().fit(A)
        if self.gamma == "median":
            n = n_samples(A)
            some = np.unique(np.linspace(0, n - 1, min(n, MEDIAN_ROWS)).astype(np.intp))
            with precision(np.float64):  # the width does not depend on the precision
                distances = to_host(self._distances(take(A, some)))[np.triu_indices(len(some), 1)]
            noise = self._rounding(take(A, some))
            apart = distances[distances > noise]
            middle = np.median(distances) if distances.size else 0.0
            if middle <= noise:  # most pairs are equal: look at those that are not
                middle = np.median(apart) if apart.size else 1.0
            self.gamma_ = float(1 / middle)
        return self

    def _distances(self, A: Samples, B: Samples | None = None) -> Array:
        raise NotImplementedError

    def _rounding(self, A: Samples) -> float:
        """Return how large the distance of two equal objects may come out."""
        return 0.0

    def _width(self) -> float:
        if isinstance(self.gamma, str) and self.gamma != "median":
            raise ValueError(f'gamma of {type(self).__name__} must be a number > 0 or "median"; got {self.gamma!r}.')
        if self.gamma != "median":
            return validation.check_positive(self.gamma, f"gamma of {type(self).__name__}")
        if not hasattr(self, "gamma_"):
            raise ValueError(
                f"{type(self).__name__}(gamma='median') takes its width from data: call fit(A) first, or give a number."
            )
        return self.gamma_


class Gaussian(_WidthFromData):
    """k(a, b) = exp(−γ d²(a, b)), where d is the distance of another kernel; of :class:`Linear` by default.

    With the linear kernel d is Euclidean and this is the usual RBF kernel, γ = 1/(2σ²). With any other, d² = k(a,a) +
    k(b,b) − 2k(a,b): over :class:`Tanimoto` it is the Gaussian-Tanimoto kernel exp(−γ(2 − 2T)).

    Parameters
    ----------
    gamma : float or "median"
        the width; "median" is 1 / median d² over the data given to ``fit``.
    base : Kernel, optional
        the kernel whose distance is taken.

    References
    ----------
    Schölkopf and Smola, *Learning with Kernels*, 2002, section 2.3 (d² is conditionally negative definite).

    Examples
    --------
    >>> from psilearn.kernels import Gaussian, Tanimoto
    >>> Gaussian(gamma=0.5)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    >>> Gaussian(gamma=0.5, base=Tanimoto())([[1, 1, 0]], [[0, 1, 1]]).round(4)
    array([[0.5134]])
    """

    _makes_blocks = True

    def __init__(self, gamma: float | str = "median", base: Kernel | None = None) -> None:
        self.gamma = gamma
        self.base = base

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the block exp(−γ d²), in one allocation."""
        gamma, base = self._width(), self._base()
        if self._has_own_distance():
            return in_strips(np.array(base.squared_distances(A, B), working_dtype()), _exponential(gamma))
        block = gaussians(*base._distance_parts(A, B), gamma)
        if B is None:
            fill_diagonal(block, 1)
        return block

    @property
    def _on_device(self) -> bool:  # type: ignore[override]
        return self._base()._on_device and not self._has_own_distance()

    def _has_own_distance(self) -> bool:
        """Whether the base is a user's kernel that computes distances in a way of its own."""
        return type(self._base()).squared_distances is not Kernel.squared_distances

    def diag(self, A: Samples) -> Array:
        """Return ones."""
        return np.ones(n_samples(self.check(A)))

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return exp(−γ d²(aᵢ, bᵢ))."""
        return np.exp(-self._width() * self._base().paired_squared_distances(A, B))

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = True) -> Samples:
        """Demand what the base kernel demands."""
        return self._base().check(A, name, allow_1d=allow_1d)

    def check_alike(self, A: Samples, name: str, B: Samples, other: str) -> None:
        """Refuse what the base kernel refuses to compare."""
        self._base().check_alike(A, name, B, other)

    def _base(self) -> Kernel:
        if self.base is not None and not isinstance(self.base, Kernel):
            raise TypeError(f"base of Gaussian must be a kernel or None; got {self.base!r}.")
        return Linear() if self.base is None else self.base

    def _distances(self, A: Samples, B: Samples | None = None) -> Array:
        return self._base().squared_distances(A, B)

    def _rounding(self, A: Samples) -> float:
        return 1e-12 * float(np.max(self._base().diag(A)))


def GaussianTanimoto(gamma: float | str = 0.5, packed: bool = False) -> Gaussian:
    """Return exp(−γ(2 − 2T(a, b))), the Gaussian over the Tanimoto distance; the paper's σ² = 1 is γ = ½.

    ``packed`` says that rows are packed bits, see :class:`Tanimoto`.

    Examples
    --------
    >>> from psilearn.kernels import GaussianTanimoto
    >>> GaussianTanimoto()
    Gaussian(base=Tanimoto(), gamma=0.5)
    >>> GaussianTanimoto(packed=True)
    Gaussian(base=Tanimoto(packed=True), gamma=0.5)
    """
    from psilearn.kernels.binary import Tanimoto

    return Gaussian(gamma=gamma, base=Tanimoto(packed=packed))


class Laplacian(_WidthFromData, RowKernel):
    """k(a, b) = exp(−γ |a − b|₁), with the Manhattan distance.

    Parameters
    ----------
    gamma : float or "median"
        the width; "median" is 1 / median |a − b|₁ over the data given to ``fit``.

    Examples
    --------
    >>> from psilearn.kernels import Laplacian
    >>> Laplacian(gamma=1.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.1353]])
    """

    _makes_blocks = True

    def __init__(self, gamma: float | str = "median") -> None:
        self.gamma = gamma

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the block exp(−γ |a − b|₁)."""
        return in_strips(self._distances(A, B), _exponential(self._width()))

    def diag(self, A: Samples) -> Array:
        """Return ones."""
        return np.ones(n_samples(self.check(A)))

    def _distances(self, A: Samples, B: Samples | None = None) -> Array:
        rows, others = self._row_pair(A, B)
        block = np.empty((rows.shape[0], others.shape[0]), working_dtype())
        columns = list(slices(others.shape[0], TILE))

        def one(i: slice) -> None:  # sums of float64, a tile at a time
            for j in columns:
                block[i, j] = manhattan_distances(rows[i], others[j])

        each_thread(one, list(slices(rows.shape[0], TILE // 4)))
        return block


def _exponential(gamma: float) -> Callable[[Array, slice], None]:
    """Return what turns distances into exp(−γd) in place."""

    def change(strip: Array, part: slice) -> None:
        strip *= -gamma
        exponentiate(strip)

    return change
