"""Polarities of spectra, and adducts that follow from formula and precursor."""

from dataclasses import replace

import pytest

from psilearn_chem.metabolites.queries import COMMON_ADDUCTS, find_adduct, polarities_of, polarity_of, select_polarity
from psilearn_chem.molecules import Adduct, Formula
from psilearn_chem.spectra import Spectrum

GLUCOSE = Formula.parse("C6H12O6")


@pytest.mark.parametrize("adduct", COMMON_ADDUCTS)
def test_each_adduct_is_found_by_its_precursor(adduct):
    spectrum = Spectrum([50.0], [1.0], precursor_mz=Adduct.parse(adduct).mz(GLUCOSE.mass) + 0.01)
    assert find_adduct(spectrum, GLUCOSE) == adduct
    others = [other for other in COMMON_ADDUCTS if other != adduct]
    assert find_adduct(spectrum, GLUCOSE, others) is None
    assert polarity_of(replace(spectrum, adduct=adduct)) == ("negative" if adduct.endswith("-") else "positive")


def test_an_adduct_of_the_other_polarity_or_without_a_precursor_is_not_found():
    spectrum = Spectrum([50.0], [1.0], precursor_mz=Adduct.parse("[M-H]-").mz(GLUCOSE.mass))
    assert find_adduct(replace(spectrum, metadata={"ionmode": "positive"}), GLUCOSE) is None
    assert find_adduct(replace(spectrum, metadata={"ionmode": "n"}), GLUCOSE) == "[M-H]-"
    assert find_adduct(replace(spectrum, precursor_mz=None), GLUCOSE) is None


@pytest.mark.parametrize(
    ("metadata", "polarity"),
    [
        ({}, None),
        ({"ionmode": "Negative"}, "negative"),
        ({"ionmode": "P"}, "positive"),
        ({"ionmode": "both"}, None),
        ({"charge": "1-"}, "negative"),
        ({"charge": "2+"}, "positive"),
        ({"charge": "1"}, None),  # writers leave out the sign of negative ions, too
        ({"ionmode": "negative", "charge": "+1"}, "negative"),
    ],
)
def test_the_polarity_is_read_from_the_metadata(metadata, polarity):
    assert polarity_of(Spectrum([50.0], [1.0], metadata=metadata)) == polarity


def test_spectra_of_one_polarity_are_selected():
    spectra = [Spectrum([50.0], [1.0], adduct=adduct) for adduct in ("[M+H]+", "[M-H]-", None)]
    assert select_polarity(spectra, "positive") == [spectra[0], spectra[2]]
    assert select_polarity(spectra, "negative") == spectra[1:] and select_polarity(spectra, "both") == spectra
    with pytest.raises(ValueError, match="polarity must be"):
        select_polarity(spectra, "neutral")


def test_polarities_of_adducts_are_listed_once():
    assert polarities_of(["[M-H]-", "[M+H]+", "[M+Cl]-"]) == ("positive", "negative") and polarities_of(["M-H"]) == (
        "negative",
    )
