"""Decoding: the candidates nearest to a prediction in the output space, |z(x) − g(y)|² + r(y)²."""

from psilearn.decoding.candidates import CandidateSet
from psilearn.decoding.nearest import Ranks, TopK, nearest, rank_of_truth
from psilearn.decoding.per_example import CandidateSets, as_candidates

__all__ = ["CandidateSet", "CandidateSets", "Ranks", "TopK", "as_candidates", "nearest", "rank_of_truth"]
