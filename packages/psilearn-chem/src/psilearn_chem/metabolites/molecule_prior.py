"""Which molecules are measured at all: a score of molecules without a spectrum, learned from labeled molecules.

Most molecules of a library were never measured, and those that are differ from the others of their formula. A
conditional logit on the bits of fingerprints learns this from the molecules of the training spectra, each among the
molecules of its formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from psilearn.utils import Index
from psilearn_chem.metabolites.labeled_spectra import Bits
from psilearn_chem.metabolites.listwise import Lists, fit_logit

Array = NDArray[np.float64]

MAX_PRIOR_CANDIDATES = 40  # per molecule, drawn at random, the true one among them
PRIOR_RIDGE = 1e-3
MAX_ROWS = 4096  # molecules whose bytes are looked up at once


@dataclass(frozen=True)
class MoleculePrior:
    """The logarithm of the probability that a molecule is the measured one, up to a constant: one weight per bit."""

    weights: Array  # (8 b,)  of the unpacked bits

    @classmethod
    def fit(cls, sets: Sequence[Bits], truth: Index, seed: int, ridge: float = PRIOR_RIDGE) -> MoleculePrior:
        """Learn from the candidates of labeled spectra, and the index of the true one; one spectrum per molecule."""
        rng = np.random.default_rng(seed)
        chosen = [_thin(candidates, index, rng) for candidates, index in zip(sets, truth, strict=True)]
        bits = sparse.vstack([sparse.csr_matrix(np.unpackbits(rows, axis=1)) for rows in chosen], format="csr")
        sizes = np.array([len(rows) for rows in chosen])
        lists = Lists(bits.astype(np.float64), sizes, np.zeros(len(sizes), dtype=np.intp))
        return cls(fit_logit(lists, ridge))

    @cached_property
    def _byte_scores(self) -> Array:
        """The sum of the weights of the bits of each value of each byte, of shape (b, 256)."""
        bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
        return np.asarray(self.weights.reshape(-1, 8) @ bits.T)

    def __call__(self, bits: Bits) -> Array:
        """Return the scores of molecules with these packed fingerprints, of shape (n,)."""
        bytes_ = np.arange(bits.shape[1])
        parts = range(0, len(bits), MAX_ROWS)
        scores = [self._byte_scores[bytes_, bits[start : start + MAX_ROWS]].sum(axis=1) for start in parts]
        return np.concatenate(scores) if scores else np.empty(0)


def _thin(candidates: Bits, truth: int, rng: np.random.Generator) -> Bits:
    """Return the true candidate, followed by some of the others."""
    others = np.setdiff1d(np.arange(len(candidates)), [truth])
    n_others = min(len(others), MAX_PRIOR_CANDIDATES - 1)
    return candidates[np.append(truth, rng.choice(others, n_others, replace=False))]
