"""Known label sets and those that differ by one label, against the list of all of them."""

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from psilearn.decoding import NearLabelSets
from psilearn.decoding.label_sets import near_label_sets
from psilearn.decoding.label_sets.near_label_sets import all_near_rows
from psilearn.embedding import Embedding
from psilearn.kernels import Dice, Gaussian, Linear, Tanimoto
from tests.decoding.label_sets.set_cases import SIZE_KERNELS, cases, distances, draw_case, draw_sets
from tests.kernels.kernel_cases import PROPERTY


def near(known):
    """The distinct sets within one label of a known one."""
    flips = [known ^ row for row in np.eye(known.shape[1], dtype=known.dtype)]
    return np.unique(np.concatenate([known, *flips]), axis=0)


@pytest.mark.parametrize("kernel", [*SIZE_KERNELS, Tanimoto(), Gaussian(0.5)], ids=repr)
@PROPERTY
@given(case=cases)
def test_the_nearest_sets_are_those_of_a_list(kernel, case):
    embedding, Z = draw_case(kernel, *case)
    known = draw_sets(np.random.default_rng(case[2] + 1), 6, case[0])
    candidates = NearLabelSets(embedding, known)
    D, tolerance = distances(embedding, Z, near(known)), 1e-9 * (1 + np.sum(Z**2))
    for k in (1, 3):
        top = candidates.nearest(Z, k)
        np.testing.assert_allclose(top.distances, np.sort(D, axis=1)[:, :k], atol=tolerance)
    found = candidates.nearest(Z, 1).nearest
    assert (candidates.match(found) >= 0).all()
    np.testing.assert_allclose(distances(embedding, Z, found).diagonal(), D.min(axis=1), atol=tolerance)


def test_the_list_has_every_near_set_once_and_known_ones_first():
    known = draw_sets(np.random.default_rng(0), 5, 6)
    embedding, _ = draw_case(Dice(), 6, 5, 0, 1.0)
    candidates = NearLabelSets(embedding, known)
    listed = candidates.listed.outputs
    np.testing.assert_array_equal(np.unique(listed, axis=0), near(known))
    assert len(listed) == len(near(known))
    first = np.unique(known, axis=0, return_index=True)[1]
    np.testing.assert_array_equal(listed[: len(first)], known[np.sort(first)])
    assert all_near_rows(sparse.csr_matrix(known)).shape == (5 * 7, 6)


def test_blocks_change_nothing(monkeypatch):
    embedding, Z = draw_case(Dice(), 8, 12, 3, 1.0, q=20)
    known = draw_sets(np.random.default_rng(1), 30, 8)
    expected = NearLabelSets(embedding, known).nearest(Z, 1)
    monkeypatch.setattr(near_label_sets, "MAX_PAIRS", 1)
    monkeypatch.setattr(near_label_sets, "BLOCK_SETS", 1)
    found = NearLabelSets(embedding, known).nearest(Z, 1)
    np.testing.assert_array_equal(found.nearest, expected.nearest)
    other, Z = draw_case(Gaussian(0.3), 8, 12, 3, 1.0, q=20)
    monkeypatch.undo()
    expected = NearLabelSets(other, known).nearest(Z, 1)
    monkeypatch.setattr(near_label_sets, "BLOCK_SETS", 1)
    np.testing.assert_array_equal(NearLabelSets(other, known).nearest(Z, 1).nearest, expected.nearest)


def test_packed_bits_give_the_same_sets():
    rng = np.random.default_rng(4)
    landmarks, known, beta = draw_sets(rng, 10, 11), draw_sets(rng, 6, 11), rng.standard_normal((15, 10)) - 1
    packed = [np.packbits(sets.astype(np.uint8), axis=1) for sets in (landmarks, known)]
    expected = NearLabelSets(Embedding(Dice(), landmarks, np.eye(10)), known)
    found = NearLabelSets(Embedding(Dice(packed=True), packed[0], np.eye(10)), packed[1], n_labels=11)
    np.testing.assert_array_equal(
        np.unpackbits(found.nearest(beta, 1).nearest, axis=1, count=11), expected.nearest(beta, 1).nearest
    )
    np.testing.assert_array_equal(np.unpackbits(found.listed.outputs, axis=1, count=11), expected.listed.outputs)


def test_a_tie_goes_to_a_known_set():
    known = np.array([[1, 1, 0], [1, 1, 1]])
    embedding = Embedding(Linear(), np.eye(3, dtype=int), np.eye(3))
    found = NearLabelSets(embedding, known).nearest(np.array([[1.0, 0.5, 0.5]]), 1).nearest
    np.testing.assert_array_equal(found, [[1, 1, 0]])  # [1, 0, 0] is as near


def test_too_many_near_sets_are_not_listed(monkeypatch):
    embedding, Z = draw_case(Dice(), 5, 6, 0, 1.0)
    monkeypatch.setattr(near_label_sets, "MAX_LISTED_NEAR_SETS", 10)
    candidates = NearLabelSets(embedding, draw_sets(np.random.default_rng(0), 6, 5))
    assert candidates.nearest(Z, 1).nearest.shape == (5, 5)
    with pytest.raises(ValueError, match=r"6 known sets of 5 labels and their neighbors\) are too many sets to list"):
        candidates.nearest(Z, 2)
    with pytest.raises(ValueError, match="has no known sets yet"):
        NearLabelSets(embedding).nearest(Z, 1)
