"""Several spectra of one compound: which belong together, and one merged spectrum for them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import numpy as np

from psilearn.utils import validation
from psilearn_chem.spectra.spectrum import Cleaning, FloatArray, Spectrum

CONDITIONS = ("collision_energy", "instrument", "instrument_type", "instrument_family")
GROUPINGS = ("feature", "name", "molecule")
MAX_PRECURSOR_GAP = 0.01  # Da between the precursors of spectra that are merged


def merge_spectra(spectra: Sequence[Spectrum], *, tolerance: float = 0.005) -> Spectrum:
    """Merge spectra of one ion, for example of several collision energies, into one spectrum.

    The highest peak of each spectrum is scaled to 1. Peaks with gaps of at most ``tolerance`` become one peak, at the
    mean of their m/z weighted by intensity, with the mean of the intensities over all spectra (0 where a spectrum has
    no such peak). The highest merged peak is scaled to 1.

    Parameters
    ----------
    spectra : sequence of Spectrum
        One or several spectra whose precursors differ by at most 0.02 Da.
    tolerance : float, default=0.005
        The largest gap in Da between neighboring peaks that are merged.

    Returns
    -------
    Spectrum
        The merged spectrum, with the fields of the first spectrum; ``parts`` has the spectra themselves.

    Raises
    ------
    ValueError
        If ``spectra`` is empty, or if the spectra have different precursors or adducts.

    See Also
    --------
    group_spectra : Find the spectra that belong together.
    Cleaning : Remove noise from a spectrum.

    Examples
    --------
    >>> from psilearn_chem.spectra import Spectrum, merge_spectra
    >>> low, high = Spectrum([50.0, 80.0], [1.0, 4.0]), Spectrum([50.002], [9.0])
    >>> merged = merge_spectra([low, high])
    >>> merged.mz.round(4), merged.intensity.round(4)
    (array([50.0016, 80.    ]), array([1. , 0.8]))
    """
    tolerance = validation.check_non_negative(tolerance, "tolerance")
    _check_same_ion(spectra)
    mz = np.concatenate([spectrum.mz for spectrum in spectra])
    intensity = np.concatenate([spectrum.intensity / spectrum.intensity.max() for spectrum in spectra])
    order = np.argsort(mz, kind="stable")
    mz, intensity = mz[order], intensity[order]
    peak = np.cumsum(np.diff(mz, prepend=mz[0]) > tolerance)
    total = np.bincount(peak, intensity)
    positive = total > 0
    position = np.bincount(peak, intensity * mz)[positive] / total[positive]
    height: FloatArray = total[positive] / total.max()
    parts = tuple(part for spectrum in spectra for part in (spectrum.parts or (spectrum,)))
    merged_parts = parts if len(spectra) > 1 else spectra[0].parts
    return replace(spectra[0], mz=position, intensity=height, metadata=_common_metadata(spectra), parts=merged_parts)


def _common_metadata(spectra: Sequence[Spectrum]) -> dict[str, str]:
    """Return the metadata of the first spectrum, without conditions of the measurement in which others differ."""
    first = spectra[0].metadata
    differ = [
        name for name in CONDITIONS if any(spectrum.metadata.get(name) != first.get(name) for spectrum in spectra)
    ]
    return {name: value for name, value in first.items() if name not in differ}


def group_spectra(spectra: Sequence[Spectrum], by: str = "feature") -> list[list[int]]:
    """Find the spectra of the same ion.

    Parameters
    ----------
    spectra : sequence of Spectrum
        The spectra.
    by : {"feature", "name", "molecule"}, default="feature"
        What spectra of one group share besides the adduct and, within 0.01 Da, the precursor: the field
        ``"feature_id"`` of their metadata, or the name if they have none ("feature"), the name ("name"), or the SMILES
        ("molecule"). A spectrum without it is a group of its own.

    Returns
    -------
    list of list of int
        The numbers of the spectra of each group, in the order of the first spectrum of each group.

    See Also
    --------
    merge_spectra : Merge the spectra of a group.

    Examples
    --------
    >>> from psilearn_chem.spectra import Spectrum, group_spectra
    >>> names = ["a", "b", "a", ""]
    >>> group_spectra([Spectrum([50.0], [1.0], precursor_mz=80.0, name=name) for name in names])
    [[0, 2], [1], [3]]
    """
    validation.check_option(by, GROUPINGS, "by")
    _check_spectra(spectra)
    identify = _IDENTIFIERS[by]
    groups: dict[Hashable, list[int]] = {}
    precursors: dict[Hashable, list[float]] = {}
    for i, spectrum in enumerate(spectra):
        identity = identify(spectrum)
        if not identity:
            groups[i] = [i]
            continue
        key = (identity, spectrum.adduct)
        known = precursors.setdefault(key, [])
        groups.setdefault((*key, _find_precursor(spectrum.precursor_mz, known)), []).append(i)
    return list(groups.values())


def merge_groups(spectra: Sequence[Spectrum], by: str) -> list[Spectrum]:
    """Return one merged and cleaned spectrum per group of :func:`group_spectra`."""
    clean = Cleaning(min_peaks=1)
    groups = group_spectra(spectra, by)
    return [
        spectra[group[0]] if len(group) == 1 else clean(merge_spectra([spectra[i] for i in group])) for group in groups
    ]


def _find_precursor(mz: float | None, known: list[float]) -> int:
    """Return the number of the precursor within the largest gap, which is appended if it is new; −1 without one."""
    if mz is None:
        return -1
    for number, other in enumerate(known):
        if abs(other - mz) <= MAX_PRECURSOR_GAP:
            return number
    known.append(mz)
    return len(known) - 1


def _check_spectra(spectra: Sequence[Spectrum]) -> None:
    if not isinstance(spectra, list | tuple) or not all(isinstance(item, Spectrum) for item in spectra):
        raise TypeError(f"spectra must be a list of Spectrum objects; got {spectra!r:.80}.")


def _check_same_ion(spectra: Sequence[Spectrum]) -> None:
    _check_spectra(spectra)
    if not len(spectra):
        raise ValueError("spectra must contain at least one spectrum; got none.")
    precursors = [spectrum.precursor_mz for spectrum in spectra if spectrum.precursor_mz is not None]
    if precursors and max(precursors) - min(precursors) > 2 * MAX_PRECURSOR_GAP:
        raise ValueError(
            f"spectra must have the same precursor; got precursor_mz from {min(precursors):.4f} to "
            f"{max(precursors):.4f}. group_spectra finds spectra of the same ion."
        )
    adducts = {spectrum.adduct for spectrum in spectra if spectrum.adduct is not None}
    if len(adducts) > 1:
        raise ValueError(f"spectra must have the same adduct; got {', '.join(sorted(adducts))}.")


_IDENTIFIERS: dict[str, Callable[[Spectrum], str]] = {
    "feature": lambda spectrum: spectrum.metadata.get("feature_id", "") or spectrum.name,
    "name": lambda spectrum: spectrum.name,
    "molecule": lambda spectrum: spectrum.smiles or "",
}
