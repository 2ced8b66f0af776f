"""Beam search for the string whose substrings are nearest to a prediction.

Let w = G*z = Σ_l β_l ψ(s_l) with β = basis·z, let features be the counts nⱼ of substrings times factors fⱼ (1, or
idf), and let uⱼ = fⱼ wⱼ. A string y has

    S(y) = Σⱼ nⱼ uⱼ,    N(y) = Σⱼ nⱼ² fⱼ²,    |G*z − ψ(y)|² = |z|² − 2S + N,

and |z|² − 2S/√N + 1 if features have length 1. A character that is appended to y adds one substring of each length, an
edge of the de Bruijn graph whose nodes are the last characters of y. It adds uⱼ to S and (2nⱼ + 1)fⱼ² to N, so the
exact distance of every extension costs as many operations as y has substrings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from psilearn._linalg import Array
from psilearn._utils.samples import Index
from psilearn.kernels.string.columns import PatternColumns


@dataclass(frozen=True)
class SpectrumObjective:
    """The distance of strings from one prediction."""

    columns: PatternColumns
    lengths: range  # of substrings
    normalize: bool
    gains: Array  # (D,)  u
    costs: Array  # (D,)  f²
    squared: float  # |z|²

    def distances(self, S: Array, N: Array) -> Array:
        """Return the squared distances of strings with these sums."""
        if not self.normalize:
            return self.squared - 2 * S + N
        has_features = N > 0
        lengths = np.sqrt(np.where(has_features, N, 1.0))
        return self.squared + np.where(has_features, 1 - 2 * S / lengths, 0.0)


class Beam(NamedTuple):
    """Strings of one length, with what their distances depend on."""

    letters: Index  # (b, t)  numbers of letters
    columns: Index  # (b, m)  of all their substrings
    S: Array  # (b,)
    N: Array  # (b,)

    @classmethod
    def empty(cls) -> Beam:
        """Return the empty string."""
        return cls(np.zeros((1, 0), np.intp), np.zeros((1, 0), np.intp), np.zeros(1), np.zeros(1))

    def take(self, rows: Index) -> Beam:
        """Return some of the strings."""
        return Beam(self.letters[rows], self.columns[rows], self.S[rows], self.N[rows])


def extend(beam: Beam, values: Any, objective: SpectrumObjective) -> Beam:
    """Return all strings with one more letter, those of one string after those of another.

    ``values`` are the values of the letters in keys of substrings.
    """
    n_strings, length = beam.letters.shape
    n_letters = len(values)
    letters = np.column_stack([np.repeat(beam.letters, n_letters, axis=0), np.tile(np.arange(n_letters), n_strings)])
    old = np.repeat(beam.columns, n_letters, axis=0)
    S, N = np.repeat(beam.S, n_letters), np.repeat(beam.N, n_letters)
    new: list[Index] = []
    for n in objective.lengths:
        if n > length + 1:
            break
        keys = np.zeros(len(letters), np.uint64)
        for place in range(length + 1 - n, length + 1):
            keys = keys * np.uint64(objective.columns.multiplier) + values[letters[:, place]]
        column = objective.columns.find(keys, n)
        count = (old == column[:, None]).sum(axis=1) + sum((other == column for other in new), np.zeros(len(column)))
        S = S + objective.gains[column]
        N = N + (2 * count + 1) * objective.costs[column]
        new.append(column)
    return Beam(letters, np.column_stack([old, *new]) if new else old, S, N)


class FoundStrings(NamedTuple):
    """The nearest strings that a search found, nearest first."""

    letters: list[Index]
    distances: Array


def search(objective: SpectrumObjective, values: Any, lengths: range, width: int, k: int) -> FoundStrings:
    """Return the k nearest strings among those that a beam of ``width`` strings per length visits.

    All strings of ``lengths`` are visited if ``width`` is at least the number of strings that are one letter shorter
    than the longest. Cost: O(width · letters · t) operations per letter of a string with t substrings.
    """
    beam, found = Beam.empty(), FoundStrings([], np.zeros(0))
    for length in range(1, lengths.stop):
        beam = extend(beam, values, objective)
        distances = objective.distances(beam.S, beam.N)
        order = np.argsort(distances, kind="stable")
        if length >= lengths.start:
            found = _merge(found, beam.letters[order[:k]], distances[order[:k]], k)
        beam = beam.take(np.sort(order[:width]))
    return found


def _merge(found: FoundStrings, letters: Index, distances: Array, k: int) -> FoundStrings:
    """Return the k nearest of strings that were found before and of new ones."""
    merged = np.concatenate([found.distances, distances])
    order = np.argsort(merged, kind="stable")[:k]
    strings = [*found.letters, *letters]
    return FoundStrings([strings[i] for i in order], merged[order])
