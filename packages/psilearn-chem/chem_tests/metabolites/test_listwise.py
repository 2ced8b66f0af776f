"""The conditional logit: its gradient by finite differences, and weights that are known."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from scipy.special import log_softmax

from psilearn_chem.metabolites.candidate_model import (
    FLAT_SHARE,
    Lists,
    fit_logit,
    log_probabilities,
    loss_and_gradient,
    mixture_log_probabilities,
)


def make_lists(q=40, d=3, seed=0, weights=None):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, q)
    features = rng.normal(size=(int(sizes.sum()), d))
    return Lists(features, sizes, np.array([rng.integers(size) for size in sizes]), weights)


def test_log_probabilities_are_a_softmax_per_query():
    rng = np.random.default_rng(0)
    sizes = np.array([1, 4, 2])
    scores = rng.normal(size=7) * 400  # without a shift, the exponentials overflow
    expected = np.concatenate([log_softmax(part) for part in np.split(scores, np.cumsum(sizes)[:-1])])
    np.testing.assert_allclose(log_probabilities(scores, sizes), expected)


@pytest.mark.parametrize("flat_share", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_agrees_with_finite_differences(weighted, flat_share):
    rng = np.random.default_rng(1)
    lists = make_lists(weights=rng.random(40) if weighted else None)
    w = rng.normal(size=3)
    numerical = approx_fprime(w, lambda v: loss_and_gradient(v, lists, 0.3, flat_share)[0], 1e-6)
    np.testing.assert_allclose(loss_and_gradient(w, lists, 0.3, flat_share)[1], numerical, atol=1e-5)


def test_the_mixture_is_a_distribution_in_the_order_of_the_scores():
    scores, sizes = np.random.default_rng(0).normal(size=9) * 50, np.array([4, 5])
    log_p = mixture_log_probabilities(scores, sizes)
    for part in (slice(0, 4), slice(4, 9)):
        assert np.exp(log_p[part]).sum() == pytest.approx(1)
        assert np.argsort(log_p[part]).tolist() == np.argsort(scores[part]).tolist()


def test_the_mixture_is_the_likelihood_that_is_maximized():
    lists = make_lists()
    w = np.array([0.5, -1.0, 2.0])
    log_p = mixture_log_probabilities(lists.features @ w, lists.sizes)
    assert loss_and_gradient(w, lists, 0.0, FLAT_SHARE)[0] == pytest.approx(-log_p[lists.starts + lists.truth].mean())
    fitted = fit_logit(lists, 0.01, FLAT_SHARE)
    best = loss_and_gradient(fitted, lists, 0.01, FLAT_SHARE)[0]
    assert best <= loss_and_gradient(fit_logit(lists, 0.01), lists, 0.01, FLAT_SHARE)[0] + 1e-9


def test_sparse_features_give_the_same_weights():
    lists = make_lists()
    other = Lists(sparse.csr_matrix(lists.features), lists.sizes, lists.truth)
    np.testing.assert_allclose(fit_logit(lists, 0.1), fit_logit(other, 0.1), atol=1e-6)


def test_a_whole_weight_is_a_repeated_query():
    lists = make_lists(q=20)
    repeated = np.concatenate([np.arange(20), np.arange(10)])
    rows = np.concatenate([np.arange(lists.starts[i], lists.starts[i] + lists.sizes[i]) for i in repeated])
    again = Lists(lists.features[rows], lists.sizes[repeated], lists.truth[repeated])
    weighted = Lists(lists.features, lists.sizes, lists.truth, np.where(np.arange(20) < 10, 2.0, 1.0))
    np.testing.assert_allclose(fit_logit(again, 0.01), fit_logit(weighted, 0.01), atol=1e-5)


def test_the_weights_of_a_logit_are_found_again():
    """Candidates are drawn with the probabilities of known weights."""
    rng, true = np.random.default_rng(2), np.array([1.0, -2.0, 0.0])
    sizes = np.full(4000, 5)
    features = rng.normal(size=(20000, 3))
    probabilities = np.exp(log_probabilities(features @ true, sizes)).reshape(-1, 5)
    truth = np.array([rng.choice(5, p=row) for row in probabilities])
    np.testing.assert_allclose(fit_logit(Lists(features, sizes, truth), 1e-9), true, atol=0.12)


def test_sizes_must_agree_with_the_features():
    with pytest.raises(ValueError, match="sizes add up to 5"):
        Lists(np.zeros((4, 1)), np.array([2, 3]), np.array([0, 0]))
