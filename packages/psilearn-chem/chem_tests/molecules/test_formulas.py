"""Formulas and adducts: parsing and masses."""

import pytest
from rdkit import Chem
from rdkit.Chem.Descriptors import ExactMolWt
from rdkit.Chem.rdMolDescriptors import CalcMolFormula

from psilearn_chem.molecules import Adduct, Formula
from psilearn_chem.molecules.formulas import ELECTRON_MASS

SMILES = ["CCO", "c1ccccc1O", "CC(=O)Oc1ccccc1C(=O)O", "C[N+](C)(C)CCO", "OCC1OC(O)C(O)C(O)C1O"]


@pytest.mark.parametrize("smiles", SMILES)
def test_formula_and_mass_agree_with_rdkit(smiles):
    molecule = Chem.MolFromSmiles(smiles)
    formula = Formula.parse(CalcMolFormula(molecule))
    assert str(formula) == CalcMolFormula(molecule)
    assert Formula.parse(str(formula)) == formula
    assert formula.mass == pytest.approx(ExactMolWt(molecule), abs=1e-3 * abs(formula.charge) + 1e-6)


def test_elements_are_in_hill_order():
    assert str(Formula.parse("O2NaH3C2")) == "C2H3NaO2"
    assert str(Formula.parse("OH2")) == "H2O"  # without carbon, alphabetically
    assert str(Formula.parse("ClHC3C3H4")) == "C6H5Cl"


@pytest.mark.parametrize("bad", ["", "glucose", "C6H12O6!", "Xx2", "[M+H]+", "12", None, "c6h6"])
def test_invalid_formulas_are_rejected(bad):
    with pytest.raises(ValueError, match="not a"):
        Formula.parse(bad)


@pytest.mark.parametrize(
    ("adduct", "mz"),
    [
        ("[M+H]+", 181.070665),
        ("[M+Na]+", 203.052609),
        ("[M+K]+", 219.026547),
        ("[M+NH4]+", 198.097214),
        ("[M-H]-", 179.056112),
        ("[M+Cl]-", 215.032791),
        ("[M+HCOO]-", 225.061592),
        ("[M-H2O+H]+", 163.060101),
        ("[M+H-H2O]+", 163.060101),
        ("[M+2H]2+", 91.038971),
        ("[2M+H]+", 361.134053),
        ("[M]+", 180.062842),
        ("[M+ACN+H]+", 222.097214),
        ("[M+HAc-H]-", 239.077242),
        ("[M]+*", 180.062842),
        ("[M+2H]++", 91.038971),
        ("[M+2H]+2", 91.038971),
    ],
)
def test_mz_and_mass_of_glucose(adduct, mz):
    parsed, mass = Adduct.parse(adduct), Formula.parse("C6H12O6").mass
    assert parsed.mz(mass) == pytest.approx(mz, abs=2e-5)
    assert parsed.mass(parsed.mz(mass)) == pytest.approx(mass)
    assert str(parsed) == {"[M+2H]++": "[M+2H]2+", "[M+2H]+2": "[M+2H]2+"}.get(adduct, adduct)


@pytest.mark.parametrize(
    ("loose", "strict"),
    [
        ("M+H", "[M+H]+"),
        ("[M+H]", "[M+H]+"),
        ("M-H", "[M-H]-"),
        (" [M + Na]+", "[M+Na]+"),
        ("[M+H]⁺", "[M+H]+"),
        ("[M+2H]²⁺", "[M+2H]2+"),
        ("[M−H]⁻", "[M-H]-"),
        ("[M\u2013H]\u2212", "[M-H]-"),
        ("[M+H]1+", "[M+H]+"),
        ("[M+H]+1", "[M+H]+"),
        ("(M+H)+", "[M+H]+"),
        ("M+H+", "[M+H]+"),
        ("M+2H", "[M+2H]2+"),
        ("M+ACN+Na", "[M+ACN+Na]+"),
        ("M-H2O+H", "[M-H2O+H]+"),
        ("[M-H+2Na]", "[M-H+2Na]+"),
        ("M+FA-H", "[M+FA-H]-"),
        ("[M+Cl]", "[M+Cl]-"),
        ("[M-2H]", "[M-2H]2-"),
        ("M+", "[M]+"),
        ("[M]+•", "[M]+*"),
        ("[M]•⁺", "[M]+*"),
    ],
)
def test_alternative_spellings_of_adducts(loose, strict):
    assert str(Adduct.parse(loose)) == strict


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "H+",
        "[M+Xx]+",
        "proton",
        "[M+]+",
        None,
        "[M+H]0+",
        "[0M+H]+",
        "[M+13C]+",
        "[M+Ac]-",
        "M+FA",
        "M",
        "[M+H-H]",
        "[M+Si]",
        "M+H" + "-H2O" * 20,
    ],
)
def test_invalid_adducts_are_rejected(bad):
    with pytest.raises(ValueError, match="not a"):
        Adduct.parse(bad)


@pytest.mark.parametrize(
    ("adduct", "ion"),
    [
        ("[M+H]+", "C2H7O+"),
        ("[M-H]-", "C2H5O-"),
        ("[M+HCOO]-", "C3H7O3-"),
        ("[M+CH3COO]-", "C4H9O3-"),
        ("[M+Na]+", "C2H6NaO+"),
        ("[M+NH4]+", "C2H10NO+"),
        ("[M-H2O+H]+", "C2H5+"),
        ("[M+Cl]-", "C2H6ClO-"),
        ("[2M+K]+", "C4H12KO2+"),
        ("[M+2H]2+", "C2H8O+2"),
        ("[M+FA-H]-", "C3H7O3-"),
        ("[M]+*", "C2H6O+"),
    ],
)
def test_the_formula_of_an_ion_has_its_mass(adduct, ion):
    molecule, parsed = Formula.parse("C2H6O"), Adduct.parse(adduct)
    formula = parsed.ion_formula(molecule)
    assert str(formula) == ion
    mz = (formula.mass - formula.charge * ELECTRON_MASS) / abs(formula.charge)
    assert mz == pytest.approx(parsed.mz(molecule.mass), abs=1e-9)


def test_a_molecule_without_the_atoms_that_an_adduct_loses_has_no_ion():
    with pytest.raises(ValueError, match=r"C2H6 has no ion .* lacks atoms"):
        Adduct.parse("[M-H2O+H]+").ion_formula(Formula.parse("C2H6"))
