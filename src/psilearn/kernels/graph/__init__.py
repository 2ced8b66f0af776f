"""Kernels on labeled graphs, by the substructures that they share."""

from psilearn.kernels.graph.graph_kernels import (
    EdgeHistogram,
    GraKeLKernel,
    GraphKernel,
    ShortestPaths,
    VertexHistogram,
    WeisfeilerLehman,
)
from psilearn.kernels.graph.labeled_graph import Graph, as_graphs

__all__ = [
    "EdgeHistogram",
    "GraKeLKernel",
    "Graph",
    "GraphKernel",
    "ShortestPaths",
    "VertexHistogram",
    "WeisfeilerLehman",
    "as_graphs",
]
