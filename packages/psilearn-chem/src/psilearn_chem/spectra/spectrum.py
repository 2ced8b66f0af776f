"""A tandem mass spectrum: peaks and what is known of the measured molecule; and its cleaning."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psilearn.utils import Index, validation

FloatArray = NDArray[np.float64]

MAX_MZ = 1e6  # no instrument measures beyond it


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Tandem mass spectrum of one compound, with what is known of its molecule.

    A spectrum has at least one peak of positive intensity. Peaks are kept in ascending order of m/z.

    Parameters
    ----------
    mz : array-like of shape (k,)
        Positions of the peaks, as mass-to-charge ratios > 0. Kept as float64.
    intensity : array-like of shape (k,)
        Heights of the peaks, ≥ 0. Kept as float64.
    precursor_mz : float, default=None
        Mass-to-charge ratio of the ion that was fragmented. Neutral losses and the mass of the molecule are computed
        from it.
    adduct : str, default=None
        Adduct that formed the ion from the molecule, such as ``"[M+H]+"``.
    formula : str, default=None
        Molecular formula, if it is known.
    smiles : str, default=None
        Structure of the molecule as a SMILES string, if it is known.
    name : str, default=""
        Identifier of the spectrum in messages and tables.
    metadata : dict of str to str, default={}
        Further fields of the file from which the spectrum was read. They are kept, but not used; only
        :class:`Cleaning` reads ``"charge"`` where there is no adduct, and the evidence of reference spectra depends on
        ``"instrument"`` and ``"collision_energy"``.
    parts : tuple of Spectrum, default=()
        The spectra that were merged into this one (:func:`merge_spectra`). They are not saved with models.

    Raises
    ------
    ValueError
        If there is no peak, if the numbers of m/z values and intensities differ, or if a value is not finite or out of
        range.

    See Also
    --------
    read_spectra : Read spectra from a file.
    Cleaning : Remove noise from a spectrum and scale its intensities.

    Examples
    --------
    >>> from psilearn_chem.spectra import Spectrum
    >>> spectrum = Spectrum([59.01, 41.0], [10.0, 100.0], precursor_mz=77.02, name="s1")
    >>> spectrum
    Spectrum('s1', 2 peaks, precursor_mz=77.02)
    >>> spectrum.mz
    array([41.  , 59.01])
    >>> spectrum.losses.round(2)
    array([36.02, 18.01])
    """

    mz: FloatArray
    intensity: FloatArray
    precursor_mz: float | None = None
    adduct: str | None = None
    formula: str | None = None
    smiles: str | None = None
    name: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    parts: tuple[Spectrum, ...] = ()

    def __post_init__(self) -> None:
        _check_texts(self)
        subject = f"The spectrum {self.name!r}" if self.name else "A spectrum"
        mz = _as_peak_values(self.mz, f"{subject}: mz")
        intensity = _as_peak_values(self.intensity, f"{subject}: intensity")
        _check_peaks(mz, intensity, subject)
        if self.precursor_mz is not None:
            precursor = validation.check_positive(self.precursor_mz, f"{subject}: precursor_mz")
            object.__setattr__(self, "precursor_mz", precursor)
        order = np.argsort(mz, kind="stable")
        object.__setattr__(self, "mz", mz[order])
        object.__setattr__(self, "intensity", intensity[order])

    def __len__(self) -> int:
        return len(self.mz)

    def __repr__(self) -> str:
        fields = {name: getattr(self, name) for name in ("precursor_mz", "adduct", "formula")}
        known = "".join(f", {name}={value!r}" for name, value in fields.items() if value is not None)
        return f"Spectrum({self.name!r}, {len(self)} peaks{known})"

    @property
    def losses(self) -> FloatArray:
        """Neutral losses of shape (k,): the precursor m/z minus the m/z of each peak."""
        if self.precursor_mz is None:
            raise ValueError(f"The spectrum {self.name!r} has no precursor_mz, which neutral losses are computed from.")
        return self.precursor_mz - self.mz


def _check_texts(spectrum: Spectrum) -> None:
    """Raise an error about a field that is not the text, or the dictionary of texts, that it must be."""
    for name in ("adduct", "formula", "smiles"):
        value = getattr(spectrum, name)
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} of a spectrum must be text or None; got {value!r:.80}.")
    if not isinstance(spectrum.name, str):
        raise TypeError(f"name of a spectrum must be text; got {spectrum.name!r:.80}.")
    if not isinstance(spectrum.metadata, dict):
        raise TypeError(f"metadata of a spectrum must be a dict; got {spectrum.metadata!r:.80}.")
    if not isinstance(spectrum.parts, tuple) or not all(isinstance(part, Spectrum) for part in spectrum.parts):
        raise TypeError(f"parts of a spectrum must be a tuple of Spectrum objects; got {spectrum.parts!r:.80}.")


def _as_peak_values(values: ArrayLike, name: str) -> FloatArray:
    """Return finite numbers, one per peak, as a new float64 array of shape (k,)."""
    try:
        if np.asarray(values).dtype.kind in "cmMV":
            raise TypeError(f"its dtype is {np.asarray(values).dtype}")
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, one per peak: {error}.") from error
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError(
            f"{name} must be finite numbers, one per peak; got shape {numbers.shape} with "
            f"{int(np.sum(~np.isfinite(numbers)))} values that are not finite."
        )
    return numbers


