"""Exact decoding over all label sets, and over those near the known ones."""

from psilearn.decoding.label_sets.all_label_sets import AllLabelSets, has_all_label_sets
from psilearn.decoding.label_sets.consistent_sets import ConsistentLabelSets
from psilearn.decoding.label_sets.listable import ListableLabelSets
from psilearn.decoding.label_sets.near_label_sets import NearLabelSets

__all__ = ["AllLabelSets", "ConsistentLabelSets", "ListableLabelSets", "NearLabelSets", "has_all_label_sets"]
