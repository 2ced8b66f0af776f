"""The Weisfeiler–Lehman subtree kernel of graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.preprocessing import normalize as scale_rows

from psilearn._utils import validation
from psilearn._utils.samples import Samples
from psilearn.kernels.graph.graph_arrays import Codes, GraphArrays, mix, sum_neighbors
from psilearn.kernels.graph.graph_kernels import GraphKernel
from psilearn.kernels.graph.labeled_graph import Graph
from psilearn.kernels.kernel import Kernel

MAX_DEPTH = 1000
NODE_SALT, STEP_SALT = 1, 2  # a node and a neighbor with the same label have different hashes


class WeisfeilerLehman(GraphKernel):
    """The Weisfeiler–Lehman subtree kernel of graphs: φ(a) counts the labels of nodes at each depth 0, …, ``depth``.

    The label of a node at depth 0 is its own label. At depth t it stands for the label of the node at depth t − 1 and
    the multiset of the labels of its edges and of its neighbors at depth t − 1: what can be seen from the node in t
    steps. Labels are 64-bit hashes that are computed for all graphs at once, in O(nodes + edges) operations per depth.

    Isomorphic graphs have equal features. Some graphs that are not isomorphic have equal features at every depth, such
    as a ring of six equal nodes and two rings of three.

    Parameters
    ----------
    depth : int, default=3
        The number of iterations, from 0 to 1000.
    edge_labels : bool, default=True
        Whether labels of edges are used.
    cores : bool, default=False
        Whether the same features of each k-core, k = 1, 2, …, are counted as well: the core variant of the kernel.
    normalize_depths : bool, default=False
        Whether the features of each depth are divided by their Euclidean length, so that each depth has the same
        weight.
    n_features : int, default=2**18
        The number of columns of hashed features, at most 2³¹ − 1.
    normalize : bool, default=True
        Whether features are divided by their Euclidean length: k(a, a) = 1 with the default ``base``.
    base : Kernel, default=None
        The kernel on the features. None stands for :class:`Linear`.

    See Also
    --------
    ShortestPaths : Counts of pairs of nodes and their distance.
    psilearn_chem.molecule_graphs : The graphs of molecules.
    psilearn.metrics.graph_edit_distance : A metric of graphs.

    References
    ----------
    Shervashidze, Schweitzer, van Leeuwen, Mehlhorn and Borgwardt, *Weisfeiler-Lehman graph kernels*, 2011.

    Nikolentzos, Meladianos, Limnios and Vazirgiannis, *A degeneracy framework for graph similarity*, 2018 (cores).

    Examples
    --------
    >>> from psilearn.kernels import Graph, WeisfeilerLehman
    >>> chains = [Graph("CCO", [(0, 1), (1, 2)]), Graph("OCC", [(0, 1), (1, 2)]), Graph("CO", [(0, 1)])]
    >>> WeisfeilerLehman(depth=1, normalize=False)(chains)
    array([[8., 8., 4.],
           [8., 8., 4.],
           [4., 4., 4.]])
    """

    def __init__(
        self,
        depth: int = 3,
        *,
        edge_labels: bool = True,
        cores: bool = False,
        normalize_depths: bool = False,
        n_features: int = 2**18,
        normalize: bool = True,
        base: Kernel | None = None,
    ) -> None:
        self.depth = depth
        self.edge_labels = edge_labels
        self.cores = cores
        self.normalize_depths = normalize_depths
        self.n_features = n_features
        self.normalize = normalize
        self.base = base

    def _count(self, graphs: GraphArrays) -> Any:
        blocks = self._counts(graphs, self._width())
        return sum(
            map(scale_rows, blocks) if validation.check_bool(self.normalize_depths, "normalize_depths") else blocks
        )

    def _counts(self, graphs: GraphArrays, n_features: int) -> Iterator[Any]:
        depth = self._depth()
        part, k = graphs, 0
        labels = [list(self._labels(graphs, depth))]
        parts = [graphs]
        if validation.check_bool(self.cores, "cores"):
            while len((part := part.core(k := k + 1)).owner):
                parts.append(part)
                labels.append(list(self._labels(part, depth)))
        for t in range(depth + 1):
            yield sum(
                part.count(part.owner, mix(core, t, codes[t]), n_features)
                for core, (part, codes) in enumerate(zip(parts, labels, strict=True))
            )

    def _check(self, A: Samples, name: str, allow_1d: bool) -> list[Graph]:
        self._depth()
        return super()._check(A, name, allow_1d)

    def _depth(self) -> int:
        depth = validation.check_index(self.depth, "depth")
        if depth > MAX_DEPTH:
            raise ValueError(f"depth must be at most {MAX_DEPTH}; got {depth}.")
        return depth

    def _labels(self, graphs: GraphArrays, depth: int) -> Iterator[Codes]:
        """Yield the labels of all nodes at each depth."""
        use_edges = validation.check_bool(self.edge_labels, "edge_labels")
        labels = graphs.labels
        yield labels
        for _ in range(depth):
            neighbors = labels[graphs.target]
            steps = mix(STEP_SALT, graphs.edge_labels if use_edges else 0, neighbors)
            labels = mix(NODE_SALT, labels, sum_neighbors(steps, graphs.source, len(labels)))
            yield labels
