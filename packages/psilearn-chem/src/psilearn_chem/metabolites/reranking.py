"""Rankings by the probabilities of the second stage, in the form of rankings by distances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from psilearn.decoding import RankedCandidates
from psilearn_chem.metabolites.adaptive_sets import members
from psilearn_chem.metabolites.formula_variants import adduct_of
from psilearn_chem.metabolites.second_stage import Candidates, Reranked, SecondStage, SmilesOf
from psilearn_chem.molecules import CandidateLibrary
from psilearn_chem.spectra import Spectrum

Array = NDArray[np.float64]

TIE = 1e-9  # difference of log-probabilities below which candidates tie


@dataclass(frozen=True)
class RerankedCandidates:
    """Candidates in the order of their probabilities, or of their distances."""

    ranked: RankedCandidates
    probabilities: Array | None = None  # (k,)  None if they are ranked by their distances
    evidence: Array | None = None  # (k,)  log-likelihood ratio of reference spectra; NaN without them
    p_values: Array | None = None  # (k,)  conformal; None if they follow from the scores of distances, or are unknown
    other_p_value: float | None = None  # largest of all candidates but the first; None as above, or for one candidate


@dataclass(frozen=True)
class Reranker:
    """Ranks the candidates of spectra by the second stage."""

    stage: SecondStage
    library: CandidateLibrary
    k: int | None
    ties: str
    coverage: float

    def rerank(
        self,
        spectra: Sequence[Spectrum],
        rows: Sequence[slice],
        similarity: Array,
        rankings: Iterator[RankedCandidates],
    ) -> Iterator[RerankedCandidates]:
        """Yield rankings by probability, given rankings of all candidates by distance.

        ``similarity`` of shape (spectra, training spectra) is that of :func:`spectral_similarity`.
        """
        for spectrum, part, similar, ranked in zip(spectra, rows, similarity, rankings, strict=True):
            distances = np.empty(ranked.n_candidates)
            distances[ranked.indices] = ranked.distances
            candidates = Candidates(
                self._with_adduct(spectrum, part),
                np.asarray(self.library.bits[part]),
                distances,
                similar,
                SmilesOf(self.library, part.start),
            )
            with _blas().limit(limits=1):  # products are so small that further threads only wait for each other
                reranked = self.stage.rerank(candidates)
            yield order_by_probability(reranked, ranked, distances, self.k, self.ties, self.coverage)

    def _with_adduct(self, spectrum: Spectrum, rows: slice) -> Spectrum:
        """Return a spectrum with an adduct, as training spectra have one: that of its precursor if none is stated."""
        if spectrum.adduct is not None:
            return spectrum
        formula = self.library.get_formulas(slice(rows.start, rows.start + 1))[0]
        return replace(spectrum, adduct=adduct_of(spectrum, formula))


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
