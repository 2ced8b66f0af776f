"""Fit of the second stage to out-of-fold queries of the training spectra."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from psilearn import IOKR, OEL
from psilearn.decoding import PerExampleCandidates, RankedCandidates
from psilearn.utils import Index
from psilearn_chem.metabolites.adaptive_sets import AdaptiveSets, TrueMolecules
from psilearn_chem.metabolites.candidate_model import (
    FEATURES,
    FLAT_SHARE,
    FRAGMENT_FEATURES,
    NEW_FEATURES,
    CandidateModel,
    KnownMolecules,
    Lists,
    MoleculePrior,
    fit_logit,
    known_inputs,
    score_with,
)
from psilearn_chem.metabolites.queries import LabeledSpectra
from psilearn_chem.metabolites.reference_evidence import (
    Conditions,
    FormulaRecords,
    Pairs,
    RecordEvidence,
    ReferenceEvidence,
    fit_record_evidence,
)
from psilearn_chem.metabolites.second_stage import (
    Candidates,
    FeatureMaker,
    References,
    SecondStage,
    SmilesOf,
    by_index,
    evidence_features,
    fragment_features,
    spectral_similarity,
)
from psilearn_chem.molecules import CandidateLibrary
from psilearn_chem.spectra import Spectrum

Array = NDArray[np.float64]

RIDGE = 1e-4
MIN_SAME_PAIRS = 50  # queries of known molecules; with fewer, evidence and its weights are those of MassBank
MASSBANK_EVIDENCE = ReferenceEvidence(  # 1079 molecules measured on two instruments, 1772 pairs of isomers
    (0.125, 0.175, 0.225, 0.325, 0.375, 0.425, 0.475, 0.525, 0.575, 0.625, 0.675, 0.725),
    (-2.76, -2.57, -1.69, -1.69, -1.54, -0.99, -0.04, 0.4, 0.93, 0.93, 1.23, 1.37),
)
SEPARATE, ONE_LOGIT = "known molecules apart", "one logit for known and new"
MASSBANK_WEIGHTS = {"reference": 7.24, "evidence": 2.53, "pull": -10.58}


@dataclass(frozen=True)
class Query:
    """An out-of-fold query: its candidates, their features, and the split in which it was ranked."""

    candidates: Candidates
    features: dict[str, Array]
    truth: int
    split: int
    is_known: bool  # whether the molecule has reference spectra
    pairs: Mapping[int, Pairs] = field(default_factory=dict)  # of the candidates with reference spectra
    is_single: bool = True  # whether its spectrum is like those of known molecules, which it is then compared with

    @property
    def has_reference(self) -> NDArray[np.bool_]:
        """Which candidates have reference spectra."""
        return np.asarray(self.features["reference"] > 0)


def learn_evidence(queries: Sequence[Query], records: RecordEvidence) -> tuple[ReferenceEvidence, bool]:
    """Return the evidence of the best similarity, and whether it was learned; set the features of all queries."""
    learned = fit_evidence(queries)
    evidence, is_learned = learned or MASSBANK_EVIDENCE, learned is not None
    set_evidence(queries, evidence, records if is_learned else None)
    return evidence, is_learned


def set_evidence(queries: Sequence[Query], evidence: ReferenceEvidence, records: RecordEvidence | None) -> None:
    """Set the features of evidence of all queries."""
    for query in queries:
        query.features.update(evidence_features(query.features, query.pairs, evidence, records))


def fit_evidence(queries: Sequence[Query]) -> ReferenceEvidence | None:
    """Learn the evidence of reference spectra; None if too few queries are of known molecules, or have isomers."""
    same = [query.features["pull"][query.truth] for query in queries if query.is_known]
    if len(same) < MIN_SAME_PAIRS:
        return None
    other = []
    for query in queries:
        is_other = query.features["reference"] > 0
        is_other[query.truth] = False
        other.append(query.features["pull"][is_other])
    others = np.concatenate(other)
    return ReferenceEvidence.fit(same, others) if len(others) else None


@dataclass(frozen=True)
class Fit:
    """A fit of a model to queries: one logit over all candidates, or one over new ones with a model of known ones.

    Where the weights of reference spectra are given because all queries are of new molecules, candidates with reference
    spectra are left out of the fit: they are never the truth there, which the other weights must not learn.
    """

    names: tuple[str, ...]
    given: Mapping[str, float] = field(default_factory=dict)  # weights that are not fitted
    is_separate: bool = False  # whether known molecules have a model, and the logit is over new ones

    def model(self, queries: Sequence[Query]) -> CandidateModel:
        """Fit the model."""
        if not self.is_separate:
            return CandidateModel(self._weights(queries))
        weights = self._weights([query for query in queries if not query.has_reference[query.truth]])
        inputs, is_true = [], []
        for query in _with_both_kinds(queries):
            known = query.has_reference
            inputs.append(known_inputs(query.features, score_with(weights, query.features), known))
            is_true.append(np.flatnonzero(known) == query.truth)
        return CandidateModel(weights, KnownMolecules.fit(np.concatenate(inputs), np.concatenate(is_true)))

    def can_fit(self, queries: Sequence[Query]) -> bool:
        """Return whether the queries suffice: a model of known molecules needs right and wrong ones, and new truths."""
        if not self.is_separate:
            return True
        is_right = [query.has_reference[query.truth] for query in _with_both_kinds(queries)]
        has_wrong = any(
            query.has_reference.sum() > query.has_reference[query.truth] for query in _with_both_kinds(queries)
        )
        return any(is_right) and has_wrong and any(not query.has_reference[query.truth] for query in queries)

    def _weights(self, queries: Sequence[Query]) -> dict[str, float]:
        """Return the weight of each feature."""
        kept = [self._keep(query) for query in queries]
        columns = [
            np.concatenate([query.features[name][mask] for query, mask in zip(queries, kept, strict=True)])
            for name in self.names
        ]
        sizes = np.array([mask.sum() for mask in kept])
        truth = np.array([mask[: query.truth].sum() for query, mask in zip(queries, kept, strict=True)])
        means, scales = np.mean(columns, axis=1), np.maximum(np.std(columns, axis=1), 1e-12)
        standard = np.stack([(c - m) / s for c, m, s in zip(columns, means, scales, strict=True)], axis=1)
        fitted = fit_logit(Lists(standard, sizes, truth), RIDGE, FLAT_SHARE) / scales
        return {**self.given, **dict(zip(self.names, map(float, fitted), strict=True))}

    def _keep(self, query: Query) -> NDArray[np.bool_]:
        """Return the candidates to which weights are fitted, the true one among them."""
        kept = ~query.has_reference if self.given or self.is_separate else np.ones(len(query.has_reference), dtype=bool)
        kept[query.truth] = True
        return kept


def _with_both_kinds(queries: Sequence[Query]) -> list[Query]:
    """Return the queries of one instrument that have candidates with and without reference spectra."""
    return [query for query in queries if query.is_single and len(set(query.has_reference.tolist())) == 2]


def list_fits(queries: Sequence[Query], is_learned: bool) -> dict[str, Fit]:
    """Return the fits that are compared: with a model of known molecules, and one logit for all candidates.

    Without queries of known molecules, the weights of reference spectra are those of MassBank. Known molecules have no
    model of their own if the queries without those of some split do not suffice for it.
    """
    if not is_learned:
        return {ONE_LOGIT: Fit(NEW_FEATURES, MASSBANK_WEIGHTS)}
    separate, one_logit = Fit(NEW_FEATURES, is_separate=True), {ONE_LOGIT: Fit(FEATURES)}
    parts = [[query for query in queries if query.split != split] for split in {query.split for query in queries}]
    return {SEPARATE: separate, **one_logit} if all(map(separate.can_fit, parts)) else one_logit


@dataclass(frozen=True)
class CrossFitted:
    """A fit, and what it gives for queries of splits that it was not fitted to."""

    fit: Fit
    log_p: list[Array]  # log-probabilities of the candidates of each query
    found: float  # share of the queries whose truth is first


def choose_fit(queries: Sequence[Query], fits: Mapping[str, Fit]) -> tuple[CrossFitted, dict[str, float]]:
    """Return the fit that puts most of the true molecules first, and how many each one puts first."""
    results = {}
    for name, fit in fits.items():
        log_p = cross_fit(queries, fit)
        found = float(np.mean([hit(scores, query.truth) for query, scores in zip(queries, log_p, strict=True)]))
        results[name] = CrossFitted(fit, log_p, found)
    best = max(results.values(), key=lambda result: result.found)
    return best, {name: result.found for name, result in results.items()}


def add_fragments(queries: Sequence[Query], fit: Fit) -> Mapping[str, float]:
    """Add the explained intensity to the features of queries; return the weights of the order without this feature."""
    cheap = replace(fit, names=tuple(name for name in fit.names if name not in FRAGMENT_FEATURES))
    weights = cheap.model(queries).weights
    add_fragments_with(weights, queries)
    return weights


def add_fragments_with(cheap: Mapping[str, float], queries: Sequence[Query]) -> None:
    """Add the explained intensity to the features of queries, by the order that the other weights give."""
    for query in queries:
        query.features.update(fragment_features(score_with(cheap, query.features), query.candidates))


def cross_fit(queries: Sequence[Query], fit: Fit) -> list[Array]:
    """Return the log-probabilities of the candidates of each query, with a model of the other splits."""
    models = {
        split: fit.model([query for query in queries if query.split != split])
        for split in {query.split for query in queries}
    }
    return [models[query.split].log_probabilities(query.features) for query in queries]


def true_molecules(queries: Sequence[Query], log_p: Sequence[Array]) -> TrueMolecules:
    """Return the conformal scores, groups and kinds of the true molecules."""
    is_known = [query.features["reference"] > 0 for query in queries]
    return TrueMolecules.of(list(log_p), is_known, [query.truth for query in queries])


def hit(scores: Array, truth: int) -> float:
    """Return the probability that the truth is first if candidates with equal scores are in random order."""
    return float(scores[truth] >= scores.max()) / float(np.sum(scores == scores[truth]))


# The training spectra are split by molecules. For each split, a model that was fitted on the others ranks the
# candidates of the held-out spectra: their molecules are new to it. If molecules have several spectra, one spectrum of
# each molecule of the next split is a query, too, and left out of the fit, while the others of its molecule stay: these
# queries are of known molecules. From both kinds together the second stage learns how much reference spectra count.

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
                candidates = make_candidates(self.labeled, row, ranked, self.similarity[row, train], self.library)
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


def make_candidates(
    labeled: LabeledSpectra, row: int, ranked: RankedCandidates, similarity: Array, library: CandidateLibrary
) -> Candidates:
    """Return the ranked candidates of a spectrum of a known molecule, which is in the library."""
    spectrum = labeled.spectra[row]
    smiles = SmilesOf(library, library.find_formula(spectrum.formula or "").start)
    return Candidates(spectrum, labeled.sets[row], by_index(ranked), similarity, smiles)


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
        reranked = stage.rerank(make_candidates(chosen, i, ranked, similarity[i], library))
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
    if not queries:
        report("no second stage: the library has none of the molecules of the training spectra")
        return None
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
