"""Spectra in, ranked molecules out: distances, margins, ranks under ties, and conformal sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Index
from psilearn.chem.metabolites.identifier import MetaboliteIdentifier
from psilearn.chem.metabolites.queries import Query
from psilearn.chem.molecules import CandidateLibrary
from psilearn.chem.spectra import Problem, Spectrum
from psilearn.conformal import conformal_scores, threshold, tied_runs, within
from psilearn.decoding import CandidateSet, CandidateSets
from psilearn.decoding.bounds import tie
from psilearn.decoding.expansions import Expansions, distances_in_sets
from psilearn.decoding.nearest import distances_and_slack
from psilearn.metrics import TIES

BATCH = 256  # spectra that are embedded together


@dataclass(frozen=True)
class Ranking:
    """The nearest molecules of one spectrum, nearest first."""

    spectrum: Spectrum
    how: str  # candidates were found
    n_candidates: int
    rows: Index  # (k,)  in the library
    distances: Array  # (k,)  |G*z(x) − ψ(y)|² in the output space
    margins: Array  # (k,)  how much farther the next candidate is; ∞ after the last
    ranks: Array  # (k,)  1 is the nearest; those at one distance share the mean of their places, or as asked
    in_set: Array  # (k,)  bool: in the conformal set
    trained_on: Array  # (k,)  bool: whether a training spectrum was of a molecule with this fingerprint
    set_size: int | None  # molecules in the conformal set; None where the model is not calibrated


def rank_spectra(
    identifier: MetaboliteIdentifier,
    spectra: Sequence[Spectrum],
    library: CandidateLibrary,
    *,
    k: int | None = 10,
    query: Query | None = None,
    coverage: float = 0.9,
    ties: str = "expected",
) -> Iterator[Ranking | Problem]:
    """Yield for each spectrum its nearest molecules, or why it could not be ranked.

    Cost: the kernel of each spectrum with the training spectra, and p flops a candidate where the library is embedded
    (:meth:`CandidateLibrary.embedded`), else r kernel values a candidate.

    Parameters
    ----------
    identifier : MetaboliteIdentifier
    spectra : list of Spectrum
    library : CandidateLibrary
        with the model's fingerprints.
    k : int or None
        molecules a spectrum; None: all candidates.
    query : Query, optional
        how candidates are found; by default by formula, else by mass within 10 ppm, for adducts of the training.
    coverage : float in [0, 1]
        of the conformal sets: probability that a set holds the true molecule, if it is among the candidates.
    ties : "expected", "optimistic" or "pessimistic"
        the rank of molecules at the same distance, which fingerprints cannot tell apart: the mean of their places, the
        first or the last of them.
    """
    identifier.require(library)
    if ties not in TIES:
        raise ValueError(f"ties must be one of {', '.join(TIES)}; got {ties!r}.")
    coverage = validation.check_fraction(coverage, "coverage")
    limit = None
    if hasattr(identifier.model, "calibration_scores_"):
        limit = threshold(identifier.model.calibration_scores_, coverage)
    query = query or Query(adducts=identifier.adducts)
    embedded = library.embedded(identifier.model)
    seen = {row.tobytes() for row in np.asarray(identifier.model.candidates_.outputs)}
    for start in range(0, len(spectra), BATCH):
        found: dict[int, tuple[slice, str] | Problem] = {}
        some = spectra[start : start + BATCH]
        for i, spectrum in enumerate(some):
            try:
                found[i] = query.find_candidates(spectrum, library)
            except ValueError as error:
                found[i] = Problem(spectrum.name or f"spectrum {start + i + 1}", str(error))
        places = {i: one for i, one in found.items() if not isinstance(one, Problem)}
        Z = identifier.model.embed([some[i] for i in places]) if places else np.empty((0, 0))
        rows = [place[0] for place in places.values()]
        distances = dict(zip(places, _distances(identifier, Z, rows, library, embedded), strict=True))
        for i, one in found.items():
            if isinstance(one, Problem):
                yield one
            else:
                ranking = _ranking(some[i], *one, *distances[i], k, limit, ties)
                yield replace(
                    ranking, trained_on=np.array([library.bits[row].tobytes() in seen for row in ranking.rows])
                )


def _distances(
    identifier: MetaboliteIdentifier,
    Z: Array,
    rows: Sequence[slice],
    library: CandidateLibrary,
    embedded: CandidateSet | None,
) -> Iterator[tuple[Array, Array]]:
    """Yield for each spectrum the distances of its candidates and the slack within which they tie."""
    embedding = identifier.model.embedding_
    if embedded is None:
        sets = CandidateSets([library.bits[some] for some in rows])
        for _, D, slack in distances_in_sets(Expansions.of(Z, embedding), sets) if rows else ():
            yield D[0], slack[0]
        return
    points: Any = embedded.g  # mapped from the disk
    for z, some in zip(Z, rows, strict=True):
        g = np.asarray(points[some], dtype=np.float64)
        squared = np.array([z @ z])
        D, slack = distances_and_slack(z[None] @ g.T, squared, embedded.squared_norms[some], tie(Z))
        yield D[0], slack[0]


def _ranking(
    spectrum: Spectrum,
    rows: slice,
    how: str,
    D: Array,
    slack: Array,
    k: int | None,
    limit: float | None,
    ties: str,
) -> Ranking:
    order = np.argsort(D, kind="stable")
    sorted_D = D[order]
    start, stop = tied_runs(sorted_D, slack[order])
    low, high = start + 1.0, stop.astype(float)
    ranks = {"expected": (low + high) / 2, "optimistic": low, "pessimistic": high}[ties]
    margins = np.append(np.where(np.diff(start) > 0, np.diff(sorted_D), 0.0), np.inf)
    inside = within(conformal_scores(sorted_D, start, stop), -1.0 if limit is None else limit)
    top = slice(0, len(D) if k is None else validation.check_count(k, "k"))
    return Ranking(
        spectrum,
        how,
        len(D),
        order[top] + rows.start,
        sorted_D[top],
        margins[top],
        ranks[top],
        inside[top],
        np.zeros(len(order[top]), dtype=bool),
        None if limit is None else int(inside.sum()),
    )
