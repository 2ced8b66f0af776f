"""Losses and scores of structured predictions, each with its standard error.

Each function returns a :class:`Mean`, a float that also carries its standard error: it can be passed to
``sklearn.metrics.make_scorer`` and prints as ``0.7360 ± 0.0110``.
"""

from psilearn.metrics.candidate_metrics import TIES, TruthPositions, mean_reciprocal_rank, top_k_accuracy
from psilearn.metrics.graph_metrics import BoundedMean, graph_edit_distance
from psilearn.metrics.hierarchy_metrics import hierarchical_f1, hierarchical_precision, hierarchical_recall
from psilearn.metrics.kernel_metrics import kernel_loss
from psilearn.metrics.label_metrics import f1_score, hamming_loss, jaccard_score, subset_accuracy
from psilearn.metrics.mean import Mean
from psilearn.metrics.ranking_metrics import kendall_tau, pairwise_accuracy, spearman_rho
from psilearn.metrics.string_metrics import edit_distance, edit_similarity
from psilearn.metrics.transport_metrics import fgw_distance

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
