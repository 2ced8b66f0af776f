"""Codecs of the core: the estimators, kernels and fitted parts that saved models consist of."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from psilearn import kernels
from psilearn.decoding import SharedCandidates
from psilearn.embedding import Embedding
from psilearn.estimators import IOKR, KDE, OEL
from psilearn.io.codecs import Codec
from psilearn.io.encoding import Decoder, Encoder, register, register_class
from psilearn.kernels import (
    FeatureKernel,
    GraKeLKernel,
    Graph,
    GraphKernel,
    Hierarchy,
    Kernel,
    Pairwise,
    RankingKernel,
    RowKernel,
)
from psilearn.landmarks import Landmarks
from psilearn.regression import KernelRegression

ESTIMATORS = (IOKR, KDE, OEL)
NOT_SAVED = (  # abstract classes, and kernels that contain a function or an object of another package
    *(Kernel, FeatureKernel, GraphKernel, RankingKernel, RowKernel),
    *(GraKeLKernel, Pairwise),
)


def _encode_graphs(graphs: Sequence[Graph], encoder: Encoder, where: str) -> dict[str, Any]:
    numbers: dict[tuple[type, Hashable], int] = {}  # 1, 1.0 and True are equal, but different labels

    def number(label: Hashable) -> int:
        return numbers.setdefault((type(label), label), len(numbers))

    nodes = [number(label) for graph in graphs for label in graph.node_labels]
    edges = [(i, j, number(label)) for graph in graphs for i, j, label in graph.edges]
    return {
        "n_nodes": encoder.put(np.array([len(graph) for graph in graphs])),
        "n_edges": encoder.put(np.array([len(graph.edges) for graph in graphs])),
        "nodes": encoder.put(np.array(nodes)),
        "edges": encoder.put(np.array(edges, dtype=np.int64).reshape(-1, 3)),
        "labels": encoder.encode([label for _, label in numbers], where),
    }


def _decode_graphs(data: dict[str, Any], decoder: Decoder) -> list[Graph]:
    n_nodes, n_edges, nodes, edges = (decoder.array(data[name]) for name in ("n_nodes", "n_edges", "nodes", "edges"))
    if min(n_nodes.min(initial=0), n_edges.min(initial=0)) < 0:
        raise ValueError("graphs have negative numbers of nodes or edges")
    if nodes.shape != (n_nodes.sum(),) or edges.shape != (n_edges.sum(), 3) or len(n_nodes) != len(n_edges):
        raise ValueError(f"graphs with {n_nodes.sum()} nodes have labels of shape {nodes.shape}, edges {edges.shape}")
    labels = decoder.decode(data["labels"])
    if min(nodes.min(initial=0), edges.min(initial=0)) < 0:
        raise ValueError("graphs have labels with negative numbers")
    node_labels = [labels[i] for i in nodes.tolist()]
    all_edges = [(i, j, labels[label]) for i, j, label in edges.tolist()]
    graphs, node, edge = [], 0, 0
    for n, e in zip(n_nodes.tolist(), n_edges.tolist(), strict=True):
        graphs.append(Graph(node_labels[node : node + n], all_edges[edge : edge + e]))
        node, edge = node + n, edge + e
    return graphs


for _name in kernels.__all__:
    _cls = getattr(kernels, _name)
    if isinstance(_cls, type) and issubclass(_cls, Kernel) and _cls not in NOT_SAVED:
        register_class(f"psilearn.kernels.{_name}", _cls)
register(Codec("psilearn.kernels.graphs", (Graph,), _encode_graphs, _decode_graphs, lists=True))
for _cls in (*ESTIMATORS, Landmarks):
    register_class(f"psilearn.{_cls.__name__}", _cls)
register_class("psilearn.kernels.Hierarchy", Hierarchy)
register_class("psilearn.regression.KernelRegression", KernelRegression, leave_out=["moment"])
register_class("psilearn.embedding.Embedding", Embedding)
register_class("psilearn.decoding.SharedCandidates", SharedCandidates)
