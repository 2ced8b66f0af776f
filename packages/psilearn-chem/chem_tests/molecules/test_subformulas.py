"""Peaks that a formula explains."""

import itertools

import numpy as np
import pytest

from psilearn_chem.molecules import Adduct, Formula
from psilearn_chem.molecules.formulas import ELECTRON_MASS
from psilearn_chem.molecules.subformulas import annotate_peaks, explain_peaks, formula_text


def test_every_part_of_a_small_formula_is_found():
    parts = [f"C{c}H{h}O{o}" for c, h, o in itertools.product(range(3), range(8), range(2)) if c + o]
    formulas = [Formula.parse(part.replace("C0", "").replace("H0", "").replace("O0", "")) for part in parts]
    mz = np.array([formula.mass - ELECTRON_MASS for formula in formulas])
    assert explain_peaks(mz, "C2H6O", "[M+H]+", ppm=1) == [str(formula) for formula in formulas]


@pytest.mark.parametrize(
    ("part", "adduct", "expected"),
    [
        ("C2H8O", "[M+H]+", ""),  # one hydrogen too many
        ("C3H6", "[M+H]+", ""),
        ("C2H5O", "[M-H]-", "C2H5O"),
        ("C2H7O", "[M-H]-", ""),
        ("CNa", "[M+Na]+", "CNa"),
        ("CNa", "[M+H]+", ""),
        ("CH3", None, "CH3"),
    ],
)
def test_the_atoms_of_molecule_and_adduct_limit_the_parts(part, adduct, expected):
    sign = -1 if adduct == "[M-H]-" else 1
    mz = np.array([Formula.parse(part).mass - sign * ELECTRON_MASS])
    assert explain_peaks(mz, "C2H6O", adduct) == [expected]


def test_peaks_outside_of_the_tolerance_and_huge_formulas_explain_nothing():
    mz = np.array([Formula.parse("CH3").mass - ELECTRON_MASS]) * (1 + 20e-6)
    assert explain_peaks(mz, "C2H6O", ppm=10) == [""] and explain_peaks(mz, "C2H6O", ppm=30) == ["CH3"]
    assert explain_peaks(mz, "C99H99N99O99S99P99") == [""]


VALENCES = {"C": 4, "H": 1, "N": 3, "O": 2, "S": 2, "P": 3, "F": 1, "Cl": 1, "Na": 1}


def brute_force(mz, formula, adduct, ppm, floor):
    """Return the nearest part of the ion whose atoms can be bonded, from a list of all parts, or ""."""
    adduct = Adduct.parse(adduct)
    ion = dict(adduct.ion_formula(Formula.parse(formula)).counts)
    least = min(-0.5, 1 + sum(n * (VALENCES[symbol] - 2) for symbol, n in ion.items()) / 2)
    best, text = max(ppm * mz * 1e-6, floor), ""
    for numbers in itertools.product(*(range(n + 1) for n in ion.values())):
        atoms = [(symbol, n) for symbol, n in zip(ion, numbers, strict=True) if n]
        if not atoms or 1 + sum(n * (VALENCES[symbol] - 2) for symbol, n in atoms) / 2 < least:
            continue
        part = Formula.parse("".join(f"{symbol}{n}" for symbol, n in atoms))
        error = abs(part.mass - np.sign(adduct.charge) * ELECTRON_MASS - mz)
        if error <= best:
            best, text = error, str(part)
    return text


@pytest.mark.parametrize(
    ("formula", "adduct"),
    [
        ("C4H9NO2S", "[M+H]+"),
        ("C3H7O4P", "[M-H]-"),
        ("C2HF3O2", "[M+HCOO]-"),
        ("C3H6ClN", "[M+Na]+"),
        ("CF6S", "[M+H]+"),
    ],
)
@pytest.mark.parametrize(("ppm", "floor"), [(10.0, 0.0), (500.0, 0.0), (10.0, 0.03)])
def test_annotations_are_those_of_a_list_of_all_parts(formula, adduct, ppm, floor):
    rng = np.random.default_rng(0)
    ion = Adduct.parse(adduct).ion_formula(Formula.parse(formula))
    parts = [
        "".join(f"{s}{n}" for s, n in zip(dict(ion.counts), draw, strict=True) if n)
        for draw in (rng.integers(0, [n + 1 for _, n in ion.counts]) for _ in range(12))
    ]
    exact = np.array([Formula.parse(part).mass for part in [*parts, str(ion)[:-1]] if part])
    mz = np.sort(np.append(exact * (1 + rng.normal(0, 6e-6, len(exact))), rng.uniform(12, 100, 4)))
    annotation = annotate_peaks(mz, formula, adduct, ppm=ppm, floor=floor)
    texts = [""] * len(mz)
    for peak, counts, losses in zip(annotation.peaks, annotation.fragments, annotation.losses, strict=True):
        texts[peak] = formula_text(annotation.symbols, counts)
        assert np.all(counts + losses == annotation.ion)
    assert texts == [brute_force(value, formula, adduct, ppm, floor) for value in mz]
    assert "" in texts and any(texts)


def test_valences_exclude_fragments_with_too_many_hydrogens_and_choose_the_next_one():
    mz = np.array([Formula.parse("CH7").mass - ELECTRON_MASS])
    assert explain_peaks(mz, "C2H6O", "[M+H]+") == ["CH7"]
    assert len(annotate_peaks(mz, "C2H6O", "[M+H]+").peaks) == 0
    near = annotate_peaks(mz, "C2H6O", "[M+H]+", floor=0.9)
    assert formula_text(near.symbols, near.fragments[0]) == brute_force(mz[0], "C2H6O", "[M+H]+", 10.0, 0.9) == "H3O"


def test_an_ion_that_the_molecule_does_not_have_explains_nothing():
    assert explain_peaks(np.array([15.0229]), "C2H6", "[M-H2O+H]+") == [""]
    assert explain_peaks(np.array([2.01510]), "H2", "[M]+") == ["H2"]
