"""Figures show the numbers that they are given."""

import numpy as np
import pytest

from psilearn import IOKRCV, OELCV
from psilearn.kernels import Gaussian
from psilearn.plotting import (
    plot_completions,
    plot_components,
    plot_curves,
    plot_spectrum,
    plot_validation,
    select_example_per_class,
)
from psilearn.theory import fit_decay
from tests.problems import make

Figure = pytest.importorskip("matplotlib.figure").Figure
PROBLEM = make("vectors")
GRID = {"input_kernels": [Gaussian(0.2), Gaussian(1.0)], "output_kernels": Gaussian(0.3), "alphas": [1e-1, 1e-4, 1e-2]}

pytestmark = pytest.mark.filterwarnings("ignore:The best:UserWarning")


@pytest.fixture(scope="module")
def searches():
    oel = OELCV(**GRID, n_components=[1, 2, 4], supervisions=[0.2, 0.6], cv=3).fit(PROBLEM.X, PROBLEM.Y)
    return oel, IOKRCV(**GRID, cv=3).fit(PROBLEM.X, PROBLEM.Y)


def test_validation_draws_one_curve_per_p_and_iokr_in_black(searches):
    oel, iokr = searches
    ax = plot_validation(oel, iokr)
    assert [line.get_label() for line in ax.get_lines()] == ["p = 1", "p = 2", "p = 4", "IOKR"]
    assert ax.get_lines()[-1].get_color() == "black"
    chosen = ax.get_lines()[[1, 2, 4].index(oel.best_params_["n_components"])]
    np.testing.assert_array_equal(chosen.get_xdata(), [1e-4, 1e-2, 1e-1])
    assert chosen.get_ydata().min() == pytest.approx(-oel.best_score_)
    assert ax.get_lines()[-1].get_ydata().min() == pytest.approx(-iokr.best_score_)


def test_components_draw_the_best_score_of_each_p(searches):
    oel, iokr = searches
    given = Figure().subplots()
    ax = plot_components(oel, iokr, ax=given)
    assert ax is given
    scores = ax.containers[0].lines[0].get_ydata()
    assert len(scores) == 3 and scores.min() == pytest.approx(-oel.best_score_)


def test_a_score_that_is_not_a_loss_keeps_its_sign():
    tags = make("tags")
    search = OELCV(
        Gaussian(0.5), tags.kernel, alphas=[1e-3], n_components=[1, 3], supervisions=[0.5], cv=2, scoring="f1"
    ).fit(tags.X, tags.Y)
    assert plot_components(search).containers[0].lines[0].get_ydata().max() == pytest.approx(search.best_score_)


def test_spectrum_lies_in_its_band():
    eigenvalues = 2.0 / np.arange(1, 30) ** 1.5
    ax = plot_spectrum(eigenvalues)
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert f"r = {fit_decay(eigenvalues).rate:.2f}" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_highlighted_curve_is_black_and_errors_are_drawn():
    ax = plot_curves([1, 2], {"a": [0.1, 0.2], "b": np.array([[0.3, 0.4], [0.01, 0.02]])}, "k", "score", highlight="b")
    plain, highlighted = ax.containers
    assert not plain.has_yerr and highlighted.has_yerr
    assert highlighted.lines[0].get_color() == "black"
    np.testing.assert_array_equal(highlighted.lines[0].get_ydata(), [0.3, 0.4])


def test_completions_have_one_row_per_method_after_the_given_half():
    inputs = np.arange(16.0).reshape(2, 8)
    figure = plot_completions(inputs, {"truth": inputs}, width=4)
    given, _, completed, _ = (ax.images[0].get_array() for ax in figure.axes)
    assert given[2:].mask.all()
    np.testing.assert_array_equal(completed[2:], inputs[0].reshape(2, 4))


def test_the_shown_example_of_a_class_is_one_on_which_predictions_disagree():
    predictions = [np.array([[1], [2], [3], [4]]), np.array([[1], [2], [9], [4]])]
    assert select_example_per_class(["b", "a", "a", "b"], predictions) == [2, 0]
