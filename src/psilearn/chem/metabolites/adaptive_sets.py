"""Conformal sets from probabilities, with thresholds that adapt to how difficult a spectrum is.

The score of a candidate is the sum of the probabilities of all candidates that are at least as probable, without its
own: 0 for the most probable candidate. If the probabilities were exact, a limit on this score would hold the coverage
for each spectrum. As they are not, a score is replaced by its level: the share of smaller scores of true molecules
among out-of-fold training spectra of the same group, where groups are formed by the number of candidates and by whether
one of them has reference spectra. The levels of true molecules are close to uniform in each group, and one threshold on
levels from calibration spectra that the fit has not used gives sets with the requested coverage over all spectra,
whatever the probabilities are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psilearn._utils.samples import Index

Array = NDArray[np.float64]

MIN_CANDIDATES = 20  # from which a spectrum belongs to a group of difficult spectra
MIN_GROUP = 30  # true molecules; smaller groups use the scores of all
N_QUANTILES = 200


def cumulated_probabilities(log_p: Array) -> Array:
    """Return for each candidate the total probability of the others that are at least as probable."""
    p = np.exp(log_p)
    order = np.argsort(-p, kind="stable")
    total = np.append(0.0, np.cumsum(p[order]))
    n_as_probable = np.searchsorted(-p[order], -p, side="right")
    return np.asarray(np.maximum(total[n_as_probable] - p, 0.0))


def group_of(n_candidates: int, has_reference: bool) -> int:
    """Return the number of the group of a spectrum, 0 to 3."""
    return 2 * int(n_candidates >= MIN_CANDIDATES) + int(has_reference)


@dataclass(frozen=True)
class ScoreLevels:
    """The distribution of the scores of true molecules in each group, as ascending quantiles."""

    quantiles: tuple[Array, ...]  # one array per group

    @classmethod
    def fit(cls, scores: Array, groups: Index, n_groups: int = 4) -> ScoreLevels:
        """Learn from the scores of true molecules of out-of-fold spectra and the groups of the spectra."""
        parts = [scores[groups == group] for group in range(n_groups)]
        positions = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
        return cls(tuple(np.quantile(part if len(part) >= MIN_GROUP else scores, positions) for part in parts))

    def level(self, scores: Array, group: int) -> Array:
        """Return the share of true molecules of the group with a smaller score, between 0 and 1."""
        return np.searchsorted(self.quantiles[group], scores, side="left") / N_QUANTILES
