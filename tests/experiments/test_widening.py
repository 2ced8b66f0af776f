"""Grids are widened until the best setting is better than all its neighbors."""

from itertools import product

import pytest

from psilearn.experiments.widening import Axis, edge_sentence, first_block, values_of, widen


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
