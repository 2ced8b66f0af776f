"""All strings of an alphabet as candidates, searched by a beam; few strings are listed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain, product
from typing import Any

import numpy as np

from psilearn._backend import Compute, iter_blocks, to_numpy
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples
from psilearn.decoding.path_decoder import PathDecoder
from psilearn.decoding.rule_candidates import RuleCandidates
from psilearn.decoding.shared import SharedCandidates
from psilearn.decoding.strings.spectrum_beam import SpectrumObjective, search
from psilearn.decoding.strings.string_path import StringPathDecoder
from psilearn.decoding.top_k import TopK
from psilearn.embedding import Embedding
from psilearn.kernels import Linear, Substrings
from psilearn.kernels.inner_products import combine_rows
from psilearn.kernels.string.columns import check_alphabet

MAX_LISTED_STRINGS = 2**16  # if more than the nearest strings are needed
MAX_COUNT = 2**62  # larger numbers of strings are not computed


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
