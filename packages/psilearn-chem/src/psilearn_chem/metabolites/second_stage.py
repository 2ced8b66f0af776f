"""The second stage: probabilities of candidates from their features, and conformal sets of these probabilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn.utils import Index
from psilearn_chem.metabolites.adaptive_sets import AdaptiveSets
from psilearn_chem.metabolites.candidate_features import (
    References,
    evidence_features,
    explained_intensity,
    neighbor_features,
    reference_features,
    spectral_similarity,
    tanimoto,
)
from psilearn_chem.metabolites.candidate_model import FRAGMENT_FEATURES, CandidateModel, decode_weights, score_with
from psilearn_chem.metabolites.labeled_spectra import Bits
from psilearn_chem.metabolites.molecule_prior import MoleculePrior
from psilearn_chem.metabolites.record_evidence import Pairs, RecordEvidence
from psilearn_chem.metabolites.reference_evidence import ReferenceEvidence
from psilearn_chem.metabolites.spectrum_conditions import N_RELATIONS, Conditions
from psilearn_chem.molecules import CandidateLibrary
from psilearn_chem.spectra import Spectrum

Array = NDArray[np.float64]

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
        return tanimoto(self.bits, references.bits[rows])

    def pairs_with(self, references: References, rows: list[int]) -> Pairs:
        """Return the pairs of the spectra that the query was merged from, and some of the training spectra."""
        if references.conditions is None:
            raise ValueError("references must have conditions; got None.")
        parts = [] if references.is_merged else [part for part in self.spectrum.parts if part.precursor_mz is not None]
        similarity = (
            spectral_similarity(parts, [references.spectra[row] for row in rows])
            if parts
            else self.similarity[None, rows]
        )
        relation = Conditions.of(parts or [self.spectrum]).relate(references.conditions.take(rows))
        return Pairs(similarity, relation)


@dataclass(frozen=True)
class FeatureMaker:
    """What was learned without rankings: reference spectra, their evidence, and the prior of molecules."""

    references: References
    evidence: ReferenceEvidence
    prior: MoleculePrior
    records: RecordEvidence | None = None  # None if there are too few pairs of spectra of one molecule

    def pairs(self, candidates: Candidates) -> dict[int, Pairs]:
        """Return the pairs of spectra of each candidate that has reference spectra."""
        found = self.references.find(candidates.bits)
        return {candidate: candidates.pairs_with(self.references, rows) for candidate, rows in found.items()}

    def cheap_features(self, candidates: Candidates) -> dict[str, Array]:
        """Return all features but the evidence and the fragments."""
        found = self.references.find(candidates.bits)
        return {
            "embedding": -0.5 * candidates.distances,
            **reference_features(len(candidates.bits), found, candidates.similarity),
            "prior": self.prior(candidates.bits),
            **neighbor_features(candidates.similarity, partial(candidates.compare_with, self.references)),
        }

    def evidence_of(self, candidates: Candidates, features: Mapping[str, Array]) -> dict[str, Array]:
        """Return the features of evidence."""
        pairs = {} if self.records is None else self.pairs(candidates)
        return evidence_features(features, pairs, self.evidence, self.records)


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
    """A model of the probabilities of candidates from their features, with calibrated sets."""

    maker: FeatureMaker
    cheap: Mapping[str, float]  # weights without fragments, by which candidates are chosen for fragmentation
    model: CandidateModel
    sets: AdaptiveSets

    def rerank(self, candidates: Candidates) -> Reranked:
        """Return the probabilities of the candidates of a spectrum."""
        features = self.maker.cheap_features(candidates)
        features |= self.maker.evidence_of(candidates, features)
        if any(name in self.model.weights for name in FRAGMENT_FEATURES):
            features |= fragment_features(score_with(self.cheap, features), candidates)
        log_p = self.model.log_probabilities(features)
        has_reference = features["reference"] > 0
        evidence = features["evidence" if self.maker.records is None else "records"]
        return Reranked(
            log_p,
            np.where(has_reference, evidence, np.nan),
            self.sets.p_values(log_p, has_reference) if self.sets.is_calibrated else None,
        )

    def to_notes(self, outputs: Index) -> dict[str, Any]:
        """Return the second stage as JSON data; ``outputs`` numbers the fingerprint of each training spectrum."""
        references, records = self.maker.references, self.maker.records
        return {
            **self.model.to_notes(),
            "cheap_weights": dict(self.cheap),
            "prior": self.maker.prior.weights.tolist(),
            "evidence": _encode_ratio(self.maker.evidence),
            "records": None if records is None else [_encode_ratio(ratio) for ratio in records.ratios],
            "conditions": None if references.conditions is None else references.conditions.to_notes(),
            "is_merged": references.is_merged,
            "sets": self.sets.to_notes(),
            "outputs": outputs.tolist(),
        }

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any], outputs: Bits, spectra: Sequence[Spectrum]) -> SecondStage:
        """Return the second stage of JSON data.

        ``outputs`` are the different fingerprints of the training, and ``spectra`` are the training spectra.
        """
        numbers = np.asarray(notes["outputs"], dtype=np.intp)
        prior = np.asarray(notes["prior"], dtype=np.float64)
        if prior.shape != (8 * outputs.shape[1],):
            raise ValueError(f"its prior has shape {prior.shape}, unlike its fingerprints")
        conditions = None if notes["conditions"] is None else Conditions.from_notes(notes["conditions"])
        if len(numbers) != len(spectra) or len(spectra if conditions is None else conditions) != len(spectra):
            raise ValueError(f"its second stage has {len(numbers)} references for {len(spectra)} spectra")
        references = References(outputs[numbers], conditions, spectra, bool(notes["is_merged"]))
        maker = FeatureMaker(
            references, _decode_ratio(notes["evidence"]), MoleculePrior(prior), _decode_records(notes["records"])
        )
        cheap = decode_weights(notes.get("cheap_weights", notes["weights"]))  # models before these weights were kept
        return cls(maker, cheap, CandidateModel.from_notes(notes), AdaptiveSets.from_notes(notes["sets"]))


def _encode_ratio(ratio: ReferenceEvidence) -> dict[str, list[float]]:
    return {"similarities": list(ratio.similarities), "log_ratios": list(ratio.log_ratios)}


def _decode_ratio(notes: Mapping[str, Any]) -> ReferenceEvidence:
    return ReferenceEvidence(tuple(notes["similarities"]), tuple(notes["log_ratios"]))


def _decode_records(notes: Any) -> RecordEvidence | None:
    if notes is not None and len(notes) != N_RELATIONS:
        raise ValueError(f"its evidence of spectra has {len(notes)} relations instead of {N_RELATIONS}")
    return None if notes is None else RecordEvidence(tuple(_decode_ratio(part) for part in notes))
