"""Decoding: the candidates nearest to a prediction in the output space, |z(x) − g(y)|² + r(y)²."""

from psilearn.decoding.all_rankings import AllRankings, has_all_rankings
from psilearn.decoding.approximate import ApproximateCandidates
from psilearn.decoding.as_candidates import CANDIDATE_NAMES, as_candidates
from psilearn.decoding.barycenters import fgw_barycenters
from psilearn.decoding.candidates import Candidates
from psilearn.decoding.edited_graphs import GraphEdits
from psilearn.decoding.editing_search import EditedOutputs, local_search
from psilearn.decoding.label_sets import AllLabelSets, ConsistentLabelSets, NearLabelSets, has_all_label_sets
from psilearn.decoding.path_decoder import PathDecoder
from psilearn.decoding.per_example import PerExampleCandidates
from psilearn.decoding.ranked import RankedCandidates, join_rankings, ranked_candidates
from psilearn.decoding.sharded import ShardedCandidates
from psilearn.decoding.shared import SharedCandidates
from psilearn.decoding.string_beam import StringBeam
from psilearn.decoding.top_k import TopK

__all__ = [
    "CANDIDATE_NAMES",
    "AllLabelSets",
    "AllRankings",
    "ApproximateCandidates",
    "Candidates",
    "ConsistentLabelSets",
    "EditedOutputs",
    "GraphEdits",
    "NearLabelSets",
    "PathDecoder",
    "PerExampleCandidates",
    "RankedCandidates",
    "ShardedCandidates",
    "SharedCandidates",
    "StringBeam",
    "TopK",
    "as_candidates",
    "fgw_barycenters",
    "has_all_label_sets",
    "has_all_rankings",
    "join_rankings",
    "local_search",
    "ranked_candidates",
]
