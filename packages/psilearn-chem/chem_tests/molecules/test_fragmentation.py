"""Fragments of molecules against an enumeration of broken bonds."""

import itertools

import numpy as np
import pytest
from rdkit import Chem

from psilearn_chem.molecules.formulas import Formula
from psilearn_chem.molecules.fragmentation import (
    HYDROGEN_COST,
    HYDROGEN_MASS,
    PROTON_MASS,
    RING_COST,
    Fragments,
    _Bond,
    _find_parts,
    explanation_costs,
    explanation_costs_of,
    fragment_molecule,
)
from psilearn_chem.molecules.smiles import compute_formula


def atom_masses(molecule):
    """The masses of the atoms with their hydrogens."""
    table = Chem.GetPeriodicTable()
    return [
        table.GetMostCommonIsotopeMass(atom.GetAtomicNum()) + HYDROGEN_MASS * atom.GetTotalNumHs()
        for atom in molecule.GetAtoms()
    ]


def parts_with_costs(molecule):
    """The parts of one cut as sets of atoms, with their costs."""
    bonds = [_Bond(b.GetBeginAtomIdx(), b.GetEndAtomIdx(), b.GetBondTypeAsDouble()) for b in molecule.GetBonds()]
    info = molecule.GetRingInfo()
    return _find_parts(molecule.GetNumAtoms(), bonds, list(zip(info.BondRings(), info.AtomRings(), strict=True)))


def cheapest_by_mass(fragments):
    """The smallest cost of each mass, rounded."""
    cheapest = {}
    for mass, cost in zip(fragments.masses.round(4), fragments.costs, strict=True):
        cheapest[mass] = min(cost, cheapest.get(mass, np.inf))
    return cheapest


