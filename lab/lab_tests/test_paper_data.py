"""Real data: the figures of an independent implementation at the same fixed parameters.

These parameters were chosen by others with a look at the test set, so the figures say that this code is right, not how
well a user would do.
"""

from functools import cache

import numpy as np
import pytest
from sklearn.preprocessing import normalize

from psilearn import IOKR, OEL
from psilearn.kernels import Dice, Gaussian
from psilearn.metrics import f1_score, kernel_loss
from psilearn_lab.datasets import load

USPS = {
    "IOKR": (IOKR(Gaussian(0.04), Gaussian(0.05), alpha=1e-4), 0.7360),
    "OEL0, p=64": (OEL(Gaussian(0.04), Gaussian(0.05), alpha=1e-4, n_components=64, supervision=1.0), 0.7290),
    "OEL0, p=98": (OEL(Gaussian(0.04), Gaussian(0.05), alpha=1e-4, n_components=98, supervision=1.0), 0.7243),
    "OEL, p=98": (OEL(Gaussian(0.04), Gaussian(0.05), alpha=1e-4, n_components=98, supervision=0.15), 0.7203),
}


@pytest.fixture(scope="module")
def read_once():
    """Return a function that loads a dataset the first time only."""
    return cache(load)


@pytest.mark.data("usps/usps.h5")
@pytest.mark.parametrize("name", USPS)
def test_usps(name, read_once):
    model, expected = USPS[name]
    usps = read_once("usps")
    pairs, alone = usps.train[:1000], usps.train[-6000:]
    model.fit(usps.X[pairs], usps.Y[pairs], unlabeled=usps.Y[alone])
    loss = kernel_loss(usps.Y[usps.test], model.predict(usps.X[usps.test]), Gaussian(0.05))
    assert loss == pytest.approx(expected, abs=0.0015)
    assert loss.standard_error == pytest.approx(0.011, abs=0.001)


@pytest.mark.data("mulan/bibtex/bibtex-train.arff", "mulan/bibtex/bibtex-test.arff", "mulan/bibtex/bibtex.xml")
@pytest.mark.parametrize(
    ("make_model", "expected"),
    [
        (lambda mean: IOKR(Gaussian(0.5), Gaussian(1 / mean), alpha=1e-5), 46.68),
        (lambda mean: IOKR(Gaussian(0.5), Dice(), alpha=1e-5), 51.34),
        (lambda mean: OEL(Gaussian(0.5), Dice(), alpha=1e-5, n_components=200, supervision=1.0), 51.34),
    ],
    ids=["IOKR, Gaussian", "IOKR, Dice", "OEL0, Dice"],
)
def test_bibtex(make_model, expected, read_once):
    bibtex = read_once("bibtex")
    X, Y = normalize(bibtex.X), bibtex.Y
    mean_labels = float(np.mean(Y[bibtex.train].sum(axis=1)))
    model = make_model(mean_labels).fit(X[bibtex.train], Y[bibtex.train])
    f1 = f1_score(Y[bibtex.test], model.predict(X[bibtex.test]))
    assert 100 * f1 == pytest.approx(expected, abs=0.15)
