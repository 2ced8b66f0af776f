"""The log-likelihood ratio of reference spectra, on similarities with known densities."""

import numpy as np
import pytest
from scipy import stats

from psilearn_chem.metabolites import ReferenceEvidence

SAME, OTHER = stats.beta(5, 2), stats.beta(2, 5)


def fit(n=40_000, seed=0):
    return ReferenceEvidence.fit(SAME.rvs(n, random_state=seed), OTHER.rvs(n, random_state=seed + 1))


def test_the_ratio_is_that_of_the_densities():
    s = np.linspace(0.2, 0.8, 13)
    np.testing.assert_allclose(fit()(s), SAME.logpdf(s) - OTHER.logpdf(s), atol=0.25)


def test_the_ratio_does_not_depend_on_the_numbers_of_pairs():
    s = np.linspace(0.2, 0.8, 7)
    few = ReferenceEvidence.fit(SAME.rvs(4000, random_state=3), OTHER.rvs(40_000, random_state=4))
    np.testing.assert_allclose(few(s), fit()(s), atol=0.3)


def test_the_posterior_is_calibrated():
    """Among pairs with a posterior probability near p, the share of the same molecule is p."""
    evidence = fit()
    rng = np.random.default_rng(5)
    is_same = rng.random(40_000) < 0.3
    s = np.where(is_same, SAME.rvs(40_000, random_state=6), OTHER.rvs(40_000, random_state=7))
    posterior = 1 / (1 + np.exp(-(evidence(s) + np.log(0.3 / 0.7))))
    for low in np.arange(0, 1, 0.1):
        near = (posterior >= low) & (posterior < low + 0.1)
        if near.sum() > 500:
            assert is_same[near].mean() == pytest.approx(posterior[near].mean(), abs=0.05)


def test_evidence_never_decreases_and_is_bounded_by_few_pairs():
    evidence = ReferenceEvidence.fit([0.9, 0.1], [0.2, 0.95, 0.4])
    assert (np.diff(evidence(np.linspace(-1, 2, 50))) >= 0).all()
    assert np.abs(evidence.log_ratios).max() < 3


def test_evidence_of_several_independent_spectra_adds_up():
    """The sum over k spectra is the ratio of the joint densities."""
    s = np.clip(SAME.rvs((200, 3), random_state=8), 0.2, 0.8)  # where bins are narrow enough
    joint = SAME.logpdf(s).sum(axis=1) - OTHER.logpdf(s).sum(axis=1)
    assert np.corrcoef(fit()(s).sum(axis=1), joint)[0, 1] > 0.99


def test_bad_input_is_rejected():
    with pytest.raises(ValueError, match="other must have 1 dimension"):
        ReferenceEvidence.fit([0.5], [])
    with pytest.raises(ValueError, match="same"):
        ReferenceEvidence.fit([np.nan], [0.5])
    with pytest.raises(ValueError, match="same length"):
        ReferenceEvidence((0.1, 0.2), (1.0,))
    with pytest.raises(ValueError, match="log_ratios"):
        ReferenceEvidence((0.1,), (np.inf,))
    for similarities, ratios in (((0.2, 0.1), (0.0, 1.0)), ((0.1, 0.2), (1.0, 0.0))):
        with pytest.raises(ValueError, match="non-decreasing"):
            ReferenceEvidence(similarities, ratios)
