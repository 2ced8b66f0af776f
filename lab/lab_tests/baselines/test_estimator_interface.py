"""Baselines answer as the estimators of the library do: while they are fitted again, and among all label sets."""

import numpy as np

from psilearn.kernels import Pairwise
from psilearn_lab.baselines import KNN, KRR
from tests.decoding.label_sets.set_cases import all_sets
from tests.decoding.label_sets.test_estimators import L, data  # noqa: F401  (a fixture)
from tests.estimators.test_refitting import (
    DATA,
    X_NEW,
    Interruption,
)
from tests.estimators.test_refitting import test_every_answer_of_a_thread_is_that_of_one_of_two_fits as check_threads


def test_a_fit_in_the_middle_of_a_baselines_prediction_does_not_change_it():
    interruption = Interruption()
    model = KRR(Pairwise(interruption), alpha=0.1).fit(*DATA[0])
    expected = model.predict(X_NEW), model.predict_topk(X_NEW, k=2).distances, model.score(X_NEW, DATA[0][1][:7])
    for method, answer in zip(("predict", "predict_topk", "score"), expected, strict=True):
        model.fit(*DATA[0])
        interruption.action = lambda: model.fit(DATA[1][0], DATA[1][1][:, :4])
        arguments = {"predict": (X_NEW,), "predict_topk": (X_NEW, 2), "score": (X_NEW, DATA[0][1][:7])}[method]
        found = getattr(model, method)(*arguments)
        np.testing.assert_array_equal(found.distances if method == "predict_topk" else found, answer)


def test_every_answer_of_a_thread_is_that_of_one_of_two_fits():
    check_threads(KNN(1))


def test_baselines_list_the_sets(data):  # noqa: F811
    X, Y, X_new, _ = data
    model = KNN(n_neighbors=5).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X_new, candidates="all"), model.predict(X_new, candidates=all_sets(L)))
