"""The second stage of one outer fold: learned on the inner splits, and evaluated on the queries of the outer fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from psilearn.chem.metabolites.adaptive_sets import AdaptiveSets, cumulated_probabilities, members
from psilearn.chem.metabolites.listwise import mixture_log_probabilities
from psilearn.chem.metabolites.reference_evidence import ReferenceEvidence
from psilearn.chem.metabolites.second_stage import FEATURES, FRAGMENT_FEATURES, REFERENCE_FEATURES, score_with
from psilearn.chem.metabolites.second_stage_fit import (
    Fit,
    add_fragments_with,
    cross_fit,
    learn_evidence,
    true_molecules,
)
from psilearn.conformal import threshold
from psilearn.experiments.experiment import Array
from psilearn.experiments.metabolite_rankings import RankedQuery

SECOND_STAGE = "second stage"
ABLATIONS = {
    "without reference evidence": REFERENCE_FEATURES,
    "without fragments": FRAGMENT_FEATURES,
    "without neighbors": ("neighbors", "neighbor"),
    "without prior": ("prior",),
}
COVERAGES = (0.8, 0.9, 0.95)
DROPPED = 1e6  # subtracted from the scores of training molecules


@dataclass(frozen=True)
class LearnedFold:
    """The evidence, the weights and the levels that inner splits gave."""

    evidence: ReferenceEvidence
    weights: Mapping[str, Mapping[str, float]]  # method → weights of features
    cheap: Mapping[str, float]  # by which candidates are chosen for fragmentation
    sets: AdaptiveSets
    limits: Mapping[float, float]  # coverage → largest cumulated probability, without kinds and groups

    def evaluate(self, queries: Sequence[RankedQuery]) -> dict[str, Array]:
        """Return the results of all queries as arrays."""
        for query in queries:
            query.features["evidence"] = query.features["reference"] * self.evidence(query.features["pull"])
        add_fragments_with(self.cheap, queries)
        results = [self._evaluate_query(query) for query in queries]
        return {name: np.array([result[name] for result in results]) for name in results[0]}

    def _evaluate_query(self, query: RankedQuery) -> dict[str, float]:
        features, trained = query.features, query.features["reference"] > 0
        scores = {
            "molecule prior": features["prior"],
            **query.controls,
            "IOKR, never a training molecule": query.controls["IOKR"] - DROPPED * trained,
            **{name: score_with(weights, features) for name, weights in self.weights.items()},
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

    def _sets_of(self, query: RankedQuery, scores: Array) -> dict[str, float]:
        """Return the highest probability, whether it is that of the truth, and coverage and sizes of sets."""
        log_p = mixture_log_probabilities(scores, np.array([len(scores)]))
        cumulated = cumulated_probabilities(log_p)
        result = {"confidence": float(np.exp(log_p.max())), "right": float(np.argmax(log_p) == query.truth)}
        p_values = self.sets.p_values(log_p, query.features["reference"] > 0)
        for coverage, limit in self.limits.items():
            for label, inside in (("adaptive", members(p_values, coverage)), ("plain", cumulated <= limit)):
                result[f"covered {label} {coverage}"] = float(inside[query.truth])
                result[f"size {label} {coverage}"] = float(np.sum(inside))
        return result


def learn_fold(queries: Sequence[RankedQuery]) -> LearnedFold:
    """Learn from the queries of inner splits."""
    evidence, known = learn_evidence(queries)
    cheap = Fit(tuple(name for name in FEATURES if name not in (*FRAGMENT_FEATURES, *known)), known).weights(queries)
    add_fragments_with(cheap, queries)
    full = Fit(tuple(name for name in FEATURES if name not in known), known)
    weights = {SECOND_STAGE: full.weights(queries)}
    for label, names in ABLATIONS.items():
        kept = tuple(name for name in full.names if name not in names)
        weights[label] = replace(full, names=kept).weights(queries)
    log_p = cross_fit(queries, full)
    scores = np.array([cumulated_probabilities(p)[q.truth] for q, p in zip(queries, log_p, strict=True)])
    limits = {coverage: threshold(scores, coverage) for coverage in COVERAGES}
    return LearnedFold(evidence, weights, cheap, AdaptiveSets.fit(true_molecules(queries, log_p)), limits)
