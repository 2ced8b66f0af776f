"""Every mistake gets an error that names the argument, what came and what to do; a failed fit changes nothing."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from psilearn import IOKR, KDE, OEL, OELCV, PerExampleCandidates
from psilearn.kernels import Dice, Gaussian, Kemeny, Linear, Pairwise, Polynomial, Precomputed
from psilearn.metrics import top_k_accuracy

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((20, 3)), RNG.standard_normal((20, 4))


@pytest.fixture
def model():
    return OEL(Gaussian(0.5), Gaussian(0.5), alpha=1e-3, n_components=3).fit(X, Y)


def spoiled(A, value):
    A = A.copy()
    A[4, 1] = value
    return A


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_named(model, value):
    with pytest.raises(ValueError, match="X contains"):
        OEL().fit(spoiled(X, value), Y)
    with pytest.raises(ValueError, match="y contains"):
        OEL().fit(X, spoiled(Y, value))
    with pytest.raises(ValueError, match="unlabeled contains"):
        OEL().fit(X, Y, unlabeled=spoiled(Y, value))
    with pytest.raises(ValueError, match="X contains"):
        model.predict(spoiled(X, value))
    with pytest.raises(ValueError, match="candidates contains"):
        model.predict(X, candidates=spoiled(Y, value))
    with pytest.raises(ValueError, match=r"candidates\[1\] contains"):
        model.predict(X[:2], candidates=[Y, spoiled(Y, value)])


def test_lengths_must_agree(model):
    with pytest.raises(ValueError, match=r"X has 20, y has 19 \(shape \(19, 4\)\)"):
        OEL().fit(X, Y[:19])
    with pytest.raises(ValueError, match="3 sets for 20 examples"):
        model.predict(X, candidates=[Y, Y, Y])
    with pytest.raises(ValueError, match="X has 20 examples, y has 19"):
        model.truth_positions(X, Y[:19])
    with pytest.raises(ValueError, match="y has 19"):
        model.score(X, Y[:19])


def test_nothing_is_not_enough(model):
    with pytest.raises(ValueError, match="X is empty"):
        OEL().fit(X[:0], Y[:0])
    with pytest.raises(ValueError, match="target y is None"):
        OEL().fit(X, None)
    for empty in (Y[:0], [], sparse.csr_matrix((0, 4))):
        with pytest.raises(ValueError, match="candidates is empty"):
            model.predict(X, candidates=empty)
    with pytest.raises(ValueError, match=r"candidates\[1\] is empty"):
        model.predict(X[:2], candidates=[Y, Y[:0]])
    with pytest.raises(ValueError, match="X is empty"):
        IOKR(lambda a, b: 1.0).fit([], [])


def test_one_candidate_is_enough(model):
    np.testing.assert_array_equal(model.predict(X, candidates=Y[:1]), np.repeat(Y[:1], 20, axis=0))
    with pytest.raises(ValueError, match="k ≥ 2"):
        _ = model.predict_topk(X, k=1).margins


@pytest.mark.parametrize("alpha", [0, -1e-3, np.nan, np.inf, "small", None, True])
@pytest.mark.parametrize("Estimator", [IOKR, KDE, OEL])
def test_alpha_must_be_positive(Estimator, alpha):
    with pytest.raises(ValueError, match="alpha must be a finite number > 0"):
        Estimator(alpha=alpha).fit(X, Y)


@pytest.mark.parametrize("supervision", [-0.1, 1.1, np.nan, None, "half"])
def test_supervision_must_be_a_fraction(supervision):
    with pytest.raises(ValueError, match=r"supervision must be a number in \[0, 1\]"):
        OEL(supervision=supervision).fit(X, Y)


@pytest.mark.parametrize("n_components", [0, -3, 2.5, "all"])
def test_n_components_must_be_a_count(n_components):
    with pytest.raises(ValueError, match="n_components must be an integer ≥ 1"):
        KDE(n_components=n_components).fit(X, Y)


@pytest.mark.parametrize("Estimator", [KDE, OEL])
def test_more_components_than_the_rank_are_cut_with_a_warning(Estimator):
    with pytest.warns(UserWarning, match="n_components=9 exceeds the rank of the output moment: 4 are used"):
        model = Estimator(Gaussian(0.5), Linear(), alpha=1e-3, n_components=9).fit(X, Y)
    assert model.n_components_ == 4 and model.embed(X).shape == (20, 4)


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_k_must_be_a_count(model, k):
    with pytest.raises(ValueError, match="k must be an integer"):
        model.predict_topk(X, k=k)


@pytest.mark.parametrize("method", ["predict", "predict_topk", "embed", "transform_outputs"])
def test_unfitted_use(method):
    with pytest.raises(NotFittedError):
        getattr(OEL(), method)(X)
    with pytest.raises(NotFittedError):
        OEL().score(X, Y)


def test_widths_must_stay_the_same(model):
    with pytest.raises(ValueError, match="X has 2 features, but OEL is expecting 3"):
        model.predict(X[:, :2])
    with pytest.raises(
        ValueError, match=r"unlabeled must have the same width as y: shape \(20, 2\) instead of shape \(20, 4\)"
    ):
        OEL().fit(X, Y, unlabeled=Y[:, :2])
    with pytest.raises(
        ValueError,
        match=r"candidates must have the same width as the outputs that the model was fitted on: shape \(20, 2\)",
    ):
        model.predict(X, candidates=Y[:, :2])
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.predict(X[0])
    with pytest.raises(ValueError, match="same width"):
        IOKR().fit(X, Y[:, 0]).predict(X, candidates=Y)


def test_kernels_that_do_not_suit_the_data():
    with pytest.raises(ValueError, match="Dice requires 0/1 rows, but y"):
        OEL(output_kernel=Dice()).fit(X, Y)
    with pytest.raises(TypeError, match="Sparse data was passed"):
        OEL(output_kernel=Kemeny()).fit(X, sparse.csr_matrix(Y))
    with pytest.raises(ValueError, match="X must hold one integer per object"):
        OEL(input_kernel=Precomputed(np.eye(20))).fit(X, Y)
    with pytest.raises(ValueError, match="y holds row numbers from 0 to 19; the matrix has 5 rows"):
        OEL(output_kernel=Precomputed(np.eye(5))).fit(X, np.arange(20))
    with pytest.raises(ValueError, match=r"(?s)y cannot be used with .* or a function k\(a, b\)"):
        OEL().fit(X, ["a"] * 20)
    with pytest.raises(TypeError, match="base of Gaussian must be a kernel"):
        OEL(Gaussian(1.0, base=min)).fit(X, Y)


@pytest.mark.parametrize("kernel", ["rbf", Gaussian, 3])
def test_what_is_no_kernel(kernel):
    with pytest.raises(TypeError, match="input_kernel must be a kernel of"):
        OEL(input_kernel=kernel).fit(X, Y)
    with pytest.raises(TypeError, match="output_kernel must be a kernel of"):
        OEL(output_kernel=kernel).fit(X, Y)


def test_indefinite_kernels_are_named():
    with pytest.raises(ValueError, match=r"output_kernel = Pairwise\(.*\) is not positive semi-definite"):
        OEL(output_kernel=Pairwise(lambda a, b: float(np.abs(a - b).sum()))).fit(X, Y)
    with pytest.raises(ValueError, match=r"input_kernel = Pairwise\(.*\) is not positive semi-definite"):
        OEL(input_kernel=Pairwise(lambda a, b: float(np.abs(a - b).sum()))).fit(X, Y)


class BadAt(Gaussian):
    """Gaussian, but for one value: there it is not finite, or its diagonal is another."""

    def _block(self, A, B, compute):
        block = super()._block(A, B, compute)
        if self.base is None and np.any(np.asarray(A) == 99.0):
            block[:] = np.nan
        return block


def test_a_kernel_that_fails_at_prediction_is_named(model):
    model = OEL(BadAt(0.5), BadAt(0.5), alpha=1e-3, n_components=3).fit(X, Y)
    with pytest.raises(ValueError, match=r"BadAt\(gamma=0.5\) returned nan"):
        model.predict(X, candidates=np.full((1, 4), 99.0))
    with pytest.raises(ValueError, match=r"BadAt\(gamma=0.5\) returned nan"):
        model.predict(np.full((1, 3), 99.0))
    with pytest.raises(ValueError, match=r"Polynomial.* returned inf"):
        OEL(Polynomial(), alpha=1.0).fit(X, Y).predict(X * 1e120)
    with pytest.raises(ValueError, match="diag must return one finite number"):
        OEL(output_kernel=Polynomial(), alpha=1.0).fit(X, Y).predict(X, candidates=Y * 1e120)


def test_a_diagonal_that_contradicts_the_block_is_refused():
    class Contradiction(Linear):
        def _diag(self, A):
            return np.ones(len(A))

    with pytest.raises(ValueError, match=r"Contradiction\(\) is inconsistent"):
        IOKR(output_kernel=Contradiction()).fit(X, Y)


def test_things_that_are_no_collections(model):
    with pytest.raises(TypeError, match="unlabeled must be a collection of outputs, a path or an iterable of batches"):
        OEL().fit(X, Y, unlabeled=3)
    with pytest.raises(ValueError, match=r"batch 0 of unlabeled must have the same width as y: shape \(4,\)"):
        OEL().fit(X, Y, unlabeled=(row for row in Y))
    for bad in ((row for row in Y), 3):
        with pytest.raises(TypeError, match="candidates must be an array or a sequence"):
            model.predict(X, candidates=bad)
    with pytest.raises(TypeError, match="positions must be TruthPositions"):
        top_k_accuracy(np.ones(3), 1)


def test_a_rank_without_any_truth_is_warned_of(model):
    with pytest.warns(UserWarning, match="No true output of y is among its candidates"):
        model.truth_positions(X, Y + 1, candidates=Y)


def test_memory_that_would_not_suffice(monkeypatch):
    monkeypatch.setattr("psilearn._backend.compute.host_available_bytes", lambda: 1000)
    with pytest.raises(MemoryError, match=r"This fit .*, needs [\d,]+ bytes .* only 1,000 bytes are available"):
        OEL().fit(X, Y)


def test_a_failed_fit_changes_nothing(model):
    before = model.predict(X)
    for bad in (lambda: model.fit(X[:, :2], Y[:19]), lambda: model.fit(X, spoiled(Y, np.nan))):
        with pytest.raises(ValueError):
            bad()
        np.testing.assert_array_equal(model.predict(X), before)
    assert model.n_features_in_ == 3


def test_candidate_sets_say_how_many_they_are():
    assert len(PerExampleCandidates([Y, Y])) == 2


def test_rank_candidates_validates_at_the_call(model):
    with pytest.raises(ValueError, match="k must be an integer ≥ 1; got 0"):
        model.rank_candidates(X, k=0)
    with pytest.raises(ValueError, match="ties must be one of"):
        model.rank_candidates(X, ties="bad")


@pytest.mark.parametrize("unlabeled", [{}, set(), frozenset(), b"", {1: 2}])
@pytest.mark.parametrize("estimator", [OEL(n_components=2), KDE(n_components=2), OELCV(cv=2)])
def test_unlabeled_outputs_must_be_a_collection(estimator, unlabeled):
    with pytest.raises(TypeError, match="unlabeled must be an array or a sequence of objects"):
        clone(estimator).fit(X, Y, unlabeled=unlabeled)
