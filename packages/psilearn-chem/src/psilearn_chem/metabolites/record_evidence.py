"""Evidence of pairs of single spectra, which depends on how both were measured, and adds up over pairs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psilearn.utils import Index
from psilearn_chem.metabolites.reference_evidence import EDGES, N_BINS, ReferenceEvidence
from psilearn_chem.metabolites.spectrum_conditions import N_RELATIONS, Conditions

Array = NDArray[np.float64]

MIN_PAIRS = 30  # pairs of molecules of each kind; relations with fewer use the pairs of all relations


@dataclass(frozen=True)
class Pairs:
    """The spectra of a query and the reference spectra of a candidate: their similarities, and how they are related."""

    similarity: Array  # (a, b)
    relation: Index  # (a, b)


@dataclass(frozen=True)
class RecordEvidence:
    """The log-likelihood ratio of "same molecule" against "other molecule of this formula", for each relation."""

    ratios: tuple[ReferenceEvidence, ...]  # one per relation

    def __call__(self, pairs: Pairs) -> float:
        """Return the sum of the ratios of all pairs, divided by √(number of pairs).

        The sum would be right for independent pairs, the mean for pairs that repeat each other.
        """
        total = 0.0
        for relation in np.unique(pairs.relation):
            total += float(self.ratios[relation](pairs.similarity[pairs.relation == relation]).sum())
        return total / float(np.sqrt(pairs.similarity.size))


@dataclass(frozen=True)
class FormulaRecords:
    """Single spectra of molecules of one formula."""

    molecules: Index  # (n,)
    similarity: Array  # (n, n)
    conditions: Conditions


def fit_record_evidence(
    formulas: Iterable[FormulaRecords], fallback: ReferenceEvidence | None = None
) -> RecordEvidence:
    """Learn the evidence from pairs of single spectra of the same formula; ``fallback`` replaces that of too few pairs.

    Pairs of the same molecule that state the same instrument are left out: queries are usually measured on another one.
    The pairs of two molecules, or of one molecule with itself, count as one pair in each relation.
    """
    counts = np.zeros((N_RELATIONS, 2, N_BINS))
    for records in formulas:
        _add_counts(counts, records)
    pooled = counts.sum(axis=0)
    has_pairs = bool((pooled.sum(axis=1) >= MIN_PAIRS).all())
    total = ReferenceEvidence._of_counts(*pooled[::-1]) if has_pairs or fallback is None else fallback
    enough = (counts.sum(axis=2) >= MIN_PAIRS).all(axis=1)
    return RecordEvidence(
        tuple(
            ReferenceEvidence._of_counts(*part[::-1]) if ok else total for part, ok in zip(counts, enough, strict=True)
        )
    )


def _add_counts(counts: Array, records: FormulaRecords) -> None:
    """Add the pairs of one formula to counts by relation, by whether the molecule is the same, and by bin."""
    first, second = np.triu_indices(len(records.molecules), 1)
    conditions, molecules = records.conditions, records.molecules
    is_same = molecules[first] == molecules[second]
    kept = ~(is_same & conditions.share_instrument(conditions)[first, second])
    first, second, is_same = first[kept], second[kept], is_same[kept]
    if not len(first):
        return
    relation = conditions.relate(conditions)[first, second]
    pair = np.sort(np.stack([molecules[first], molecules[second]], axis=1), axis=1)
    _, number, repeats = np.unique(np.column_stack([pair, relation]), axis=0, return_inverse=True, return_counts=True)
    bins = np.clip(np.searchsorted(EDGES, records.similarity[first, second], side="right") - 1, 0, N_BINS - 1)
    np.add.at(counts, (relation, is_same.astype(int), bins), 1 / repeats[number.ravel()])
