"""Fit of the second stage to out-of-fold queries: the evidence, the weights of features, and the levels of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from psilearn.chem.metabolites.adaptive_sets import TrueMolecules
from psilearn.chem.metabolites.listwise import FLAT_SHARE, Lists, fit_logit, mixture_log_probabilities
from psilearn.chem.metabolites.reference_evidence import ReferenceEvidence
from psilearn.chem.metabolites.second_stage import (
    FRAGMENT_FEATURES,
    Candidates,
    fragment_features,
    score_with,
)

Array = NDArray[np.float64]

RIDGE = 1e-4
MIN_SAME_PAIRS = 50  # queries of known molecules; with fewer, evidence and its weights are those of MassBank
MASSBANK_EVIDENCE = ReferenceEvidence(  # 1079 molecules measured on two instruments, 1772 pairs of isomers
    (0.125, 0.175, 0.225, 0.325, 0.375, 0.425, 0.475, 0.525, 0.575, 0.625, 0.675, 0.725),
    (-2.76, -2.57, -1.69, -1.69, -1.54, -0.99, -0.04, 0.4, 0.93, 0.93, 1.23, 1.37),
)
MASSBANK_WEIGHTS = {"reference": 7.24, "evidence": 2.53, "pull": -10.58}


@dataclass(frozen=True)
class Query:
    """An out-of-fold query: its candidates, their features, and the split in which it was ranked."""

    candidates: Candidates
    features: dict[str, Array]
    truth: int
    split: int
    is_known: bool  # whether the molecule has reference spectra


def learn_evidence(queries: Sequence[Query]) -> tuple[ReferenceEvidence, Mapping[str, float]]:
    """Return the evidence and the weights of its features that are known, and set the feature of all queries."""
    learned = fit_evidence(queries)
    evidence = MASSBANK_EVIDENCE if learned is None else learned
    for query in queries:
        query.features["evidence"] = query.features["reference"] * evidence(query.features["pull"])
    return evidence, MASSBANK_WEIGHTS if learned is None else {}


def fit_evidence(queries: Sequence[Query]) -> ReferenceEvidence | None:
    """Learn the evidence of reference spectra; None if there are too few queries of known molecules."""
    same = [query.features["pull"][query.truth] for query in queries if query.is_known]
    if len(same) < MIN_SAME_PAIRS:
        return None
    other = []
    for query in queries:
        is_other = query.features["reference"] > 0
        is_other[query.truth] = False
        other.append(query.features["pull"][is_other])
    return ReferenceEvidence.fit(same, np.concatenate(other))


@dataclass(frozen=True)
class Fit:
    """The weights of features that are fitted to queries, and those that are known.

    Where weights of reference spectra are known because all queries are of new molecules, candidates with reference
    spectra are left out of the fit: they are never the truth there, which the other weights must not learn.
    """

    names: tuple[str, ...]
    known: Mapping[str, float]

    def weights(self, queries: Sequence[Query]) -> dict[str, float]:
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
        return {**self.known, **dict(zip(self.names, map(float, fitted), strict=True))}

    def _keep(self, query: Query) -> NDArray[np.bool_]:
        """Return the candidates to which weights are fitted, the true one among them."""
        if not self.known:
            return np.ones(len(query.candidates.bits), dtype=bool)
        kept: NDArray[np.bool_] = query.features["reference"] == 0
        kept[query.truth] = True
        return kept


def add_fragments(queries: Sequence[Query], fit: Fit) -> None:
    """Add the explained intensity to the features of queries, by the order without this feature."""
    cheap = replace(fit, names=tuple(name for name in fit.names if name not in FRAGMENT_FEATURES))
    add_fragments_with(cheap.weights(queries), queries)


def add_fragments_with(cheap: Mapping[str, float], queries: Sequence[Query]) -> None:
    """Add the explained intensity to the features of queries, by the order that the other weights give."""
    for query in queries:
        query.features.update(fragment_features(score_with(cheap, query.features), query.candidates))


def cross_fit(queries: Sequence[Query], fit: Fit) -> list[Array]:
    """Return the log-probabilities of the candidates of each query, with weights from the other splits."""
    weights = {
        split: fit.weights([query for query in queries if query.split != split])
        for split in {query.split for query in queries}
    }
    scores = (score_with(weights[query.split], query.features) for query in queries)
    return [mixture_log_probabilities(score, np.array([len(score)])) for score in scores]


def true_molecules(queries: Sequence[Query], log_p: Sequence[Array]) -> TrueMolecules:
    """Return the conformal scores, groups and kinds of the true molecules."""
    is_known = [query.features["reference"] > 0 for query in queries]
    return TrueMolecules.of(list(log_p), is_known, [query.truth for query in queries])


def hit(scores: Array, truth: int) -> float:
    """Return the probability that the truth is first if candidates with equal scores are in random order."""
    return float(scores[truth] >= scores.max()) / float(np.sum(scores == scores[truth]))
