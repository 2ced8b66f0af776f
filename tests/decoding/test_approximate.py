"""Approximate search: exact distances of what an index proposes, with a measured recall."""

import pickle

import numpy as np
import pytest

from psilearn import OEL
from psilearn.decoding import ApproximateCandidates, SharedCandidates
from psilearn.decoding.approximate import measure_recall
from psilearn.kernels import Gaussian, Linear

pytest.importorskip("faiss")


@pytest.fixture(scope="module", params=["normalized", "unnormalized"])
def problem(request):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1], X[:, 2] ** 2])
    kernel = Gaussian(0.3) if request.param == "normalized" else Linear()
    model = OEL(Gaussian(0.2), kernel, alpha=1e-3, n_components=2).fit(X, Y)
    outputs = rng.standard_normal((3000, 3)) * (1 if request.param == "normalized" else rng.uniform(0.2, 3, (3000, 1)))
    outputs[1500:1510] = outputs[:10]  # ties
    return model, model.candidate_set(outputs), rng.standard_normal((80, 3))


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_all_lists_give_the_exact_answer(problem, kind):
    model, exact, X = problem
    found = ApproximateCandidates.of(exact, model.embed(X), kind=kind, min_recall=1.0, verbose=False)
    if kind == "ivf":  # every list: nothing can be missed but by ties beyond the proposals
        found = ApproximateCandidates(exact.outputs, exact.embedding, exact.squared_norms, exact.g, found.index, 10**6)
        top, expected = model.predict_topk(X, 5, found), model.predict_topk(X, 5, exact)
        np.testing.assert_array_equal(top.indices, expected.indices)
        np.testing.assert_allclose(top.distances, expected.distances, rtol=1e-9)
    else:
        assert found.recall > 0.9


def test_the_recall_is_measured_on_held_out_queries_and_printed(problem, capsys):
    model, exact, X = problem
    Z = model.embed(X)
    found = ApproximateCandidates.of(exact, Z, k=7, kind="ivf", min_recall=0.5)
    assert f"recall@7 on 40 held-out queries: {found.recall:.3f} (ivf" in capsys.readouterr().out
    truth = exact.nearest(Z[40:], 7).indices
    assert found.recall == measure_recall(found, Z[40:], truth)
    brute = np.mean([len(set(a) & set(b)) / 7 for a, b in zip(truth, found.nearest(Z[40:], 7).indices, strict=True)])
    assert found.recall == pytest.approx(brute)
    assert found.effort < ApproximateCandidates.of(exact, Z, k=7, kind="ivf", min_recall=1.0, verbose=False).effort


def test_distances_of_what_is_found_are_exact(problem):
    model, exact, X = problem
    found = ApproximateCandidates.of(exact, model.embed(X), min_recall=0.1, verbose=False)
    top = model.predict_topk(X, 4, found)
    Z = model.embed(X)
    kept = top.indices >= 0
    D = ((Z**2).sum(1)[:, None] - 2 * np.einsum("qp,qkp->qk", Z, exact.g[top.indices])) + exact.squared_norms[
        top.indices
    ]
    np.testing.assert_allclose(top.distances[kept], np.maximum(D, 0)[kept], rtol=1e-9, atol=1e-12)
    assert np.all(np.diff(np.where(kept, top.distances, np.inf), axis=1)[kept[:, 1:]] >= 0)


def test_bad_arguments(problem):
    model, exact, X = problem
    with pytest.raises(TypeError, match="must be embedded"):
        ApproximateCandidates.of(SharedCandidates(exact.outputs), model.embed(X))
    with pytest.raises(ValueError, match=r"queries must have shape \(q, 2\)"):
        ApproximateCandidates.of(exact, np.ones((3, 5)))
    with pytest.raises(ValueError, match="queries must be at least two embeddings"):
        ApproximateCandidates.of(exact, np.ones((1, 2)))
    with pytest.raises(ValueError, match="kind"):
        ApproximateCandidates.of(exact, model.embed(X), kind="flat")
    with pytest.raises(TypeError, match="build it again"):
        pickle.dumps(ApproximateCandidates.of(exact, model.embed(X), verbose=False))


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_seeds_of_any_integer_type_are_accepted(problem, kind):
    model, exact, X = problem
    Z = model.embed(X)

    def search(seed):
        return ApproximateCandidates.of(exact, Z, kind=kind, random_state=seed, verbose=False).nearest(Z, np.int64(2))

    np.testing.assert_array_equal(search(np.int64(3)).indices, search(3).indices)
    for seed in (None, 2**32 - 1, np.random.RandomState(0), np.uint8(1)):
        search(seed)
    for seed in ("x", -1, 1.5, 2**32):
        with pytest.raises(ValueError, match="random_state must be"):
            search(seed)
