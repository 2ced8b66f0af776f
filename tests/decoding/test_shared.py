"""Shared candidates behave as the outputs that they hold."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from psilearn._utils.samples import n_columns, n_samples, take
from psilearn.decoding import PerExampleCandidates, SharedCandidates, as_candidates
from psilearn.embedding import Embedding
from psilearn.kernels import Gaussian, Linear

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, (12, 4)).astype(float)
E = Embedding(Linear(), np.eye(4), np.eye(4)[:, :3])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_rows_behave_as_the_outputs(form):
    outputs = form(Y)
    candidates = SharedCandidates.build(outputs, E)
    assert len(candidates) == n_samples(candidates) == 12 and n_columns(candidates) == 4
    assert candidates.shape == outputs.shape and candidates.ndim == 2 and candidates.dtype == outputs.dtype
    np.testing.assert_array_equal(np.asarray(candidates), Y)
    np.testing.assert_array_equal(np.asarray(candidates, dtype=np.float32), Y.astype(np.float32))
    for index in (3, slice(2, 5), np.array([1, 1, 7])):
        difference = candidates[index] - outputs[index]
        assert abs(difference).max() == 0
    assert abs(take(candidates, np.array([4, 2])) - outputs[[4, 2]]).max() == 0


def test_arrays_are_not_copied_and_iterate_as_themselves():
    candidates = SharedCandidates(Y)
    assert np.asarray(candidates) is Y and np.array(candidates, copy=True) is not Y
    for mine, theirs in zip(candidates, Y, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_sequences_behave_as_themselves_and_have_no_shape():
    words = ["b", "a", "b"]
    candidates = SharedCandidates(words)
    assert list(candidates) == words and candidates[1] == "a" and len(candidates) == 3
    assert not hasattr(candidates, "shape") and not hasattr(candidates, "ndim") and not hasattr(candidates, "dtype")
    np.testing.assert_array_equal(np.asarray(candidates), words)
    assert take(candidates, np.array([1, 0])) == ["a", "b"]
    assert candidates.distinct().outputs == ["b", "a"]
    np.testing.assert_array_equal(candidates.match(["a", "b", "c"]), [1, 0, -1])


def test_tensors_become_arrays():
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(np.asarray(SharedCandidates(torch.from_numpy(Y))), Y)


def test_one_set_for_all_examples():
    candidates = SharedCandidates(Y)
    assert (
        candidates.max_size == 12 and candidates.outputs_of(5) is Y and candidates.restrict(slice(2, 4)) is candidates
    )
    ((outputs, examples),) = candidates.groups(3)
    assert outputs is Y and examples.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(candidates.take(np.array([3, 3])), Y[[3, 3]])


def test_distinct_candidates_are_found_once():
    candidates = SharedCandidates.build(np.concatenate([Y, Y]), E)
    distinct = candidates.distinct()
    first = np.sort(np.unique(Y, axis=0, return_index=True)[1])
    np.testing.assert_array_equal(distinct.outputs, Y[first])
    np.testing.assert_array_equal(distinct.g, candidates.g[first])
    np.testing.assert_array_equal(distinct.squared_norms, candidates.squared_norms[first])
    assert distinct.distinct() is distinct and candidates.distinct() is distinct
    assert pickle.loads(pickle.dumps(candidates)).distinct().shape == distinct.shape


def test_norms_are_computed_with_the_embedding():
    assert SharedCandidates(Y).squared_norms is None
    bound = SharedCandidates(Y).for_embedding(E)
    np.testing.assert_allclose(bound.squared_norms, (Y**2).sum(axis=1))
    residual = bound.points()[:, -1]
    np.testing.assert_allclose(residual, np.abs(Y[:, 3]), atol=1e-7)


def test_arguments_of_users():
    def check(outputs, name):
        assert name.startswith("candidates")
        return np.asarray(outputs, dtype=float)

    known = SharedCandidates.build(Y, E)
    assert as_candidates(None, known, check, 2) is known
    assert as_candidates(known, known, check, 2) is known
    shared = as_candidates(Y.tolist(), known, check, 2)
    np.testing.assert_array_equal(shared.outputs, Y)
    assert shared.embedding is E
    for sets in ([Y[:2], Y[:3]], [Y[:2].tolist(), Y[:3].tolist()], (Y[:2], sparse.csr_matrix(Y[:3]).toarray())):
        per_example = as_candidates(sets, known, check, 2)
        assert [len(part) for part in per_example.sets] == [2, 3] and per_example.embedding is E
    with pytest.raises(ValueError, match="2 sets for 3 examples"):
        as_candidates([Y[:2], Y[:3]], known, check, 3)
    other = SharedCandidates.build(Y, Embedding(Gaussian(1.0), Y[:3], np.eye(3)))
    with pytest.raises(ValueError, match="embedded by another model"):
        as_candidates(other, known, check, 2)
    assert as_candidates(other, Y, check, 2) is other  # no embedding is required
    assert as_candidates(None, Y, check, 2).outputs is Y


@pytest.mark.parametrize("outputs", [None, "abc", 3])
def test_outputs_must_be_a_collection(outputs):
    with pytest.raises(TypeError, match="candidates must be an array or a sequence of objects"):
        SharedCandidates(outputs)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="squared_norms has 11 rows, but there are 12 outputs"):
        SharedCandidates(Y, E, np.zeros(11))
    with pytest.raises(ValueError, match="g has 3 rows, but there are 12 outputs"):
        SharedCandidates(Y, E, g=np.zeros((3, 3)))


def test_a_model_is_not_an_embedding(tmp_path):
    for call in (lambda model: SharedCandidates.load(tmp_path, model), lambda model: SharedCandidates.build(Y, model)):
        with pytest.raises(TypeError, match=r"embedding must be .* model\.embedding_; got object"):
            call(object())


def test_candidates_of_another_model_are_embedded_again():
    other = Embedding(Linear(), np.eye(4), np.eye(4)[:, :2])
    with pytest.raises(ValueError, match=r"model\.candidate_set\(outputs\)"):
        SharedCandidates(Y, E).for_embedding(other)


def test_a_list_of_shared_candidates_is_one_set_per_example():
    for known, parts in ((Y, [Y[:2], Y[2:5]]), (["a", "b"], [["a"], ["b", "c"]])):
        converted = as_candidates([SharedCandidates(part) for part in parts], known, lambda A, _: A, 2)
        assert isinstance(converted, PerExampleCandidates) and [len(part) for part in converted.sets] == list(
            map(len, parts)
        )


def test_an_array_of_sets_gets_a_hint():
    with pytest.raises(ValueError, match=r"use list\(candidates\) for one set per example"):
        as_candidates(Y.reshape(3, 4, 4), Y, lambda A, _: A, 3)
    assert len(as_candidates(list(Y.reshape(3, 4, 4)), Y, lambda A, _: A, 3).sets) == 3
