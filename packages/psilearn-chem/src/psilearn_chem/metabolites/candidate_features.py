"""Features of the candidates of a spectrum, from which the second stage computes their probabilities.

- ``embedding``: minus half the squared distance in the output space.
- ``reference``: 1 if the candidate has reference spectra, that is, training spectra of its fingerprint; else 0.
- ``evidence``: the log-likelihood ratio of the best similarity with its reference spectra; 0 without them.
- ``records``: the log-likelihood ratios of all pairs of a spectrum of the query and a reference spectrum, by their
  instruments and energies (:class:`RecordEvidence`), added up; 0 without reference spectra.
- ``pull``: the similarity with the best reference spectrum; 0 without them. Training molecules attract predictions the
  more, the more similar the spectra are, and the second stage can subtract it.
- ``prior``: the score of the molecule without the spectrum (:class:`MoleculePrior`).
- ``neighbors``: the mean Tanimoto similarity with the molecules of the ten most similar training spectra, weighted by
  the similarity of the spectra, and ``neighbor``: the largest product of both similarities. References of the candidate
  itself are left out.
- ``explained``: the share of the peaks that fragments of the molecule explain, weighted by m/z times the square root of
  the intensity and by exp(−cost/2) of the cheapest fragment, and ``explained_cheaply``: the same with exp(−cost).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psilearn import computing
from psilearn.kernels import Kernel
from psilearn.utils import Index
from psilearn_chem.metabolites.labeled_spectra import Bits
from psilearn_chem.metabolites.record_evidence import Pairs, RecordEvidence
from psilearn_chem.metabolites.reference_evidence import ReferenceEvidence
from psilearn_chem.metabolites.spectrum_conditions import Conditions
from psilearn_chem.molecules.fragmentation import explanation_costs_of, fragment_molecule
from psilearn_chem.spectra import Spectrum
from psilearn_chem.spectrum_kernels import spectrum_kernel

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

    def __post_init__(self) -> None:
        rows: dict[bytes, list[int]] = {}
        for i, row in enumerate(self.bits):
            rows.setdefault(row.tobytes(), []).append(i)
        object.__setattr__(self, "_rows", rows)

    def find(self, candidates: Bits) -> dict[int, list[int]]:
        """Return the reference spectra of each candidate that has some."""
        rows: dict[bytes, list[int]] = self._rows  # type: ignore[attr-defined]
        found = ((i, rows.get(row.tobytes())) for i, row in enumerate(candidates))
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
