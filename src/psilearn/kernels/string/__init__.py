"""Kernels on strings and on sequences of tokens, by the substrings and subsequences that they share."""

from psilearn.kernels.string.edit_gaussian import EditGaussian
from psilearn.kernels.string.substrings import GappySubstrings, MismatchSubstrings, Substrings

__all__ = ["EditGaussian", "GappySubstrings", "MismatchSubstrings", "Substrings"]
