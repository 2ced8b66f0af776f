"""What a user passes as ``candidates``, as an object to search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import is_tensor
from psilearn._utils.samples import Samples
from psilearn.decoding.all_rankings import AllRankings, has_all_rankings
from psilearn.decoding.candidates import Candidates
from psilearn.decoding.label_sets import AllLabelSets, ConsistentLabelSets, ListableLabelSets, NearLabelSets
from psilearn.decoding.per_example import PerExampleCandidates
from psilearn.decoding.shared import SharedCandidates
from psilearn.kernels import HierarchicalDice, RankingKernel

CANDIDATE_NAMES = ("known", "near", "all")


def as_candidates(
    candidates: Any,
    known: SharedCandidates | Samples,
    check: Callable[[Samples, str], Samples],
    n_examples: int,
) -> Candidates:
    """Convert what a user passes as candidates.

    A list or tuple holds one collection per example if its items are one level deeper than a known output: a row of
    numbers has depth 1, a number or a string has depth 0. If known outputs have several depths, a list whose items can
    be outputs as well as collections of outputs is ambiguous and raises an error. A list that contains
    :class:`SharedCandidates` holds one set per example.

    Parameters
    ----------
    candidates : Candidates, array, CSR matrix, sequence of outputs, list of collections, str or None
        The argument of the user. "known" stands for the known outputs, "all" for all rankings or all label sets, and
        "near" for the known label sets and those that differ from one of them by one label. None stands for all
        rankings if the output kernel has a solver for them, and for the known outputs otherwise.
    known : SharedCandidates, array, CSR matrix or sequence
        The known outputs of the model. If they have an embedding, the candidates get the same one.
    check : callable
        Takes a collection of outputs and its name in error messages, and returns the validated collection.
    n_examples : int
        The number of examples that are decoded.

    Returns
    -------
    Candidates
        Validated candidates.

    Raises
    ------
    ValueError
        If the candidates are invalid, or ambiguous.

    See Also
    --------
    SharedCandidates : One set for all examples.
    PerExampleCandidates : One set per example.
    AllLabelSets : All label sets.

    Examples
    --------
    >>> from psilearn.decoding import as_candidates
    >>> def check(outputs, name):
    ...     return outputs
    >>> type(as_candidates(["a", "b"], ["a", "c"], check, n_examples=2)).__name__
    'SharedCandidates'
    >>> type(as_candidates([["a", "b"], ["c"]], ["a", "c"], check, n_examples=2)).__name__
    'PerExampleCandidates'
    """
    known = known if isinstance(known, SharedCandidates) else SharedCandidates(known)
    embedding = known.embedding
    if candidates is None:
        return known if embedding is None or not has_all_rankings(embedding.kernel) else _all_rankings(known)
    if isinstance(candidates, str):
        candidates = _named_candidates(candidates, known)
    converted: Candidates
    if isinstance(candidates, ListableLabelSets):
        converted = candidates._validate(check, n_examples)._with_known(known.outputs)
    elif isinstance(candidates, Candidates):
        converted = candidates
    elif _has_one_set_per_example(candidates, known.outputs):
        converted = PerExampleCandidates(candidates)
    else:
        converted = SharedCandidates(candidates)
    if not isinstance(converted, ListableLabelSets):
        converted = converted.validate(check, n_examples)
    converted = converted if embedding is None else converted.for_embedding(embedding)
    if isinstance(converted, ListableLabelSets):
        converted._check_searchable()
    return converted


def _named_candidates(name: str, known: SharedCandidates) -> Candidates:
    """Return the candidates that a name stands for."""
    if name not in CANDIDATE_NAMES:
        names = ", ".join(map(repr, CANDIDATE_NAMES))
        raise ValueError(f"candidates must be {names}, or a collection of outputs; got {name!r}.")
    if name == "known":
        return known
    kernel = None if known.embedding is None else known.embedding.kernel
    if name == "all" and isinstance(kernel, HierarchicalDice):
        return ConsistentLabelSets()
    if not isinstance(kernel, RankingKernel):
        return AllLabelSets() if name == "all" else NearLabelSets()
    if name == "all" and has_all_rankings(kernel):
        return _all_rankings(known)
    raise ValueError(f"candidates={name!r} is not possible with rankings as outputs and the kernel {kernel!r}.")


def _all_rankings(known: SharedCandidates) -> AllRankings:
    assert known.embedding is not None
    return AllRankings(known.embedding, known.outputs)


def _has_one_set_per_example(candidates: Any, known_outputs: Samples) -> bool:
    """Return whether a list holds collections of outputs rather than outputs."""
    if getattr(candidates, "ndim", 0) == 3 and getattr(known_outputs, "ndim", 0) == 2:
        raise ValueError(
            f"candidates has shape {tuple(candidates.shape)}, but outputs are rows: use list(candidates) for one set "
            f"per example."
        )
    if not isinstance(candidates, list | tuple) or not candidates:
        return False
    if any(isinstance(item, SharedCandidates) for item in candidates):
        return True
    depths = {known_outputs.ndim - 1} if hasattr(known_outputs, "shape") else set(map(_depth, known_outputs))
    if len(depths) == 1:
        return max(map(_depth, candidates)) > max(depths)
    if not all(_is_collection(item, depths) for item in candidates):
        return False
    if all(_depth(item) in depths for item in candidates):
        raise ValueError("candidates is ambiguous: use SharedCandidates(...) or PerExampleCandidates(...).")
    return True


def _is_collection(item: Any, depths: set[int]) -> bool:
    """Return whether an item can be a collection of outputs that have one of these depths."""
    if isinstance(item, list | tuple):
        return all(_depth(part) in depths for part in item)
    return _depth(item) - 1 in depths


def _depth(item: Any) -> int:
    """Return how many levels of collections an item has."""
    if isinstance(item, np.ndarray) or is_tensor(item) or sparse.issparse(item) or hasattr(item, "iloc"):
        return int(item.ndim)
    if isinstance(item, list | tuple):
        return 1 + max((_depth(part) for part in item), default=0)
    return 0
