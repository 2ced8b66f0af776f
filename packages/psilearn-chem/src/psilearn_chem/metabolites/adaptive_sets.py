"""Conformal sets from probabilities, calibrated separately for known and for new molecules.

A candidate is known if the training has spectra of it, else it is new. Known molecules attract predictions: where they
are rightly first, almost nothing else is probable, and where the truth is a new molecule of the same formula, it is
further down. How many of the true molecules are known differs between calibration and use, so the two kinds are
calibrated separately (label-conditional conformal prediction): a known candidate is compared with the true molecules of
calibration spectra that are known, and a new one with those that are new. If spectra are exchangeable given the kind of
their true molecule, both kinds are covered with the requested probability, and so is any mixture of them.

The score of a candidate is the sum of the probabilities of all others that are at least as probable, for new
candidates among the new ones only, given that the truth is one of them. If the probabilities were exact, a limit on the
score would hold the coverage for each spectrum. As they are not, a score is replaced by its level: the share of smaller
scores of true molecules of the same kind among out-of-fold training spectra of the same group, where groups are formed
by the number of candidates and by whether one of them is known. So one threshold on the levels of each kind covers each
group about equally often, and each kind as often as requested, whatever the probabilities are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from psilearn.conformal import p_values
from psilearn.utils import Index

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MIN_CANDIDATES = 20  # from which a spectrum belongs to a group of difficult spectra
MIN_GROUP = 30  # true molecules; smaller groups use the scores of all molecules of their kind
N_GROUPS = 4
N_QUANTILES = 200
P_ROUNDING = 1e-9  # of p-values that are compared with 1 − coverage


def cumulated_probabilities(log_p: Array) -> Array:
    """Return for each candidate the total probability of the others that are at least as probable."""
    p = np.exp(log_p)
    order = np.argsort(-p, kind="stable")
    total = np.append(0.0, np.cumsum(p[order]))
    n_as_probable = np.searchsorted(-p[order], -p, side="right")
    return np.asarray(np.maximum(total[n_as_probable] - p, 0.0))


def set_scores(log_p: Array, is_known: Mask) -> Array:
    """Return the scores of candidates; those of new ones are conditional on the truth being new."""
    scores = cumulated_probabilities(log_p)
    if is_known.any() and not is_known.all():
        new = log_p[~is_known]
        scores[~is_known] = cumulated_probabilities(new - np.logaddexp.reduce(new))
    return scores


def group_of(is_known: Mask) -> int:
    """Return the number of the group of a spectrum, 0 to 3, given which of its candidates are known."""
    return 2 * int(len(is_known) >= MIN_CANDIDATES) + int(is_known.any())


def members(p: Array, coverage: float) -> Mask:
    """Return which candidates are in the set with this coverage, given their p-values."""
    return np.asarray(p > 1 - coverage + P_ROUNDING)


@dataclass(frozen=True)
class TrueMolecules:
    """The scores of the true molecules of q spectra, the groups of the spectra, and the kinds of the molecules."""

    scores: Array  # (q,)
    groups: Index  # (q,)
    is_known: Mask  # (q,)

    @classmethod
    def of(cls, log_p: list[Array], is_known: list[Mask], truth: list[int]) -> TrueMolecules:
        """Take them from the probabilities and the kinds of all candidates, and the indices of the true ones.

        Spectra with a single candidate are left out: it is always in the set, so they would make the others' sets
        smaller.
        """
        rows = [row for row in zip(log_p, is_known, truth, strict=True) if len(row[0]) > 1]
        scores = [set_scores(p, known)[true] for p, known, true in rows]
        kinds = [known[true] for _, known, true in rows]
        groups = [group_of(known) for _, known, _ in rows]
        return cls(np.array(scores), np.array(groups, dtype=np.intp), np.array(kinds, dtype=bool))


@dataclass(frozen=True)
class ScoreLevels:
    """The distribution of the scores of true molecules of each kind in each group, as ascending quantiles."""

    new: tuple[Array, ...]  # one array per group
    known: tuple[Array, ...]

    def __post_init__(self) -> None:
        shapes = [part.shape for part in (*self.new, *self.known)]
        if len(self.new) != N_GROUPS or shapes != [(N_QUANTILES,)] * 2 * N_GROUPS:
            raise ValueError(
                f"levels must be {N_QUANTILES} quantiles in each of {N_GROUPS} groups; got shapes {shapes}"
            )

    @classmethod
    def fit(cls, truth: TrueMolecules) -> ScoreLevels:
        """Learn from out-of-fold spectra; a kind with too few molecules uses the scores of both kinds."""
        kinds = []
        for is_kind in (~truth.is_known, truth.is_known):
            enough = is_kind if is_kind.sum() >= MIN_GROUP else np.ones_like(is_kind)
            kinds.append(_quantiles_by_group(truth.scores[enough], truth.groups[enough]))
        return cls(*kinds)

    def level(self, scores: Array, group: int, is_known: Mask) -> Array:
        """Return the share of true molecules of the group and of each candidate's kind with a smaller score."""
        levels = (np.searchsorted(part[group], scores, side="left") / N_QUANTILES for part in (self.known, self.new))
        return np.where(is_known, *levels)

    def of(self, truth: TrueMolecules) -> Array:
        """Return the levels of true molecules."""
        rows = zip(truth.scores, truth.groups, truth.is_known, strict=True)
        return np.array([self.level(*row) for row in rows], dtype=np.float64)


def _quantiles_by_group(scores: Array, groups: Index) -> tuple[Array, ...]:
    parts = [scores[groups == group] for group in range(N_GROUPS)]
    positions = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    return tuple(np.quantile(part if len(part) >= MIN_GROUP else scores, positions) for part in parts)


@dataclass(frozen=True)
class AdaptiveSets:
    """Conformal p-values of candidates, from the levels of true molecules of calibration spectra."""

    levels: ScoreLevels
    new: Array = field(default_factory=lambda: np.empty(0))  # ascending levels of true molecules that are new
    known: Array = field(default_factory=lambda: np.empty(0))  # those that are known; with too few, new ones are used

    @property
    def is_calibrated(self) -> bool:
        """Whether there are calibration spectra."""
        return bool(len(self.new))

    @classmethod
    def fit(cls, truth: TrueMolecules) -> AdaptiveSets:
        """Learn levels from out-of-fold spectra, and calibrate with the same spectra."""
        levels = ScoreLevels.fit(truth)
        found = levels.of(truth)
        return cls(levels, np.sort(found[~truth.is_known]), np.sort(found[truth.is_known]))

    def recalibrate(self, truth: TrueMolecules) -> AdaptiveSets:
        """Return the same with levels of new molecules from other spectra; known ones stay as they are."""
        return replace(self, new=np.sort(self.levels.of(truth)[~truth.is_known]))

    def p_values(self, log_p: Array, is_known: Mask) -> Array:
        """Return the p-value of each candidate: the set with coverage c has those above 1 − c."""
        levels = self.levels.level(set_scores(log_p, is_known), group_of(is_known), is_known)
        known = self.known if len(self.known) >= MIN_GROUP else self.new
        return np.where(is_known, p_values(levels, known), p_values(levels, self.new))
