"""The nearest of all label sets with the Tanimoto kernel, by branch and bound.

The score of a set y of size s is Σ_l β_l φ_l(c_l), where c_l = |y∩s_l| and φ_l(c) = c/(s + t_l − c) is convex and
increasing. It is not linear in y, but it has bounds that are. A *node* is the sets of size s that contain some labels,
lack some others, and take n more of the remaining, free ones: there lo_l ≤ c_l ≤ hi_l, and

- where β_l > 0, φ_l is at most its chord over [lo_l, hi_l];
- where β_l < 0, φ_l is at least the line through its values at two consecutive integers, because c_l is an integer.

So the score is at most a constant plus a sum of weights of labels, which the n heaviest free labels maximize. These
labels also give a set, whose score is a lower bound. All sets of one size are a node, whose first bound takes each
positive β_l at the largest value of φ_l, min(s, t_l)/max(s, t_l). Nodes are taken from one heap, highest bound first,
and divided by the label that explains most of the gap between bound and score. The search ends when no bound exceeds
the best score, which is then proven; if too many nodes are visited before, it raises an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from psilearn._backend import Compute, to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Index
from psilearn.decoding.distances import k_smallest, tie_tolerance
from psilearn.decoding.label_sets.label_rows import FoundSets, rows_of_labels
from psilearn.decoding.label_sets.set_limits import SetLimits


class _Node(NamedTuple):
    """All sets of one size with the labels ``inside`` and others of the labels ``free``."""

    size: int
    inside: Any  # (L,) bool
    free: Any  # (L,) bool


class _Relaxed(NamedTuple):
    """The bound of a node, and the label to divide it by."""

    bound: float
    divide: int  # −1 if the node contains this set only


@dataclass(frozen=True)
class TanimotoSolver:
    """Finds the nearest sets; of sets that tie with the last one, any may be returned."""

    landmarks: Any  # CSR (r, L)
    limits: SetLimits  # without groups
    max_nodes: int  # per query

    def nearest(self, Z: Any, basis: Any, k: int, compute: Compute) -> FoundSets:
        """Return the k nearest sets of predicted embeddings Z (q, p), for the basis (r, p) of the landmarks."""
        tolerance = tie_tolerance(Z)
        Z = to_numpy(Z).astype(np.float64)
        B = Z @ to_numpy(basis).astype(np.float64).T  # (q, r)
        parts = []
        for i, (z, beta) in enumerate(zip(Z, B, strict=True)):
            squared = float(z @ z)
            slack = tolerance * (squared + 1)
            best = _Search(self, beta, k, slack).run(i)
            D = np.array([[squared - 2 * score + 1 for score, _ in best]])
            columns, values = k_smallest(D, np.full(D.shape, slack), len(best))
            sets = [best[j][1] for j in columns[0]]
            labels = np.array([label for labels in sets for label in labels], dtype=np.intp)
            sizes = np.array([len(labels) for labels in sets], dtype=np.intp)
            parts.append(FoundSets(rows_of_labels(labels, sizes, self.limits.n_labels), values))
        return FoundSets.join(parts, k, self.limits.n_labels)


@dataclass
class _Search:
    """The search of one query."""

    solver: TanimotoSolver
    beta: Array  # (r,)
    k: int
    slack: float
    found: dict[tuple[int, ...], float] = field(default_factory=dict)  # scores of sets
    limit: float = -np.inf  # the k-th best score

    def __post_init__(self) -> None:
        self.S = self.solver.landmarks
        self.T = self.S.T.tocsr()
        self.sizes = np.diff(self.S.indptr)

    def run(self, query: int) -> list[tuple[float, tuple[int, ...]]]:
        """Return the scores and labels of the k best sets, by size and labels; raise if there are too many nodes."""
        heap = self._root_nodes()
        n_roots, n_nodes = len(heap), 0
        while heap and -heap[0][0] > self.limit + self.slack / 2:
            bound, _, node, relaxed = heappop(heap)
            for child in [node] if relaxed is None else _divide(node, relaxed.divide):
                n_nodes += 1
                bounded = self._relax(child)
                heappush(heap, (max(-bounded.bound, bound), n_roots + n_nodes, child, bounded))
            if n_nodes > self.solver.max_nodes and heap:
                raise ValueError(
                    f"The nearest of all label sets with the Tanimoto kernel was not proven for query {query} within "
                    f"{self.solver.max_nodes:,} nodes: limit the sizes or raise the number of nodes with "
                    f'AllLabelSets(max_labels=..., max_nodes=...), use Dice, or candidates="near".'
                )
        return [(score, labels) for labels, score in sorted(self._best(), key=lambda item: (len(item[0]), item[0]))]

    def _root_nodes(self) -> list[tuple[float, int, _Node, _Relaxed | None]]:
        """Return the heap of all sets of each size, with bounds from the sizes alone; the empty set is kept at once."""
        heap: list[tuple[float, int, _Node, _Relaxed | None]] = []
        L, positive = self.solver.limits.n_labels, np.maximum(self.beta, 0)
        for size in self.solver.limits.sizes.tolist():
            if size:
                bound = float(positive @ (np.minimum(self.sizes, size) / np.maximum(self.sizes, size)))
                node = _Node(size, np.zeros(L, dtype=bool), np.ones(L, dtype=bool))
                heap.append((-bound, len(heap), node, None))
            else:
                self._keep((), float(self.beta[self.sizes == 0].sum()))
        heapify(heap)
        return heap

    def _best(self) -> list[tuple[tuple[int, ...], float]]:
        """Return the k best sets that were found."""
        return sorted(self.found.items(), key=lambda item: (-item[1], len(item[0]), item[0]))[: self.k]

    def _keep(self, labels: tuple[int, ...], score: float) -> None:
        """Keep a set if it is one of the k best so far."""
        if labels in self.found or score <= self.limit:
            return
        self.found[labels] = score
        if len(self.found) >= self.k:
            self.found = dict(self._best())
            self.limit = min(self.found.values())

    def _relax(self, node: _Node) -> _Relaxed:
        """Return the bound of a node, and keep the set that belongs to it."""
        n, n_free = node.size - int(node.inside.sum()), int(node.free.sum())
        base = self.S @ node.inside.astype(np.float64)
        available = self.S @ node.free.astype(np.float64)
        lo, hi = base + np.maximum(0, n - (n_free - available)), base + np.minimum(n, available)
        anchor = lo
        best: _Relaxed | None = None
        for _ in range(2):  # the second time, the lower lines touch φ at the first solution
            relaxed, anchor = self._linearize(node, n, base, lo, hi, anchor)
            best = relaxed if best is None or relaxed.bound < best.bound else best
        assert best is not None
        return best._replace(divide=-1) if n in (0, n_free) else best

    def _linearize(
        self, node: _Node, n: int, base: Array, lo: Array, hi: Array, anchor: Array
    ) -> tuple[_Relaxed, Array]:
        """Return the bound with lower lines at the numbers ``anchor`` (r,), and the numbers c_l of its set."""
        union = node.size + self.sizes  # (r,)
        start = np.where(self.beta > 0, lo, np.clip(anchor, lo, np.maximum(hi - 1, lo)))
        stop = np.where(self.beta > 0, hi, np.minimum(start + 1, hi))
        first, last = _similarity(start, union), _similarity(stop, union)
        slope = np.divide(last - first, stop - start, out=np.zeros_like(first), where=stop > start)
        weights = np.where(node.free, self.T @ (self.beta * slope), -np.inf)
        chosen = np.argsort(-weights, kind="stable")[:n]
        inside = node.inside.copy()
        inside[chosen] = True
        c = self.S @ inside.astype(np.float64)
        line, exact = first + slope * (c - start), _similarity(c, union)
        self._keep(tuple(np.flatnonzero(inside).tolist()), float(self.beta @ exact))
        gaps = np.where(node.free, self.T @ (np.abs(self.beta) * np.abs(line - exact)), -np.inf)
        return _Relaxed(float(self.beta @ line), int(np.argmax(gaps))), c


def _similarity(common: Array, union: Index) -> Array:
    """Return c/(s + t − c) for sets that are not both empty."""
    return common / (union - common)


def _divide(node: _Node, label: int) -> list[_Node]:
    """Return the sets of a node with a label and those without it, as far as there are any; none for the label −1."""
    if label < 0:
        return []
    free = node.free.copy()
    free[label] = False
    inside = node.inside.copy()
    inside[label] = True
    children = [_Node(node.size, inside, free)]
    if int(free.sum()) >= node.size - int(node.inside.sum()):
        children.append(_Node(node.size, node.inside, free))
    return children
