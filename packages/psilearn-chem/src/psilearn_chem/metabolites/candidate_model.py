"""The model that turns features of candidates into probabilities: a conditional logit, and one for known molecules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn_chem.metabolites.known_molecules import KnownMolecules
from psilearn_chem.metabolites.listwise import mixture_log_probabilities

Array = NDArray[np.float64]

REFERENCE_FEATURES = ("reference", "evidence", "pull")
FRAGMENT_FEATURES = ("explained", "explained_cheaply")
NEIGHBOR_FEATURES = ("neighbors", "neighbor")
NEW_FEATURES = ("embedding", "prior", *NEIGHBOR_FEATURES, *FRAGMENT_FEATURES)
FEATURES = (*NEW_FEATURES, *REFERENCE_FEATURES)


def score_with(weights: Mapping[str, float], features: Mapping[str, Array]) -> Array:
    """Return the sum of features times their weights; features without a weight count 0."""
    total = np.zeros(len(features["embedding"]))
    for name, weight in weights.items():
        if name in features:
            total += weight * features[name]
    return total


def decode_weights(notes: Mapping[str, Any]) -> dict[str, float]:
    """Return weights of features from JSON data."""
    return {name: float(notes[name]) for name in FEATURES if name in notes}


@dataclass(frozen=True)
class CandidateModel:
    """Weights of a conditional logit over all candidates or, with a model of known molecules, over the new ones."""

    weights: Mapping[str, float]
    known: KnownMolecules | None = None

    def log_probabilities(self, features: Mapping[str, Array]) -> Array:
        """Return the log-probabilities of the candidates of a query."""
        scores = score_with(self.weights, features)
        is_known = features["reference"] > 0
        if self.known is None:
            return mixture_log_probabilities(scores, np.array([len(scores)]))
        if is_known.all():
            scores = self._scores_of_known(features)
            return mixture_log_probabilities(scores, np.array([len(scores)]))
        return self.known.log_probabilities(features, scores, is_known)

    def _scores_of_known(self, features: Mapping[str, Array]) -> Array:
        """Return scores of candidates that all have reference spectra, so that none of them is new.

        Evidence is a logarithm of likelihoods and is added. Neighbors are left out: the references of a candidate are
        neighbors of its isomers, but not of itself.
        """
        weights = {name: weight for name, weight in self.weights.items() if name not in NEIGHBOR_FEATURES}
        return score_with(weights, features) + features["records"]

    def to_notes(self) -> dict[str, Any]:
        """Return JSON data."""
        return {"weights": dict(self.weights), "known": None if self.known is None else self.known.to_notes()}

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any]) -> CandidateModel:
        """Return the model of JSON data."""
        known = notes["known"]
        return cls(decode_weights(notes["weights"]), None if known is None else KnownMolecules.from_notes(known))
