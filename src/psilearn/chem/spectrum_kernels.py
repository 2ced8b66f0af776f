"""Kernels on tandem mass spectra: peaks, or neutral losses, as Gaussians on the axis of masses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from psilearn._backend import working_dtype
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples, n_samples, take
from psilearn.chem.spectra.spectrum import Spectrum
from psilearn.kernels.combine import uniform
from psilearn.kernels.inner_products import each_thread, slices, threads
from psilearn.kernels.kernel import Array, Kernel, same_length
from psilearn.kernels.vector import Gaussian

PARTS = ("peaks", "losses")
UNITS = ("Da", "ppm")
REACH = float(np.sqrt(2 * 36.75))  # exp(−REACH²/2) < 1.2e-16: beyond it a product of Gaussians is below rounding
AREA = 2**20  # products in a block at the most
RUN, SMALL = 256, 2**16  # peaks that are taken together where that makes no more products than this
THREADED = 2**28  # spectra times peaks from which on threads are worth their start


class _Peaks(NamedTuple):
    """The peaks of several spectra, in ascending order of position."""

    position: Array  # (N,)
    weight: Array  # (N,)  intensity to a power
    width: Array  # (N,)  standard deviation
    owner: Index  # (N,)  which spectrum each belongs to


class _SpectrumKernel(Kernel):
    """A kernel on lists of :class:`~psilearn.chem.spectra.Spectrum`."""

    _makes_blocks = True
    _needs_precursor = False

    def check(self, A: Samples, name: str = "A", *, allow_1d: bool = True) -> Samples:
        """Demand spectra, with a precursor where it is needed."""
        A = super().check(A, name, allow_1d=allow_1d)
        for i, spectrum in enumerate(A):
            if not isinstance(spectrum, Spectrum):
                raise TypeError(
                    f"{type(self).__name__} compares objects of psilearn.chem.spectra.Spectrum; {name}[{i}] is of type "
                    f"{type(spectrum).__name__}. psilearn.chem.spectra.read_spectra reads them from files."
                )
            if self._needs_precursor and spectrum.precursor_mz is None:
                raise ValueError(
                    f"{type(self).__name__} needs the precursor of each spectrum, but {name}[{i}] "
                    f"({spectrum.name!r}) has no precursor_mz."
                )
        return A


class ProbabilityProduct(_SpectrumKernel):
    """k(a, b) = Σᵢⱼ wᵢwⱼ ⟨pᵢ, pⱼ⟩: each peak is a Gaussian of unit length at its m/z, weighted by its intensity.

    For peaks (or neutral losses) at u and v with widths s and t

        ⟨p, q⟩ = √(2st/(s² + t²)) exp(−(u − v)²/(2(s² + t²))),

    which is exp(−(u − v)²/4σ²) for a width σ common to all: the inner product of the densities, scaled so that the
    height of a peak does not depend on its width. Weights are intensityᵖ. ``ProbabilityProduct().normalized()`` takes
    out the number of peaks and the scale of intensities; sums of kernels on peaks and on losses, see
    :func:`spectrum_kernel`.

    Exact: pairs of peaks whose product is below 1.2e-16 are not looked at, all others are. Cost: the pairs of peaks
    within a window of 12 widths, found by sorting; memory: the block and 8 MB a thread.

    Parameters
    ----------
    of : "peaks" or "losses"
        positions are m/z, or precursor m/z − m/z; a peak above its precursor is no loss.
    width : float
        standard deviation of a peak.
    unit : "Da" or "ppm"
        of the width; ppm of the peak's own m/z, for losses too: it is the peak whose place is uncertain.
    power : float
        of intensities: ½ lets small peaks speak, 1 is the intensity itself, 0 counts peaks.

    References
    ----------
    Jebara, Kondor and Howard, *Probability product kernels*, JMLR 2004; Heinonen, Shen, Zamboni and Rousu, *Metabolite
    identification and molecular fingerprint prediction through machine learning*, Bioinformatics 2012.

    Examples
    --------
    >>> from psilearn.chem import ProbabilityProduct
    >>> from psilearn.chem.spectra import Spectrum
    >>> a, b = Spectrum([50.0, 80.0], [1.0, 4.0]), Spectrum([50.01, 90.0], [1.0, 1.0])
    >>> ProbabilityProduct(width=0.01)([a], [a, b]).round(4)
    array([[5.    , 0.7788]])
    """

    def __init__(self, of: str = "peaks", width: float = 0.005, unit: str = "Da", power: float = 0.5) -> None:
        self.of = of
        self.width = width
        self.unit = unit
        self.power = power

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the block of all pairs."""
        self._check_parameters()
        left = self.check(A)
        right = left if B is None else self.check(B, "B")
        others = self._peaks(right)
        K = np.zeros((n_samples(left), n_samples(right)), working_dtype())
        step = -(-len(K) // threads())

        def one(rows: slice) -> None:
            for block, owners, other_owners in _products(self._peaks(take(left, rows)), others):
                K[np.ix_(owners + rows.start, other_owners)] += block.astype(K.dtype, copy=False)

        each_thread(one, list(slices(len(K), step)), sum(K.shape) * len(others.weight) > THREADED)
        return K

    def diag(self, A: Samples) -> Array:
        """Return the squared length of each spectrum: only peaks that are close to each other in it are multiplied."""
        self._check_parameters()
        peaks = self._peaks(self.check(A))
        by_owner = np.argsort(peaks.owner, kind="stable")  # within a spectrum, positions ascend
        owner = peaks.owner[by_owner]
        position, weight, width = peaks.position[by_owner], peaks.weight[by_owner], peaks.width[by_owner]
        squares = np.bincount(owner, weight**2, n_samples(A)).astype(np.float64)
        reach = REACH * np.sqrt(2) * width.max(initial=0)
        for lag in range(1, len(owner)):
            near = np.flatnonzero((owner[:-lag] == owner[lag:]) & (position[lag:] - position[:-lag] <= reach))
            if not len(near):
                break
            far = near + lag
            product = _overlaps(position[near], width[near], position[far], width[far]) * weight[near] * weight[far]
            squares += 2 * np.bincount(owner[near], product, n_samples(A))
        return squares

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return k(aᵢ, bᵢ) for each i."""
        self._check_parameters()
        same_length(A, B)
        pairs = zip(self.check(A), self.check(B, "B"), strict=True)
        return np.array([self._one(a, b) for a, b in pairs], dtype=np.float64)

    def _one(self, a: Spectrum, b: Spectrum) -> float:
        left, right = self._peaks([a]), self._peaks([b])
        product = _overlaps(left.position[:, None], left.width[:, None], right.position, right.width)
        return float(left.weight @ product @ right.weight)

    @property
    def _needs_precursor(self) -> bool:  # type: ignore[override]
        return self.of == "losses"

    def _check_parameters(self) -> None:
        if self.of not in PARTS or self.unit not in UNITS:
            raise ValueError(
                f"ProbabilityProduct has of = {' or '.join(map(repr, PARTS))} and unit = "
                f"{' or '.join(map(repr, UNITS))}; got of={self.of!r}, unit={self.unit!r}."
            )
        validation.check_positive(self.width, "width of ProbabilityProduct")
        validation.check_non_negative(self.power, "power of ProbabilityProduct")

    def _peaks(self, spectra: Samples) -> _Peaks:
        sizes = [len(spectrum) for spectrum in spectra]
        mz = np.concatenate([spectrum.mz for spectrum in spectra])
        weight = np.concatenate([spectrum.intensity for spectrum in spectra])
        owner = np.repeat(np.arange(len(sizes)), sizes)
        weight = np.where(weight > 0, weight**self.power, 0.0)  # a peak of height 0 is none, whatever the power
        width = np.full(len(mz), self.width) if self.unit == "Da" else 1e-6 * self.width * mz
        position = mz if self.of == "peaks" else np.concatenate([spectrum.losses for spectrum in spectra])
        kept = np.flatnonzero((weight > 0) & (position >= 0))
        order = kept[np.argsort(position[kept], kind="stable")]
        return _Peaks(position[order], weight[order], width[order], owner[order])


class PrecursorMass(_SpectrumKernel):
    """k(a, b) = exp(−(m − m')²/2w²) of the precursors' m/z: how alike two ions are in size.

    Parameters
    ----------
    width : float
        w, in Da.

    Examples
    --------
    >>> from psilearn.chem import PrecursorMass
    >>> from psilearn.chem.spectra import Spectrum
    >>> PrecursorMass(50.0)([Spectrum([80.0], [1.0], precursor_mz=m) for m in (200.0, 250.0)]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    _needs_precursor = True

    def __init__(self, width: float = 50.0) -> None:
        self.width = width

    def __call__(self, A: Samples, B: Samples | None = None) -> Array:
        """Return the block of all pairs."""
        left = self._masses(A)
        right = left if B is None else self._masses(B, "B")
        return np.exp(-0.5 * (left[:, None] - right) ** 2, dtype=working_dtype())

    def diag(self, A: Samples) -> Array:
        """Return ones."""
        return np.ones(n_samples(self.check(A)))

    def paired(self, A: Samples, B: Samples) -> Array:
        """Return k(aᵢ, bᵢ) for each i."""
        same_length(A, B)
        return np.exp(-0.5 * (self._masses(A) - self._masses(B, "B")) ** 2)

    def _masses(self, A: Samples, name: str = "A") -> Array:
        """Return precursor m/z in widths."""
        width = validation.check_positive(self.width, "width of PrecursorMass")
        return np.array([spectrum.precursor_mz for spectrum in self.check(A, name)]) / width


def spectrum_kernel(gamma: float | None = 0.5, width: float = 0.005, unit: str = "Da") -> Kernel:
    """Return the kernel for metabolites: a Gaussian over the mean of the normalised kernels on peaks and on losses.

    Two spectra are alike where they share fragments, or what the fragments lack: k̄ = ½(cos of peaks + cos of losses),
    and k = exp(−γ(2 − 2k̄)). ``gamma=None`` is k̄ itself.

    Examples
    --------
    >>> from psilearn.chem import spectrum_kernel
    >>> spectrum_kernel(gamma=None)  # doctest: +ELLIPSIS
    Sum(left=Scaled(kernel=Normalized(kernel=ProbabilityProduct()), scale=0.5)...
    """
    parts = [ProbabilityProduct(of, width=width, unit=unit).normalized() for of in PARTS]
    mean = uniform(parts)
    return mean if gamma is None else Gaussian(gamma=gamma, base=mean)


def _overlaps(u: Array, s: Array, v: Array, t: Array) -> Array:
    """Return ⟨p, q⟩ of unit Gaussians at u and v with standard deviations s and t."""
    variance = s**2 + t**2
    return np.sqrt(2 * s * t / variance) * np.exp(-((u - v) ** 2) / (2 * variance))


def _products(left: _Peaks, right: _Peaks) -> Iterator[tuple[Array, Index, Index]]:
    """Yield blocks Σ wᵢwⱼ⟨pᵢ, pⱼ⟩ with the spectra of their rows and columns, which are all different in one block.

    The peaks of the left side are cut into runs of neighbours no longer than the reach of a Gaussian, or longer where
    peaks are so few that a block costs less than its Python; the right peaks within reach of a run are found by
    bisection.
    """
    if not len(left.weight) or not len(right.weight):
        return
    reach = REACH * float(np.hypot(left.width.max(), right.width.max()))
    start = 0
    while start < len(left.position):
        first = int(np.searchsorted(right.position, left.position[start] - reach))
        stop = min(start + RUN, len(left.position))
        last = int(np.searchsorted(right.position, left.position[stop - 1] + reach, side="right"))
        if (stop - start) * (last - first) > SMALL:
            stop = int(np.searchsorted(left.position, left.position[start] + reach, side="right"))
            last = int(np.searchsorted(right.position, left.position[stop - 1] + reach, side="right"))
        stop = min(stop, start + max(1, AREA // max(1, last - first)))
        if last > first:
            i, j = slice(start, stop), slice(first, last)
            block = _overlaps(left.position[i, None], left.width[i, None], right.position[j], right.width[j])
            block *= left.weight[i, None]
            block *= right.weight[j]
            block, owners = _summed(block, left.owner[i])
            transposed, other_owners = _summed(block.T, right.owner[j])
            yield transposed.T, owners, other_owners
        start = stop


def _summed(block: Array, owner: Index) -> tuple[Array, Index]:
    """Add up the rows that belong to one spectrum."""
    order = np.argsort(owner, kind="stable")
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    if len(starts) == len(owner):
        return block, owner
    return np.add.reduceat(block[order], starts, axis=0), owner[order][starts]
