"""Differential oracles on a few random problems, and that they can fail."""

from dataclasses import replace

import numpy as np
import pytest

from psilearn_lab.fuzz.oracles import fits, runner
from psilearn_lab.fuzz.oracles.comparison import MAX_TOLERANCE, Comparison, all_equal, compare_models, excess
from psilearn_lab.fuzz.oracles.problems import make_problem

SEEDS = range(6)


@pytest.fixture(scope="module")
def tallies():
    return runner.run(SEEDS)


@pytest.mark.parametrize("name", runner.ORACLES)
def test_routes_agree(tallies, name):
    assert tallies[name].defects == []


def test_most_problems_are_well_conditioned(tallies):
    tally = tallies["dense_formulas"]
    assert tally.problems == len(SEEDS)
    assert tally.agreeing >= 0.7 * tally.problems
    assert all(tally.problems for tally in tallies.values())


def test_a_seed_is_a_problem():
    first, second = make_problem(5), make_problem(5)
    assert first.describe() == second.describe()
    np.testing.assert_array_equal(first.distances, second.distances)


def test_an_oracle_sees_another_model():
    problem = next(p for p in map(make_problem, SEEDS) if p.tolerance < 1e-6)
    wrong = replace(problem, alpha=1.001 * problem.alpha + 1e-4)
    assert compare_models(problem, problem.fit_model()).agrees
    assert not compare_models(problem, wrong.fit_model()).agrees


def test_a_defect_names_its_seed(monkeypatch):
    def fail(problem):
        raise ValueError("wrong")

    monkeypatch.setitem(runner.ORACLES, "fail", fail)
    monkeypatch.setitem(runner.ORACLES, "differ", lambda problem: Comparison([1.0], [1.1], 0.01))
    monkeypatch.setitem(runner.ORACLES, "unknown", lambda problem: Comparison([1.0], [9.0], 2 * MAX_TOLERANCE))
    monkeypatch.setitem(runner.ORACLES, "absent", lambda problem: None)
    tallies = runner.run([3], ["fail", "differ", "unknown", "absent"])
    assert tallies["fail"].defects[0].startswith("seed 3: ")
    assert tallies["fail"].defects[0].endswith("ValueError: wrong")
    assert "relative difference 1.0e-01" in tallies["differ"].defects[0]
    assert tallies["unknown"].undecidable == 1
    assert tallies["absent"].problems == 0
    assert "| fail | 1 | 0 | 0 | 1 | 0e+00 |" in runner.as_table(tallies)


@pytest.mark.parametrize(("actual", "agrees"), [([1.0, 2.0], True), ([1.0, np.nan], False), ([1.0], False)])
def test_comparison_needs_equal_shapes_and_numbers(actual, agrees):
    assert Comparison(actual, [1.0, 2.0], 1e-9).agrees == agrees
    assert all_equal((np.array(actual), np.array([1.0, 2.0]))).agrees == agrees


def test_excess_ignores_which_of_tied_candidates_is_chosen():
    D = np.array([[2.0, 1.0, 1.0]])
    np.testing.assert_array_equal(excess(D, [[2, 1]]), [[0.0, 0.0]])
    np.testing.assert_array_equal(excess(D, [[0]]), [[1.0]])


def test_widths_are_fixed_for_other_data():
    problem = next(p for p in map(make_problem, range(100)) if str(p.input_kernel) == "Gaussian()")
    fixed = fits.fix_widths(problem)
    assert fixed.input_kernel.gamma == problem.model.regression_.kernel.gamma_
