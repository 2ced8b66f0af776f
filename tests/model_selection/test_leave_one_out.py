"""Leave-one-out in closed form against n regressions."""

import numpy as np
import pytest

from psilearn import IOKRCV, OEL, OELCV
from psilearn.rankings import all_rankings
from psilearn.regression import RidgePath
from tests.model_selection.refits import ALPHAS, KERNELS_X
from tests.problems import asarray, block, make

pytestmark = pytest.mark.filterwarnings("ignore:The best:UserWarning", "ignore:n_components=:UserWarning")


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("kind", ["vectors", "unnormalised", "tags", "rankings", "strings"])
def test_loo_is_n_regressions_that_leave_one_out(kind):
    problem = make(kind)
    n, ridge = len(problem.X), len(problem.X) * 1e-2
    search = OELCV(
        KERNELS_X[0], problem.kernel, alphas=[1e-2], n_components=[1, 3], supervisions=[0.4, 1.0], cv="loo", refit=False
    )
    search.fit(problem.X, problem.Y)
    K = block(KERNELS_X[0], problem.X)
    norms = problem.kernel.diag(problem.Y)
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        g = OEL(**params).fit(problem.X, problem.Y).transform_outputs(problem.Y)  # directions of all examples
        errors = []
        for i in range(n):
            rest = np.delete(np.arange(n), i)
            z = K[i, rest] @ np.linalg.solve(K[np.ix_(rest, rest)] + ridge * np.eye(n - 1), g[rest])
            errors.append(np.sum(z**2) - 2 * z @ g[i] + norms[i])
        assert score == pytest.approx(-np.mean(errors), rel=1e-6)


@pytest.mark.usefixtures("backend")
def test_loo_of_iokr_is_the_closed_form_of_the_ridge_path():
    problem = make("vectors")
    search = IOKRCV(KERNELS_X, problem.kernel, alphas=ALPHAS, cv="loo", refit=False).fit(problem.X, problem.Y)
    path = [RidgePath(kernel).fit(problem.X) for kernel in KERNELS_X]
    psi = np.linalg.cholesky(block(problem.kernel, problem.Y) + 1e-12 * np.eye(len(problem.X)))
    expected = np.concatenate([-one.leave_one_out(asarray(psi), ALPHAS).mean(axis=1) for one in path])
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-6)


def test_loo_decodes_to_what_does_not_hold_the_answer():
    problem = make("tags")
    with pytest.raises(ValueError, match='cv="loo" with a decoded scoring needs candidates'):
        OELCV(KERNELS_X[0], problem.kernel, cv="loo", scoring="f1").fit(problem.X, problem.Y)
    OELCV(KERNELS_X[0], problem.kernel, alphas=[1e-2], n_components=[2], cv="loo", scoring="f1").fit(
        problem.X, problem.Y, candidates=problem.candidates
    )


@pytest.mark.usefixtures("backend")
def test_loo_decodes_over_all_rankings():
    problem = make("rankings")
    n, everything = len(problem.X), all_rankings(4)
    search = IOKRCV(KERNELS_X[0], problem.kernel, alphas=[1e-2], cv="loo", scoring="kendall_tau").fit(
        problem.X, problem.Y
    )
    K, taus = block(KERNELS_X[0], problem.X), []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        weights = np.linalg.solve(K[np.ix_(rest, rest)] + n * 1e-2 * np.eye(n - 1), K[rest, i])
        best = everything[np.argmax(weights @ block(problem.kernel, problem.Y[rest], everything))]
        taus.append(block(problem.kernel, [best], [problem.Y[i]])[0, 0])
    assert search.best_score_ == pytest.approx(np.mean(taus))


@pytest.mark.parametrize("given", [{"groups": np.arange(40)}, {}], ids=["groups", "standard error"])
def test_loo_has_neither_groups_nor_a_standard_error(given):
    problem = make("vectors")
    search = OELCV(cv="loo", one_standard_error=not given)
    with pytest.raises(ValueError, match=r'cv="loo" leaves single examples out.*GroupKFold\(\) or cv=5'):
        search.fit(problem.X, problem.Y, **given)


def test_a_word_for_cv_is_loo_or_refused():
    problem = make("vectors")
    with pytest.raises(ValueError, match=r"cv must be .* \"loo\" or None; got 'LOO'"):
        OELCV(cv="LOO").fit(problem.X, problem.Y)
    with pytest.raises(ValueError, match='cv="loo" needs at least 2 examples; got 1'):
        OELCV(cv="loo").fit(problem.X[:1], problem.Y[:1])
