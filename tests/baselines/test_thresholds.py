import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from psilearn.baselines import best_threshold
from psilearn.metrics import f1_score

SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 5))


@given(
    SHAPES.flatmap(
        lambda s: st.tuples(arrays(int, s, elements=st.integers(0, 1)), arrays(float, s, elements=st.integers(-3, 3)))
    )
)
def test_no_threshold_is_better(pair: tuple[np.ndarray, np.ndarray]) -> None:
    Y, scores = pair
    found = float(f1_score(Y, scores >= best_threshold(Y, scores)))
    every = [float(f1_score(Y, scores >= t)) for t in (*np.unique(scores), np.inf)]
    assert np.isclose(found, max(every), atol=1e-12)


def test_it_lies_in_the_middle_of_a_gap() -> None:
    Y, scores = np.array([[1, 0]]), np.array([[0.8, 0.2]])
    assert best_threshold(Y, scores) == 0.5


def test_neighbouring_floats_are_told_apart() -> None:
    high = np.nextafter(0.5, 1)
    assert best_threshold(np.array([[1, 0]]), np.array([[high, 0.5]])) == high


def test_no_labels_at_all() -> None:
    Y, scores = np.zeros((3, 2), dtype=int), np.full((3, 2), 0.3)
    assert best_threshold(Y, scores) == np.inf
    assert best_threshold(1 - Y, scores) == -np.inf
