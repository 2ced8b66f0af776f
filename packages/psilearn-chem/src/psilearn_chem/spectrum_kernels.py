"""Kernels on tandem mass spectra, whose peaks or neutral losses are Gaussians on the mass axis."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from psilearn.kernels import Gaussian, Kernel, uniform
from psilearn.utils import Index, Samples, each_thread, n_samples, n_threads, take, validation
from psilearn_chem.spectra.spectrum import Spectrum

Block = NDArray[np.float64]

_values: WeakKeyDictionary[Spectrum, dict[Hashable, Any]] = WeakKeyDictionary()
_shared: ContextVar[dict[Hashable, Block] | None] = ContextVar("shared blocks of kernels on spectra", default=None)


def remember(
    spectra: Sequence[Spectrum], key: Hashable, compute: Callable[[list[Spectrum]], Iterable[Any]]
) -> list[Any]:
    """Return one value per spectrum; those that are not known under the key are computed together."""
    known = [_values.setdefault(spectrum, {}) for spectrum in spectra]
    missing = [i for i, values in enumerate(known) if key not in values]
    if missing:
        for i, value in zip(missing, compute([spectra[i] for i in missing]), strict=True):
            known[i][key] = value
    return [values[key] for values in known]


@contextmanager
def share_blocks() -> Iterator[None]:
    """Keep blocks of kernels inside a ``with`` statement, for several kernels that have a part in common."""
    token = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(token)


def recall_block(A: Sequence[Spectrum], B: Sequence[Spectrum], key: Hashable, compute: Callable[[], Block]) -> Block:
    """Return a new array with the kernel values of all pairs; inside :func:`share_blocks` they are computed once."""
    blocks = _shared.get()
    if blocks is None:
        return compute()
    pairs = (key, tuple(A), tuple(B))
    if pairs not in blocks:
        blocks[pairs] = compute()
    return blocks[pairs].copy()


class SpectrumKernel(Kernel):
    """A kernel on lists of :class:`~psilearn_chem.spectra.Spectrum`."""

    _returns_new_block = True
    _needs_precursor = False
    _needs_formula = False

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        """Return the spectra, or raise an error if one is not a spectrum or lacks a field that is needed."""
        A = super()._check(A, name, allow_1d)
        kind = type(self).__name__
        for i, spectrum in enumerate(A):
            if not isinstance(spectrum, Spectrum):
                raise TypeError(
                    f"{kind} compares objects of psilearn_chem.spectra.Spectrum; {name}[{i}] is of type "
                    f"{type(spectrum).__name__}. psilearn_chem.spectra.read_spectra reads them from files."
                )
            if self._needs_precursor and spectrum.precursor_mz is None:
                raise ValueError(
                    f"{kind} needs the precursor of each spectrum, but {name}[{i}] ({spectrum.name!r}) has no "
                    f"precursor_mz."
                )
            if self._needs_formula and spectrum.formula is None:
                raise ValueError(
                    f"{kind} needs the molecular formula of each spectrum, but {name}[{i}] ({spectrum.name!r}) has "
                    f"none: dataclasses.replace(spectrum, formula=...) states one."
                )
        return A


Array = NDArray[np.float64]

FEATURES = ("peaks", "losses")
UNITS = ("Da", "ppm")
MAX_DEVIATIONS = float(np.sqrt(2 * 36.75))  # exp(−x²/2) < 1.2e-16 beyond it: the product of Gaussians is below rounding
MIN_THREADED_WORK = 2**28  # spectra times peaks from which threads are faster than one thread
MAX_CELLS = 2**20  # kernel values that are computed at once
MAX_PAIRS = 2**17  # pairs of peaks that are added at once; more if there are many kernel values


class _Peaks(NamedTuple):
    """The peaks of several spectra, in ascending order of position."""

    position: Array  # (N,)  m/z or neutral loss
    weight: Array  # (N,)  intensity to a power
    width: Array  # (N,)  standard deviation
    owner: Index  # (N,)  number of the spectrum that has the peak


class ProbabilityProduct(SpectrumKernel):
    """Probability product kernel of the peaks, or of the neutral losses, of two spectra.

    Each peak is a Gaussian of unit length at its m/z, weighted by its intensity to a power. Two spectra are compared by
    the inner product of the sums of their peaks,

        k(a, b) = Σᵢⱼ wᵢwⱼ ⟨pᵢ, pⱼ⟩.

    For peaks (or neutral losses) at u and v with widths s and t,

        ⟨p, q⟩ = √(2st/(s² + t²)) exp(−(u − v)²/(2(s² + t²))),

    which is exp(−(u − v)²/4σ²) if all widths are σ: the inner product of the densities, scaled so that the height of a
    peak does not depend on its width. ``ProbabilityProduct().normalized()`` removes the influence of the number of
    peaks and of the scale of intensities.

    The kernel is exact up to rounding: only pairs of peaks whose product is below 1.2e-16 are skipped. Cost: the pairs
    of peaks within a window of 12 widths, found by sorting. Memory: the block, and 30 MB per thread.

    Parameters
    ----------
    of : {"peaks", "losses"}, default="peaks"
        What is compared: peaks, at their m/z, or neutral losses, at precursor m/z − m/z. Peaks above the precursor are
        not losses and are ignored.
    width : float, default=0.005
        Standard deviation of a peak.
    unit : {"Da", "ppm"}, default="Da"
        Unit of the width. With "ppm" it is relative to the m/z of the peak, also for losses, because it is the peak
        whose position is uncertain.
    power : float, default=0.5
        Power of the intensities. With 0.5, small peaks count more than with 1; with 0, all peaks count the same.

    See Also
    --------
    spectrum_kernel : Kernel on both peaks and losses for metabolite identification.
    PrecursorMass : Kernel on the precursor m/z.

    References
    ----------
    .. [1] Jebara, Kondor and Howard, "Probability product kernels", Journal of Machine Learning Research, 2004.
    .. [2] Heinonen, Shen, Zamboni and Rousu, "Metabolite identification and molecular fingerprint prediction through
       machine learning", Bioinformatics, 2012.

    Examples
    --------
    >>> from psilearn_chem import ProbabilityProduct
    >>> from psilearn_chem.spectra import Spectrum
    >>> a, b = Spectrum([50.0, 80.0], [1.0, 4.0]), Spectrum([50.01, 90.0], [1.0, 1.0])
    >>> ProbabilityProduct(width=0.01)([a], [a, b]).round(4)
    array([[5.    , 0.7788]])
    """

    def __init__(self, of: str = "peaks", width: float = 0.005, unit: str = "Da", power: float = 0.5) -> None:
        self.of = of
        self.width = width
        self.unit = unit
        self.power = power

    def _block(self, A: Any, B: Any, compute: Any) -> Array:
        self._check_parameters()
        key = ("products", *self._parameters, compute.dtype)
        return recall_block(A, B, key, partial(self._compute_block, A, B, compute))

    def _compute_block(self, A: Any, B: Any, compute: Any) -> Array:
        others = self._peaks(B)
        K = np.zeros((n_samples(A), n_samples(B)), compute.dtype)
        step = max(1, min(-(-len(K) // n_threads()), MAX_CELLS // max(1, K.shape[1])))
        parts = [slice(start, min(start + step, len(K))) for start in range(0, len(K), step)]

        def add_rows(rows: slice) -> None:
            K[rows] = _sum_pairs(self._peaks(take(A, rows)), others, K[rows].shape)

        each_thread(add_rows, parts, sum(K.shape) * len(others.weight) > MIN_THREADED_WORK)
        return K

    def _diag(self, A: Any) -> Array:
        """Return the squared length of each spectrum; it is kept as long as the spectrum."""
        self._check_parameters()
        key = ("squared length", *self._parameters)
        return np.array(remember(list(A), key, self._squared_lengths_of), dtype=np.float64)

    def _squared_lengths_of(self, A: list[Spectrum]) -> Array:
        """Return the squared length of each spectrum: only peaks that are close to each other in it are multiplied."""
        peaks = self._peaks(A)
        by_owner = np.argsort(peaks.owner, kind="stable")  # within a spectrum, positions ascend
        owner = peaks.owner[by_owner]
        position, weight, width = peaks.position[by_owner], peaks.weight[by_owner], peaks.width[by_owner]
        squares = np.bincount(owner, weight**2, n_samples(A)).astype(np.float64)
        reach = MAX_DEVIATIONS * np.sqrt(2) * width.max(initial=0)
        for lag in range(1, len(owner)):
            near = np.flatnonzero((owner[:-lag] == owner[lag:]) & (position[lag:] - position[:-lag] <= reach))
            if not len(near):
                break
            far = near + lag
            products = _inner_products(position[near], width[near], position[far], width[far])
            squares += 2 * np.bincount(owner[near], products * weight[near] * weight[far], n_samples(A))
        return squares

    def _paired(self, A: Any, B: Any) -> Array:
        self._check_parameters()
        return np.array([self._product(a, b) for a, b in zip(A, B, strict=True)], dtype=np.float64)

    def _product(self, a: Spectrum, b: Spectrum) -> float:
        left, right = self._peaks([a]), self._peaks([b])
        product = _inner_products(left.position[:, None], left.width[:, None], right.position, right.width)
        return float(left.weight @ product @ right.weight)

    @property
    def _parameters(self) -> tuple[str, float, str, float]:
        return self.of, self.width, self.unit, self.power

    @property
    def _needs_precursor(self) -> bool:  # type: ignore[override]
        return self.of == "losses"

    def _check_parameters(self) -> None:
        validation.check_option(self.of, FEATURES, "of of ProbabilityProduct")
        validation.check_option(self.unit, UNITS, "unit of ProbabilityProduct")
        validation.check_regularization(self.width, "width of ProbabilityProduct")
        validation.check_non_negative(self.power, "power of ProbabilityProduct")

    def _peaks(self, spectra: Samples) -> _Peaks:
        sizes = [len(spectrum) for spectrum in spectra]
        mz = np.concatenate([spectrum.mz for spectrum in spectra])
        weight = np.concatenate([spectrum.intensity for spectrum in spectra])
        owner = np.repeat(np.arange(len(sizes)), sizes)
        weight = np.where(weight > 0, weight**self.power, 0.0)  # also for power 0, which would make it 1
        width = np.full(len(mz), float(self.width)) if self.unit == "Da" else 1e-6 * self.width * mz
        position = mz if self.of == "peaks" else np.concatenate([spectrum.losses for spectrum in spectra])
        kept = np.flatnonzero((weight > 0) & (position >= 0))
        order = kept[np.argsort(position[kept], kind="stable")]
        return _Peaks(position[order], weight[order], width[order], owner[order])


class PrecursorMass(SpectrumKernel):
    """Gaussian kernel of the precursor m/z of two spectra, k(a, b) = exp(−(m − m')²/2w²).

    Parameters
    ----------
    width : float, default=50.0
        The width w in Da.

    See Also
    --------
    ProbabilityProduct : Kernel on the peaks of spectra.

    Examples
    --------
    >>> from psilearn_chem import PrecursorMass
    >>> from psilearn_chem.spectra import Spectrum
    >>> PrecursorMass(50.0)([Spectrum([80.0], [1.0], precursor_mz=m) for m in (200.0, 250.0)]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    _needs_precursor = True

    def __init__(self, width: float = 50.0) -> None:
        self.width = width

    def _block(self, A: Any, B: Any, compute: Any) -> Array:
        return np.exp(-0.5 * (self._masses(A)[:, None] - self._masses(B)) ** 2, dtype=compute.dtype)

    def _diag(self, A: Any) -> Array:
        return np.ones(n_samples(A))

    def _paired(self, A: Any, B: Any) -> Array:
        return np.exp(-0.5 * (self._masses(A) - self._masses(B)) ** 2)

    def _masses(self, A: Any) -> Array:
        """Return precursor m/z in widths."""
        width = validation.check_positive(self.width, "width of PrecursorMass")
        return np.array([spectrum.precursor_mz for spectrum in A]) / width


def spectrum_kernel(gamma: float | None = 0.5, width: float = 0.005, unit: str = "Da") -> Kernel:
    """Return a kernel on spectra for metabolite identification.

    Two spectra are similar if they share fragments or neutral losses. The mean of the normalized probability product
    kernels is k̄ = ½(cosine of peaks + cosine of losses), and the kernel is k = exp(−γ(2 − 2k̄)).

    Parameters
    ----------
    gamma : float or None, default=0.5
        The factor γ of the Gaussian. With None, the kernel is k̄.
    width : float, default=0.005
        Standard deviation of a peak.
    unit : {"Da", "ppm"}, default="Da"
        Unit of the width: Da, or millionths of the m/z of the peak.

    Returns
    -------
    Kernel
        The kernel on lists of spectra, which need a precursor m/z.

    See Also
    --------
    ProbabilityProduct : Kernel on the peaks, or on the neutral losses, of spectra.

    Examples
    --------
    >>> from psilearn_chem import Spectrum, spectrum_kernel
    >>> a = Spectrum([50.0, 80.0], [1.0, 4.0], precursor_mz=120.0)
    >>> b = Spectrum([50.0, 90.0], [1.0, 1.0], precursor_mz=130.0)
    >>> spectrum_kernel()([a, b]).round(4)
    array([[1.    , 0.5912],
           [0.5912, 1.    ]])
    """
    mean = uniform([ProbabilityProduct(of, width=width, unit=unit).normalized() for of in FEATURES])
    return mean if gamma is None else Gaussian(gamma=gamma, base=mean)


def _inner_products(u: Array, s: Array | np.float64, v: Array, t: Array | np.float64) -> Array:
    """Return the inner products of Gaussians of unit length at u and v with standard deviations s and t."""
    variance = s**2 + t**2
    products = u - v
    products *= products
    products /= -2 * variance
    np.exp(products, out=products)
    products *= np.sqrt(2 * s * t / variance)
    return products


def _sum_pairs(left: _Peaks, right: _Peaks, shape: tuple[int, ...]) -> Array:
    """Return the sums Σ wᵢwⱼ⟨pᵢ, pⱼ⟩ of all pairs of spectra: each pair of close peaks adds to its cell."""
    cells = np.zeros(int(np.prod(shape)))
    if not len(left.weight) or not len(right.weight):
        return cells.reshape(shape)
    reach = MAX_DEVIATIONS * float(np.hypot(left.width.max(), right.width.max()))
    first = np.searchsorted(right.position, left.position - reach)
    counts = np.searchsorted(right.position, left.position + reach, side="right") - first
    ends = np.cumsum(counts)
    shifts = first - ends + counts  # from the number of a pair to its right peak
    width = None if np.ptp(left.width) or np.ptp(right.width) else (left.width[0], right.width[0])
    limit, start = max(MAX_PAIRS, len(cells) // 8), 0
    while start < len(counts):
        done = ends[start] - counts[start]
        stop = max(start + 1, int(np.searchsorted(ends, done + limit, side="right")))
        run = slice(start, stop)
        repeat = partial(np.repeat, repeats=counts[run])
        j = np.arange(done, ends[stop - 1])
        j += repeat(shifts[run])
        widths = (repeat(left.width[run]), right.width[j]) if width is None else width
        products = _inner_products(repeat(left.position[run]), widths[0], right.position[j], widths[1])
        products *= repeat(left.weight[run])
        products *= right.weight[j]
        cells += np.bincount(repeat(left.owner[run] * shape[1]) + right.owner[j], products, len(cells))
        start = stop
    return cells.reshape(shape)
