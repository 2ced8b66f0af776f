"""Fit of the second stage to out-of-fold queries: the evidence, the weights of features, and the levels of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from psilearn_chem.metabolites.adaptive_sets import TrueMolecules
from psilearn_chem.metabolites.candidate_features import evidence_features
from psilearn_chem.metabolites.candidate_model import (
    FEATURES,
    FRAGMENT_FEATURES,
    NEW_FEATURES,
    CandidateModel,
    score_with,
)
from psilearn_chem.metabolites.known_molecules import KnownMolecules, known_inputs
from psilearn_chem.metabolites.listwise import FLAT_SHARE, Lists, fit_logit
from psilearn_chem.metabolites.record_evidence import Pairs, RecordEvidence
from psilearn_chem.metabolites.reference_evidence import ReferenceEvidence
from psilearn_chem.metabolites.second_stage import Candidates, fragment_features

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
    evidence = MASSBANK_EVIDENCE if learned is None else learned
    set_evidence(queries, evidence, None if learned is None else records)
    return evidence, learned is not None


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
