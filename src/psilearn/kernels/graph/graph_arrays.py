"""Many graphs as flat arrays, with labels as 64-bit hashes: what is computed on all of them at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from psilearn._utils.hashing import encode
from psilearn._utils.samples import Index
from psilearn.kernels.graph.labeled_graph import Graph

Codes = NDArray[np.uint64]


@dataclass(frozen=True)
class GraphArrays:
    """The nodes of n graphs one after the other, and both directions of each edge."""

    n_graphs: int
    owner: Index  # (N,)  the graph of each node
    labels: Codes  # (N,)
    source: Index  # (2E,)  node numbers
    target: Index  # (2E,)
    edge_labels: Codes  # (2E,)

    def keep(self, nodes: NDArray[np.bool_]) -> GraphArrays:
        """Return the subgraphs of the chosen nodes, with all edges among them."""
        number = np.cumsum(nodes) - 1
        edges = nodes[self.source] & nodes[self.target]
        return GraphArrays(
            self.n_graphs,
            self.owner[nodes],
            self.labels[nodes],
            number[self.source[edges]],
            number[self.target[edges]],
            self.edge_labels[edges],
        )

    def core(self, k: int) -> GraphArrays:
        """Return the k-cores: the largest subgraphs in which each node has at least k neighbors."""
        part = self
        while len(part.owner):
            enough = np.bincount(part.source, minlength=len(part.owner)) >= k
            if enough.all():
                break
            part = part.keep(enough)
        return part

    def count(self, owner: Index, codes: Codes, n_features: int) -> Any:
        """Return how often each code occurs in each graph, as CSR rows whose columns are codes modulo the width."""
        columns = (codes % np.uint64(n_features)).astype(np.int64)
        shape = (self.n_graphs, n_features)
        counts = sparse.coo_matrix((np.ones(len(columns)), (owner, columns)), shape=shape).tocsr()
        counts.sum_duplicates()
        return counts


def to_arrays(graphs: Sequence[Graph]) -> GraphArrays:
    """Return graphs as flat arrays. The codes of labels are the same in all processes."""
    sizes = np.fromiter(map(len, graphs), np.intp, len(graphs))
    starts = np.cumsum(sizes) - sizes
    edges = list(chain.from_iterable(graph.edges for graph in graphs))
    n_edges = np.fromiter((len(graph.edges) for graph in graphs), np.intp, len(graphs))
    offset = np.repeat(starts, n_edges)
    first, second = (np.fromiter(map(itemgetter(k), edges), np.intp, len(edges)) + offset for k in (0, 1))
    edge_labels = _codes_of([edge[2] for edge in edges])
    return GraphArrays(
        len(graphs),
        np.repeat(np.arange(len(graphs)), sizes),
        _codes_of(list(chain.from_iterable(graph.node_labels for graph in graphs))),
        np.concatenate([first, second]),
        np.concatenate([second, first]),
        np.concatenate([edge_labels, edge_labels]),
    )


def mix(*parts: Any) -> Codes:
    """Return a 64-bit hash of sequences of 64-bit numbers, element by element; the order of the parts matters."""
    total = np.zeros(1, np.uint64)
    for part in parts:
        total = _scramble(total + np.asarray(part, np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    return total


def sum_neighbors(values: Codes, source: Index, n_nodes: int) -> Codes:
    """Return the sum modulo 2⁶⁴ of a value of each edge over the edges of each node: a hash of a multiset."""
    total = np.zeros(n_nodes, np.uint64)
    np.add.at(total, source, values)
    return total


def _scramble(x: Codes) -> Codes:
    """Return the finalizer of SplitMix64, a bijection of 64-bit numbers."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _codes_of(labels: Sequence[Hashable]) -> Codes:
    """Return a 64-bit code of each label, from its contents."""
    known = {label: _code(label) for label in dict.fromkeys(labels)}
    return np.fromiter(map(known.__getitem__, labels), np.uint64, len(labels))


def _code(label: Hashable) -> int:
    try:
        content = encode(label, strict=True)
    except TypeError as error:
        raise TypeError(
            f"Labels of graphs must be texts, numbers, None or tuples of these; got {label!r:.80}."
        ) from error
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")
