"""The second stage: probabilities of candidates from their features, and conformal sets of these probabilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn._utils.samples import Index
from psilearn.chem.metabolites.adaptive_sets import AdaptiveSets
from psilearn.chem.metabolites.candidate_features import (
    References,
    compare,
    explained_intensity,
    neighbor_features,
    reference_features,
)
from psilearn.chem.metabolites.labeled_spectra import Bits
from psilearn.chem.metabolites.listwise import mixture_log_probabilities
from psilearn.chem.metabolites.molecule_prior import MoleculePrior
from psilearn.chem.metabolites.reference_evidence import ReferenceEvidence
from psilearn.chem.molecules import CandidateLibrary
from psilearn.chem.spectra import Spectrum
from psilearn.kernels import Tanimoto

Array = NDArray[np.float64]

REFERENCE_FEATURES = ("reference", "evidence", "pull")
FRAGMENT_FEATURES = ("explained", "explained_cheaply")
FEATURES = ("embedding", *REFERENCE_FEATURES, "prior", "neighbors", "neighbor", *FRAGMENT_FEATURES)
MAX_FRAGMENTED = 10  # candidates that are fragmented: the most probable ones without this feature


@dataclass(frozen=True)
class SmilesOf:
    """The SMILES of candidates, which are consecutive rows of a library."""

    library: CandidateLibrary
    start: int

    def __call__(self, indices: Index) -> list[str]:
        """Return the SMILES of some candidates."""
        return self.library.get_smiles([self.start + int(index) for index in indices])


@dataclass(frozen=True)
class Candidates:
    """The candidates of one spectrum, as the second stage sees them."""

    spectrum: Spectrum
    bits: Bits  # (c, b)
    distances: Array  # (c,)  in the output space
    similarity: Array  # (n,)  of the spectrum with the training spectra
    get_smiles: Callable[[Index], Sequence[str]]  # of some candidates

    def explain(self, indices: Index) -> Array:
        """Return how well fragments of some candidates explain the spectrum, of shape (candidates, 2)."""
        return explained_intensity(self.spectrum, self.get_smiles(indices))

    def compare_with(self, references: References, rows: Index) -> Array:
        """Return the Tanimoto similarity with the molecules of some training spectra, of shape (candidates, rows)."""
        return compare(Tanimoto(packed=True), self.bits, references.bits[rows])


@dataclass(frozen=True)
class FeatureMaker:
    """What was learned without rankings: reference spectra, their evidence, and the prior of molecules."""

    references: References
    evidence: ReferenceEvidence
    prior: MoleculePrior

    def cheap_features(self, candidates: Candidates) -> dict[str, Array]:
        """Return all features but the fragments."""
        return {
            "embedding": -0.5 * candidates.distances,
            **reference_features(candidates.bits, candidates.similarity, self.references, self.evidence),
            "prior": self.prior(candidates.bits),
            **neighbor_features(candidates.similarity, partial(candidates.compare_with, self.references)),
        }


def score_with(weights: Mapping[str, float], features: Mapping[str, Array]) -> Array:
    """Return the sum of features times their weights; features without a weight count 0."""
    total = np.zeros(len(features["embedding"]))
    for name, weight in weights.items():
        if name in features:
            total += weight * features[name]
    return total


def fragment_features(scores: Array, candidates: Candidates) -> dict[str, Array]:
    """Return the features of fragments for the candidates with the highest scores; the others get their mean."""
    best = np.argsort(-scores, kind="stable")[:MAX_FRAGMENTED]
    explained = candidates.explain(best)
    values = np.repeat(explained.mean(axis=0)[:, None], len(scores), axis=1)
    values[:, best] = explained.T
    return dict(zip(FRAGMENT_FEATURES, values, strict=True))


@dataclass(frozen=True)
class Reranked:
    """The candidates of one spectrum with their probabilities."""

    log_probabilities: Array  # (c,)
    evidence: Array  # (c,)  log-likelihood ratio of reference spectra; NaN without them
    p_values: Array | None  # (c,)  conformal; None if the second stage is not calibrated


@dataclass(frozen=True)
class SecondStage:
    """A conditional logit on features of candidates, with calibrated sets."""

    maker: FeatureMaker
    weights: Mapping[str, float]
    sets: AdaptiveSets

    def rerank(self, candidates: Candidates) -> Reranked:
        """Return the probabilities of the candidates of a spectrum."""
        features = self.maker.cheap_features(candidates)
        if any(name in self.weights for name in FRAGMENT_FEATURES):
            features |= fragment_features(score_with(self.weights, features), candidates)
        scores = score_with(self.weights, features)
        log_p = mixture_log_probabilities(scores, np.array([len(scores)]))
        has_reference = features["reference"] > 0
        return Reranked(
            log_p,
            np.where(has_reference, features["evidence"], np.nan),
            self.sets.p_values(log_p, has_reference) if self.sets.is_calibrated else None,
        )

    def to_notes(self, outputs: Index) -> dict[str, Any]:
        """Return the second stage as JSON data; ``outputs`` numbers the fingerprint of each training spectrum."""
        return {
            "weights": dict(self.weights),
            "prior": self.maker.prior.weights.tolist(),
            "similarities": list(self.maker.evidence.similarities),
            "log_ratios": list(self.maker.evidence.log_ratios),
            "sets": self.sets.to_notes(),
            "outputs": outputs.tolist(),
        }

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any], outputs: Bits) -> SecondStage:
        """Return the second stage of JSON data; ``outputs`` are the different fingerprints of the training."""
        numbers = np.asarray(notes["outputs"], dtype=np.intp)
        prior = np.asarray(notes["prior"], dtype=np.float64)
        if prior.shape != (8 * outputs.shape[1],):
            raise ValueError(f"its prior has shape {prior.shape}, unlike its fingerprints")
        evidence = ReferenceEvidence(tuple(notes["similarities"]), tuple(notes["log_ratios"]))
        maker = FeatureMaker(References(outputs[numbers]), evidence, MoleculePrior(prior))
        weights = {name: float(notes["weights"][name]) for name in FEATURES if name in notes["weights"]}
        return cls(maker, weights, AdaptiveSets.from_notes(notes["sets"]))
