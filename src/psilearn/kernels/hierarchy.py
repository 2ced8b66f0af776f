"""Labels in trees or in an acyclic graph, and the kernel of their label sets whose values are the hierarchical F1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from psilearn._backend import is_tensor, tensor_to_numpy, to_device, to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Index, Samples, check_not_masked
from psilearn._utils.validation import check_items
from psilearn.kernels.binary import Dice
from psilearn.kernels.feature_kernel import FeatureKernel
from psilearn.kernels.kernel import Kernel
from psilearn.kernels.row_kernel import check_rows

MAX_ANCESTORS = 20_000_000  # of all labels, themselves included: 240 MB


@dataclass(frozen=True)
class Hierarchy:
    """L labels and the parents of each: a label that belongs to a set implies all its ancestors.

    Parameters
    ----------
    parents : sequence of L int, or of L sequences of int
        The number of the parent of each label, −1 for a root; or the numbers of all parents of each label, none for a
        root. Labels with several parents make the hierarchy an acyclic graph instead of a tree.
    names : sequence of L str, default=None
        The names of the labels, used by :meth:`encode`, :meth:`decode` and errors. None stands for their numbers.

    Raises
    ------
    ValueError
        If a parent is not a label, names are not distinct, or the parents have a cycle. Methods raise it if all labels
        together have more than 20 million ancestors: a hierarchy that is a chain has at most about 6,000 labels.

    See Also
    --------
    HierarchicalDice : The kernel of label sets with their ancestors.
    psilearn.decoding.ConsistentLabelSets : All sets that contain the parents of their labels, as candidates.

    Examples
    --------
    >>> from psilearn.kernels import Hierarchy
    >>> animals = Hierarchy.from_edges([("animal", "bird"), ("animal", "fish"), ("bird", "owl")])
    >>> animals.names
    ('animal', 'bird', 'fish', 'owl')
    >>> animals.encode([["owl"], ["fish"]])
    array([[1, 1, 0, 1],
           [1, 0, 1, 0]])
    """

    parents: Any
    names: Any = None

    def __post_init__(self) -> None:
        """Validate the parents and the names, and store both as tuples."""
        names = None if self.names is None else check_names(self.names)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "parents", check_parents(self.parents))
        if names is not None and len(names) != len(self.parents):
            raise ValueError(f"names has {len(names)} names, but parents has {len(self.parents)} labels.")
        self._order  # noqa: B018  an error if there is a cycle

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[str, str]], names: Sequence[str] | None = None) -> Self:
        """Make a hierarchy from pairs of names.

        Parameters
        ----------
        edges : iterable of (str, str)
            The names of a parent and of its child.
        names : sequence of str, default=None
            All labels in their order, with those that have neither parents nor children. None stands for the names in
            the edges, in the order in which they appear.

        Returns
        -------
        Hierarchy
            The hierarchy.

        Raises
        ------
        ValueError
            If an edge has a name that is not in ``names``, or the edges have a cycle.

        See Also
        --------
        Hierarchy.encode : Label sets by name as rows of 0 and 1.

        Examples
        --------
        >>> from psilearn.kernels import Hierarchy
        >>> Hierarchy.from_edges([("animal", "bird"), ("pet", "bird")]).parents
        ((), (0, 2), ())
        """
        listed = check_items(edges, "edges", "an iterable of the names of a parent and of its child")
        pairs = [check_edge(edge, i) for i, edge in enumerate(listed)]
        if not pairs and names is None:
            raise ValueError("edges is empty: pass at least one pair of names, or names.")
        labels = check_names(dict.fromkeys(name for pair in pairs for name in pair) if names is None else names)
        number = {name: i for i, name in enumerate(labels)}
        parents: list[list[int]] = [[] for _ in labels]
        for i, (parent, child) in enumerate(pairs):
            for name in (parent, child):
                if name not in number:
                    raise ValueError(f"edges[{i}] contains {name!r}, which is not in names.")
            if number[parent] not in parents[number[child]]:
                parents[number[child]].append(number[parent])
        return cls(parents, labels)

    @property
    def n_labels(self) -> int:
        """The number L of labels."""
        return len(self.parents)

    @property
    def is_tree(self) -> bool:
        """Whether no label has several parents: the hierarchy is a tree, or several of them."""
        return all(len(parents) <= 1 for parents in self.parents)

    @cached_property
    def ancestors(self) -> Any:
        """The CSR matrix (L, L) whose row j marks the label j and all its ancestors with 1."""
        sets: list[Any] = [None] * self.n_labels
        size = 0
        for label in self._order.tolist():
            parents = [sets[parent] for parent in self.parents[label]]
            above = parents[0] if len(parents) == 1 else np.unique(np.concatenate([[], *parents]))
            sets[label] = np.insert(above, np.searchsorted(above, label), label).astype(np.int32)
            size += len(sets[label])
            if size > MAX_ANCESTORS:
                raise ValueError(
                    f"The {self.n_labels:,} labels of the hierarchy have more than {MAX_ANCESTORS:,} ancestors in all: "
                    f"use a hierarchy that is less deep."
                )
        indptr = np.cumsum([0, *map(len, sets)])
        return sparse.csr_matrix((np.ones(size), np.concatenate(sets), indptr), shape=(self.n_labels, self.n_labels))

    def close(self, Y: Samples) -> Samples:
        """Add the ancestors of all labels to label sets.

        Parameters
        ----------
        Y : array, tensor or CSR matrix of shape (n, L)
            Label sets, rows of 0 and 1.

        Returns
        -------
        array, tensor or CSR matrix of shape (n, L)
            The sets with all ancestors, in the same form.

        See Also
        --------
        Hierarchy.is_consistent : Whether a set contains the ancestors of its labels.

        Examples
        --------
        >>> from psilearn.kernels import Hierarchy
        >>> Hierarchy([-1, 0, 0, 1]).close([[0, 0, 0, 1]])
        array([[1, 1, 0, 1]])
        """
        rows = self._check_sets(Y)
        if not sparse.issparse(rows):
            closed = (to_numpy(rows) @ self.ancestors > 0).astype(to_numpy(rows[:0]).dtype)
            return to_device(closed, rows.device) if is_tensor(rows) else closed
        closed = sparse.csr_matrix(rows, dtype=np.float64) @ self.ancestors
        closed.eliminate_zeros()
        closed.data[:] = 1
        closed.sort_indices()
        return type(rows)(closed.astype(rows.dtype))

    def is_consistent(self, Y: Samples) -> Array:
        """Return whether label sets contain the ancestors of all their labels.

        Parameters
        ----------
        Y : array or CSR matrix of shape (n, L)
            Label sets, rows of 0 and 1.

        Returns
        -------
        ndarray of shape (n,)
            One bool per set.

        See Also
        --------
        Hierarchy.close : Make sets consistent.

        Examples
        --------
        >>> from psilearn.kernels import Hierarchy
        >>> Hierarchy([-1, 0]).is_consistent([[1, 0], [0, 1]])
        array([ True, False])
        """
        rows = tensor_to_numpy(self._check_sets(Y))
        return np.asarray((self.close(rows) != rows).sum(axis=1)).ravel() == 0

    def encode(self, sets: Iterable[Iterable[str]]) -> Index:
        """Return label sets, given by names, with all ancestors as rows of 0 and 1.

        Parameters
        ----------
        sets : iterable of n iterables of str
            The names of the labels of each set.

        Returns
        -------
        ndarray of shape (n, L)
            The consistent sets.

        Raises
        ------
        ValueError
            If a name is not the name of a label.

        See Also
        --------
        Hierarchy.decode : The names of rows.

        Examples
        --------
        >>> from psilearn.kernels import Hierarchy
        >>> Hierarchy([-1, 0, 0], names=["animal", "bird", "fish"]).encode([["bird"], []])
        array([[1, 1, 0],
               [0, 0, 0]])
        """
        number = {name: j for j, name in enumerate(self._names())}
        members = [
            [names] if isinstance(names, str) else check_items(names, f"sets[{i}]", "an iterable of names")
            for i, names in enumerate(check_items(sets, "sets", "an iterable of iterables of names"))
        ]
        rows = np.zeros((len(members), self.n_labels), dtype=np.intp)
        for i, names in enumerate(members):
            for name in names:
                if not isinstance(name, str) or name not in number:
                    raise ValueError(f"sets[{i}] contains {name!r}, which is not a label of the hierarchy.")
                rows[i, number[name]] = 1
        return self.close(rows) if members else rows

    def decode(self, Y: Samples) -> list[list[str]]:
        """Return the names of the labels of label sets.

        Parameters
        ----------
        Y : array or CSR matrix of shape (n, L)
            Label sets, rows of 0 and 1.

        Returns
        -------
        list of n lists of str
            The names in the order of the labels.

        See Also
        --------
        Hierarchy.encode : Rows of names.

        Examples
        --------
        >>> from psilearn.kernels import Hierarchy
        >>> Hierarchy([-1, 0, 0], names=["animal", "bird", "fish"]).decode([[1, 0, 1]])
        [['animal', 'fish']]
        """
        rows, names = sparse.csr_matrix(tensor_to_numpy(self._check_sets(Y))), self._names()
        return [[names[j] for j in np.flatnonzero(row.toarray()[0])] for row in rows]

    @cached_property
    def _order(self) -> Index:
        """The labels with parents before children; an error if there is a cycle."""
        n_open = [len(parents) for parents in self.parents]
        children: list[list[int]] = [[] for _ in self.parents]
        for label, parents in enumerate(self.parents):
            for parent in parents:
                children[parent].append(label)
        order = [label for label, count in enumerate(n_open) if count == 0]
        for label in order:  # grows
            for child in children[label]:
                n_open[child] -= 1
                if n_open[child] == 0:
                    order.append(child)
        if len(order) < self.n_labels:
            raise ValueError(f"parents has a cycle: {self._describe_cycle(set(order))}.")
        return np.array(order, dtype=np.intp)

    def _describe_cycle(self, outside: set[int]) -> str:
        """Return the labels of one cycle among those that are not ordered."""
        label = next(label for label in range(self.n_labels) if label not in outside)
        places: dict[int, int] = {}
        while label not in places:
            places[label] = len(places)
            label = next(parent for parent in self.parents[label] if parent not in outside)
        cycle = [*list(places)[places[label] :], label]
        names = self._names()
        return " → ".join(names[j] if j >= 0 else "…" for j in (cycle if len(cycle) < 20 else [*cycle[:9], -1, label]))

    def _names(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.n_labels))) if self.names is None else self.names

    def _check_sets(self, Y: Samples) -> Samples:
        """Return rows of numbers with one column per label."""
        rows = check_rows(Y, "Y", "must be rows of 0 and 1, one column per label", accept_sparse="csr")
        if rows.shape[1] != self.n_labels:
            raise ValueError(
                f"Y must have shape (n, {self.n_labels}), one column per label of the hierarchy; got "
                f"{tuple(rows.shape)}."
            )
        return rows


def check_parents(parents: Any) -> tuple[tuple[int, ...], ...]:
    """Return the parents of each label; raise if one of them is not a label."""
    check_not_masked(parents, "parents")
    is_sequence = isinstance(parents, list | tuple) or (isinstance(parents, np.ndarray) and parents.ndim > 0)
    if not is_sequence or not len(parents):
        raise ValueError(
            f"parents must be a sequence with one entry per label, the number of its parent or −1; got {parents!r:.80}."
        )
    return tuple(_check_entry(entry, label, len(parents)) for label, entry in enumerate(parents))


def _check_entry(entry: Any, label: int, n_labels: int) -> tuple[int, ...]:
    """Return the parents of one label: none for −1, a number, or several numbers."""
    if _is_integer(entry):
        entry = [] if entry == -1 else [entry]
    if not isinstance(entry, list | tuple | np.ndarray) or np.ndim(entry) != 1:
        raise ValueError(
            f"parents[{label}] must be the number of a label, −1, or a list of numbers; got {entry!r:.80}."
        )
    for number in entry:
        if not _is_integer(number) or not 0 <= number < n_labels:
            raise ValueError(f"parents[{label}] contains {number!r}, which is not one of the {n_labels} labels.")
    return tuple(sorted({int(number) for number in entry}))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def check_names(names: Any) -> tuple[str, ...]:
    """Return the names of labels; raise if they are not distinct texts."""
    labels = (
        ()
        if isinstance(names, str) or not hasattr(names, "__iter__") or getattr(names, "ndim", 1) != 1
        else tuple(names)
    )
    if not labels or not all(isinstance(name, str) for name in labels) or len(set(labels)) < len(labels):
        raise ValueError(f"names must be a sequence of distinct texts, one per label; got {names!r:.80}.")
    return labels


def check_edge(edge: Any, number: int) -> tuple[str, str]:
    """Return a pair of names."""
    is_pair = isinstance(edge, list | tuple) and len(edge) == 2 and all(isinstance(name, str) for name in edge)
    if not is_pair:
        raise ValueError(f"edges[{number}] must be the names of a parent and of its child; got {edge!r:.80}.")
    parent, child = edge
    return parent, child


class HierarchicalDice(FeatureKernel):
    """The Dice kernel of label sets with their ancestors: k(y, y′) = 2|ȳ∩ȳ′| / (|ȳ| + |ȳ′|).

    ȳ contains the labels of y and all their ancestors. k is the hierarchical F1 of two sets, and its squared distance
    is 2 − 2·F1. Estimators with this output kernel predict over all consistent sets with ``candidates="all"``.

    Parameters
    ----------
    hierarchy : Hierarchy
        The parents of the labels.

    See Also
    --------
    Hierarchy : Labels in a tree or in an acyclic graph.
    Dice : The same without ancestors.
    psilearn.metrics.hierarchical_f1 : The mean of this kernel over examples.

    References
    ----------
    Kiritchenko, Matwin and Famili, *Functional annotation of genes using hierarchical text categorization*, 2005.

    Examples
    --------
    >>> from psilearn.kernels import HierarchicalDice, Hierarchy
    >>> kernel = HierarchicalDice(Hierarchy([-1, 0, 0, 1]))
    >>> kernel([[0, 0, 0, 1]], [[0, 1, 0, 0], [0, 0, 1, 0]])  # a label with its parent, and with another branch
    array([[0.8, 0.4]])
    """

    normalize = False
    base = None

    def __init__(self, hierarchy: Hierarchy) -> None:
        self.hierarchy = hierarchy

    def _base(self) -> Kernel:
        return _DICE

    def _features(self, A: Any) -> Any:
        return self.hierarchy.close(A)

    def _key(self, A: Any) -> Any:
        return None  # rows are closed as quickly as they are compared

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        if not isinstance(self.hierarchy, Hierarchy):
            raise TypeError(f"hierarchy of HierarchicalDice must be a Hierarchy; got {self.hierarchy!r:.80}.")
        rows = _DICE._check(A, name, False)
        if rows.shape[1] != self.hierarchy.n_labels:
            raise ValueError(
                f"{name} has {rows.shape[1]} columns, but the hierarchy has {self.hierarchy.n_labels} labels."
            )
        return rows


_DICE = Dice()
