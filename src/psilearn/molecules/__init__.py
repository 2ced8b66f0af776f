"""Molecules: formulas and adducts, fingerprints, and libraries of candidates on disk. Needs ``psilearn[chem]``."""

from psilearn.molecules.fingerprints import Fingerprinted, Fingerprints
from psilearn.molecules.formulas import Adduct, Formula
from psilearn.molecules.library import CandidateLibrary

__all__ = ["Adduct", "CandidateLibrary", "Fingerprinted", "Fingerprints", "Formula"]
