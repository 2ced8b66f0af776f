"""Kernels on labeled graphs, by the substructures that they share."""

from psilearn.kernels.graph.grakel_kernel import GraKeLKernel
from psilearn.kernels.graph.graph_kernels import EdgeHistogram, GraphKernel, ShortestPaths, VertexHistogram
from psilearn.kernels.graph.labeled_graph import Graph, as_graphs
from psilearn.kernels.graph.weisfeiler_lehman import WeisfeilerLehman

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
