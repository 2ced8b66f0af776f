"""Adaptive conformal sets: scores by a loop, levels that are uniform, and coverage of each kind and group."""

import numpy as np
import pytest

from psilearn.conformal import threshold
from psilearn_chem.metabolites.adaptive_sets import (
    AdaptiveSets,
    ScoreLevels,
    TrueMolecules,
    cumulated_probabilities,
    group_of,
    members,
    set_scores,
)
from psilearn_chem.metabolites.notes import from_notes, to_notes


def test_scores_are_sums_over_candidates_that_are_as_probable():
    p = np.array([0.2, 0.3, 0.2, 0.1, 0.15, 0.05])
    expected = [sum(q for j, q in enumerate(p) if q >= p[i] and j != i) for i in range(6)]
    np.testing.assert_allclose(cumulated_probabilities(np.log(p)), expected, atol=1e-12)
    assert cumulated_probabilities(np.zeros(1)).tolist() == [0.0]


def test_scores_of_new_candidates_are_conditional_on_the_truth_being_new():
    p = np.array([0.4, 0.3, 0.1, 0.2])
    is_known = np.array([True, False, True, False])
    np.testing.assert_allclose(set_scores(np.log(p), is_known), [0.0, 0.0, 0.9, 0.6], atol=1e-12)
    for same in (np.ones(4, dtype=bool), np.zeros(4, dtype=bool)):
        np.testing.assert_array_equal(set_scores(np.log(p), same), cumulated_probabilities(np.log(p)))


def test_groups_are_formed_by_candidates_and_references():
    kinds = [np.arange(n) < n_known for n in (19, 20) for n_known in (0, 1)]
    assert [group_of(is_known) for is_known in kinds] == [0, 1, 2, 3]


def draw_truth(rng, n, share_known):
    """Return true molecules whose scores depend on kind and group."""
    is_known = rng.random(n) < share_known
    groups = np.where(is_known, 2 * rng.integers(0, 2, n) + 1, rng.integers(0, 4, n))
    return TrueMolecules(rng.random(n) ** (1 + groups + 4 * is_known), groups, is_known)


def test_levels_of_true_molecules_are_uniform_in_each_kind_and_group():
    rng = np.random.default_rng(0)
    levels = ScoreLevels.fit(draw_truth(rng, 16_000, 0.3))
    truth = draw_truth(rng, 16_000, 0.6)
    found = levels.of(truth)
    for is_known, group in ((False, 0), (False, 1), (False, 2), (False, 3), (True, 1), (True, 3)):
        part = found[(truth.is_known == is_known) & (truth.groups == group)]
        assert np.quantile(part, [0.25, 0.5, 0.9]) == pytest.approx([0.25, 0.5, 0.9], abs=0.05)


def draw_lists(rng, n, share_known):
    """Return lists of candidates of which some are known; a known truth is likelier first than the model thinks."""
    log_p, kinds, truth = [], [], []
    for is_known in rng.random(n) < share_known:
        size = int(rng.integers(2, 40))
        kind = rng.random(size) < 0.2
        kind[0] = is_known  # the truth, before shuffling
        scores = rng.normal(size=size) + 1.5 * kind
        scores[0] += rng.normal(3.0 if is_known else 1.0)
        order = rng.permutation(size)
        scores = scores[order]
        log_p.append(scores - np.logaddexp.reduce(scores))
        kinds.append(kind[order])
        truth.append(int(np.argmin(order)))
    return log_p, kinds, truth


def test_each_kind_is_covered_whatever_their_mixture():
    """Calibration with 60 % known molecules covers both kinds, and hence every mixture; one threshold does not."""
    rng = np.random.default_rng(1)
    sets = AdaptiveSets.fit(TrueMolecules.of(*draw_lists(rng, 4000, 0.6)))
    calibration = TrueMolecules.of(*draw_lists(rng, 4000, 0.6))
    found = sets.levels.of(calibration)
    sets = AdaptiveSets(sets.levels, np.sort(found[~calibration.is_known]), np.sort(found[calibration.is_known]))
    plain_limit = threshold(calibration.scores, 0.9)
    for share in (0.0, 0.5, 1.0):
        log_p, kinds, truth = draw_lists(rng, 3000, share)
        rows = list(zip(log_p, kinds, truth, strict=True))
        covered = np.array([members(sets.p_values(p, kind), 0.9)[true] for p, kind, true in rows])
        new = np.array([not kind[true] for _, kind, true in rows])
        size = np.array([len(kind) for kind in kinds])
        if share < 1:
            for group in (new, new & (size >= 20), new & (size < 20), new & np.array([kind.any() for kind in kinds])):
                assert covered[group].mean() == pytest.approx(0.9, abs=0.025)
            plain = np.array([set_scores(p, kind)[true] <= plain_limit for p, kind, true in rows])
            assert plain[new].mean() < 0.87
        if share > 0:
            assert covered[~new].mean() >= 0.88  # above 0.9 where most are first, whose score is 0


def test_exchangeable_spectra_are_covered_on_average_for_few_calibration_spectra():
    """The mean coverage over calibrations is at least the requested one, also with 40 spectra."""
    rng = np.random.default_rng(2)
    base = AdaptiveSets.fit(TrueMolecules.of(*draw_lists(rng, 500, 0.3)))
    covered = []
    for _ in range(150):
        sets = base.recalibrate(TrueMolecules.of(*draw_lists(rng, 40, 0.0)))
        assert len(sets.new) == 40
        assert sets.known is base.known
        for p, kind, true in zip(*draw_lists(rng, 20, 0.0), strict=True):
            covered.append(members(sets.p_values(p, kind), 0.9)[true])
    assert 0.89 < np.mean(covered) < 0.94


def test_small_groups_use_all_scores_of_their_kind():
    rng = np.random.default_rng(3)
    truth = draw_truth(rng, 400, 0.0)
    groups = np.append(np.zeros(390, dtype=int), np.ones(10, dtype=int))
    levels = ScoreLevels.fit(TrueMolecules(truth.scores, groups, truth.is_known))
    np.testing.assert_array_equal(levels.new[1], levels.new[2])
    np.testing.assert_array_equal(levels.known[0], levels.new[0])  # no known molecules: those of new ones
    sets = AdaptiveSets.fit(truth)
    p, kind = np.log([0.6, 0.4]), np.array([True, False])
    everything = AdaptiveSets(sets.levels, sets.new, sets.new)
    np.testing.assert_array_equal(sets.p_values(p, kind), everything.p_values(p, kind))


def test_sets_are_nested_and_saved():
    rng = np.random.default_rng(4)
    sets = AdaptiveSets.fit(TrueMolecules.of(*draw_lists(rng, 500, 0.3)))
    loaded = from_notes(AdaptiveSets, to_notes(sets))
    for p, kind, _ in zip(*draw_lists(rng, 20, 0.3), strict=True):
        values = sets.p_values(p, kind)
        np.testing.assert_array_equal(values, loaded.p_values(p, kind))
        assert (members(values, 0.8) <= members(values, 0.95)).all()
        assert members(values, 1.0).all()
        assert not members(values, 0.0).any()
    with pytest.raises(ValueError, match="quantiles"):
        from_notes(AdaptiveSets, {**to_notes(sets), "levels": {"new": [[0.0]], "known": [[0.0]]}})