def parts_of(molecule, broken):
    """The masses of the connected parts that are left when bonds are broken."""
    edges = [
        (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds() if bond.GetIdx() not in broken
    ]
    label = list(range(molecule.GetNumAtoms()))
    for _ in label:
        for i, j in edges:
            label[i] = label[j] = min(label[i], label[j])
    weights = atom_masses(molecule)
    return [round(sum(w for w, part in zip(weights, label, strict=True) if part == k), 4) for k in set(label)]


@pytest.mark.parametrize("smiles", ["CCO", "CC(C)C(=O)NCCO", "C=CCC(Cl)CBr", "C"])
def test_chains_break_at_up_to_two_bonds(smiles):
    molecule = Chem.MolFromSmiles(smiles)
    expected = {}
    bonds = range(molecule.GetNumBonds())
    for broken in itertools.chain([()], itertools.combinations(bonds, 1), itertools.combinations(bonds, 2)):
        cost = sum(molecule.GetBondWithIdx(i).GetBondTypeAsDouble() for i in broken)
        for mass in parts_of(molecule, broken):
            expected[mass] = min(cost, expected.get(mass, np.inf))
    found = fragment_molecule(smiles)
    assert (np.diff(found.masses) >= 0).all()
    assert cheapest_by_mass(found) == pytest.approx(expected)


def test_a_ring_opens_at_two_bonds():
    """Each arc of cyclopentane has one to four CH2, and costs two halves of a bond and the opening."""
    found = fragment_molecule("C1CCCC1")
    unit = 12 + 2 * HYDROGEN_MASS
    np.testing.assert_allclose(found.masses, unit * np.arange(1, 6), atol=1e-7)
    assert found.costs.tolist() == [1.5, 1.5, 1.5, 1.5, 0.0]


@pytest.mark.parametrize(
    "smiles", ["CC(=O)Oc1ccccc1C(=O)OCCN1C=NC2=C1C(=O)N(C(=O)N2C)C", "O=C1CCC2(C1)CC=C(Cl)C2", "C.[Na]"]
)
def test_fragments_are_the_intersections_of_two_parts(smiles):
    """Against a loop over all pairs of parts, which adds up the masses of the atoms that they share."""
    molecule = Chem.MolFromSmiles(smiles)
    expected = {}
    for (first, cost), (second, other) in itertools.combinations_with_replacement(
        parts_with_costs(molecule).items(), 2
    ):
        shared = first & second
        mass = round(sum(m for atom, m in enumerate(atom_masses(molecule)) if shared >> atom & 1), 4)
        if shared:
            expected[mass] = min(cost if first == second else cost + other, expected.get(mass, np.inf))
    found = fragment_molecule(smiles)
    assert (np.diff(found.masses) > 0).all()
    assert cheapest_by_mass(found) == expected


@pytest.mark.parametrize(
    "smiles",
    ["c1ccc2ccccc2c1", "C1CC2CCC1C2", "C1CCC2(C1)CCCC2", "CC1CCC2C1CCC1C2CC=C2CC(O)CCC21C", "c1ccccc1-c1cc[nH]c1"],
)
def test_rings_that_share_atoms_are_cut_where_two_bonds_separate_them(smiles):
    """Fused, bridged and spiro rings, against the connected parts that are left when two bonds of a ring are broken."""
    molecule = Chem.MolFromSmiles(smiles)
    bonds = [molecule.GetBondWithIdx(i) for i in range(molecule.GetNumBonds())]
    cuts = [((bond.GetIdx(),), bond.GetBondTypeAsDouble()) for bond in bonds if not bond.IsInRing()]
    for ring in molecule.GetRingInfo().BondRings():
        for pair in itertools.combinations(ring, 2):
            cuts.append((pair, sum(bonds[i].GetBondTypeAsDouble() for i in pair) / 2 + RING_COST))
    expected = {(1 << molecule.GetNumAtoms()) - 1: 0.0}
    for broken, cost in cuts:
        labels = Chem.rdmolops.GetMolFrags(Chem.FragmentOnBonds(molecule, broken, addDummies=False))
        assert len(labels) <= 2
        for part in labels:
            atoms = sum(1 << atom for atom in part)
            expected[atoms] = min(cost, expected.get(atoms, np.inf)) if len(labels) == 2 else 0.0
    assert parts_with_costs(molecule) == pytest.approx(expected)


def test_the_whole_molecule_has_the_mass_of_its_formula():
    for smiles in ("CC(=O)Oc1ccccc1C(=O)O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "C#N"):
        found = fragment_molecule(smiles)
        mass = Formula.parse(compute_formula(Chem.MolFromSmiles(smiles))).mass
        assert found.masses[found.costs == 0] == pytest.approx([mass], abs=1e-4)
        assert found.masses.max() == found.masses[found.costs == 0]


def test_molecules_that_cannot_be_fragmented_have_no_fragments():
    for smiles in ("not a molecule", "", "C" * 64):
        assert len(fragment_molecule(smiles).masses) == 0
    assert len(fragment_molecule("C" * 63).masses) > 60
    assert np.isinf(explanation_costs(np.array([50.0]), fragment_molecule(""), negative=False)).all()


@pytest.mark.parametrize("negative", [False, True])
def test_peaks_are_explained_by_the_cheapest_fragment(negative):
    proton = -PROTON_MASS if negative else PROTON_MASS
    fragments = Fragments(np.array([100.0, 100.0005, 150.0]), np.array([3.0, 1.0, 2.0]))
    mz = np.array([100.0, 100.0 + HYDROGEN_MASS, 150.0 - 2 * HYDROGEN_MASS, 150.003, 120.0]) + proton
    expected = [1.0, 1.0 + HYDROGEN_COST, 2.0 + 2 * HYDROGEN_COST, np.inf, np.inf]
    np.testing.assert_allclose(explanation_costs(mz, fragments, negative=negative), expected)
    wide = explanation_costs(mz, fragments, negative=negative, ppm=25)
    np.testing.assert_allclose(wide, [*expected[:3], 2.0, np.inf])


def test_several_molecules_are_compared_with_a_spectrum_at_once():
    mz = np.array([29.04, 31.018, 45.034, 47.049, 89.06]) + 0.0005
    fragments = [fragment_molecule(text) for text in ("CCO", "", "COC", "CCOC(=O)CC", "CCCCO")]
    together = explanation_costs_of(mz, fragments, negative=False)
    expected = [explanation_costs(mz, part, negative=False) for part in fragments]
    np.testing.assert_array_equal(together, expected)
    assert np.isfinite(together).any(axis=1).tolist() == [True, False, True, True, True]
