"""Training of the second stage on out-of-fold rankings of the training spectra.

The training spectra are split by molecules. For each split, a model that was fitted on the others ranks the candidates
of the held-out spectra: their molecules are new to it. If molecules have several spectra, one spectrum of each molecule
of the next split is a query, too, and left out of the fit, while the others of its molecule stay: these queries are of
known molecules. From both kinds together the second stage learns how much reference spectra count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from psilearn import IOKR, OEL
from psilearn.decoding import PerExampleCandidates
from psilearn.utils import Index
from psilearn_chem.metabolites.adaptive_sets import AdaptiveSets, TrueMolecules
from psilearn_chem.metabolites.candidate_features import References, spectral_similarity
from psilearn_chem.metabolites.labeled_spectra import LabeledSpectra
from psilearn_chem.metabolites.molecule_prior import MoleculePrior
from psilearn_chem.metabolites.record_evidence import FormulaRecords, RecordEvidence, fit_record_evidence
from psilearn_chem.metabolites.second_stage import Candidates, FeatureMaker, SecondStage, SmilesOf
from psilearn_chem.metabolites.second_stage_fit import (
    MASSBANK_EVIDENCE,
    Query,
    add_fragments,
    choose_fit,
    hit,
    learn_evidence,
    list_fits,
    true_molecules,
)
from psilearn_chem.metabolites.spectrum_conditions import Conditions
from psilearn_chem.molecules import CandidateLibrary
from psilearn_chem.spectra import Spectrum

Array = NDArray[np.float64]
FitModel = Callable[[Index], IOKR | OEL]  # fits on some of the training spectra, given by their numbers


@dataclass(frozen=True)
class OutOfFold:
    """Ranks training spectra with models that were fitted without them."""

    labeled: LabeledSpectra
    similarity: Array  # (n, n)  of the training spectra
    groups: Index  # (n,)  the number of the molecule of each spectrum
    splits: Sequence[tuple[Index, Index]]  # the spectra of a fit, and those that are held out
    fit_model: FitModel
    library: CandidateLibrary
    seed: int

    def queries(self) -> list[Query]:
        """Return all out-of-fold queries with their cheap features; their evidence is still to be learned."""
        return [query for number in range(len(self.splits)) for query in self._queries_of(number)]

    def _queries_of(self, number: int) -> Iterator[Query]:
        train, held = self.splits[number]
        known = self._known_queries(number)
        train = np.setdiff1d(train, known)
        model = self.fit_model(train)
        maker = FeatureMaker(
            make_references(self.labeled.take(train)),
            MASSBANK_EVIDENCE,
            fit_prior(self.labeled.take(train), self.groups[train], self.seed),
        )
        for rows, is_known in ((held[self.labeled.in_library[held]], False), (known, True)):
            if not len(rows):
                continue
            sets = PerExampleCandidates([self.labeled.sets[i] for i in rows])
            for row, ranked in zip(rows, model.rank_candidates(rows, sets), strict=True):
                distances = np.empty(ranked.n_candidates)
                distances[ranked.indices] = ranked.distances
                candidates = self._as_candidates(int(row), distances, train)
                features = maker.cheap_features(candidates)
                pairs = maker.pairs(candidates)
                yield Query(candidates, features, int(self.labeled.truth[row]), number, is_known, pairs)

    def _known_queries(self, number: int) -> Index:
        """Return one spectrum of each molecule with several spectra in the next split."""
        following = self.splits[(number + 1) % len(self.splits)][1]
        following = following[self.labeled.in_library[following]]
        shuffled = np.random.default_rng([self.seed, number]).permutation(following)
        _, first, counts = np.unique(self.groups[shuffled], return_index=True, return_counts=True)
        return np.sort(shuffled[first[counts > 1]])

    def _as_candidates(self, row: int, distances: Array, train: Index) -> Candidates:
        return Candidates(
            self.labeled.spectra[row],
            self.labeled.sets[row],
            distances,
            self.similarity[row, train],
            smiles_of_candidates(self.labeled.spectra[row], self.library),
        )


def smiles_of_candidates(spectrum: Spectrum, library: CandidateLibrary) -> SmilesOf:
    """Return the SMILES of the candidates of a spectrum of a known molecule, which is in the library."""
    return SmilesOf(library, library.find_formula(spectrum.formula or "").start)


def calibrate(
    stage: SecondStage,
    model: IOKR | OEL,
    chosen: LabeledSpectra,
    anchors: Sequence[Spectrum],
    library: CandidateLibrary,
) -> SecondStage:
    """Return the second stage with new molecules calibrated by spectra that the fit has not used.

    Their molecules are new to the model. Known molecules stay calibrated by out-of-fold spectra.
    """
    similarity = spectral_similarity(chosen.spectra, anchors)
    log_p, is_known = [], []
    for i, ranked in enumerate(model.rank_candidates(chosen.spectra, PerExampleCandidates(chosen.sets))):
        distances = np.empty(ranked.n_candidates)
        distances[ranked.indices] = ranked.distances
        smiles = smiles_of_candidates(chosen.spectra[i], library)
        candidates = Candidates(chosen.spectra[i], chosen.sets[i], distances, similarity[i], smiles)
        reranked = stage.rerank(candidates)
        log_p.append(reranked.log_probabilities)
        is_known.append(np.isfinite(reranked.evidence))
    truth = TrueMolecules.of(log_p, is_known, chosen.truth.tolist())
    return replace(stage, sets=stage.sets.recalibrate(truth))


def make_references(labeled: LabeledSpectra) -> References:
    """Return the training spectra as references of candidates."""
    spectra = labeled.spectra
    is_merged = any(spectrum.parts for spectrum in spectra)
    return References(labeled.bits, Conditions.of(spectra), spectra, is_merged)


def fit_records(labeled: LabeledSpectra, similarity: Array, groups: Index) -> RecordEvidence:
    """Learn the evidence of pairs of training spectra with the same formula."""
    conditions = Conditions.of(labeled.spectra)
    rows: dict[str, list[int]] = {}
    for i, spectrum in enumerate(labeled.spectra):
        rows.setdefault(spectrum.formula or "", []).append(i)
    parts = (np.array(part) for part in rows.values())
    formulas = (FormulaRecords(groups[part], similarity[np.ix_(part, part)], conditions.take(part)) for part in parts)
    return fit_record_evidence(formulas, MASSBANK_EVIDENCE)


def fit_prior(labeled: LabeledSpectra, groups: Index, seed: int) -> MoleculePrior:
    """Learn the prior of molecules from one spectrum per molecule."""
    first = np.unique(groups, return_index=True)[1]
    return MoleculePrior.fit([labeled.sets[i] for i in first], labeled.truth[first], seed)


def fit_second_stage(out_of_fold: OutOfFold, report: Callable[[str], object]) -> SecondStage | None:
    """Return the second stage, or None if it does not find more true molecules out of fold than distances do."""
    queries = out_of_fold.queries()
    report(f"second stage on {len(queries)} out-of-fold rankings")
    records = fit_records(out_of_fold.labeled, out_of_fold.similarity, out_of_fold.groups)
    evidence, is_learned = learn_evidence(queries, records)
    fits = list_fits(queries, is_learned)
    cheap = add_fragments(queries, next(iter(fits.values())))
    best, found = choose_fit(queries, fits)
    nearest = np.mean([hit(query.features["embedding"], query.truth) for query in queries])
    shares = ", ".join(f"{share:.1%} with {name}" for name, share in found.items())
    report(f"true molecule first, out of fold: {shares}; {nearest:.1%} by distances")
    if best.found <= nearest:
        return None
    labeled, groups, seed = out_of_fold.labeled, out_of_fold.groups, out_of_fold.seed
    prior = fit_prior(labeled, groups, seed)
    maker = FeatureMaker(make_references(labeled), evidence, prior, records if is_learned else None)
    sets = AdaptiveSets.fit(true_molecules(queries, best.log_p))
    model = best.fit.model(queries)
    return SecondStage(maker, cheap, model, replace(sets, new=np.empty(0)))  # spectra held back calibrate it
