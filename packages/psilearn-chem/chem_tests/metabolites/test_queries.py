"""Candidates of a spectrum, by its formula or by the mass of its precursor."""

from dataclasses import replace

import numpy as np
import pytest

from chem_tests.chemistry import build_library, smiles_list, spectra_of
from psilearn_chem.metabolites import Query
from psilearn_chem.molecules import CandidateLibrary, MoleculeList
from psilearn_chem.spectra import Spectrum


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_library(tmp_path_factory.mktemp("library") / "lib")


@pytest.fixture(scope="module")
def spectra():
    return spectra_of(smiles_list()[:60:3])


def find(spectrum, library, **options):
    return Query(**options).find_candidates(spectrum, library)[0]


def test_formula_and_mass_find_the_same_candidates(library, spectra):
    for spectrum in spectra[:20]:
        by_formula = find(spectrum, library, by="formula")
        assert find(spectrum, library) == by_formula
        by_mass = find(spectrum, library, by="mass", ppm=5)
        assert by_mass.start <= by_formula.start < by_formula.stop <= by_mass.stop
        assert find(replace(spectrum, formula=None), library, ppm=5) == by_mass


H = {"adducts": ("[M+H]+",)}


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"formula": "C60H60", "precursor_mz": 781.4768}, {}, "no molecule of formula C60H60 is in the library"),
        ({"formula": "sugar"}, {}, "'sugar' is not a molecular formula"),
        ({"adduct": "[M+Na]+"}, {}, "the formula, the adduct or the precursor is wrong"),
        ({"adduct": "[M+Na]+"}, {"adducts": ("[M+H]+",)}, r"trained on \[M\+H\]\+"),
        ({"adduct": "[M-H]-"}, H, r"of a negative ion \(\[M-H\]-\), but the model was trained on positive ions only"),
        ({"adduct": None, "metadata": {"ionmode": "negative"}}, H, "of a negative ion, but .* on positive ions only"),
        ({"adduct": None, "metadata": {"charge": "1-"}}, H, "of a negative ion, but .* on positive ions only"),
        ({"adduct": None}, {"adducts": ("[M-H]-",)}, r"no adduct, and its precursor .* as \[M-H\]-.* of \[M\+H\]\+$"),
        ({"adduct": None, "precursor_mz": 99.0}, H, r"no adduct, and its precursor 99.0000 is not that of .* trained$"),
        ({"adduct": "sodium"}, {}, "'sodium' is not an adduct"),
        ({"formula": None, "adduct": None}, {}, "no adduct, and no formula: state it in the file or with --adduct"),
        ({"precursor_mz": None}, {}, "no precursor_mz, from which"),
        ({"adduct": "[M+H]0+"}, {}, "is not an adduct"),
        ({"formula": None}, {"by": "formula"}, "no formula; its precursor mass can be used"),
        ({"adduct": None}, {"by": "mass"}, "no adduct, and its mass cannot be computed"),
        ({"formula": None, "precursor_mz": 5000.0}, {}, "no molecule of mass"),
        ({"formula": None, "precursor_mz": 0.5}, {}, "leaves no mass"),
    ],
)
def test_spectra_without_candidates_are_rejected(library, spectra, change, options, message):
    with pytest.raises(ValueError, match=message):
        find(replace(spectra[0], **change), library, **options)


@pytest.mark.parametrize("metadata", [{}, {"ionmode": "Positive"}, {"charge": "+1"}, {"charge": "0"}, {"ionmode": "?"}])
def test_spectra_without_adduct_are_accepted_if_their_precursor_is_that_of_an_accepted_one(library, spectra, metadata):
    spectrum = replace(spectra[0], adduct=None, metadata=metadata)
    assert find(spectrum, library, adducts=("[M-H]-", "[M+H]+")) == find(spectra[0], library)


def test_spectra_of_any_polarity_are_accepted_without_a_list_of_adducts(library, spectra):
    negative = spectra_of(smiles_list()[:1], adduct="[M-H]-")[0]
    assert find(negative, library) == find(replace(negative, adduct=None), library) == find(spectra[0], library)


@pytest.mark.parametrize("bad", [{"by": "name"}, {"ppm": 0}, {"ppm": np.nan}])
def test_invalid_queries_are_rejected(bad):
    with pytest.raises(ValueError, match="must be"):
        Query(**bad)


def test_an_adduct_is_recognized_in_different_spellings(library, spectra):
    for text in ("[M+H]1+", "M+H", "[M+H]", "[M + H]+"):
        rows = find(replace(spectra[0], adduct=text), library, adducts=("[M+H]+",))
        assert rows == find(spectra[0], library)


def test_molecules_that_are_ions_are_found(tmp_path):
    library = CandidateLibrary.build(MoleculeList(["C[N+](C)(C)CCO", "CCO"], ["choline", ""]), tmp_path / "lib")
    choline = Spectrum([50.0, 60.0], [1.0, 1.0], 104.10699, "[M]+", "C5H14NO", name="choline")
    for change in ({}, {"formula": "[C5H14NO]+"}, {"formula": "C5H14NO+"}, {"formula": None}):
        rows = find(replace(choline, **change), library, ppm=2)
        assert library.get_names(rows) == ["choline"]


@pytest.mark.parametrize("wrong", [None, 3, "[M+H]+"])
def test_wrong_arguments_are_named(library, spectra, wrong):
    with pytest.raises(TypeError, match="spectrum must be a Spectrum"):
        Query().find_candidates(wrong, library)
    with pytest.raises(TypeError, match="spectrum must be a Spectrum"):
        Query().check_adduct(wrong)
    with pytest.raises(TypeError, match="library must be a CandidateLibrary"):
        Query().find_candidates(spectra[0], wrong)
