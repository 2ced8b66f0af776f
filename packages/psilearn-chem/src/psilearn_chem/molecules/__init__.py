"""Molecules: formulas, adducts, fingerprints, and libraries of candidates on disk. Needs ``psilearn[chem]``."""

from psilearn_chem.molecules.fingerprints import Fingerprints, FingerprintTable
from psilearn_chem.molecules.formulas import Adduct, Formula
from psilearn_chem.molecules.library import CandidateLibrary
from psilearn_chem.molecules.molecule_edits import MoleculeEdits
from psilearn_chem.molecules.molecule_files import MoleculeList, read_molecules
from psilearn_chem.molecules.molecule_graphs import graph_to_smiles, molecule_graph, molecule_graphs

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
