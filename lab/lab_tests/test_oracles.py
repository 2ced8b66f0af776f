"""Differential oracles on a few random problems, and that they can fail."""

from dataclasses import replace

import numpy as np
import pytest

from psilearn_lab.oracles import routes
from psilearn_lab.oracles.__main__ import main
from psilearn_lab.oracles.problems import make_problem
from psilearn_lab.oracles.routes import MAX_TOLERANCE, Comparison, all_equal, compare_models, compare_nearest, judge

SEEDS = range(6)


@pytest.fixture
def problems():  # fitted in the same context as the tests, whatever a module before left
    return [make_problem(seed) for seed in SEEDS]


@pytest.mark.parametrize("oracle", routes.ORACLES)
def test_routes_agree(problems, oracle):
    results = [judge(oracle, problem) for problem in problems]
    assert [result for result in results if result is not None and result.kind == "defect"] == []
    assert any(result is not None for result in results)


def test_most_problems_are_well_conditioned(problems):
    kinds = [judge(routes.dense_formulas, problem).kind for problem in problems]
    assert kinds.count("accepted") >= 0.7 * len(problems)


def test_a_seed_is_a_problem():
    first, second = make_problem(5), make_problem(5)
    assert first.describe() == second.describe()
    np.testing.assert_array_equal(first.distances, second.distances)


def test_an_oracle_sees_another_model(problems):
    problem = next(p for p in problems if p.tolerance < 1e-6)
    wrong = replace(problem, alpha=1.001 * problem.alpha + 1e-4)
    assert compare_models(problem, problem.fit_model()).judge("same").kind == "accepted"
    assert compare_models(problem, wrong.fit_model()).judge("other").kind == "defect"


def test_a_defect_names_its_oracle_and_its_seed(problems):
    def fails(problem):
        raise KeyError("wrong")

    def differs(problem):
        return Comparison([1.0], [1.1], 0.01)

    tally = routes.check_routes([3], [fails, differs, lambda problem: None])
    assert (tally.attempts, tally.defects) == (2, 2)
    assert "KeyError: 'wrong' (seed 3: " in tally.places["fails"]
    assert "relative difference 1.0e-01" in tally.places["differs"]
    assert Comparison([1.0], [9.0], 2 * MAX_TOLERANCE).judge("unknown").kind == "clear error"


@pytest.mark.parametrize(("actual", "kind"), [([1.0, 2.0], "accepted"), ([1.0, np.nan], "defect"), ([1.0], "defect")])
def test_comparison_needs_equal_shapes_and_numbers(actual, kind):
    assert Comparison(actual, [1.0, 2.0], 1e-9).judge("numbers").kind == kind
    assert all_equal((np.array(actual), np.array([1.0, 2.0]))).judge("bits").kind == kind


def test_which_of_tied_candidates_is_chosen_does_not_matter():
    D = np.array([[2.0, 1.0, 1.0]])
    assert compare_nearest(D, [[2, 1]], [[1.0, 1.0]], 1e-9, 1).worst == 0
    assert compare_nearest(D, [[0]], [[2.0]], 1e-9, 1).worst == 1


def test_widths_are_fixed_for_other_data():
    problem = next(p for p in map(make_problem, range(100)) if str(p.input_kernel) == "Gaussian()")
    assert routes.fix_widths(problem).input_kernel.gamma == problem.model.regression_.kernel.gamma_


def test_command_line(capsys):
    assert main(["--runs", "1", "--seed", "3"]) == 0
    assert "| two routes to one answer |" in capsys.readouterr().out
