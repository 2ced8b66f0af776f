"""Cleaning of measured spectra: peaks above the precursor, noise, and the scale of intensities."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from psilearn.utils import Index, validation
from psilearn_chem.spectra.spectrum import FloatArray, Spectrum


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
