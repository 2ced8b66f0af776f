"""Molecules as graphs and back."""

import sys

import pytest
from rdkit import Chem

from psilearn.kernels import Graph, WeisfeilerLehman
from psilearn_chem import graph_to_smiles, molecule_graph, molecule_graphs

SMILES = ["C", "CCO", "C#N", "c1ccoc1", "CC(=O)N(C)C", "C1CC12CO2", "FC(F)F", "c1cc[nH]c1"]


@pytest.mark.parametrize("kekulize", [True, False])
def test_graphs_keep_the_molecule(kekulize):
    for smiles, graph in zip(SMILES, molecule_graphs(SMILES, kekulize=kekulize), strict=True):
        expected = Chem.CanonSmiles(smiles)
        assert graph_to_smiles(graph) == (None if (smiles, kekulize) == ("c1cc[nH]c1", False) else expected)


def test_labels_are_elements_and_orders_of_bonds():
    assert molecule_graph("C=O") == Graph("CO", [(0, 1, 2)])
    assert {label for *_, label in molecule_graph("c1ccoc1").edges} == {1, 2}
    assert {label for *_, label in molecule_graph("c1ccoc1", kekulize=False).edges} == {"aromatic"}


def test_molecules_of_rdkit_with_hydrogens_and_another_order_have_the_same_features():
    molecule = Chem.AddHs(Chem.MolFromSmiles("CC(=O)N"))
    graphs = [molecule_graph(molecule), *molecule_graphs(["CC(=O)N", "NC(C)=O"])]
    rows = WeisfeilerLehman().features(graphs)
    assert graphs[0] == graphs[1] != graphs[2]
    assert abs(rows[0] - rows[1]).sum() == abs(rows[0] - rows[2]).sum() == 0
    assert molecule.GetNumAtoms() == 9  # unchanged


@pytest.mark.parametrize(
    "graph",
    [Graph("CF", [(0, 1, 2)]), Graph(["X", "C"], [(0, 1, 1)]), Graph("CC", [(0, 1, "double")]), Graph([None])],
)
def test_graphs_that_are_no_molecules_have_no_smiles(graph):
    assert graph_to_smiles(graph) is None


def test_processes_share_the_molecules(monkeypatch):
    monkeypatch.setattr(sys.modules[molecule_graphs.__module__], "BLOCK_MOLECULES", 3)
    whole = molecule_graphs(SMILES)
    assert molecule_graphs(iter(SMILES), n_jobs=2) == whole == [molecule_graph(smiles) for smiles in SMILES]
    with pytest.raises(ValueError, match=r"molecules\[7\]: molecule must be a valid SMILES"):
        molecule_graphs([*SMILES[:7], "C1C"], n_jobs=2)
    assert molecule_graphs([]) == []


def test_bad_molecules_raise_an_error():
    with pytest.raises(ValueError, match=r"molecules\[1\]: molecule must be a valid SMILES .* got 'C1C'"):
        molecule_graphs(["C", "C1C"])
    with pytest.raises(ValueError, match="at least one atom; got ''"):
        molecule_graph("")
    with pytest.raises(TypeError, match="SMILES or a molecule of RDKit; got int"):
        molecule_graph(3)
    with pytest.raises(TypeError, match="molecules must be a sequence"):
        molecule_graphs("CCO")
    with pytest.raises(TypeError, match="graph must be a"):
        graph_to_smiles("CCO")
