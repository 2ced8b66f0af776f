"""Losses and scores of structured predictions, each with its standard error.

Each function returns a :class:`Mean`, a float that also carries its standard error: it can be passed to
``sklearn.metrics.make_scorer`` and prints as ``0.7360 ± 0.0110``.
"""

from psilearn.metrics.graph_metrics import BoundedMean, fgw_distance, graph_edit_distance
from psilearn.metrics.ranking_metrics import kendall_tau, pairwise_accuracy, spearman_rho
from psilearn.metrics.scores import (
    TIES,
    Mean,
    TruthPositions,
    edit_distance,
    edit_similarity,
    f1_score,
    hamming_loss,
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
    jaccard_score,
    kernel_loss,
    mean_reciprocal_rank,
    subset_accuracy,
    top_k_accuracy,
)

__all__ = [
    "TIES",
    "BoundedMean",
    "Mean",
    "TruthPositions",
    "edit_distance",
    "edit_similarity",
    "f1_score",
    "fgw_distance",
    "graph_edit_distance",
    "hamming_loss",
    "hierarchical_f1",
    "hierarchical_precision",
    "hierarchical_recall",
    "jaccard_score",
    "kendall_tau",
    "kernel_loss",
    "mean_reciprocal_rank",
    "pairwise_accuracy",
    "spearman_rho",
    "subset_accuracy",
    "top_k_accuracy",
]
