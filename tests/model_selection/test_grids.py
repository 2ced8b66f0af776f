"""Bad grids are rejected before any long computation; edges of the grid are named."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import normalize

from psilearn import IOKRCV, KDECV, OELCV
from psilearn.kernels import Dice, Gaussian, Laplacian, Linear, Normalized, Tanimoto
from psilearn.model_selection.grids import find_edges, input_kernel_grid
from tests.problems import make

PROBLEM = make("vectors")


@pytest.fixture(autouse=True)
def nothing_long(monkeypatch, request):
    if "long" in request.keywords:
        return
    monkeypatch.setattr("psilearn.embedding.subspace_path.DiagonalMoment.of", _too_late)
    monkeypatch.setattr("psilearn.regression.RidgePath.fit", _too_late)


def _too_late(*args):
    raise AssertionError("a long computation began before the grid was checked")


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"alphas": []}, "alphas is an empty grid"),
        ({"input_kernels": []}, "input_kernels is an empty grid"),
        ({"output_kernels": []}, "output_kernels is an empty grid"),
        ({"n_components": []}, "n_components is an empty grid"),
        ({"supervisions": []}, "supervisions is an empty grid"),
        ({"alphas": [1e-3, -1.0]}, "each value of alphas must be a finite number > 0; got -1.0"),
        ({"alphas": [np.nan]}, "each value of alphas"),
        ({"supervisions": [0.5, 1.5]}, r"each value of supervisions must be a number in \[0, 1\]; got 1.5"),
        ({"n_components": [0]}, "each value of n_components must be an integer ≥ 1"),
        ({"output_landmarks": 0}, "output_landmarks must be an integer ≥ 1"),
        ({"output_kernels": [Gaussian(), Laplacian()]}, "cannot be compared"),
        ({"scoring": "precise"}, "scoring must be one of"),
        ({"scoring": "top_0"}, "scoring must be one of"),
        ({"scoring": None}, "scoring must be one of"),
        ({"cv": [(np.arange(40), [])]}, "Split 0 of cv has 40 training and 0 validation"),
        ({"cv": [([0, 1], [2]), ([], [1])]}, "Split 1 of cv has 0 training and 1 validation"),
        ({"cv": [([0, 1], [99])]}, "Split 0 of cv has the examples 0 to 99; valid numbers are 0 to 39"),
        ({"cv": [([0, -1], [2])]}, "Split 0 of cv has the examples -1 to 2"),
        ({"cv": [([0.5, 1.0], [2])]}, "integer indices or masks"),
        ({"cv": []}, "cv contains no split"),
    ],
)
def test_bad_grids(parameters, words):
    with pytest.raises(ValueError, match=words):
        OELCV(**parameters).fit(PROBLEM.X, PROBLEM.Y, PROBLEM.unlabeled)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The best:UserWarning")
@pytest.mark.parametrize("with_unlabeled", [False, True])
def test_components_beyond_the_rank_are_the_rank(with_unlabeled):
    problem = make("unnormalised")  # five numbers per output
    search = OELCV(Gaussian(0.2), problem.kernel, alphas=[1e-3, 1e-2], supervisions=[0.0, 0.5, 1.0], cv=2)
    data = problem.X, problem.Y, problem.unlabeled if with_unlabeled else None
    with pytest.warns(
        UserWarning, match=r"n_components=500 exceeds the rank of the outputs with Linear\(\): 5 are used"
    ):
        beyond = clone(search).set_params(n_components=[2, 500]).fit(*data)
    within = clone(search).set_params(n_components=[2, 5]).fit(*data)
    np.testing.assert_allclose(beyond.cv_results_["mean_test_score"], within.cv_results_["mean_test_score"])
    assert beyond.ranks_ == [5] and beyond.edges_ == within.edges_
    assert beyond.best_estimator_.n_components_ == within.best_estimator_.n_components_


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The best:UserWarning")
def test_the_default_sizes_serve_output_kernels_of_lower_rank():
    problem = make("tags")
    search = OELCV(Gaussian(0.2), [Gaussian(0.5), Linear()], alphas=1e-3, supervisions=[0.5], cv=2, scoring="f1")
    with pytest.warns(
        UserWarning, match=r"n_components=\d+ exceeds the rank of the outputs with Linear\(\): 6 are used"
    ):
        search.fit(problem.X, problem.Y)
    assert search.ranks_[0] > 6 == search.ranks_[1]
    linear = [row for row in search.cv_results_["params"] if isinstance(row["output_kernel"], Linear)]
    assert max(row["n_components"] for row in linear) > 6


def test_what_is_no_kernel():
    with pytest.raises(TypeError, match="each value of input_kernels must be a kernel"):
        OELCV(input_kernels=["rbf"]).fit(PROBLEM.X, PROBLEM.Y)


def test_bad_data():
    with pytest.raises(ValueError, match="X has 40, y has 39"):
        OELCV().fit(PROBLEM.X, PROBLEM.Y[:39])
    with pytest.raises(ValueError, match="y contains NaN"):
        OELCV().fit(PROBLEM.X, np.full((40, 4), np.nan))
    with pytest.raises(ValueError, match="3 sets for 40 examples"):
        OELCV(scoring="loss").fit(PROBLEM.X, PROBLEM.Y, candidates=[PROBLEM.Y] * 3)
    with pytest.raises(NotFittedError):
        OELCV().predict(PROBLEM.X)
    with pytest.raises(NotFittedError):
        OELCV().best_where(supervision=0.0)


def test_an_error_about_y_names_the_kernel_that_rejects_it():
    real = PROBLEM.Y
    with pytest.raises(ValueError, match="Dice requires 0/1 rows"):
        OELCV(output_kernels=[Gaussian(), Dice()], scoring="f1").fit(PROBLEM.X, real)
    with pytest.raises(ValueError, match="y cannot be used with Gaussian, a kernel on rows"):
        OELCV().fit(PROBLEM.X, ["a", "b"] * 20)
    with pytest.raises(ValueError, match=r"y cannot be used with Kemeny: .*names a more than once"):
        OELCV().fit(PROBLEM.X, ["a>a", "a>b"] * 20)
    with pytest.raises(ValueError, match=r"y cannot be used with Dice: .*y contains NaN"):
        OELCV(output_kernels=Dice()).fit(PROBLEM.X, np.full((40, 4), np.nan))
    with pytest.raises(ValueError, match="OELCV requires y to be passed"):
        OELCV().fit(PROBLEM.X, None)


def test_parameters_after_the_kernels_are_keyword_only():
    for Search in (OELCV, KDECV, IOKRCV):
        with pytest.raises(TypeError, match="positional argument"):
            Search(Gaussian(), Gaussian(), [1e-3])


@pytest.mark.long
def test_a_score_that_is_not_finite_is_named():
    with pytest.raises(ValueError, match="score is not finite for the setting"):
        IOKRCV(alphas=[1e-3], cv=2, scoring=lambda y, p: np.nan).fit(PROBLEM.X, PROBLEM.Y)


@pytest.mark.long
def test_the_edge_of_a_grid_is_named():
    search = OELCV(
        [Gaussian(1e-9), Gaussian(1e-8)],
        Gaussian(0.3),
        alphas=[10.0, 1e3],
        n_components=[1, 2],
        supervisions=[0.2, 0.4],
        cv=2,
    )
    with pytest.warns(UserWarning) as caught:
        search.fit(PROBLEM.X, PROBLEM.Y)
    words = " ".join(str(w.message) for w in caught)
    best = search.best_params_
    assert f"best alpha = {best['alpha']:g} is the" in words and "Extend the grid to" in words
    assert "best input_kernel__gamma = 1e-0" in words
    assert f"best supervision = {best['supervision']:g} is the" in words
    assert len(search.edges_) == len(caught)
    assert all(f"The best {edge}." in words for edge in search.edges_)
    left = search.best_where(supervision=0.2, alpha=10.0).edges  # of what was left open
    assert [edge.split()[0] for edge in left if edge.split()[0] != "n_components"] == ["input_kernel__gamma"]


@pytest.mark.long
def test_no_edge_where_the_grid_cannot_go_further():
    # c is 0 or 1, p is 1 or the rank, and the input kernels are of different kinds: nothing to extend.
    problem = make("unnormalised")
    X = (problem.X > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = OELCV(
            [Dice(), Tanimoto()], problem.kernel, alphas=[1e-2], n_components=[1, 5], supervisions=[0.0, 1.0], cv=2
        ).fit(X, problem.Y)
    assert search.best_params_["n_components"] in (1, 5) and search.edges_ == []


COUNTS = np.random.default_rng(0).poisson(0.7, (50, 6)) * np.arange(1, 51)[:, None]


@pytest.mark.parametrize("to_form", [np.asarray, sparse.csr_matrix, lambda X: sparse.csr_matrix(X - 2.0 * (X == 1))])
def test_sparse_or_nonnegative_rows_are_also_normalized(to_form):
    X = to_form(COUNTS.astype(float))
    kernels = input_kernel_grid(None, X)
    plain, normalized = kernels[:5], kernels[5:]
    assert all(kernel.base is None for kernel in plain) and len(normalized) == 3
    rows = X.toarray() if sparse.issparse(X) else X
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(lengths > 0, lengths, 1)
    assert normalized[1].gamma == pytest.approx(Gaussian().fit(unit).gamma_)
    np.testing.assert_allclose(normalized[0](X), Gaussian(normalized[0].gamma)(unit), atol=1e-12)


@pytest.mark.parametrize(
    "X",
    [COUNTS - 1.0, COUNTS[:, :1] + 0.0, normalize(COUNTS[COUNTS.any(axis=1)] + 0.0), np.zeros((5, 3))],
    ids=["negative", "one column", "of length 1 already", "zero"],
)
def test_rows_that_normalization_does_not_help(X):
    assert len(input_kernel_grid(None, X)) == 5


def test_edges_are_those_of_kernels_that_differ_in_one_number():
    kernels = input_kernel_grid(None, COUNTS + 0.0)
    for i, word in ((0, "smallest"), (4, "largest"), (5, "smallest"), (7, "largest"), (2, None), (6, None)):
        edges = find_edges({"input_kernel": kernels}, {"input_kernel": kernels[i]}, 5)
        assert [f"is the {word} of its grid" in edge for edge in edges] == ([True] if word else [])
    mixed = [Gaussian(1.0), Gaussian("median"), Linear(), Dice(), Dice(packed=True)]
    assert not any(find_edges({"input_kernel": mixed}, {"input_kernel": kernel}, 5) for kernel in mixed)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The best:UserWarning")
def test_a_search_chooses_normalized_rows_where_lengths_are_noise():
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, np.pi / 2, 60)
    X = np.column_stack([np.cos(angles), np.sin(angles)]) * 10 ** rng.uniform(-2, 2, (60, 1))
    search = IOKRCV(alphas=[1e-4, 1e-2], random_state=0).fit(X, np.column_stack([angles, angles**2]))
    assert isinstance(search.best_params_["input_kernel"].base, Normalized)
    assert search.predict(X[:2]).shape == (2, 2)
