"""Classifier chains, compared with those of scikit-learn."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain

from lab_tests.baselines.toys import labels
from psilearn_lab.baselines import ECC, LR


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_chain_is_that_of_scikit_learn(form) -> None:
    X, Y = labels()
    model = ECC(3.0, n_chains=2).fit(form(X), Y)
    expected = []
    for chain in model.chains_:
        reference = ClassifierChain(LogisticRegression(C=3.0, max_iter=200), order=chain.order).fit(form(X), Y)
        expected.append(reference.predict_proba(form(X)))
    assert np.allclose(model.predict_soft(form(X)), np.mean(expected, axis=0), atol=1e-3)


def test_labels_outside_the_chains_have_a_logistic_regression() -> None:
    X, Y = labels()
    model = ECC(3.0, n_chains=2, max_chain_labels=2).fit(X, Y)
    rarest = np.argmin(Y.sum(axis=0))
    assert model.others_.tolist() == [rarest]
    assert all(set(chain.order) == {0, 1, 2} - {rarest} for chain in model.chains_)
    assert np.allclose(model.predict_soft(X)[:, rarest], LR(3.0).fit(X, Y).predict_soft(X)[:, rarest])


def test_invalid_numbers() -> None:
    X, Y = labels(20)
    for name in ("n_chains", "max_chain_labels"):
        with pytest.raises(ValueError, match=name):
            ECC(**{name: 0}).fit(X, Y)
