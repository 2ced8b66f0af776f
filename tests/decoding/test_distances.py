"""Distances with ties: selection, counting and runs against plain sorting of distances without rounding."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from psilearn.decoding.distances import (
    TIE_TOLERANCE,
    count_nearer,
    first_smallest,
    k_smallest,
    tie_runs,
    tie_tolerance,
    to_distances,
)

ROWS = arrays(float, st.tuples(st.integers(1, 5), st.integers(1, 12)), elements=st.integers(0, 4).map(float))


def with_rounding(D):
    """Return distances as rounding changes them."""
    return D + 1e-12 * np.sin(np.arange(D.size)).reshape(D.shape), np.full(D.shape, 1e-9)


@given(ROWS, st.integers(1, 12))
def test_k_smallest_is_a_stable_sort(D, k):
    k = min(k, D.shape[1])
    columns, values = k_smallest(*with_rounding(D), k)
    np.testing.assert_array_equal(columns, np.argsort(D, axis=1, kind="stable")[:, :k])
    assert (np.diff(values, axis=1) >= 0).all()
    np.testing.assert_allclose(values, np.sort(D, axis=1)[:, :k], atol=1e-11)


@given(ROWS)
def test_ties_have_equal_values_and_form_runs(D):
    _, values = k_smallest(*with_rounding(D), D.shape[1])
    for row, exact in zip(values, np.sort(D, axis=1), strict=True):
        starts, stops = tie_runs(row)
        np.testing.assert_array_equal(starts, np.searchsorted(exact, exact, side="left"))
        np.testing.assert_array_equal(stops, np.searchsorted(exact, exact, side="right"))


@given(ROWS, st.integers(0, 11))
def test_counts_of_nearer_and_tied_entries(D, column):
    column = min(column, D.shape[1] - 1)
    noisy, slack = with_rounding(D)
    at = slice(column, column + 1)
    nearer, tied = count_nearer(noisy, slack, noisy[:, at], slack[:, at])
    np.testing.assert_array_equal(nearer, (D[:, at] > D).sum(axis=1))
    np.testing.assert_array_equal(tied, (D[:, at] == D).sum(axis=1))
    assert not np.any(count_nearer(noisy, slack, np.full((len(D), 1), np.nan), slack[:, at]))


def test_tensors_give_the_same_answers():
    torch = __import__("pytest").importorskip("torch")
    rng = np.random.default_rng(0)
    D, slack = with_rounding(rng.integers(0, 5, (20, 9)).astype(float))
    tensors = torch.from_numpy(D), torch.from_numpy(slack)
    for mine, theirs in zip(first_smallest(D, slack), first_smallest(*tensors), strict=True):
        np.testing.assert_array_equal(mine, theirs.numpy())
    for mine, theirs in zip(
        count_nearer(D, slack, D[:, :1], slack[:, :1]), count_nearer(*tensors, D[:, :1], slack[:, :1]), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    lengths = 3 + slack
    mine, theirs = (
        to_distances(D.copy(), lengths.copy(), 1e-9),
        to_distances(tensors[0], torch.from_numpy(lengths), 1e-9),
    )
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(a, b.numpy())


def test_distances_are_never_negative_and_the_coarsest_precision_sets_the_tolerance():
    D, slack = to_distances(np.array([1.0, 0.0]), np.array([1.5, 2.0]), 0.1)
    np.testing.assert_array_equal(D, [0.0, 2.0])
    np.testing.assert_allclose(slack, [0.15, 0.2])
    single, double = np.zeros(1, np.float32), np.zeros(1)
    assert tie_tolerance(double) == TIE_TOLERANCE == 32 * np.finfo(float).eps
    assert tie_tolerance(double, single) == 32 * np.finfo(np.float32).eps
