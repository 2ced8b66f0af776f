"""Adaptive conformal sets: scores by a loop, levels that are uniform, and coverage in each group."""

import numpy as np
import pytest

from psilearn.chem.metabolites.adaptive_sets import ScoreLevels, cumulated_probabilities, group_of
from psilearn.conformal import threshold


def test_scores_are_sums_over_candidates_that_are_as_probable():
    p = np.array([0.2, 0.3, 0.2, 0.1, 0.15, 0.05])
    expected = [sum(q for j, q in enumerate(p) if q >= p[i] and j != i) for i in range(6)]
    np.testing.assert_allclose(cumulated_probabilities(np.log(p)), expected, atol=1e-12)
    assert cumulated_probabilities(np.zeros(1)).tolist() == [0.0]


def test_groups_are_formed_by_candidates_and_references():
    assert [group_of(n, known) for n in (19, 20) for known in (False, True)] == [0, 1, 2, 3]


def test_levels_of_true_molecules_are_uniform_in_each_group():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 4, 8000)
    scores = rng.random(8000) ** (1 + groups)
    levels = ScoreLevels.fit(scores, groups)
    for group in range(4):
        new = levels.level(rng.random(2000) ** (1 + group), group)
        assert np.quantile(new, [0.25, 0.5, 0.9]) == pytest.approx([0.25, 0.5, 0.9], abs=0.05)


def test_one_threshold_covers_each_group():
    """A common threshold on scores covers the difficult group too rarely; one on levels covers both."""
    rng = np.random.default_rng(1)

    def draw(n):
        groups = rng.integers(0, 4, n)
        return rng.exponential(1 + groups, n), groups

    levels = ScoreLevels.fit(*draw(6000))
    scores, groups = draw(2000)
    limit = threshold(np.array([levels.level(s, g) for s, g in zip(scores, groups, strict=True)]), 0.9)
    plain = threshold(scores, 0.9)
    new, new_groups = draw(8000)
    covered = np.array([levels.level(s, g) for s, g in zip(new, new_groups, strict=True)]) <= limit
    for group in range(4):
        assert covered[new_groups == group].mean() == pytest.approx(0.9, abs=0.03)
    assert (new <= plain)[new_groups == 3].mean() < 0.85


def test_small_groups_use_all_scores():
    levels = ScoreLevels.fit(np.linspace(0, 1, 200), np.append(np.zeros(190, int), np.ones(10, int)))
    np.testing.assert_array_equal(levels.quantiles[1], levels.quantiles[2])
