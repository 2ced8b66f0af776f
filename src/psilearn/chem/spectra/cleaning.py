"""Cleaning of spectra as an instrument gives them: noise, what is above the precursor, scale."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from psilearn._utils import validation
from psilearn.chem.spectra.spectrum import Spectrum


@dataclass(frozen=True)
class Cleaning:
    """What is done to a spectrum before it is compared, in this order.

    Parameters
    ----------
    above_precursor : float or None
        peaks more than this many Da above the precursor m/z go: no fragment is heavier than its ion, isotopes apart.
        None keeps them; so does a spectrum without precursor, and one of several charges.
    around_precursor : float or None
        peaks within this many Da of the precursor m/z go too; None, the default, keeps the precursor's own peak, which
        tells how readily the ion breaks.
    noise : float
        peaks below this part of the highest one go.
    max_peaks : int or None
        only that many of the highest peaks stay.
    min_peaks : int
        a spectrum with fewer peaks in the end is refused: one peak says too little.

    The highest peak becomes 1.

    Examples
    --------
    >>> from psilearn.chem.spectra import Cleaning, Spectrum
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

        Raises
        ------
        ValueError
            where too few peaks are left.
        """
        mz, height = spectrum.mz, spectrum.intensity
        kept = height > 0
        if spectrum.precursor_mz is not None:
            beyond = mz - spectrum.precursor_mz
            if self.above_precursor is not None and not _is_multiply_charged(spectrum):
                kept &= beyond <= self.above_precursor
            if self.around_precursor is not None:
                kept &= np.abs(beyond) > self.around_precursor
        mz, height = mz[kept], height[kept]
        if len(height):
            kept = height >= self.noise * height.max()
            mz, height = mz[kept], height[kept]
        if self.max_peaks is not None and len(height) > self.max_peaks:
            highest = np.sort(np.argsort(-height, kind="stable")[: self.max_peaks])
            mz, height = mz[highest], height[highest]
        if len(mz) < self.min_peaks:
            raise ValueError(
                f"{spectrum.name or 'a spectrum'} has {len(mz)} of its {len(spectrum)} peaks left after cleaning; at "
                f"least {self.min_peaks} are needed (min_peaks)."
            )
        return replace(spectrum, mz=mz, intensity=height / height.max())


def _is_multiply_charged(spectrum: Spectrum) -> bool:
    """Whether fragments of fewer charges may lie above the precursor: by its adduct, else by the file's own word."""
    told = spectrum.more.get("charge", "") if spectrum.adduct is None else spectrum.adduct.partition("]")[2]
    return bool(re.search(r"[2-9]", told)) or told.strip() in ("++", "+++", "--", "---")
