"""Grids are widened until the best setting is better than all its neighbors."""

from itertools import product

import pytest

from psilearn_lab.experiments.widening import (
    Axis,
    Best,
    edge_sentence,
    find_ends,
    first_block,
    values_of,
    widen,
    widen_best_variant,
)


def bowl(center):
    """Return a function that scores blocks by the distance to a center, and the list of scored settings."""
    scored = []

    def evaluate(block):
        settings = list(product(*block.values()))
        scored.extend(settings)
        return {setting: -sum(abs(a - b) for a, b in zip(setting, center, strict=True)) for setting in settings}

    return evaluate, scored


@pytest.mark.parametrize("center", [(0, 0), (5, -4), (-3, 2)])
def test_the_best_setting_is_reached_and_interior(center):
    axes = [Axis("gamma", [-1, 0, 1]), Axis("alpha", [-1, 0])]
    evaluate, scored = bowl(center)
    scores = evaluate(first_block(axes))
    best = widen(axes, scores, evaluate, max_rounds=20)
    assert best.setting == center and best.is_interior and not edge_sentence(axes, best)
    neighbors = {(center[0] + i, center[1] + j) for i in (-1, 0, 1) for j in (-1, 0, 1)}
    assert neighbors <= set(scores) == set(scored)


def test_gaps_of_the_first_grid_are_filled_around_the_best_setting():
    axes = [Axis("alpha", [-10, -8, -6, -4])]
    evaluate, scored = bowl((-7,))
    best = widen(axes, evaluate(first_block(axes)), evaluate, max_rounds=3)
    assert best.setting == (-7,) and best.is_interior
    assert {(-8,), (-7,), (-6,)} <= set(scored)


def test_a_limit_on_the_rounds_is_reported():
    axes = [Axis("C", [0, 1])]
    evaluate, _ = bowl((9,))
    best = widen(axes, evaluate(first_block(axes)), evaluate, max_rounds=3)
    assert best.setting == (4,) and not best.is_interior
    assert "C = 100 " in edge_sentence(axes, best)[0]


def test_known_settings_of_one_parameter_are_not_evaluated_again():
    axes = [Axis("C", [0, 1, 2])]
    evaluate, scored = bowl((4,))
    widen(axes, evaluate(first_block(axes)), evaluate, max_rounds=9)
    assert sorted(scored) == [(i,) for i in range(6)]


def test_a_single_value_is_fixed_and_values_beyond_the_largest_do_not_exist():
    axes = [Axis("gamma", [0]), Axis("n_components", [2, 3, 9], largest=20)]
    assert first_block(axes) == {"gamma": [0], "n_components": [2, 3]}
    evaluate, scored = bowl((3, 7))
    best = widen(axes, evaluate(first_block(axes)), evaluate, max_rounds=9)
    assert values_of(axes, best.setting) == {"gamma": 1.0, "n_components": 16} and best.is_interior
    assert {setting[0] for setting in scored} == {0}
    assert first_block([Axis("n_components", [5], largest=3)]) == {"n_components": [0]}
    assert Axis("n_neighbors", [0, 1]).neighbors(0) == [0, 1]


def test_values():
    assert Axis("alpha", [0]).value(-8) == 1e-4
    assert Axis("output_gamma", [0], scale=0.5).value(1) == 1.0
    assert Axis("n_neighbors", [0]).value(4) == 16


def values_around(axis, positions):
    return [axis.value(p) for p in positions if axis.exists(p)]


def test_lists_continue_beyond_their_ends():
    C = Axis.from_values("C", [1, 3, 10])
    assert values_around(C, range(-2, 5)) == [0.111111, 0.333333, 1, 3, 10, 33.3333, 111.111]
    narrow = Axis.from_values("gamma", [1.0, 1.1])
    assert narrow.value(2) == pytest.approx(1.1 * 2**0.5, rel=1e-5)  # steps of at least √2


def test_lists_end_at_what_exists():
    units = Axis.from_values("energy_hidden", [2, 5, 16])
    assert values_around(units, range(-4, 3)) == [1, 2, 5, 16]
    sizes = Axis.from_values("n_components", [40, 80, 120, 500], largest=159)
    assert values_around(sizes, range(9)) == [40, 80, 120, 159]
    assert values_around(Axis.from_values("n_components", [80, 120], largest=159), range(9)) == [80, 120, 159]
    dropout = Axis.from_values("dropout", [0.0, 0.2, 0.4], largest=0.99)
    assert values_around(dropout, range(-3, 9)) == [0.0, 0.2, 0.4, 0.8]
    assert Axis.from_values("dropout", [0.0, 0.2]).value(2) == pytest.approx(0.2 * 2**0.5, rel=1e-5)
    assert Axis.from_values("C", [10.0]).neighbors(0) == [0]


@pytest.mark.parametrize(("center", "rounds"), [(-5, 9), (7, 9), (1, 9), (-5, 2), (7, 1), (7, 0)])
def test_ends_that_remain_are_named(center, rounds):
    axes = [Axis.from_values("rank_penalty", [1.0, 3.0, 10.0]), Axis.from_values("C", [1.0])]
    evaluate, _ = bowl((center, 0))
    scores = evaluate(first_block(axes))
    best = widen(axes, scores, evaluate, max_rounds=rounds)
    ends = find_ends(axes, best, scores)
    assert bool(ends) == (not best.is_interior) == (rounds < 9)
    assert not ends or ends[0].endswith("is the largest of its grid." if center > 0 else "is the smallest of its grid.")


def test_an_end_beyond_which_nothing_exists_is_named_as_such():
    axes = [Axis.from_values("n_components", [2, 3], largest=4)]
    evaluate, _ = bowl((9,))
    scores = evaluate(first_block(axes))
    best = widen(axes, scores, evaluate, max_rounds=9)
    assert best.is_interior and find_ends(axes, best, scores) == ["n_components = 4 is the largest that exists."]


def test_neighbors_that_were_not_searched_are_named_without_an_end():
    axes = [Axis.from_values("C", [1.0, 2.0, 4.0])]
    (sentence,) = find_ends(axes, Best((1,), 0.0, is_interior=False), {(0,): -1.0, (1,): 0.0, (2,): -1.0})
    assert "still has neighbors" in sentence and sentence.endswith(".")


def test_the_best_variant_is_widened():
    axes = [Axis.from_values("C", [1.0, 2.0])]
    bowls = {"near": bowl((2,)), "far": bowl((9,))}
    variant, best, scores = widen_best_variant(axes, list(bowls), lambda name, block, known: bowls[name][0](block), 9)
    assert variant == "near" and best.setting == (2,) and set(scores) == {(0,), (1,), (2,), (3,)}
    assert bowls["far"][1] == [(0,), (1,)]
