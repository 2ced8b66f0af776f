"""Probabilities of known and new molecules: first whether a known candidate is the truth, then which of the new ones.

Known molecules, those with reference spectra, cannot be ranked like new ones: their spectra attract the prediction,
which is right if they match and misleading otherwise. A logistic regression therefore decides for each known candidate
whether it is the truth, from the match of its reference spectra and from how far it is ahead of the new candidates. Its
inputs interact (a lead counts less if the spectra do not match), so it is quadratic. Given that the truth is new, the
new candidates have the probabilities of a conditional logit that is fitted to new molecules only.

If oᶜ are the odds of the known candidates, candidate c has the probability oᶜ/(1 + Σo), and the new ones together
1/(1 + Σo). Queries whose candidates are all known are ranked by ``CandidateModel``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from psilearn_chem.metabolites.listwise import mixture_log_probabilities

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

OWN_INPUTS = ("pull", "records", "embedding", "prior", "neighbor")  # features of the candidate
LEAD_INPUTS = ("embedding_lead", "lead", "lead_over_all", "best_new", "candidates")
INPUTS = (*OWN_INPUTS, *LEAD_INPUTS)
INVERSE_RIDGE = 0.1
MAX_ITERATIONS = 3000


def known_inputs(features: Mapping[str, Array], scores: Array, is_known: Mask) -> Array:
    """Return the inputs of the known candidates of a query, of shape (known candidates, inputs).

    ``scores`` are those of the conditional logit for new molecules. There must be a known and a new candidate. The
    leads are the distance in the output space compared with the nearest new candidate, and the score compared with the
    highest and with the logarithm of the sum of the exponentials of those of the new ones.
    """
    known, new = scores[is_known], scores[~is_known]
    embedding = features["embedding"]
    log_p = mixture_log_probabilities(new, np.array([len(new)]))
    leads = (
        embedding[is_known] - embedding[~is_known].max(),
        known - new.max(),
        known - np.logaddexp.reduce(new),
        np.full(len(known), log_p.max()),
        np.full(len(known), np.log(len(scores))),
    )
    return np.stack([*(features[name][is_known] for name in OWN_INPUTS), *leads], axis=1)


@dataclass(frozen=True)
class KnownMolecules:
    """A quadratic logistic regression on the inputs of known candidates."""

    means: Array  # (d,)
    scales: Array  # (d,)
    limits: Array  # (2, d)  smallest and largest standardized inputs of the fit, beyond which they are cut off
    coefficients: Array  # (1 + d + d(d+1)/2,)  of 1, of the standardized inputs, and of their products

    def __post_init__(self) -> None:
        d = len(INPUTS)
        shapes = self.means.shape, self.scales.shape, self.limits.shape, self.coefficients.shape
        if shapes != ((d,), (d,), (2, d), (1 + d + d * (d + 1) // 2,)):
            raise ValueError(f"its model of known molecules has shapes {shapes}")

    @classmethod
    def fit(cls, inputs: Array, is_true: Mask) -> KnownMolecules:
        """Learn from known candidates of out-of-fold queries, and whether each is the truth."""
        means, scales = inputs.mean(axis=0), np.maximum(inputs.std(axis=0), 1e-12)
        standard = (inputs - means) / scales
        terms = _expand(standard)[:, 1:]
        center, spread = terms.mean(axis=0), np.maximum(terms.std(axis=0), 1e-12)
        model = LogisticRegression(C=INVERSE_RIDGE, max_iter=MAX_ITERATIONS).fit((terms - center) / spread, is_true)
        weights = model.coef_[0] / spread
        limits = np.stack([standard.min(axis=0), standard.max(axis=0)])
        return cls(means, scales, limits, np.append(model.intercept_[0] - weights @ center, weights))

    def __call__(self, inputs: Array) -> Array:
        """Return the logarithm of the odds that each candidate is the truth."""
        standard = np.clip((inputs - self.means) / self.scales, *self.limits)  # squares grow without bounds
        return np.asarray(_expand(standard) @ self.coefficients)

    def log_probabilities(self, features: Mapping[str, Array], scores: Array, is_known: Mask) -> Array:
        """Return the log-probabilities of all candidates of a query, given the scores of the logit for new ones.

        At least one candidate must be new.
        """
        if not is_known.any():
            return mixture_log_probabilities(scores, np.array([len(scores)]))
        log_odds = self(known_inputs(features, scores, is_known))
        total = np.logaddexp.reduce(np.append(log_odds, 0.0))
        log_p = np.empty(len(scores))
        log_p[is_known] = log_odds - total
        new = scores[~is_known]
        log_p[~is_known] = mixture_log_probabilities(new, np.array([len(new)])) - total
        return log_p

    def to_notes(self) -> dict[str, Any]:
        """Return JSON data."""
        names = ("means", "scales", "limits", "coefficients")
        return {"inputs": list(INPUTS), **{name: getattr(self, name).tolist() for name in names}}

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any]) -> KnownMolecules:
        """Return the model of JSON data."""
        if tuple(notes["inputs"]) != INPUTS:
            raise ValueError(f"its model of known molecules has the inputs {notes['inputs']}")
        names = ("means", "scales", "limits", "coefficients")
        return cls(*(np.asarray(notes[name], dtype=np.float64) for name in names))


def _expand(inputs: Array) -> Array:
    """Return 1, the inputs and their products, of shape (n, 1 + d + d(d+1)/2)."""
    first, second = np.triu_indices(inputs.shape[1])
    return np.column_stack([np.ones(len(inputs)), inputs, inputs[:, first] * inputs[:, second]])
