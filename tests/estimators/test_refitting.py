"""A model that is fitted again while others predict answers as before or as after, never with a mixture."""

import threading

import numpy as np
import pytest

from psilearn import IOKR, KDE, OEL, OELCV
from psilearn.kernels import Dice, Gaussian, Pairwise

X_NEW = np.linspace(-1, 1, 7).reshape(-1, 1)


def make_data(seed):
    """Return inputs and label sets; the numbers of examples and of distinct outputs differ between seeds."""
    rng = np.random.default_rng(seed)
    n = 20 + 5 * seed
    return rng.uniform(-1, 1, (n, 1)), (rng.random((n, 5)) < 0.3 + 0.3 * seed).astype(int)


DATA = make_data(0), make_data(1)


class Interruption:
    """A kernel function that runs an action in the middle of the next evaluation."""

    def __init__(self):
        self.action = None

    def __deepcopy__(self, memo):
        return self  # the kernel of a model is a copy, with this function

    def __call__(self, a, b):
        action, self.action = self.action, None
        if action is not None:
            action()
        return float(np.exp(-np.sum((a - b) ** 2)))


METHODS = {
    "predict": lambda model: model.predict(X_NEW),
    "predict_topk": lambda model: model.predict_topk(X_NEW, k=3).distances,
    "predict_set": lambda model: np.concatenate(model.predict_set(X_NEW, coverage=0.2).distances),
    "rank_candidates": lambda model: np.concatenate([row.distances for row in model.rank_candidates(X_NEW)]),
    "score": lambda model: model.score(X_NEW, DATA[0][1][: len(X_NEW)]),
    "truth_positions": lambda model: model.truth_positions(X_NEW, DATA[0][1][: len(X_NEW)]).nearer,
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "make",
    [
        lambda kernel: IOKR(kernel, Dice(), alpha=0.1),
        lambda kernel: KDE(kernel, Dice(), alpha=0.1, n_components=2, output_landmarks=4),
        lambda kernel: OEL(kernel, Dice(), alpha=0.1, n_components=2),
    ],
    ids=["IOKR", "KDE", "OEL"],
)
def test_a_fit_in_the_middle_of_a_prediction_does_not_change_it(make, method):
    interruption = Interruption()
    model = make(Pairwise(interruption)).fit(*DATA[0]).calibrate(*DATA[1])
    expected = METHODS[method](model)
    interruption.action = lambda: model.fit(*DATA[1])
    np.testing.assert_array_equal(METHODS[method](model), expected)
    assert interruption.action is None
    assert len(model.regression_.anchors) == len(DATA[1][0])


def test_calibration_belongs_to_the_model_that_was_calibrated():
    interruption = Interruption()
    model = IOKR(Pairwise(interruption), Dice(), alpha=0.1).fit(*DATA[0])
    expected = model.calibrate(*DATA[1]).calibration_scores_
    interruption.action = lambda: model.fit(*DATA[1])
    model.calibrate(*DATA[1])
    np.testing.assert_array_equal(model.calibration_scores_, expected)
    assert len(model.regression_.anchors) == len(DATA[0][0])


@pytest.mark.parametrize(
    "model",
    [
        OEL(Gaussian(1.0), Dice(), alpha=0.1, n_components=2),
        OELCV(Gaussian(1.0), Dice(), alphas=0.1, n_components=2, supervisions=0.5, cv=2, random_state=0),
    ],
    ids=["OEL", "OELCV"],
)
def test_every_answer_of_a_thread_is_that_of_one_of_two_fits(model):
    expected = [model.fit(*data).predict_topk(X_NEW, k=3).distances for data in DATA]
    wrong, done = [], threading.Event()

    def predict():
        while not done.is_set():
            try:
                found = model.predict_topk(X_NEW, k=3).distances
            except Exception as error:
                wrong.append(error)
                return
            if not any(np.array_equal(found, answer) for answer in expected):
                wrong.append(found)

    threads = [threading.Thread(target=predict) for _ in range(3)]
    for thread in threads:
        thread.start()
    for repetition in range(20):
        model.fit(*DATA[repetition % 2])
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
