"""Landmarks: all of them give the exact answer, fewer of them come closer as they grow."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context

from psilearn import IOKR, KDE, OEL, Landmarks
from psilearn._backend import Compute, current_compute, to_numpy
from psilearn._linalg import NotPositiveSemidefiniteError, SplitMatrix, shifted_factor, split_products
from psilearn._linalg.moments import GramSum
from psilearn._utils.samples import n_samples
from psilearn.kernels import Gaussian, Linear, Precomputed
from psilearn.landmarks import selection
from psilearn.landmarks.features import LandmarkFeatures
from psilearn.landmarks.selection import METHODS
from psilearn.regression import KernelRidge, NystromRidge
from tests.problems import asarray, block, eye, precision

pytestmark = pytest.mark.usefixtures("backend")

KERNEL_X = Gaussian(0.5)
ALPHA = 1e-3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 4))
Y = np.tanh(X @ RNG.standard_normal((4, 6))) + 0.05 * RNG.standard_normal((300, 6))


def scores(model, problem):
    """⟨z(x), g(y)⟩, which does not depend on the basis of the embedding."""
    return model.embed(problem.X_test) @ model.transform_outputs(problem.candidates).T


def models(problem, **options):
    yield IOKR(KERNEL_X, problem.kernel, alpha=ALPHA, **options)
    yield KDE(KERNEL_X, problem.kernel, alpha=ALPHA, n_components=3, **options)
    for supervision in (0.3, 1.0):
        yield OEL(KERNEL_X, problem.kernel, alpha=ALPHA, n_components=3, supervision=supervision, **options)


@pytest.mark.parametrize("with_unlabeled", [True, False])
@pytest.mark.parametrize(
    "landmarks",
    [{"input_landmarks": 40}, {"output_landmarks": 1000}, {"input_landmarks": 99, "output_landmarks": 99}],
    ids=lambda options: "+".join(options),
)
def test_all_landmarks_give_the_exact_answer(problem, landmarks, with_unlabeled):
    U = problem.unlabeled if with_unlabeled else None
    for exact, nystrom in zip(models(problem), models(problem, **landmarks), strict=True):
        exact.fit(problem.X, problem.Y, U)
        nystrom.fit(problem.X, problem.Y, U)
        expected = scores(exact, problem)
        np.testing.assert_allclose(scores(nystrom, problem), expected, atol=1e-8 * np.abs(expected).max())
        np.testing.assert_allclose(nystrom.eigenvalues_, exact.eigenvalues_, rtol=1e-8)
        assert n_samples(nystrom.candidates_.outputs) == n_samples(exact.candidates_.outputs)
        a, b = (model.predict_topk(problem.X_test, 3).distances for model in (exact, nystrom))
        np.testing.assert_allclose(a, b, atol=1e-7 * np.abs(a).max())
        assert nystrom.approximation_error_ < 1e-10
        assert nystrom.input_approximation_error_ < 1e-10


@pytest.mark.parametrize("options", [{}, {"input_landmarks": 25, "output_landmarks": 15}], ids=["exact", "landmarks"])
def test_single_precision_is_close_to_double(problem, options):
    for double, single in zip(models(problem, **options), models(problem, dtype="float32", **options), strict=True):
        double.fit(problem.X, problem.Y, problem.unlabeled)
        single.fit(problem.X, problem.Y, problem.unlabeled)
        expected = scores(double, problem)
        np.testing.assert_allclose(scores(single, problem), expected, atol=2e-3 * np.abs(expected).max())
        assert (
            single.embed(problem.X_test).dtype
            == single.regression_.coefficients.dtype
            == single.candidates_.g.dtype
            == np.float32
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_do_not_change_the_answer(dtype):
    def fitted(memory):
        with config_context(working_memory=memory):
            model = OEL(
                KERNEL_X,
                Gaussian(0.2),
                alpha=ALPHA,
                n_components=5,
                supervision=0.4,
                input_landmarks=60,
                output_landmarks=50,
                dtype=dtype,
            )
            model.fit(X, Y, unlabeled=Y[::-1])
            return model.embed(X) @ model.transform_outputs(Y).T

    np.testing.assert_allclose(fitted(0.02), fitted(64), atol=1e-9 if dtype == "float64" else 1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_more_landmarks_come_closer(method):
    exact = OEL(Gaussian(0.1), Gaussian(0.2), alpha=1e-4, n_components=10, supervision=0.5).fit(X, Y)
    expected = exact.embed(X) @ exact.transform_outputs(Y).T
    gaps, spans, input_spans = [], [], []
    for q in (10, 40, 160, 300):
        landmarks = Landmarks(q, method)
        model = OEL(
            Gaussian(0.1),
            Gaussian(0.2),
            alpha=1e-4,
            n_components=10,
            supervision=0.5,
            input_landmarks=landmarks,
            output_landmarks=landmarks,
        ).fit(X, Y)
        gaps.append(np.linalg.norm(model.embed(X) @ model.transform_outputs(Y).T - expected))
        spans.append(model.approximation_error_)
        input_spans.append(model.input_approximation_error_)
    for errors in (gaps, spans, input_spans):
        assert np.all(np.diff(errors) < 0)
    assert gaps[-1] < 1e-6 * np.linalg.norm(expected)
    assert spans[0] > 0.1  # the first really is an approximation


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(n=st.integers(1, 60), size=st.integers(1, 60), repeats=st.booleans(), seed=st.integers(0, 5))
def test_a_choice_is_a_set_of_row_numbers(method, n, size, repeats, seed):
    A = np.random.default_rng(seed).standard_normal((size, 2))
    if repeats:
        A[:] = A[0]
    landmarks = Landmarks(n, method, random_state=seed)
    chosen = landmarks.choose(Gaussian(1.0), A, alpha=1e-3)
    assert len(set(chosen)) == len(chosen) <= min(n, size)
    assert np.all((chosen >= 0) & (chosen < size)) and np.all(np.diff(chosen) > 0)
    if not (repeats and method == "pivoted"):
        assert len(chosen) == min(n, size)
    np.testing.assert_array_equal(chosen, landmarks.choose(Gaussian(1.0), A, alpha=1e-3))


def test_pivots_span_more_than_chance():
    # 290 outputs lie close together, ten far away: sampling by what is left finds the ten.
    A = np.concatenate([RNG.standard_normal((290, 2)) * 0.01, 10 * np.eye(10)[:, :2] + np.arange(10)[:, None] * 20])
    chosen = Landmarks(12, "pivoted").choose(Gaussian(1.0), A, alpha=1e-3)
    assert set(range(290, 300)) <= set(chosen)


def test_leverage_prefers_what_the_others_do_not_explain():
    A = np.concatenate([np.tile([[1.0, 0.0]], (280, 1)), 50 + 30 * RNG.standard_normal((20, 2))])
    chosen = Landmarks(22, "leverage").choose(Gaussian(1.0), A, alpha=1e-3)
    assert np.sum(chosen >= 280) == 20


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_reproduce_the_kernel_of_landmarks_and_drop_dependent_ones(dtype):
    landmarks = RNG.standard_normal((20, 3))
    with precision(dtype):
        features = LandmarkFeatures.of(Linear(), landmarks, "input", current_compute())
        phi = to_numpy(features.columns(landmarks, current_compute()))
    assert features.rank == 3 and phi.dtype == dtype
    np.testing.assert_allclose(phi.T @ phi, landmarks @ landmarks.T, atol=1e-4 if dtype == np.float32 else 1e-12)


def test_projection_never_lengthens():
    features = LandmarkFeatures.of(Gaussian(0.3), X[:15], "input", current_compute())
    assert np.all(np.sum(to_numpy(features.columns(X, current_compute())) ** 2, axis=0) <= 1 + 1e-12)


def test_nystrom_ridge_minimises_the_ridge_objective_in_the_span():
    ridge = NystromRidge(KERNEL_X, ALPHA, Landmarks(30)).fit(X)
    regression = ridge.regress(asarray(Y))
    K, S = block(KERNEL_X, X, ridge.features_.landmarks), block(KERNEL_X, ridge.features_.landmarks)
    direct = np.linalg.solve(K.T @ K + len(X) * ALPHA * S, K.T @ Y)  # the textbook form, squared condition and all
    fitted = K @ to_numpy(regression.compact().coefficients)
    np.testing.assert_allclose(fitted, K @ direct, atol=1e-6)
    moment = to_numpy(regression.moment.to_matrix())
    np.testing.assert_allclose(moment, fitted.T @ fitted / len(X), atol=1e-10)


def test_nystrom_and_exact_regression_have_one_moment():
    ridges = KernelRidge(KERNEL_X, ALPHA), NystromRidge(KERNEL_X, ALPHA, Landmarks(300))
    exact, nystrom = (to_numpy(ridge.fit(X).regress(asarray(Y)).moment.to_matrix()) for ridge in ridges)
    np.testing.assert_allclose(nystrom, exact, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_landmarks": 0}, "input_landmarks must be an integer ≥ 1; got 0"),
        ({"output_landmarks": 2.5}, "output_landmarks must be an integer ≥ 1; got 2.5"),
        ({"input_landmarks": Landmarks(0)}, "n of input_landmarks must be an integer ≥ 1"),
        ({"output_landmarks": Landmarks(5, "best")}, "method of output_landmarks must be one of uniform, "),
        ({"dtype": "float16"}, 'dtype must be "float64", "float32" or "tf32"; got'),
        ({"dtype": None}, 'dtype must be "float64", "float32" or "tf32"; got None'),
        ({"dtype": "double precision"}, 'dtype must be "float64", "float32" or "tf32"'),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        OEL(**options).fit(X, Y)


def test_an_alpha_below_the_rounding_errors_is_named():
    ridge = NystromRidge(KERNEL_X, 1e-30, Landmarks(3)).fit(X)
    moment = GramSum(3, current_compute())
    moment.lower -= 1e-12 * eye(3)  # what rounding may leave of a singular ΦᵀΦ
    with pytest.raises(NotPositiveSemidefiniteError, match="alpha=1e-30 is below the rounding errors of input_kernel"):
        ridge._solve(shifted_factor(moment.lower, 1e-30), asarray(np.ones((3, 1))))


def test_landmarks_are_parameters_that_can_be_searched():
    model = OEL(input_landmarks=Landmarks(10), output_landmarks=5)
    model.set_params(input_landmarks__n=20, input_landmarks__method="leverage")
    assert model.input_landmarks.n == 20
    assert len(model.fit(X, Y).regression_.anchors) == 20


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1e-25, 1e20])
def test_data_of_any_size_have_landmarks(method, size):
    landmarks = Landmarks(5, method)
    model = OEL(
        Gaussian(0.5),
        Linear(),
        alpha=1e-3,
        n_components=3,
        supervision=0.5,
        input_landmarks=landmarks,
        output_landmarks=landmarks,
    ).fit(X, size * Y)
    expected = OEL(
        Gaussian(0.5),
        Linear(),
        alpha=1e-3,
        n_components=3,
        supervision=0.5,
        input_landmarks=landmarks,
        output_landmarks=300,
    ).fit(X, Y)
    np.testing.assert_allclose(model.eigenvalues_[:1] / size**2, expected.eigenvalues_[:1], rtol=0.2)


@pytest.mark.parametrize("method", METHODS)
def test_inputs_and_outputs_of_length_zero(method):
    landmarks = Landmarks(20, method)
    model = OEL(Linear(), Linear(), alpha=1e-3, n_components=3, supervision=0.5, input_landmarks=landmarks).fit(
        np.zeros((50, 3)), Y[:50]
    )
    np.testing.assert_array_equal(model.embed(X[:4, :3]), 0)
    assert len(model.predict(X[:4, :3])) == 4
    with pytest.warns(UserWarning, match="exceeds the rank"):
        OEL(Gaussian(0.5), Linear(), alpha=1e-3, n_components=3, output_landmarks=landmarks).fit(
            X, np.zeros_like(Y)
        ).predict(X[:4])


def test_leverage_scores_survive_a_tiny_alpha():
    landmarks = Landmarks(20, "leverage")
    OEL(
        Linear(), Gaussian(0.5), alpha=1e-18, n_components=3, input_landmarks=landmarks, output_landmarks=landmarks
    ).fit(1e3 * X, Y)


def test_values_beyond_single_precision_are_named():
    for size, message in (
        (1e-30, "has values of up to .* out of the range of float32: multiply the data"),
        (1e30, "returned inf .* dtype='float64'"),
    ):
        with pytest.raises(ValueError, match=rf"Linear\(\) {message}"):
            OEL(Linear(), Gaussian(0.5), input_landmarks=20, dtype="float32").fit(size * X, Y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("outputs", ["vectors", "numbers"])
def test_copies_of_a_candidate_tie_whatever_the_blocks(dtype, outputs, backend):
    rng = np.random.default_rng(29)
    if outputs == "vectors":
        T, C = rng.standard_normal((300, 4)), rng.standard_normal((333, 4))
    else:
        T, C = rng.integers(0, 50, 300) * 1.0, np.unique(rng.integers(0, 50, 333) * 1.0)
    for model in (
        OEL(Gaussian(0.5), Gaussian(0.3), alpha=1e-4, n_components=10, dtype=dtype),
        IOKR(Gaussian(0.5), Gaussian(0.3), alpha=1e-4),
    ):
        model.fit(X, T)
        for memory in (0.01 if backend == "numpy" else 0.1, 1, 64):
            with config_context(working_memory=memory):
                top = model.predict_topk(X[:60], 3, np.concatenate([C, C, C])).indices
            assert np.all(top[:, 0] < len(C))
            np.testing.assert_array_equal(top[:, 1:], top[:, :1] + [[len(C), 2 * len(C)]])


def test_labeled_outputs_as_landmarks_lose_nothing_of_the_regression():
    """With full supervision the unlabeled landmarks play no part: the answer is the exact one."""
    U = np.random.default_rng(1).standard_normal((500, 6))
    repeated = np.concatenate([Y, Y[:20]])
    inputs = np.concatenate([X, X[:20] + 0.1])
    exact = OEL(KERNEL_X, Gaussian(0.3), alpha=ALPHA, n_components=8, supervision=1.0).fit(inputs, repeated)
    model = OEL(
        KERNEL_X,
        Gaussian(0.3),
        alpha=ALPHA,
        n_components=8,
        supervision=1.0,
        output_landmarks=Landmarks(350, "labeled"),
    )
    model.fit(inputs, repeated, unlabeled=U)
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-6)
    a, b = (m.embed(X[:9]) @ m.transform_outputs(Y).T for m in (exact, model))
    np.testing.assert_allclose(a, b, atol=1e-8)


def test_labeled_landmarks_come_first_and_others_at_random():
    U = np.random.default_rng(1).standard_normal((500, 6))
    model = OEL(
        KERNEL_X,
        Gaussian(0.3),
        alpha=ALPHA,
        n_components=8,
        supervision=0.5,
        output_landmarks=Landmarks(320, "labeled", 3),
    )
    landmarks = model.fit(X, Y, unlabeled=U).embedding_.landmarks
    np.testing.assert_array_equal(landmarks[:300], Y)
    assert len(landmarks) == 320
    assert {row.tobytes() for row in landmarks[300:]} <= {row.tobytes() for row in U}
    again = OEL(
        KERNEL_X,
        Gaussian(0.3),
        alpha=ALPHA,
        n_components=8,
        supervision=0.5,
        output_landmarks=Landmarks(900, "labeled"),
    ).fit(X, Y, U)
    exact = OEL(KERNEL_X, Gaussian(0.3), alpha=ALPHA, n_components=8, supervision=0.5).fit(
        X, Y, U
    )  # all of them: exact
    np.testing.assert_allclose(again.eigenvalues_, exact.eigenvalues_, rtol=1e-8)


def test_labeled_landmarks_are_at_least_the_labeled_outputs():
    with pytest.raises(ValueError, match=r'Landmarks\(200, "labeled"\) is fewer than the 300 distinct labeled outputs'):
        OEL(output_landmarks=Landmarks(200, "labeled")).fit(X, Y)
    with pytest.raises(ValueError, match="method of input_landmarks must be one of uniform"):
        OEL(input_landmarks=Landmarks(200, "labeled")).fit(X, Y)


def test_kernel_values_of_a_pool_are_the_same_all_at_once():
    some, compute = np.array([5, 2, 99]), current_compute()
    whole, part = (selection.PoolKernel(Gaussian(0.2), asarray(X), 2.0, at_once, compute) for at_once in (True, False))
    for values in ("among", "columns"):
        expected = to_numpy(getattr(part, values)(some))
        np.testing.assert_allclose(to_numpy(getattr(whole, values)(some)), expected, atol=1e-7)
        np.testing.assert_allclose(expected.max(), 0.5)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 40))
def test_proposals_are_accepted_as_by_elimination(seed, size, rank):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((size, rank))
    remaining = factor @ factor.T
    found, L = selection.accept_pivots(remaining, np.random.RandomState(seed % 2**31))
    thresholds = np.random.RandomState(seed % 2**31).random_sample(size) * np.diagonal(remaining)
    left, expected, margins = remaining.copy(), [], []
    for j, threshold in enumerate(np.maximum(thresholds, selection.PIVOT_FLOOR)):
        margins.append(abs(left[j, j] - threshold))
        if left[j, j] > threshold:
            expected.append(j)
            left -= np.outer(left[:, j], left[:, j]) / left[j, j]
    if min(margins) > 1e-8:  # else rounding decides
        assert found.tolist() == expected
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, remaining[np.ix_(found, found)], atol=1e-9 * size * rank)


@pytest.mark.parametrize("supervision", [0.5, 1.0])
def test_the_moment_of_the_outputs_is_kept_only_where_directions_depend_on_it(supervision):
    model = OEL(KERNEL_X, Gaussian(0.2), n_components=3, supervision=supervision, output_landmarks=30)
    model.fit(X[:100], Y[:100], unlabeled=Y[100:150])
    outputs = model._continuation[0]
    moment = outputs.labeled_moment
    assert moment.sum.lower.shape == ((30, 30) if supervision < 1 else (0, 0))
    phi = np.linalg.solve(outputs.features.triangle, to_numpy(Gaussian(0.2)(outputs.features.landmarks, Y[:100])))
    assert moment.captured == pytest.approx(np.sum(phi**2))
    error = model.approximation_error_
    model.partial_fit(Y[150:])
    assert 0 < model.approximation_error_ < 1 and model.approximation_error_ != error


def test_inputs_of_nystrom_ridge_may_be_lists():
    rows, targets = X[:30].tolist(), asarray(Y[:30])
    found, expected = (
        NystromRidge(KERNEL_X, ALPHA, Landmarks(8)).fit(inputs).regress(targets).predict(X[:5])
        for inputs in (rows, np.array(rows))
    )
    np.testing.assert_allclose(to_numpy(found), to_numpy(expected), rtol=1e-6)


def test_indefinite_kernels_do_not_overflow_in_split_precision(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(split_products, "has_half_units", lambda device: device is not None)
    monkeypatch.setattr(split_products, "MIN_SIZE", 16)
    K = np.eye(60)
    K[:40, :40] += 0.999 * (1 - np.eye(40))  # a triangle whose inverse is large
    K[:40, 40:] = 5 * RNG.standard_normal((40, 20))  # longer than k(a, a) = 1 allows
    K[40:, :40] = K[:40, 40:].T
    compute = Compute.of("float32", torch.device("cpu"))
    features = LandmarkFeatures.of(Precomputed(K), np.arange(40), "output", compute).to_device(compute)
    assert isinstance(features.factor_and_lengths(np.arange(40), compute)[0], SplitMatrix)
    expected = np.linalg.solve(np.linalg.cholesky(K[:40, :40]), K[:40, 40:])
    found = to_numpy(features.columns(np.arange(40, 60), compute))
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())
