"""Kernels of the package GraKeL as kernels of psilearn."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from psilearn._backend import Compute, explain_missing
from psilearn._utils.samples import Samples
from psilearn.kernels.graph.labeled_graph import Graph, as_graphs
from psilearn.kernels.kernel import Kernel


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
