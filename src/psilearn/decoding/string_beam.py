"""All strings of an alphabet as candidates, searched by a beam; few strings are listed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np

from psilearn._backend import Compute, iter_blocks, to_numpy
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples, distinct
from psilearn.decoding.path_decoder import DecodedStep, PathCandidates, PathDecoder
from psilearn.decoding.shared import RuleCandidates, SharedCandidates
from psilearn.decoding.top_k import TopK
from psilearn.embedding import Embedding
from psilearn.kernels import Linear, Substrings
from psilearn.kernels.inner_products import combine_rows
from psilearn.kernels.string.tokens import PatternColumns, check_alphabet

MAX_LISTED_STRINGS = 2**16  # if more than the nearest strings are needed
MAX_COUNT = 2**62  # larger numbers of strings are not computed
Solve = Callable[[Any, Any, int], list[list[tuple[Any, float]]]]  # of Z (q, p), a basis (r, p) and k


class StringPathDecoder(PathDecoder):
    """Decodes with a search; the basis (r, p) of the landmarks is rotated to the directions of each step.

    ``nearest`` has the numbers of the strings that were found.
    """

    def __init__(
        self, candidates: PathCandidates, solve: Solve, basis: Any, sizes: Sequence[int] | None, compute: Compute
    ) -> None:
        super().__init__(candidates, sizes, compute, None)
        self._solve = solve
        self._basis = to_numpy(basis)
        self._found: list[Any] = []

    def take(self, examples: Index, indices: Index) -> Samples:
        """Return strings that were found, by their numbers."""
        return [self._found[i] for i in indices]

    def _add(self, V: Any, Z: Any, sizes: list[int]) -> None:
        basis = self._basis if V is None else self._basis @ to_numpy(V)
        rows = []
        for p in sizes:
            found = [row[0][0] for row in self._solve(to_numpy(Z)[:, :p], basis[:, :p], 1)]
            rows.append(self._numbers(found))
        self._steps.append(DecodedStep(np.stack(rows)))

    def _numbers(self, strings: list[Any]) -> Index:
        """Return the numbers of strings, of which new ones are added."""
        both = [*self._found, *strings]
        first, inverse = distinct(both)
        self._found = [both[i] for i in first]
        return inverse[len(inverse) - len(strings) :]


class StringBeam(RuleCandidates):
    """All strings of an alphabet up to a length, searched by a beam: ``model.predict(X, candidates=StringBeam())``.

    The output kernel must be :class:`~psilearn.kernels.Substrings` without ``base``. Strings grow by one character at a
    time; of each length the ``width`` strings that are nearest to the prediction are kept, by their exact distances.
    The result need not be the nearest of all strings, unless ``width`` is at least the number of all strings that are
    one character shorter than the longest; the landmarks of the model are compared too, so it is never farther than
    they are. For everything else, such as positions and conformal sets, the strings are listed, up to 65,536 of them.

    Parameters
    ----------
    width : int, default=100
        The number of strings of each length that are kept.
    max_length : int, default=None
        The largest number of characters. None stands for the longest landmark output of the model.
    min_length : int, default=1
        The smallest number of characters.
    alphabet : str or sequence of str and int, default=None
        The characters or tokens of strings. None stands for those of the landmark outputs of the model.
    embedding : Embedding, default=None
        The embedding of a model. None until the strings are passed to a method of a model.

    See Also
    --------
    psilearn.kernels.Substrings : The output kernel.
    SharedCandidates : A list of candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.decoding import StringBeam
    >>> from psilearn.embedding import Embedding
    >>> from psilearn.kernels import Substrings
    >>> embedding = Embedding(Substrings(2), ["banana", "bandana"], np.eye(2))
    >>> StringBeam(width=20, embedding=embedding).nearest(np.array([[0.0, 1.0]]), k=1).nearest
    ['bandana']
    """

    def __init__(
        self,
        *,
        width: int = 100,
        max_length: int | None = None,
        min_length: int = 1,
        alphabet: Any = None,
        embedding: Embedding | None = None,
    ) -> None:
        self.width = width
        self.max_length = max_length
        self.min_length = min_length
        self.alphabet = alphabet
        self.embedding = embedding

    def __repr__(self) -> str:
        return f"StringBeam(width={self.width}, max_length={self.max_length}, min_length={self.min_length})"

    @cached_property
    def listed(self) -> SharedCandidates:
        """All strings as a list; an error if they are too many."""
        if self._max_size() > MAX_LISTED_STRINGS:
            raise ValueError(
                f"All strings of up to {self._lengths.stop - 1} out of {len(self._letters)} characters are too many to "
                f"list (at most {MAX_LISTED_STRINGS:,}): only the nearest ones can be searched. Give candidates, or a "
                f"smaller max_length of StringBeam."
            )
        strings = chain.from_iterable(product(self._letters, repeat=length) for length in self._lengths)
        return SharedCandidates([self._join(string) for string in strings], self.embedding)

    @property
    def _kernel(self) -> Substrings:
        """The output kernel, validated."""
        kernel = self._known_embedding().kernel
        if type(kernel) is not Substrings or (kernel.base is not None and type(kernel.base) is not Linear):
            raise TypeError(
                f"StringBeam needs the output kernel Substrings without base; got {kernel!r}. Give candidates."
            )
        return kernel

    @cached_property
    def _letters(self) -> tuple[Any, ...]:
        """The characters or tokens of strings, ascending if they are taken from landmarks."""
        if self.alphabet is not None:
            return check_alphabet(self.alphabet)
        landmarks = self._known_embedding().landmarks
        return tuple(sorted(set(chain.from_iterable(landmarks)), key=lambda token: (isinstance(token, str), token)))

    @cached_property
    def _lengths(self) -> range:
        """The allowed lengths."""
        shortest = validation.check_count(self.min_length, "min_length")
        longest = max(map(len, self._known_embedding().landmarks), default=0)
        longest = longest if self.max_length is None else validation.check_count(self.max_length, "max_length")
        if shortest > longest:
            raise ValueError(f"min_length={shortest} of StringBeam must not exceed max_length={longest}.")
        return range(shortest, longest + 1)

    def _join(self, tokens: Sequence[Any]) -> Any:
        """Return tokens in the form of the landmarks: a string, a list or a tuple."""
        first = self._known_embedding().landmarks[0]
        if isinstance(first, str):
            return "".join(tokens)
        return tuple(tokens) if isinstance(first, tuple) else list(tokens)

    def _like_landmarks(self, strings: list[Any]) -> Samples:
        """Return strings as an array if the landmarks are one, else as a list."""
        landmarks = self._known_embedding().landmarks
        is_array = isinstance(landmarks, np.ndarray) and landmarks.ndim == 1 and isinstance(landmarks[0], str)
        return np.array(strings, dtype=object if landmarks.dtype == object else str) if is_array else strings

    def _max_size(self) -> int:
        return min(sum(len(self._letters) ** length for length in self._lengths[:64]), MAX_COUNT)

    def _for_embedding(self, embedding: Embedding) -> StringBeam:
        limits = {name: getattr(self, name) for name in ("width", "max_length", "min_length", "alphabet")}
        beam = StringBeam(**limits, embedding=embedding)
        validation.check_count(beam.width, "width")
        beam._kernel, beam._letters, beam._lengths  # noqa: B018  errors before the search
        return beam

    def _nearest(self, Z: Any, k: int, compute: Compute) -> TopK:
        found = self._solve(to_numpy(Z), self._known_embedding().basis, k)
        strings = [string for row in found for string, _ in row]
        distances = np.array([[distance for _, distance in row] for row in found]).reshape(len(found), k)
        indices = np.arange(distances.size).reshape(distances.shape)
        return TopK(indices, np.maximum(distances, 0), SharedCandidates(self._like_landmarks(strings)), k)

    def _solve(self, Z: Array, basis: Any, k: int) -> list[list[tuple[Any, float]]]:
        """Return the k nearest strings of predictions Z (q, p), with distances, for a basis (r, p) of the landmarks."""
        landmarks, kernel = self._known_embedding().landmarks, self._kernel
        rows, norms = kernel.features(landmarks), kernel.diag(landmarks)
        known, basis = self._allowed_landmarks, to_numpy(basis).astype(np.float64, copy=False)
        found = []
        for part in iter_blocks(len(Z), 8 * sum(rows.shape)):
            block = np.asarray(Z[part], dtype=np.float64)
            squared = np.einsum("ij,ij->i", block, block)
            for w, length in zip(combine_rows(rows, block @ basis.T), squared.tolist(), strict=True):
                distances = length - 2 * (rows[known] @ w) + norms[known]
                found.append(self._search(w, length, distances, k))
        return found

    @cached_property
    def _allowed_landmarks(self) -> Index:
        """The numbers of the landmarks that are strings of the alphabet with an allowed length."""
        allowed, lengths = set(self._letters), self._lengths
        pairs = enumerate(self._known_embedding().landmarks)
        return np.array([i for i, item in pairs if len(item) in lengths and allowed.issuperset(item)], dtype=np.intp)

    def _search(self, w: Array, squared: float, known: Array, k: int) -> list[tuple[Any, float]]:
        """Return the k nearest strings of one prediction; ``known`` are the distances of the allowed landmarks."""
        kernel = self._kernel
        columns, factors = kernel._columns(), getattr(kernel, "idf_", 1.0) if kernel.idf else 1.0
        costs = np.broadcast_to(np.square(factors), w.shape)
        objective = SpectrumObjective(columns, kernel._lengths(), bool(kernel.normalize), factors * w, costs, squared)
        values = np.array([columns.value_of(letter) for letter in self._letters], np.uint64)
        found = search(objective, values, self._lengths, max(int(self.width), k), k)
        ranked = {
            self._key(self._join([self._letters[j] for j in row])): float(d) for row, d in zip(*found, strict=True)
        }
        landmarks = self._known_embedding().landmarks
        for i in np.argsort(known, kind="stable")[:k]:
            ranked.setdefault(self._key(landmarks[self._allowed_landmarks[i]]), float(known[i]))
        nearest = sorted(ranked.items(), key=lambda item: item[1])[:k]
        return [(self._join(key), distance) for key, distance in nearest]

    @staticmethod
    def _key(string: Any) -> Any:
        return string if isinstance(string, str) else tuple(string)

    def _path_decoder(
        self, embedding: Embedding, sizes: Sequence[int] | None, compute: Compute, truth: Index | None
    ) -> PathDecoder:
        beam = self if embedding is self.embedding else self._for_embedding(embedding)
        if truth is not None:
            return beam.listed._path_decoder(embedding, sizes, compute, truth)
        return StringPathDecoder(beam, beam._solve, embedding.basis, sizes, compute)


# Beam search for the string whose substrings are nearest to a prediction.
#
# Let w = G*z = Σ_l β_l ψ(s_l) with β = basis·z, let features be the counts nⱼ of substrings times factors fⱼ (1, or
# idf), and let uⱼ = fⱼ wⱼ. A string y has
#
#     S(y) = Σⱼ nⱼ uⱼ,    N(y) = Σⱼ nⱼ² fⱼ²,    |G*z − ψ(y)|² = |z|² − 2S + N,
#
# and |z|² − 2S/√N + 1 if features have length 1. A character that is appended to y adds one substring of each length,
# an edge of the de Bruijn graph whose nodes are the last characters of y. It adds uⱼ to S and (2nⱼ + 1)fⱼ² to N, so
# the exact distance of every extension costs as many operations as y has substrings.
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
