"""Validation of parents, names and edges of a hierarchy."""

from __future__ import annotations

from typing import Any

import numpy as np

from psilearn._utils.samples import check_not_masked


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
