"""Decoding for every p at once against decoding for each p alone."""

import numpy as np
import pytest
import sklearn

from psilearn._backend import asarray
from psilearn.decoding.component_path import nearest_path, rank_path

pytestmark = pytest.mark.usefixtures("backend")

RNG = np.random.default_rng(0)
Z, G = RNG.standard_normal((12, 9)), RNG.standard_normal((40, 9)).round(1)
NORMS = (G**2).sum(axis=1) + RNG.random(40)
G[30:], NORMS[30:] = G[:10], NORMS[:10]  # candidates repeat
SIZES = [0, 1, 4, 9]


def distances(p):
    return (Z[:, :p] ** 2).sum(axis=1)[:, None] - 2 * Z[:, :p] @ G[:, :p].T + NORMS


@pytest.mark.parametrize("working_memory", [1024, 1e-3])
def test_nearest_for_each_p(working_memory):
    with sklearn.config_context(working_memory=working_memory):
        best = nearest_path(*map(asarray, (Z, G, NORMS)), SIZES)
    for row, p in zip(best, SIZES, strict=True):
        np.testing.assert_array_equal(row, np.argmin(distances(p).round(9), axis=1))
    assert best.max() < 30  # a tie goes to the lowest index


@pytest.mark.parametrize("block", [4096, 7])
def test_rank_for_each_p(monkeypatch, block):
    monkeypatch.setattr("psilearn.decoding.component_path.BLOCK_ROWS", block)
    places = np.r_[np.arange(11), -1]
    given = tuple(map(asarray, (Z, G, NORMS)))
    np.testing.assert_array_equal(nearest_path(*given, [4])[0], np.argmin(distances(4).round(9), axis=1))
    for ranks, p in zip(rank_path(*given, SIZES, places), SIZES, strict=True):
        D = distances(p)
        own = D[np.arange(11), np.arange(11)][:, None]
        np.testing.assert_array_equal(ranks.nearer[:11], (D[:11] < own - 1e-9).sum(axis=1))
        np.testing.assert_array_equal(ranks.tied[:11], (np.abs(D[:11] - own) <= 1e-9).sum(axis=1))
        assert ranks.nearer[11] == np.inf and ranks.tied[11] == 0
