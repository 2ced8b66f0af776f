"""A tandem mass spectrum: what the kernels on spectra compare."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from psilearn._linalg import Array
from psilearn._utils import validation

HEAVIEST = 1e6  # m/z


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Peaks of one measured compound, with what is known of it. It holds at least one peak of positive intensity.

    Parameters
    ----------
    mz, intensity : arrays (k,)
        positions (m/z, positive) and heights (≥ 0) of the peaks; kept in ascending order of m/z, as float64.
    precursor_mz : float, optional
        m/z of the ion that was broken; neutral losses and masses of candidates are counted from it.
    adduct : str, optional
        how the molecule became that ion, such as ``"[M+H]+"``.
    formula, smiles : str, optional
        what is known of the molecule.
    name : str
        how messages call the spectrum: its identifier, or file and number.
    more : dict of str
        whatever else the file said; nothing here looks at it.

    Examples
    --------
    >>> Spectrum([59.01, 41.0], [10.0, 100.0], precursor_mz=77.02, name="mine").losses.round(2)
    array([36.02, 18.01])
    >>> Spectrum([59.01, 41.0], [10.0, 100.0], precursor_mz=77.02, name="mine")
    Spectrum('mine', 2 peaks, precursor_mz=77.02)
    """

    mz: Array
    intensity: Array
    precursor_mz: float | None = None
    adduct: str | None = None
    formula: str | None = None
    smiles: str | None = None
    name: str = ""
    more: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        called = f"The spectrum {self.name!r}" if self.name else "A spectrum"
        mz, intensity = (_numbers(getattr(self, part), f"{called}: {part}") for part in ("mz", "intensity"))
        if mz.shape != intensity.shape:
            raise ValueError(
                f"{called} has {len(mz)} m/z values and {len(intensity)} intensities: one a peak is needed."
            )
        if not len(mz):
            raise ValueError(f"{called} is empty: it has no peak.")
        if mz.max() > HEAVIEST:
            raise ValueError(f"{called} has a peak at m/z {mz.max():g}: beyond {HEAVIEST:g} nothing is measured.")
        if mz.min() <= 0 or intensity.min() < 0 or intensity.max() <= 0:
            raise ValueError(
                f"{called} must have m/z > 0, intensities ≥ 0 and one of them > 0; the smallest m/z is {mz.min():g}, "
                f"intensities lie between {intensity.min():g} and {intensity.max():g}."
            )
        if self.precursor_mz is not None:
            precursor = validation.check_positive(self.precursor_mz, f"{called}: precursor_mz")
            object.__setattr__(self, "precursor_mz", precursor)
        order = np.argsort(mz, kind="stable")
        object.__setattr__(self, "mz", mz[order])
        object.__setattr__(self, "intensity", intensity[order])

    def __len__(self) -> int:
        return len(self.mz)

    def __repr__(self) -> str:
        known = {name: getattr(self, name) for name in ("precursor_mz", "adduct", "formula")}
        told = ", ".join(f"{name}={value!r}" for name, value in known.items() if value is not None)
        return f"Spectrum({self.name!r}, {len(self)} peaks{', ' if told else ''}{told})"

    @property
    def losses(self) -> Array:
        """precursor m/z − m/z of each peak, (k,)."""
        if self.precursor_mz is None:
            raise ValueError(f"The spectrum {self.name!r} has no precursor_mz: neutral losses are counted from it.")
        return self.precursor_mz - self.mz


def _numbers(values: Any, name: str) -> Array:
    try:
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, one a peak: {error}.") from error
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError(
            f"{name} must be finite numbers, one a peak; got shape {numbers.shape} with "
            f"{int(np.sum(~np.isfinite(numbers)))} not finite."
        )
    return numbers