def _check_peaks(mz: FloatArray, intensity: FloatArray, subject: str) -> None:
    """Raise an error if m/z values and intensities are not the peaks of a spectrum."""
    if mz.shape != intensity.shape:
        raise ValueError(
            f"{subject} has {len(mz)} m/z values and {len(intensity)} intensities: one of each is needed per peak."
        )
    if not len(mz):
        raise ValueError(f"{subject} is empty: it has no peak.")
    if mz.max() > MAX_MZ:
        raise ValueError(f"{subject} has a peak at m/z {mz.max():g}; values above {MAX_MZ:g} cannot be measured.")
    if mz.min() <= 0 or intensity.min() < 0 or intensity.max() <= 0:
        raise ValueError(
            f"{subject} must have m/z > 0, intensities ≥ 0 and one of them > 0; the smallest m/z is {mz.min():g}, "
            f"intensities lie between {intensity.min():g} and {intensity.max():g}."
        )


@dataclass(frozen=True)
class Cleaning:
    """Steps that clean a spectrum before it is compared with others.

    Peaks of intensity zero are removed, then peaks above and around the precursor, then noise, then all but the
    highest peaks. The highest remaining peak is scaled to intensity 1. Train and rank with the same cleaning.

    Parameters
    ----------
    above_precursor : float or None, default=1.5
        Remove peaks more than this many Da above the precursor m/z: apart from isotopes, no fragment is heavier than
        its ion. None keeps them. Spectra without precursor m/z and of ions with several charges keep them, too.
    around_precursor : float or None, default=None
        Remove peaks within this many Da of the precursor m/z. None keeps the peak of the precursor, which shows how
        easily the ion breaks.
    noise : float, default=0.001
        Remove peaks below this fraction of the highest peak.
    max_peaks : int or None, default=200
        Keep at most this many of the highest peaks. None keeps all.
    min_peaks : int, default=2
        Reject spectra with fewer remaining peaks: a single peak contains too little information.

    See Also
    --------
    read_spectra : Read spectra from a file and clean them.
    Spectrum : A tandem mass spectrum.

    Examples
    --------
    >>> from psilearn_chem.spectra import Cleaning, Spectrum
    >>> spectrum = Spectrum([50.0, 60.0, 70.0, 150.0], [5.0, 0.001, 10.0, 99.0], precursor_mz=100.0)
    >>> cleaned = Cleaning()(spectrum)
    >>> cleaned.mz, cleaned.intensity
    (array([50., 70.]), array([0.5, 1. ]))
    """

    above_precursor: float | None = 1.5
    around_precursor: float | None = None
    noise: float = 0.001
    max_peaks: int | None = 200
    min_peaks: int = 2

    def __post_init__(self) -> None:
        for name in ("above_precursor", "around_precursor"):
            if getattr(self, name) is not None:
                validation.check_non_negative(getattr(self, name), name)
        validation.check_fraction(self.noise, "noise")
        validation.check_count(self.min_peaks, "min_peaks")
        if self.max_peaks is not None and validation.check_count(self.max_peaks, "max_peaks") < self.min_peaks:
            raise ValueError(f"max_peaks={self.max_peaks} is below min_peaks={self.min_peaks}.")

    def __call__(self, spectrum: Spectrum) -> Spectrum:
        """Return the cleaned spectrum.

        Parameters
        ----------
        spectrum : Spectrum
            Spectrum as it was measured. It is not changed.

        Returns
        -------
        Spectrum
            New spectrum with the remaining peaks, the highest of intensity 1, and the same metadata.

        Raises
        ------
        ValueError
            If fewer than ``min_peaks`` peaks are left.

        See Also
        --------
        read_spectra : Read spectra from a file and clean them.

        Examples
        --------
        >>> from psilearn_chem.spectra import Cleaning, Spectrum
        >>> Cleaning(max_peaks=2)(Spectrum([50.0, 60.0, 70.0], [2.0, 1.0, 4.0])).intensity
        array([0.5, 1. ])
        """
        kept = np.flatnonzero(self._is_plausible(spectrum))
        if len(kept):
            kept = self._remove_noise(kept, spectrum.intensity)
        if len(kept) < self.min_peaks:
            raise ValueError(
                f"{spectrum.name or 'a spectrum'} has {len(kept)} of its {len(spectrum)} peaks left after cleaning; at "
                f"least {self.min_peaks} are needed (min_peaks)."
            )
        intensity = spectrum.intensity[kept]
        return replace(spectrum, mz=spectrum.mz[kept], intensity=intensity / intensity.max())

    def _is_plausible(self, spectrum: Spectrum) -> NDArray[np.bool_]:
        """Return a mask of the peaks with positive intensity at an m/z that a fragment can have."""
        if not isinstance(spectrum, Spectrum):
            raise TypeError(f"spectrum must be a Spectrum; got {spectrum!r:.80}.")
        plausible = spectrum.intensity > 0
        if spectrum.precursor_mz is None:
            return plausible
        distance = spectrum.mz - spectrum.precursor_mz
        if self.above_precursor is not None and not _is_multiply_charged(spectrum):
            plausible &= distance <= self.above_precursor
        if self.around_precursor is not None:
            plausible &= np.abs(distance) > self.around_precursor
        return plausible

    def _remove_noise(self, peaks: Index, intensity: FloatArray) -> Index:
        """Return those of at least one given peak that are high enough, at most ``max_peaks``, in ascending order."""
        peaks = peaks[intensity[peaks] >= self.noise * intensity[peaks].max()]
        return np.sort(peaks[np.argsort(-intensity[peaks], kind="stable")[: self.max_peaks]])


def _is_multiply_charged(spectrum: Spectrum) -> bool:
    """Return whether the ion has several charges, by its adduct or else the metadata; fragments may have fewer."""
    charge = spectrum.metadata.get("charge", "") if spectrum.adduct is None else spectrum.adduct.partition("]")[2]
    return bool(re.search(r"[2-9]", charge)) or charge.strip() in ("++", "+++", "--", "---")
