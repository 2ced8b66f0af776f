"""Edits of molecules: connected, with valid valences, and small enough."""

import pytest

from psilearn.decoding import GraphEdits
from psilearn_chem import MoleculeEdits, graph_to_smiles, molecule_graph


@pytest.mark.parametrize("smiles", ["C", "C#N", "CC(=O)N", "c1ccoc1", "C1CC12CO2"])
def test_all_edits_are_valid_molecules(smiles):
    edited = [graph_to_smiles(graph) for graph in MoleculeEdits(max_atoms=5)(molecule_graph(smiles))]
    assert edited
    assert all(text is not None and "." not in text for text in edited)
    assert max(len(molecule_graph(text)) for text in edited) <= 5


class CheckedEdits(GraphEdits):
    """All edits of graphs, of which those that exceed a valence are dropped afterwards."""

    def is_valid(self, node_labels, edges):
        return MoleculeEdits().is_valid(node_labels, edges)


@pytest.mark.parametrize("max_atoms", [5, 9])
@pytest.mark.parametrize("smiles", ["C", "CC(=O)N", "C#CC1CO1", "FC(F)(F)C=O", "c1ccoc1", "C1CC12CO2"])
def test_edits_that_valences_forbid_are_the_only_ones_left_out(smiles, max_atoms):
    graph = molecule_graph(smiles)
    expected = CheckedEdits("CNOF", (1, 2, 3), max_nodes=max_atoms)(graph)
    assert set(MoleculeEdits(max_atoms=max_atoms)(graph)) == set(expected)


def test_edits_of_methane():
    edited = {graph_to_smiles(graph) for graph in MoleculeEdits()(molecule_graph("C"))}
    assert edited == {"N", "O", "F", "CC", "C=C", "C#C", "CN", "C=N", "C#N", "CO", "C=O", "CF"}


def test_unknown_elements_raise_an_error():
    with pytest.raises(ValueError, match=r"elements must be some of B, Br, .*; got \['C', 'X'\]"):
        MoleculeEdits(["C", "X"])


@pytest.mark.parametrize(
    "labels, edges", [(3, {}), ([], {}), (["C"], 3), (["C"], {(0, 1): 1}), (["C", "C"], {(0, 1): "x"})]
)
def test_wrong_atoms_and_bonds_are_named(labels, edges):
    with pytest.raises(TypeError, match=r"node_labels must be .* edges a dict"):
        MoleculeEdits().is_valid(labels, edges)
