"""The second stage: features of candidates, their probabilities, and conformal sets of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn import computing
from psilearn.decoding import RankedCandidates
from psilearn.kernels import Kernel
from psilearn.utils import Index
from psilearn_chem.metabolites.adaptive_sets import AdaptiveSets
from psilearn_chem.metabolites.candidate_model import (
    FRAGMENT_FEATURES,
    CandidateModel,
    MoleculePrior,
    score_with,
)
from psilearn_chem.metabolites.notes import from_notes, to_notes
from psilearn_chem.metabolites.reference_evidence import Conditions, Pairs, RecordEvidence, ReferenceEvidence
from psilearn_chem.molecules import CandidateLibrary
from psilearn_chem.molecules.fingerprints import Bits
from psilearn_chem.molecules.fragmentation import explanation_costs_of, fragment_molecule
from psilearn_chem.spectra import Spectrum
from psilearn_chem.spectrum_kernels import spectrum_kernel

# - ``embedding``: minus half the squared distance in the output space.
# - ``reference``: 1 if the candidate has reference spectra, that is, training spectra of its fingerprint; else 0.
# - ``evidence``: the log-likelihood ratio of the best similarity with its reference spectra; 0 without them.
# - ``records``: the log-likelihood ratios of all pairs of a spectrum of the query and a reference spectrum, by their
#   instruments and energies (:class:`RecordEvidence`), added up; 0 without reference spectra.
# - ``pull``: the similarity with the best reference spectrum; 0 without them. Training molecules attract predictions
#   the more, the more similar the spectra are, and the second stage can subtract it.
# - ``prior``: the score of the molecule without the spectrum (:class:`MoleculePrior`).
# - ``neighbors``: the mean Tanimoto similarity with the molecules of the ten most similar training spectra, weighted by
#   the similarity of the spectra, and ``neighbor``: the largest product of both similarities. References of the
#   candidate itself are left out.
# - ``explained``: the share of the peaks that fragments of the molecule explain, weighted by m/z times the square root
#   of the intensity and by exp(−cost/2) of the cheapest fragment, and ``explained_cheaply``: the same with exp(−cost).

Array = NDArray[np.float64]

N_NEIGHBORS = 10
BITS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)
MAX_NEIGHBORS = 50  # training spectra among which the largest product is found


@dataclass(frozen=True)
class References:
    """The molecules of n training spectra, by whose fingerprints candidates find their reference spectra."""

    bits: Bits  # (n, b)
    conditions: Conditions | None = None  # of the training spectra; None if they are unknown
    spectra: Sequence[Spectrum] = ()  # the training spectra, for queries of several spectra
    is_merged: bool = False  # whether they are merged; queries are then compared as a whole, too

    @cached_property
    def _rows(self) -> dict[bytes, list[int]]:
        rows: dict[bytes, list[int]] = {}
        for i, row in enumerate(self.bits):
            rows.setdefault(row.tobytes(), []).append(i)
        return rows

    def find(self, candidates: Bits) -> dict[int, list[int]]:
        """Return the reference spectra of each candidate that has some."""
        found = ((i, self._rows.get(row.tobytes())) for i, row in enumerate(candidates))
        return {i: spectra for i, spectra in found if spectra is not None}


def compare(kernel: Kernel, A: Any, B: Any) -> Array:
    """Return the matrix of a kernel as a NumPy array, also while a device computes."""
    with computing("float64", None):
        return np.asarray(kernel(A, B))


def tanimoto(A: Bits, B: Bits) -> Array:
    """Return the Tanimoto similarity of packed fingerprints; for few and sparse ones it is faster than the kernel.

    The number of common bits is a product of 0/1 rows over the bits that B has, which is exact in float32.
    """
    right = np.unpackbits(B, axis=1)
    used = np.flatnonzero(right.any(axis=0))
    left = np.unpackbits(A, axis=1)[:, used].astype(np.float32)
    common = (left @ right[:, used].T.astype(np.float32)).astype(np.float64)
    sizes, other_sizes = (BITS_OF_BYTE[rows].sum(axis=1) for rows in (A, B))
    union = sizes[:, None] + other_sizes - common
    return np.divide(common, union, out=np.ones_like(common), where=union > 0)


def spectral_similarity(spectra: Sequence[Spectrum], references: Sequence[Spectrum]) -> Array:
    """Return the mean cosine of the peaks and of the neutral losses, of shape (spectra, references)."""
    return compare(spectrum_kernel(gamma=None), list(spectra), list(references))


def reference_features(n_candidates: int, found: Mapping[int, list[int]], similarity: Array) -> dict[str, Array]:
    """Return which candidates have reference spectra, and the best similarity, given that with all training spectra."""
    has_reference, best = np.zeros(n_candidates), np.zeros(n_candidates)
    for candidate, spectra in found.items():
        has_reference[candidate] = 1
        best[candidate] = similarity[spectra].max()
    return {"reference": has_reference, "pull": best}


def evidence_features(
    features: Mapping[str, Array],
    pairs: Mapping[int, Pairs],
    evidence: ReferenceEvidence,
    records: RecordEvidence | None,
) -> dict[str, Array]:
    """Return the evidence of the best similarity, and that of all pairs of spectra."""
    total = np.zeros(len(features["pull"]))
    if records is not None:
        for candidate, each in pairs.items():
            total[candidate] = records(each)
    return {"evidence": features["reference"] * evidence(features["pull"]), "records": total}


def neighbor_features(similarity: Array, compare_with: Callable[[Index], Array]) -> dict[str, Array]:
    """Return the similarity of candidates with the molecules of the most similar training spectra.

    ``compare_with`` returns the Tanimoto similarity of candidates and the molecules of some training spectra.
    """
    nearest = np.argsort(-similarity, kind="stable")[:MAX_NEIGHBORS]
    weights = np.maximum(similarity[nearest], 0)
    tanimoto = compare_with(nearest)
    products = np.where(tanimoto >= 1, 0.0, tanimoto) * weights  # 1: references of the candidate itself
    total = max(float(weights[:N_NEIGHBORS].sum()), np.finfo(float).tiny)
    return {"neighbors": products[:, :N_NEIGHBORS].sum(axis=1) / total, "neighbor": products.max(axis=1)}


def explained_intensity(spectrum: Spectrum, smiles: Sequence[str]) -> Array:
    """Return how well fragments of each molecule explain the peaks, and how well cheap ones do: (molecules, 2)."""
    weights = np.sqrt(spectrum.intensity) * spectrum.mz
    weights = weights / weights.sum()
    negative = (spectrum.adduct or "").rstrip("*.•").endswith("-")
    costs = explanation_costs_of(spectrum.mz, [fragment_molecule(text) for text in smiles], negative=negative)
    return np.stack([np.exp(-costs / 2) @ weights, np.exp(-costs) @ weights], axis=1)


MAX_FRAGMENTED = 10  # candidates that are fragmented: the most probable ones without this feature


def by_index(ranked: RankedCandidates) -> Array:
    """Return the distances of ranked candidates in the order of the candidates."""
    distances = np.empty(ranked.n_candidates)
    distances[ranked.indices] = ranked.distances
    return distances


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
        references, conditions = self.maker.references, self.maker.references.conditions
        parts = {
            "model": self.model,
            "cheap": self.cheap,
            "sets": self.sets,
            "prior": self.maker.prior,
            "evidence": self.maker.evidence,
            "records": self.maker.records,
            "conditions": None if conditions is None else conditions.without_instruments(),
            "is_merged": references.is_merged,
            "outputs": outputs,
        }
        return {name: to_notes(part) for name, part in parts.items()}

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any], outputs: Bits, spectra: Sequence[Spectrum]) -> SecondStage:
        """Return the second stage of JSON data.

        ``outputs`` are the different fingerprints of the training, and ``spectra`` are the training spectra.
        """
        numbers = np.asarray(notes["outputs"], dtype=np.intp)
        prior = from_notes(MoleculePrior, notes["prior"])
        if prior.weights.shape != (8 * outputs.shape[1],):
            raise ValueError(f"its prior has shape {prior.weights.shape}, unlike its fingerprints")
        conditions = from_notes(Conditions | None, notes["conditions"])
        if len(numbers) != len(spectra) or len(spectra if conditions is None else conditions) != len(spectra):
            raise ValueError(f"its second stage has {len(numbers)} references for {len(spectra)} spectra")
        references = References(outputs[numbers], conditions, spectra, bool(notes["is_merged"]))
        evidence = from_notes(ReferenceEvidence, notes["evidence"])
        maker = FeatureMaker(references, evidence, prior, from_notes(RecordEvidence | None, notes["records"]))
        cheap = from_notes(Mapping[str, float], notes["cheap"])
        return cls(maker, cheap, from_notes(CandidateModel, notes["model"]), from_notes(AdaptiveSets, notes["sets"]))
