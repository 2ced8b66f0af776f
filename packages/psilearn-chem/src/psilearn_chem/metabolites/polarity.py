"""The polarity of spectra and of models, and adducts that follow from formula and precursor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from psilearn.utils import validation
from psilearn_chem.adduct_spelling import find_polarity, normalize_adduct
from psilearn_chem.molecules import Adduct, Formula
from psilearn_chem.spectra import Spectrum

POLARITIES = ("positive", "negative")
COMMON_ADDUCTS = (
    *("[M+H]+", "[M+Na]+", "[M+NH4]+", "[M+K]+", "[M-H2O+H]+"),
    *("[M-H]-", "[M+HCOO]-", "[M+CH3COO]-", "[M+Cl]-"),
)
PRECURSOR_TOLERANCE = 0.5  # Da between the recorded precursor and that of formula and adduct
_SIGNED_CHARGE = re.compile(r"\d*([+-])\d*")


def polarities_of(adducts: Iterable[str]) -> tuple[str, ...]:
    """Return the polarities of several adducts, each once, positive first."""
    known = {find_polarity(normalize_adduct(adduct)) for adduct in adducts}
    return tuple(polarity for polarity in POLARITIES if polarity in known)


def polarity_of(spectrum: Spectrum) -> str | None:
    """Return the polarity by the adduct, else by ``ionmode`` or a signed ``charge`` of the metadata, or None."""
    if spectrum.adduct is not None:
        return find_polarity(normalize_adduct(spectrum.adduct))
    stated = spectrum.metadata.get("ionmode", "").strip().lower()
    for polarity in POLARITIES:
        if stated and polarity.startswith(stated):
            return polarity
    charge = _SIGNED_CHARGE.fullmatch(spectrum.metadata.get("charge", "").strip())
    return None if charge is None else POLARITIES[charge[1] == "-"]


def select_polarity(spectra: Sequence[Spectrum], polarity: str) -> list[Spectrum]:
    """Return the spectra without those of the other polarity; with "both", all of them."""
    validation.check_option(polarity, (*POLARITIES, "both"), "polarity")
    return [spectrum for spectrum in spectra if polarity == "both" or polarity_of(spectrum) in (None, polarity)]


def find_adduct(spectrum: Spectrum, formula: Formula, adducts: Iterable[str] = COMMON_ADDUCTS) -> str | None:
    """Return which adduct gives the formula the precursor of the spectrum, the nearest one within half a dalton.

    Only adducts of the polarity of the spectrum, if it is known, can be the result. None if there is none.
    """
    if spectrum.precursor_mz is None:
        return None
    polarity = polarity_of(spectrum)
    gaps = {
        adduct: abs(Adduct.parse(adduct).mz(formula.mass) - spectrum.precursor_mz)
        for adduct in adducts
        if polarity in (None, find_polarity(normalize_adduct(adduct)))
    }
    nearest = min(gaps, key=lambda adduct: gaps[adduct], default=None)
    return nearest if nearest is not None and gaps[nearest] <= PRECURSOR_TOLERANCE else None
