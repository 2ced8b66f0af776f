"""The second stage of one outer fold: learned on the inner splits, and evaluated on the queries of the outer fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from psilearn.conformal import threshold
from psilearn_chem.metabolites.adaptive_sets import AdaptiveSets, cumulated_probabilities, members
from psilearn_chem.metabolites.candidate_model import NEW_FEATURES, CandidateModel
from psilearn_chem.metabolites.reference_evidence import RecordEvidence, ReferenceEvidence
from psilearn_chem.metabolites.second_stage_fit import (
    Fit,
    Query,
    add_fragments,
    add_fragments_with,
    choose_fit,
    hit,
    learn_evidence,
    list_fits,
    set_evidence,
    true_molecules,
)
from psilearn_lab.experiments.experiment import Array
from psilearn_lab.experiments.metabolite_rankings import FirstStage, RankedQuery

SECOND_STAGE = "second stage"
ABLATIONS: Mapping[str, Mapping[str, str | None]] = {  # feature → the one that replaces it; None: 0 for all candidates
    "without formulas of fragments": {"embedding": "plain embedding"},
    "without adding up evidence": {"records": "evidence"},
    "without fragments": {"explained": None, "explained_cheaply": None},
    "without neighbors": {"neighbors": None, "neighbor": None},
    "without prior": {"prior": None},
}
COVERAGES = (0.8, 0.9, 0.95)
DROPPED = 1e6  # subtracted from the scores of training molecules


@dataclass(frozen=True)
class Method:
    """A model of candidates, and the features that are replaced."""

    model: CandidateModel
    replaced: Mapping[str, str | None]

    def log_probabilities(self, query: Query) -> Array:
        """Return the log-probabilities of the candidates of a query."""
        return self.model.log_probabilities(replace_features(query, self.replaced).features)


def replace_features(query: Query, replaced: Mapping[str, str | None]) -> Query:
    """Return a query with other features in place of some."""
    zero = np.zeros(len(query.features["embedding"]))
    values = {name: zero if other is None else query.features[other] for name, other in replaced.items()}
    return replace(query, features={**query.features, **values})


@dataclass(frozen=True)
class LearnedFold:
    """The parameters of the first stage, the evidence, the models and the conformal sets that inner splits gave."""

    first_stage: FirstStage
    found: Mapping[str, float]  # fit → share of the queries of inner splits whose truth is first, cross-fitted
    evidence: ReferenceEvidence
    records: RecordEvidence | None
    methods: Mapping[str, Method]
    cheap: Mapping[str, float]  # weights by which candidates are chosen for fragmentation
    sets: AdaptiveSets
    limits: Mapping[float, float]  # coverage → largest cumulated probability, without kinds and groups

    def evaluate(self, queries: Sequence[RankedQuery]) -> dict[str, Array]:
        """Return the results of all queries as arrays."""
        for query in queries:
            query.choose(self.first_stage)
        set_evidence(queries, self.evidence, self.records)
        add_fragments_with(self.cheap, queries)
        results = [self._evaluate_query(query) for query in queries]
        return {name: np.array([result[name] for result in results]) for name in results[0]}

    def _evaluate_query(self, query: RankedQuery) -> dict[str, float]:
        trained = query.has_reference
        scores = {
            "molecule prior": query.features["prior"],
            **query.controls,
            "IOKR, never a training molecule": query.controls["IOKR"] - DROPPED * trained,
            **{name: method.log_probabilities(query) for name, method in self.methods.items()},
        }
        result: dict[str, float] = {
            "molecule": query.molecule,
            "known": query.is_known,
            "shares": float(trained.any()),
            "candidates": len(trained),
        }
        for name, values in scores.items():
            true = values[query.truth]
            result[f"nearer {name}"] = np.sum(values > true + 1e-9 * abs(true))
            result[f"tied {name}"] = np.sum(np.abs(values - true) <= 1e-9 * abs(true))
        return result | self._sets_of(query, scores[SECOND_STAGE])

    def _sets_of(self, query: RankedQuery, log_p: Array) -> dict[str, float]:
        """Return the highest probability, whether it is that of the truth, and coverage and sizes of sets."""
        cumulated = cumulated_probabilities(log_p)
        result = {"confidence": float(np.exp(log_p.max())), "right": float(np.argmax(log_p) == query.truth)}
        p_values = self.sets.p_values(log_p, query.has_reference)
        for coverage, limit in self.limits.items():
            for label, inside in (("adaptive", members(p_values, coverage)), ("plain", cumulated <= limit)):
                result[f"covered {label} {coverage}"] = float(inside[query.truth])
                result[f"size {label} {coverage}"] = float(np.sum(inside))
        return result


def choose_first_stage(queries: Sequence[RankedQuery]) -> FirstStage:
    """Return the parameters with which IOKR finds most of the new molecules of inner splits."""
    new = [query for query in queries if not query.is_known]
    return max(
        new[0].embeddings, key=lambda stage: np.mean([hit(query.embeddings[stage], query.truth) for query in new])
    )


def learn_fold(queries: Sequence[RankedQuery], records: RecordEvidence) -> LearnedFold:
    """Learn from the queries of inner splits."""
    first_stage = choose_first_stage(queries)
    for query in queries:
        query.choose(first_stage)
    evidence, is_learned = learn_evidence(queries, records)
    fits = list_fits(queries, is_learned)
    cheap = add_fragments(queries, next(iter(fits.values())))
    best, found = choose_fit(queries, fits)
    methods = {SECOND_STAGE: Method(best.fit.model(queries), {})}
    methods |= {f"second stage, {name}": Method(fit.model(queries), {}) for name, fit in fits.items()}
    methods["without reference evidence"] = Method(Fit(NEW_FEATURES).model(queries), {})
    for label, replaced in ABLATIONS.items():
        methods[label] = Method(best.fit.model([replace_features(query, replaced) for query in queries]), replaced)
    scores = np.array([cumulated_probabilities(p)[q.truth] for q, p in zip(queries, best.log_p, strict=True)])
    limits = {coverage: threshold(scores, coverage) for coverage in COVERAGES}
    sets = AdaptiveSets.fit(true_molecules(queries, best.log_p))
    return LearnedFold(first_stage, found, evidence, records if is_learned else None, methods, cheap, sets, limits)
