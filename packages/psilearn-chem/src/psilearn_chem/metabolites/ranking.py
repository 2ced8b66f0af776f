"""Ranked molecules of spectra: distances, probabilities, ranks under ties and conformal sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from psilearn.conformal import p_values, threshold
from psilearn.decoding import PerExampleCandidates, RankedCandidates, SharedCandidates, join_rankings
from psilearn.kernels import Kernel
from psilearn.metrics import TIES
from psilearn.utils import Index, validation
from psilearn_chem.metabolites.adaptive_sets import members
from psilearn_chem.metabolites.queries import COMMON_ADDUCTS, Query, find_adduct
from psilearn_chem.metabolites.second_stage import (
    Candidates,
    Reranked,
    SecondStage,
    SmilesOf,
    by_index,
    spectral_similarity,
)
from psilearn_chem.molecules import CandidateLibrary, Formula
from psilearn_chem.spectra import Problem, Spectrum
from psilearn_chem.spectrum_kernels import share_blocks


def needs_formula(kernel: Kernel) -> bool:
    """Return whether a kernel on spectra, or a part of it, compares formulas of fragments or losses."""
    return any(getattr(part, "_needs_formula", False) for part in (kernel, *kernel.get_params(deep=True).values()))


def iter_variants(
    spectrum: Spectrum, rows: slice, library: CandidateLibrary, adducts: tuple[str, ...] = ()
) -> Iterator[tuple[Spectrum, slice]]:
    """Yield the spectrum with each formula of its candidates, and the rows of the molecules with this formula.

    Rows are those of the candidates in the library, where molecules of one formula are adjacent. A spectrum that states
    no adduct has the one of ``adducts``, or of the common ones, that fits to formula and precursor.
    """
    start = rows.start
    for formula, molecules in groupby(library.get_formulas(rows)):
        stop = start + len(list(molecules))
        adduct = adduct_of(spectrum, formula, adducts)
        is_stated = (spectrum.formula, spectrum.adduct) == (formula, adduct)
        yield spectrum if is_stated else replace(spectrum, formula=formula, adduct=adduct), slice(start, stop)
        start = stop


def adduct_of(spectrum: Spectrum, formula: str, adducts: tuple[str, ...] = ()) -> str | None:
    """Return the adduct of a spectrum, or the one of ``adducts``, or of the common ones, that fits to its precursor."""
    return spectrum.adduct or find_adduct(spectrum, Formula.parse(formula), adducts or COMMON_ADDUCTS)


Array = NDArray[np.float64]

MAX_BATCH = 1024  # spectra that are ranked together: the training spectra are prepared for each batch


@dataclass(frozen=True)
class Ranking:
    """The nearest molecules of one spectrum, nearest first.

    Parameters
    ----------
    spectrum : Spectrum
        The spectrum.
    how : str
        How its candidates were found, for example by a formula.
    n_candidates : int
        The number of candidates, of which k are here.
    rows : ndarray of shape (k,)
        The rows of the molecules in the library.
    distances : ndarray of shape (k,)
        The squared distances |G*z(x) − ψ(y)|² in the output space, ascending.
    margins : ndarray of shape (k,)
        How much farther the next candidate is; ∞ after the last candidate.
    ranks : ndarray of shape (k,)
        The ranks, 1 for the nearest. Molecules at the same distance share a rank.
    in_set : ndarray of bool of shape (k,)
        Whether each molecule is in the conformal set. All False if the model is not calibrated.
    trained_on : ndarray of bool of shape (k,)
        Whether the fingerprint of the molecule is that of a training spectrum.
    set_size : int or None
        The number of molecules in the conformal set. None if the model is not calibrated.
    p_values : ndarray of shape (k,) or None, default=None
        The conformal p-value of each molecule: the share of the calibration molecules, this one counted as one of them,
        whose score was at least as large. A molecule is in the set with coverage c if its p-value is above 1 − c. None
        if the model is not calibrated.
    probabilities : ndarray of shape (k,) or None, default=None
        The probability of each molecule, over all candidates of the spectrum, if the true one is among them. The
        molecules are then in the order of their probabilities, not of their distances, and margins are differences of
        the logarithms of probabilities. None if the model has no second stage.
    evidence : ndarray of shape (k,) or None, default=None
        The log-likelihood ratio of the reference spectra of each molecule (:class:`ReferenceEvidence`); NaN without
        reference spectra. None if the model has no second stage.
    other_p_value : float or None, default=None
        The largest p-value of the candidates other than the first one, also of those that are not in the ranking. None
        if the model is not calibrated, or if there is one candidate.

    See Also
    --------
    MetaboliteIdentifier.rank : Yields rankings.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_chem import Ranking, Spectrum
    >>> spectrum = Spectrum([29.04], [1.0], precursor_mz=47.0491, adduct="[M+H]+")
    >>> flags = np.array([True, False])
    >>> ranking = Ranking(
    ...     spectrum, "formula C2H6O", 2, np.array([5, 4]), np.array([0.2, 0.5]), np.array([0.3, np.inf]),
    ...     np.array([1.0, 2.0]), flags, flags, 1,
    ... )
    >>> ranking.rows[ranking.in_set]
    array([5])
    """

    spectrum: Spectrum
    how: str
    n_candidates: int
    rows: Index
    distances: NDArray[np.float64]
    margins: NDArray[np.float64]
    ranks: NDArray[np.float64]
    in_set: NDArray[np.bool_]
    trained_on: NDArray[np.bool_]
    set_size: int | None
    p_values: NDArray[np.float64] | None = None
    probabilities: NDArray[np.float64] | None = None
    evidence: NDArray[np.float64] | None = None
    other_p_value: float | None = None

    @property
    def confidence(self) -> float | None:
        """One minus the largest p-value of all candidates other than the first; None if the model is not calibrated."""
        if self.p_values is not None and self.n_candidates == 1:
            return 1.0
        return None if self.other_p_value is None else 1.0 - self.other_p_value


@dataclass(frozen=True)
class Ranker:
    """Ranks batches of spectra with a fitted estimator on spectra and fingerprints."""

    model: Any  # IOKR or OEL
    library: CandidateLibrary
    query: Query
    k: int | None
    coverage: float
    ties: str
    whole_set: bool = False
    second_stage: SecondStage | None = None

    def __post_init__(self) -> None:
        validation.check_fraction(self.coverage, "coverage")
        if self.k is not None:
            validation.check_count(self.k, "k")
        validation.check_option(self.ties, TIES, "ties")
        validation.check_bool(self.whole_set, "whole_set")
        if not isinstance(self.query, Query):
            raise TypeError(f"query must be a Query or None; got {self.query!r:.80}.")

    @property
    def _n_kept(self) -> int | None:
        """The number of candidates that are kept before the size of the conformal set is known; None for all.

        There are at least two. Without a second stage, the second one has the largest p-value of all but the first.
        """
        return None if self.whole_set or self.k is None else max(self.k, 2)

    def rank(self, spectra: Sequence[Spectrum] | Iterator[Spectrum]) -> Iterator[Ranking | Problem]:
        """Yield a ranking or a problem for each spectrum; an iterator is read in batches."""
        if not isinstance(spectra, list | tuple | Iterator):
            raise TypeError(f"spectra must be a list or an iterator of Spectrum objects; got {spectra!r:.80}.")
        if not isinstance(spectra, Iterator):
            _check_spectra(spectra)
        embedded = self.library.embedded(self.model)
        training_bits = {row.tobytes() for row in np.asarray(self.model.candidates_.outputs)}
        remaining, start = iter(spectra), 0
        while batch := list(islice(remaining, MAX_BATCH)):
            yield from self._rank_batch(_check_spectra(batch), start, embedded, training_bits)
            start += len(batch)

    def _rank_batch(
        self, spectra: Sequence[Spectrum], start: int, embedded: SharedCandidates | None, training_bits: set[bytes]
    ) -> Iterator[Ranking | Problem]:
        queries = [self._find_candidates(spectrum, start + i) for i, spectrum in enumerate(spectra)]
        usable = [i for i, found in enumerate(queries) if not isinstance(found, Problem)]
        rows = [found[0] for found in queries if not isinstance(found, Problem)]
        ranked = self._rank_rows([spectra[i] for i in usable], rows, embedded)
        for spectrum, found in zip(spectra, queries, strict=True):
            if isinstance(found, Problem):
                yield found
            else:
                yield self._as_ranking(spectrum, *found, next(ranked), training_bits)

    def _find_candidates(self, spectrum: Spectrum, number: int) -> tuple[slice, str] | Problem:
        try:
            return self.query.find_candidates(spectrum, self.library)
        except ValueError as error:
            return Problem(spectrum.name or f"spectrum {number + 1}", str(error))

    def _rank_rows(
        self, spectra: list[Spectrum], rows: list[slice], embedded: SharedCandidates | None
    ) -> Iterator[RerankedCandidates]:
        if not spectra:
            return iter(())
        if self.second_stage is None:
            return map(RerankedCandidates, self._rank_by_distance(spectra, rows, embedded, self._n_kept))
        with share_blocks():  # the kernels of both stages have parts in common
            ranked = self._rank_by_distance(spectra, rows, embedded, None)
            similarity = spectral_similarity(spectra, self.model.regression_.anchors)
        return map(self._rerank, spectra, rows, similarity, ranked)

    def _rerank(
        self, spectrum: Spectrum, rows: slice, similarity: Array, ranked: RankedCandidates
    ) -> RerankedCandidates:
        """Rank candidates by the second stage, given all of them by distance, and the similarity with the training."""
        if spectrum.adduct is None:  # training spectra have one
            formula = self.library.get_formulas(slice(rows.start, rows.start + 1))[0]
            spectrum = replace(spectrum, adduct=adduct_of(spectrum, formula))
        bits, distances = np.asarray(self.library.bits[rows]), by_index(ranked)
        candidates = Candidates(spectrum, bits, distances, similarity, SmilesOf(self.library, rows.start))
        with _blas().limit(limits=1):  # products are so small that further threads only wait for each other
            reranked = cast(SecondStage, self.second_stage).rerank(candidates)
        return order_by_probability(reranked, ranked, distances, self._n_kept, self.ties, self.coverage)

    def _rank_by_distance(
        self, spectra: list[Spectrum], rows: list[slice], embedded: SharedCandidates | None, k: int | None
    ) -> Iterator[RankedCandidates]:
        """Compare candidates with their spectrum or, where kernels need it, with what their formula explains of it."""
        if not needs_formula(self.model.regression_.kernel):
            return self._rank_parts(spectra, rows, embedded, k)
        adducts = self.query.adducts
        variants = [list(iter_variants(*pair, self.library, adducts)) for pair in zip(spectra, rows, strict=True)]
        flat = [variant for part in variants for variant in part]
        ranked = self._rank_parts([spectrum for spectrum, _ in flat], [part for _, part in flat], embedded, None)
        scores = getattr(self.model, "calibration_scores_", None)
        limit = None if scores is None else threshold(scores, self.coverage)
        return (join_rankings([next(ranked) for _ in part], k=k, ties=self.ties, limit=limit) for part in variants)

    def _rank_parts(
        self, spectra: list[Spectrum], rows: list[slice], embedded: SharedCandidates | None, k: int | None
    ) -> Iterator[RankedCandidates]:
        if embedded is None:
            candidates = PerExampleCandidates([self.library.bits[part] for part in rows])
        else:
            candidates = embedded.per_example(rows)
        coverage = self.coverage if hasattr(self.model, "calibration_scores_") else None
        ranked = self.model.rank_candidates(spectra, candidates, k=k, ties=self.ties, coverage=coverage)
        return cast(Iterator[RankedCandidates], ranked)

    def _as_ranking(
        self, spectrum: Spectrum, rows: slice, how: str, reranked: RerankedCandidates, training_bits: set[bytes]
    ) -> Ranking:
        ranked = reranked.ranked
        shown = np.arange(len(ranked.indices)) < (np.inf if self.k is None else self.k)
        if self.whole_set and ranked.in_set is not None:
            shown |= ranked.in_set
        in_library = ranked.indices[shown] + rows.start
        is_calibrated = ranked.in_set is not None
        p_values = self._p_values(reranked) if is_calibrated else None
        return Ranking(
            spectrum=spectrum,
            how=how,
            n_candidates=ranked.n_candidates,
            rows=in_library,
            distances=ranked.distances[shown],
            margins=ranked.margins[shown],
            ranks=ranked.positions[shown],
            in_set=ranked.in_set[shown] if is_calibrated else np.zeros(len(in_library), dtype=bool),
            trained_on=np.array([self.library.bits[row].tobytes() in training_bits for row in in_library], dtype=bool),
            set_size=ranked.set_size,
            p_values=None if p_values is None else p_values[shown],
            probabilities=None if reranked.probabilities is None else reranked.probabilities[shown],
            evidence=None if reranked.evidence is None else reranked.evidence[shown],
            other_p_value=largest_other(p_values) if reranked.other_p_value is None else reranked.other_p_value,
        )

    def _p_values(self, reranked: RerankedCandidates) -> NDArray[np.float64]:
        """Return the conformal p-values of ranked molecules of a calibrated model."""
        if reranked.p_values is not None:
            return reranked.p_values
        return p_values(reranked.ranked.scores, np.asarray(self.model.calibration_scores_))


def _check_spectra(spectra: Sequence[Spectrum]) -> Sequence[Spectrum]:
    if not all(isinstance(item, Spectrum) for item in spectra):
        raise TypeError(f"spectra must be a list or an iterator of Spectrum objects; got {spectra!r:.80}.")
    return spectra


TIE = 1e-9  # difference of log-probabilities below which candidates tie


@dataclass(frozen=True)
class RerankedCandidates:
    """Candidates in the order of their probabilities, or of their distances."""

    ranked: RankedCandidates
    probabilities: Array | None = None  # (k,)  None if they are ranked by their distances
    evidence: Array | None = None  # (k,)  log-likelihood ratio of reference spectra; NaN without them
    p_values: Array | None = None  # (k,)  conformal; None if they follow from the scores of distances, or are unknown
    other_p_value: float | None = None  # largest of all candidates but the first; None as above, or for one candidate


@cache
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


def order_by_probability(
    reranked: Reranked, ranked: RankedCandidates, distances: Array, k: int | None, ties: str, coverage: float
) -> RerankedCandidates:
    """Return the k most probable candidates; margins are differences of log-probabilities."""
    log_p = reranked.log_probabilities
    order = np.lexsort((distances, -log_p))
    sorted_p = log_p[order]
    p_values = None if reranked.p_values is None else reranked.p_values[order]
    in_set = None if p_values is None else members(p_values, coverage)
    top = slice(0, k)
    margins = np.append(-np.diff(sorted_p), np.inf)
    return RerankedCandidates(
        replace(
            ranked,
            indices=order[top],
            distances=distances[order][top],
            margins=np.where(margins < TIE, 0.0, margins)[top],
            positions=_positions(sorted_p, ties)[top],
            scores=np.zeros(len(order))[top] if p_values is None else (1 - p_values)[top],
            in_set=None if in_set is None else in_set[top],
            set_size=None if in_set is None else int(in_set.sum()),
        ),
        np.exp(sorted_p)[top],
        reranked.evidence[order][top],
        None if p_values is None else p_values[top],
        largest_other(p_values),
    )


def largest_other(p_values: Array | None) -> float | None:
    """Return the largest p-value after the first one; None if there is none."""
    return None if p_values is None or len(p_values) < 2 else float(p_values[1:].max())


def _positions(descending: Array, ties: str) -> Array:
    """Return positions from 1; values that tie share the mean of their positions, the first or the last one."""
    starts_anew = np.append(True, -np.diff(descending) >= TIE)
    number = np.cumsum(starts_anew) - 1
    first = np.flatnonzero(starts_anew)
    last = np.append(first[1:], len(descending)) - 1
    places: dict[str, Any] = {"expected": (first + last) / 2, "optimistic": first, "pessimistic": last}
    return np.asarray(places[ties][number] + 1, dtype=np.float64)
