"""Molecules: formulas, adducts, fingerprints, and libraries of candidates on disk."""

from rdkit import rdBase

from psilearn_chem.molecules.fingerprints import Fingerprints, FingerprintTable
from psilearn_chem.molecules.formulas import Adduct, Formula
from psilearn_chem.molecules.library import CandidateLibrary
from psilearn_chem.molecules.molecule_files import MoleculeList, read_molecules
from psilearn_chem.molecules.molecule_graphs import MoleculeEdits, graph_to_smiles, molecule_graph, molecule_graphs

rdBase.DisableLog("rdApp.*")  # callers report what cannot be read

__all__ = [
    "Adduct",
    "CandidateLibrary",
    "FingerprintTable",
    "Fingerprints",
    "Formula",
    "MoleculeEdits",
    "MoleculeList",
    "graph_to_smiles",
    "molecule_graph",
    "molecule_graphs",
    "read_molecules",
]
