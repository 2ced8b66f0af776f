import numpy as np
import pytest
from matplotlib.figure import Figure

from psilearn import IOKRCV, OELCV
from psilearn.kernels import Gaussian
from psilearn.plotting import plot_components, plot_spectrum, plot_validation
from psilearn.theory import fit_decay
from tests.problems import make

PROBLEM = make("vectors")
GRID = {"input_kernels": [Gaussian(0.2), Gaussian(1.0)], "output_kernels": Gaussian(0.3), "alphas": [1e-1, 1e-4, 1e-2]}

pytestmark = pytest.mark.filterwarnings("ignore:The best:UserWarning")


@pytest.fixture(scope="module")
def searches():
    oel = OELCV(**GRID, n_components=[1, 2, 4], supervisions=[0.2, 0.6], cv=3).fit(PROBLEM.X, PROBLEM.Y)
    return oel, IOKRCV(**GRID, cv=3).fit(PROBLEM.X, PROBLEM.Y)


def test_validation_draws_one_curve_a_p_and_iokr_in_black(searches):
    oel, iokr = searches
    ax = plot_validation(oel, iokr)
    assert [line.get_label() for line in ax.get_lines()] == ["p = 1", "p = 2", "p = 4", "IOKR"]
    assert ax.get_lines()[-1].get_color() == "black"
    chosen = ax.get_lines()[[1, 2, 4].index(oel.best_params_["n_components"])]
    np.testing.assert_array_equal(chosen.get_xdata(), [1e-4, 1e-2, 1e-1])
    assert chosen.get_ydata().min() == pytest.approx(-oel.best_score_)
    assert ax.get_lines()[-1].get_ydata().min() == pytest.approx(-iokr.best_score_)


def test_components_draw_the_best_of_each_p(searches):
    oel, iokr = searches
    given = Figure().subplots()
    ax = plot_components(oel, iokr, ax=given)
    assert ax is given
    scores = ax.containers[0].lines[0].get_ydata()
    assert len(scores) == 3 and scores.min() == pytest.approx(-oel.best_score_)


def test_a_score_that_is_no_loss_keeps_its_sign():
    tags = make("tags")
    search = OELCV(Gaussian(0.5), tags.kernel, alphas=[1e-3], n_components=[1, 3], supervisions=[0.5], cv=2, scoring="f1").fit(tags.X, tags.Y)
    assert plot_components(search).containers[0].lines[0].get_ydata().max() == pytest.approx(search.best_score_)


def test_spectrum_lies_in_its_band():
    eigenvalues = 2.0 / np.arange(1, 30) ** 1.5
    ax = plot_spectrum(eigenvalues)
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert f"r = {fit_decay(eigenvalues).rate:.2f}" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_convergence_of_an_energy_network():
    pytest.importorskip("torch")
    from psilearn.baselines import SPEN
    from psilearn.plotting import plot_convergence

    X = np.random.default_rng(0).normal(size=(40, 3))
    model = SPEN(hidden=(4,), energy_hidden=2, epochs=3, energy_epochs=4, steps=5).fit(X, X**2)
    features, inference, hinge = plot_convergence(model).axes
    for axis, history in ((features, model.pretraining_), (hinge, model.history_)):
        assert [len(line.get_xdata()) for line in axis.lines[:2]] == [len(history.training)] * 2
    assert len(inference.lines[0].get_ydata()) == 6
