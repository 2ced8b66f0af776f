"""Molecules: formulas and adducts, fingerprints, and libraries of candidates on disk. Needs ``psilearn[chem]``."""

from psilearn.chem.molecules.fingerprints import Fingerprinted, Fingerprints
from psilearn.chem.molecules.formulas import Adduct, Formula
from psilearn.chem.molecules.library import CandidateLibrary

__all__ = ["Adduct", "CandidateLibrary", "Fingerprinted", "Fingerprints", "Formula"]
