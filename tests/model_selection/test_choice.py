"""The best of some settings is what a search of these settings alone would choose."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold

from psilearn import IOKRCV, KDECV, OELCV
from psilearn.kernels import Dice, Gaussian, Linear, Pairwise, Precomputed, Tanimoto
from psilearn.model_selection.grids import is_same_value
from tests.problems import make

PROBLEM = make("tags")
KERNELS_X, KERNELS_Y = [Gaussian(0.2), Gaussian(1.0)], [Dice(), Tanimoto()]
SEARCH = OELCV(
    KERNELS_X,
    KERNELS_Y,
    alphas=[1e-4, 1e-2],
    n_components=[1, 2, 4],
    supervisions=[0.0, 0.3, 0.7, 1.0],
    cv=KFold(4),
    scoring="f1",
)

pytestmark = pytest.mark.filterwarnings("ignore:The best:UserWarning", "ignore:n_components=:UserWarning")


@pytest.fixture(scope="module", params=[False, True], ids=["best", "one standard error"])
def search(request):
    return clone(SEARCH).set_params(one_standard_error=request.param).fit(PROBLEM.X, PROBLEM.Y, PROBLEM.unlabeled)


@pytest.mark.parametrize(
    ("fixed", "alone"),
    [
        ({"supervision": 0.0}, {"supervisions": 0.0}),
        ({"supervision": [0.3, 0.7]}, {"supervisions": [0.3, 0.7]}),
        ({"output_kernel": Dice()}, {"output_kernels": Dice()}),
        (
            {"input_kernel": Gaussian(1.0), "n_components": (2, 4)},
            {"input_kernels": Gaussian(1.0), "n_components": [2, 4]},
        ),
        ({"alpha": 1e-2 * (1 + 1e-14)}, {"alphas": 1e-2}),
    ],
)
def test_a_search_of_these_settings_alone(search, fixed, alone):
    other = clone(search).set_params(**alone).fit(PROBLEM.X, PROBLEM.Y, PROBLEM.unlabeled)
    choice = search.best_where(**fixed)
    assert is_same_value(list(choice.params.values()), list(other.best_params_.values()))
    assert choice.score == pytest.approx(other.best_score_, abs=1e-12)
    assert search.cv_results_["params"][choice.index] == choice.params
    assert search.cv_results_["mean_test_score"][choice.index] == choice.score


def test_nothing_fixed_is_the_best_of_all(search):
    choice = search.best_where()
    assert (choice.params, choice.score, choice.index) == (search.best_params_, search.best_score_, search.best_index_)
    assert choice.edges == search.edges_


def test_edges_of_what_was_not_fixed_to_one_value():
    def high_ridge(y_true, y_pred):
        return 1.0  # all settings tie: the fewest components and the most ridge win

    search = OELCV(
        Gaussian(0.2),
        Dice(),
        alphas=[1e-4, 1e-2],
        n_components=[1, 2, 4],
        supervisions=[0.25, 0.5, 0.75],
        cv=KFold(2),
        scoring=high_ridge,
    )
    search.fit(PROBLEM.X, PROBLEM.Y)
    edge = "alpha = 0.01 is the largest of its grid"
    assert edge in search.edges_
    assert edge in search.best_where(alpha=[1e-4, 1e-2]).edges
    assert edge not in search.best_where(alpha=1e-2).edges and edge not in search.best_where(alpha=[1e-2]).edges


def test_the_name_of_the_only_scoring(search):
    assert search.best_where("f1") == search.best_where()
    with pytest.raises(ValueError, match="was not computed"):
        search.best_where("mse")


def test_the_other_searches():
    kde = KDECV(KERNELS_X, Dice(), alphas=[1e-4, 1e-2], n_components=[1, 2], cv=2).fit(PROBLEM.X, PROBLEM.Y)
    assert kde.best_where(n_components=1).params["n_components"] == 1
    with pytest.raises(
        ValueError, match="supervision is not a parameter of this search; its parameters are output_kernel, input_"
    ):
        kde.best_where(supervision=0.0)
    iokr = IOKRCV(KERNELS_X, Dice(), alphas=[1e-4, 1e-2], cv=2).fit(PROBLEM.X, PROBLEM.Y)
    assert iokr.best_where(alpha=1e-4).params["alpha"] == 1e-4


def test_what_was_not_searched(search):
    with pytest.raises(ValueError, match=r"supervision = 0.5 was not searched; its grid is \[0.0, 0.3, 0.7, 1.0\]"):
        search.best_where(supervision=[0.3, 0.5])
    with pytest.raises(ValueError, match=r"output_kernel = Linear\(\) was not searched; its grid is \[Dice"):
        search.best_where(output_kernel=Linear())
    with pytest.raises(ValueError, match="supervision is an empty grid"):
        search.best_where(supervision=[])


def test_is_same_values():
    K = np.eye(3)
    assert is_same_value(Gaussian(0.5) + Dice(), Gaussian(0.5) + Dice())
    assert not is_same_value(Gaussian(0.5) + Dice(), Gaussian(0.25) + Dice())
    assert is_same_value(Gaussian().fit(PROBLEM.X), Gaussian()) and not is_same_value(Gaussian(), Gaussian(1.0))
    assert is_same_value(Pairwise(min), Pairwise(min)) and not is_same_value(Pairwise(min), Pairwise(max))
    assert is_same_value(Precomputed(K), Precomputed(K.copy())) and not is_same_value(
        Precomputed(K), Precomputed(2 * K)
    )
    assert is_same_value(sparse.csr_matrix(K), sparse.csr_matrix(K))
