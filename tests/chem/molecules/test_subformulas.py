"""Peaks that a formula explains."""

import itertools

import numpy as np
import pytest

pytest.importorskip("rdkit", reason="molecules need the extra psilearn[chem]")

from psilearn.chem.molecules import Formula
from psilearn.chem.molecules.subformulas import ELECTRON_MASS, explain_peaks


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
