"""Kernels on graphs by counts of labels of nodes, of edges and of pairs of nodes, hashed into CSR rows."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize as scale_rows

from psilearn._backend import Compute, explain_missing, iter_blocks
from psilearn._utils import validation
from psilearn._utils.samples import Samples
from psilearn.kernels.feature_kernel import FeatureKernel
from psilearn.kernels.graph.graph_arrays import Codes, GraphArrays, mix, sum_neighbors, to_arrays
from psilearn.kernels.graph.labeled_graph import Graph, as_graphs
from psilearn.kernels.kernel import Kernel

MAX_FEATURES = 2**31 - 1  # columns are 32-bit numbers
MAX_GRAPHS = 16384  # graphs whose features are computed together
PATH_BYTES = 64  # of a pair of nodes: its distance, its places, labels, code and count
EDGE_SALT, PATH_SALT = 1 << 32, 1 << 33  # different substructures have different codes
MAX_DEPTH = 1000
NODE_SALT, STEP_SALT = 1, 2  # a node and a neighbor with the same label have different hashes


class GraphKernel(FeatureKernel):
    """The base class of kernels on graphs that count substructures.

    A substructure is a 64-bit hash of its labels, and its column is this hash modulo ``n_features``: the rows
    of new graphs, of landmarks and of chunks on different machines agree, and nothing is learned from data. Two of the
    m substructures of a graph share a column with probability of about m²/(2·n_features).

    A subclass has the parameters ``n_features``, ``normalize`` and ``base`` and implements ``_counts``.

    See Also
    --------
    WeisfeilerLehman : Counts of subtrees.
    ShortestPaths : Counts of pairs of nodes and their distance.

    Examples
    --------
    >>> from psilearn.kernels import GraphKernel, VertexHistogram
    >>> isinstance(VertexHistogram(), GraphKernel)
    True
    """

    n_features: Any

    def _check(self, A: Samples, name: str, allow_1d: bool) -> list[Graph]:
        super()._check(A, name, allow_1d)
        self._width()
        return as_graphs(A, name=name)

    def _features(self, A: Any) -> Any:
        blocks = [self._count(to_arrays(A[i : i + MAX_GRAPHS])) for i in range(0, len(A), MAX_GRAPHS)]
        return blocks[0] if len(blocks) == 1 else sparse.vstack(blocks, "csr")

    def _count(self, graphs: GraphArrays) -> Any:
        """Return the features of some graphs as CSR rows."""
        return sum(self._counts(graphs, self._width()))

    def _width(self) -> int:
        n_features = validation.check_count(self.n_features, "n_features")
        if n_features > MAX_FEATURES:
            raise ValueError(f"n_features must be at most {MAX_FEATURES}; got {n_features}.")
        return n_features

    def _counts(self, graphs: GraphArrays, n_features: int) -> Iterator[Any]:
        """Yield CSR rows of counts, whose sum are the features."""
        raise TypeError(f"{type(self).__name__} must implement _counts(graphs, n_features), CSR rows of counts.")


class VertexHistogram(GraphKernel):
    """The kernel of graphs that counts nodes: φ(a) is the number of nodes with each label.

    Parameters
    ----------
    n_features : int, default=2**18
        The number of columns of hashed features, at most 2³¹ − 1.
    normalize : bool, default=True
        Whether features are divided by their Euclidean length: k(a, a) = 1 with the default ``base``.
    base : Kernel, default=None
        The kernel on the features. None stands for :class:`Linear`.

    See Also
    --------
    EdgeHistogram : The same for edges.
    WeisfeilerLehman : Labels of nodes and of their neighborhoods.

    Examples
    --------
    >>> from psilearn.kernels import Graph, VertexHistogram
    >>> VertexHistogram(normalize=False)([Graph("CCO", [(0, 1), (1, 2)]), Graph("CO", [(0, 1)])])
    array([[5., 3.],
           [3., 2.]])
    """

    def __init__(self, *, n_features: int = 2**18, normalize: bool = True, base: Kernel | None = None) -> None:
        self.n_features = n_features
        self.normalize = normalize
        self.base = base

    def _counts(self, graphs: GraphArrays, n_features: int) -> Iterator[Any]:
        yield graphs.count(graphs.owner, mix(graphs.labels), n_features)


class EdgeHistogram(GraphKernel):
    """The kernel of graphs that counts edges: φ(a) is the number of edges with each label.

    Parameters
    ----------
    ends : bool, default=True
        Whether the labels of the two nodes of an edge belong to what is counted, in any order.
    n_features : int, default=2**18
        The number of columns of hashed features, at most 2³¹ − 1.
    normalize : bool, default=True
        Whether features are divided by their Euclidean length: k(a, a) = 1 with the default ``base``. Graphs without
        edges have no features.
    base : Kernel, default=None
        The kernel on the features. None stands for :class:`Linear`.

    See Also
    --------
    VertexHistogram : The same for nodes.
    ShortestPaths : Pairs of nodes at any distance.

    Examples
    --------
    >>> from psilearn.kernels import EdgeHistogram, Graph
    >>> EdgeHistogram(normalize=False)([Graph("CCO", [(0, 1), (1, 2)]), Graph("OC", [(0, 1)])])
    array([[2., 1.],
           [1., 1.]])
    """

    def __init__(
        self, *, ends: bool = True, n_features: int = 2**18, normalize: bool = True, base: Kernel | None = None
    ) -> None:
        self.ends = ends
        self.n_features = n_features
        self.normalize = normalize
        self.base = base

    def _counts(self, graphs: GraphArrays, n_features: int) -> Iterator[Any]:
        edges = graphs.source < graphs.target  # one of the two directions
        source, target, codes = graphs.source[edges], graphs.target[edges], graphs.edge_labels[edges]
        if validation.check_bool(self.ends, "ends"):
            codes = mix(codes, _unordered(graphs.labels[source], graphs.labels[target]))
        yield graphs.count(graphs.owner[source], mix(EDGE_SALT, codes), n_features)


class ShortestPaths(GraphKernel):
    """The shortest-path kernel of graphs: φ(a) counts ordered pairs of nodes by their two labels and their distance.

    The distance is the number of edges of a shortest path; pairs without a path are not counted, labels of edges are
    ignored. Cost: m³ operations per graph of m nodes.

    Parameters
    ----------
    max_length : int, default=None
        The largest distance that is counted. None counts all.
    n_features : int, default=2**18
        The number of columns of hashed features, at most 2³¹ − 1.
    normalize : bool, default=True
        Whether features are divided by their Euclidean length: k(a, a) = 1 with the default ``base``. Graphs without
        edges have no features.
    base : Kernel, default=None
        The kernel on the features. None stands for :class:`Linear`.

    See Also
    --------
    WeisfeilerLehman : Subtrees, with labels of edges.

    References
    ----------
    Borgwardt and Kriegel, *Shortest-path kernels on graphs*, 2005.

    Examples
    --------
    >>> from psilearn.kernels import Graph, ShortestPaths
    >>> ShortestPaths(normalize=False)([Graph("CCO", [(0, 1), (1, 2)]), Graph("CO", [(0, 1)])])
    array([[8., 2.],
           [2., 2.]])
    """

    def __init__(
        self,
        *,
        max_length: int | None = None,
        n_features: int = 2**18,
        normalize: bool = True,
        base: Kernel | None = None,
    ) -> None:
        self.max_length = max_length
        self.n_features = n_features
        self.normalize = normalize
        self.base = base

    def _counts(self, graphs: GraphArrays, n_features: int) -> Iterator[Any]:
        longest = np.inf if self.max_length is None else validation.check_count(self.max_length, "max_length")
        sizes = np.bincount(graphs.owner, minlength=graphs.n_graphs)
        starts = np.cumsum(sizes) - sizes
        for size in np.unique(sizes):
            equal = np.flatnonzero(sizes == size)
            for part in iter_blocks(len(equal), PATH_BYTES * int(size) ** 2):
                chosen = equal[part]
                lengths = _path_lengths(graphs, chosen, starts, size)
                graph, i, j = np.nonzero((lengths > 0) & (lengths <= longest) & np.isfinite(lengths))
                first = starts[chosen[graph]]
                ends = graphs.labels[first + i], graphs.labels[first + j]
                codes = mix(PATH_SALT, lengths[graph, i, j].astype(np.uint64), *ends)
                yield graphs.count(chosen[graph], codes, n_features)


def _path_lengths(graphs: GraphArrays, chosen: Any, starts: Any, size: int) -> Any:
    """Return the lengths of shortest paths in graphs of the same size, (g, size, size), by Floyd and Warshall."""
    place = np.full(graphs.n_graphs, -1)
    place[chosen] = np.arange(len(chosen))
    owner = graphs.owner[graphs.source]
    edges = place[owner] >= 0
    owner, source, target = owner[edges], graphs.source[edges], graphs.target[edges]
    lengths = np.full((len(chosen), size, size), np.inf, np.float32)
    lengths[:, np.arange(size), np.arange(size)] = 0
    lengths[place[owner], source - starts[owner], target - starts[owner]] = 1
    for k in range(size):
        np.minimum(lengths, lengths[:, :, k, None] + lengths[:, None, k, :], out=lengths)
    return lengths


def _unordered(a: Codes, b: Codes) -> Codes:
    """Return a hash of two codes that does not depend on their order."""
    return mix(np.minimum(a, b), np.maximum(a, b))


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


class GraKeLKernel(Kernel):
    """A kernel of the package GraKeL on graphs. It needs ``pip install 'psilearn[grakel]'``.

    GraKeL 0.1 does not support Python 3.13. Its kernels compare all pairs of graphs, block by block, on one core; where
    psilearn has the same kernel, such as :class:`WeisfeilerLehman`, it is much faster. A kernel that draws random
    numbers must have a fixed ``random_state``, and a kernel that learns from all graphs, such as propagation, depends
    on the blocks and cannot be used.

    Parameters
    ----------
    kernel : grakel.Kernel
        The kernel, such as ``grakel.NeighborhoodHash(random_state=0)``. A copy of it is used.

    See Also
    --------
    WeisfeilerLehman : The Weisfeiler–Lehman kernel.

    References
    ----------
    .. [1] G. Siglidis, G. Nikolentzos, S. Limnios, C. Giatsidis, K. Skianis and M. Vazirgiannis, GraKeL: a graph kernel
       library in Python, 2020.

    Examples
    --------
    >>> import grakel  # doctest: +SKIP
    >>> from psilearn.kernels import GraKeLKernel, Graph
    >>> GraKeLKernel(grakel.ShortestPath())([Graph("CO", [(0, 1)])])  # doctest: +SKIP
    array([[2.]])
    """

    _returns_new_block = True

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def _check(self, A: Samples, name: str, allow_1d: bool) -> list[Graph]:
        super()._check(A, name, allow_1d)
        if not all(hasattr(self.kernel, method) for method in ("fit", "transform", "fit_transform")):
            raise TypeError(f"kernel of GraKeLKernel must be a kernel of GraKeL; got {self.kernel!r:.80}.")
        return as_graphs(A, name=name)

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        kernel = deepcopy(self.kernel)
        if B is A:
            return np.asarray(kernel.fit_transform(_to_grakel(A)))
        return np.asarray(kernel.fit(_to_grakel(B)).transform(_to_grakel(A)))

    def _diag(self, A: Any) -> Any:
        return np.array([deepcopy(self.kernel).fit_transform([item]).item() for item in _to_grakel(A)])


def _to_grakel(graphs: list[Graph]) -> list[Any]:
    """Return graphs of GraKeL, with both directions of each edge."""
    with explain_missing("GraKeLKernel needs GraKeL: pip install 'psilearn[grakel]' (Python 3.12 or older)."):
        import grakel
    items = []
    for graph in graphs:
        edges = {pair: label for i, j, label in graph.edges for pair in ((i, j), (j, i))}
        adjacency = {i: dict[int, float]() for i in range(len(graph))}  # nodes without edges included
        for i, j in edges:
            adjacency[i][j] = 1.0
        items.append(grakel.Graph(adjacency, dict(enumerate(graph.node_labels)), edges))
    return items
