"""Preselection in float32 against the whole float64 matrix of distances: the same indices, distances and ties."""

import os
import subprocess
import sys
import tracemalloc
from contextlib import nullcontext

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from threadpoolctl import threadpool_info

from psilearn._backend import current_compute, to_numpy
from psilearn.decoding import SharedCandidates, bounded_search
from psilearn.decoding.bounds import Bounds, Queries
from psilearn.decoding.distances import count_nearer, k_smallest, tie_tolerance
from psilearn.embedding import Embedding
from psilearn.kernels import Linear


def first_entries(d, p):
    return Embedding(Linear(), np.eye(d), np.eye(d)[:, :p])  # g(y) is the first p entries of y


def all_distances(Z, g, norms):
    tolerance = tie_tolerance(Z, g)
    Z, g = np.asarray(Z, dtype=float), np.asarray(g, dtype=float)
    lengths = (Z**2).sum(axis=1)[:, None] + norms
    return np.maximum(lengths - 2 * np.einsum("ip,jp->ij", Z, g), 0), tolerance * lengths


def check(Z, Y, p, k, *, keep=True, dtype=float, shrink=1.0):
    """Compare decoding with brute force; rows of Y are candidates, of which g keeps p entries."""
    norms = shrink * (Y.astype(float) ** 2).sum(axis=1)
    Z, g = Z.astype(dtype), Y[:, :p].astype(dtype)
    D, slack = all_distances(Z, g, norms)
    candidates = SharedCandidates(Y, first_entries(Y.shape[1], p), norms, g if keep else None)
    top = candidates.nearest(Z, k)
    columns, values = k_smallest(D, slack, min(k, len(Y)))
    np.testing.assert_array_equal(top.indices, columns)
    scale = (Z.astype(float) ** 2).sum(axis=1).max() + norms[columns].max()
    np.testing.assert_allclose(top.distances, values, atol=1e-13 * scale)
    first = np.sort(np.unique(Y, axis=0, return_index=True)[1])
    truth = np.arange(len(Z)) % len(first)
    D, slack = D[:, first], slack[:, first]
    truth_D, truth_slack = (np.take_along_axis(part, truth[:, None], axis=1) for part in (D, slack))
    positions = candidates.truth_positions(Z, Y[first][truth])
    nearer, tied = count_nearer(D, slack, truth_D, truth_slack)
    np.testing.assert_array_equal(positions.nearer, nearer)
    np.testing.assert_array_equal(positions.tied, tied)


@pytest.mark.usefixtures("backend")
@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    q=st.integers(1, 20),
    c=st.integers(1, 80),
    p=st.integers(0, 6),
    k=st.sampled_from([1, 2, 5, 40, 10**6]),
    kind=st.sampled_from(["gaussian", "integers", "binary", "long", "zeros", "huge", "small", "tiny", "far"]),
    working_memory=st.sampled_from([1024, 1e-2, 1e-4]),
    width=st.sampled_from([1024, 16, 3]),
    keep=st.booleans(),
    shrink=st.sampled_from([1.0, 0.9]),
)
def test_any_problem_is_answered_as_by_brute_force(seed, q, c, p, k, kind, working_memory, width, keep, shrink):
    rng = np.random.default_rng(seed)
    Z, Y = rng.standard_normal((q, p)), rng.standard_normal((c, p + 1))
    if kind == "integers":
        Z, Y = Z.round(), Y.round()  # many exact ties, repeated candidates
    elif kind == "binary":
        Z, Y = (Z > 0).astype(float), (Y > 0).astype(float)
    elif kind == "long":
        Y[rng.random(c) < 0.2] *= 1e3
    elif kind == "zeros":
        Z[rng.random(q) < 0.5], Y[rng.random(c) < 0.5] = 0, 0
    elif kind in ("huge", "small", "tiny"):  # squares overflow float32, stay within it, underflow it
        factor = {"huge": 1e100, "small": 1e-12, "tiny": 1e-100}[kind]
        Z, Y = factor * Z, factor * Y
    elif kind == "far":
        Z, Y = Z + 100, Y + 100
    if current_compute().device is not None:
        working_memory = max(working_memory, 0.1)  # starting a block is slow there: not a row at a time
    with pytest.MonkeyPatch.context() as patch, config_context(working_memory=working_memory):
        for columns, bounds in (("BLOCK_COLUMNS", "MAX_BLOCK_BOUNDS"), ("WIDE_COLUMNS", "MAX_WIDE_BOUNDS")):
            patch.setattr(bounded_search, columns, width)
            patch.setattr(bounded_search, bounds, 32 * width)
        patch.setattr("psilearn.decoding.output_set.MAX_EMBEDDED_ROWS", 5 * width)
        check(Z, Y, p, k, keep=keep, shrink=shrink)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**6), n_merges=st.integers(1, 4), slack=st.sampled_from([0.0, 0.4, 1.0]))
def test_the_nearest_are_merged_as_the_k_nearest_are(seed, n_merges, slack):
    rng, n_rows = np.random.default_rng(seed), 5
    found, expected = (
        (np.full((n_rows, 1), np.inf), np.zeros((n_rows, 1)), np.full((n_rows, 1), -1)) for _ in range(2)
    )
    for start in range(0, 20 * n_merges, 20):
        i = np.sort(rng.integers(0, n_rows, rng.integers(1, 12)))
        distances = rng.integers(0, 5, len(i)).astype(float)
        pairs = i, start + np.arange(len(i)), distances, slack * rng.random(len(i))
        bounded_search._merge_nearest(found, *pairs)
        bounded_search._merge(expected, *pairs)
    for part, expected_part in zip(found, expected, strict=True):
        np.testing.assert_array_equal(part, expected_part)


@given(st.integers(0, 2**32 - 1))
def test_numbers_that_are_not_finite_are_passed_over(seed):
    rng = np.random.default_rng(seed)
    best = np.full((3, 1), np.inf), np.zeros((3, 1)), np.full((3, 1), -1)
    i = np.sort(rng.integers(0, 3, 8))
    distances, slacks = (rng.choice([0.0, 1.0, 2.0, np.inf, np.nan], 8) for _ in range(2))
    bounded_search._merge_nearest(best, i, np.arange(8), distances, slacks)
    for row in range(3):
        finite = distances[i == row][np.isfinite(distances[i == row])]
        assert best[0][row, 0] == min(finite, default=np.inf)
        assert (best[2][row, 0] >= 0) == (len(finite) > 0)


class ThreeThreads:
    """Stands for a BLAS with three threads: the tests run with one."""

    def info(self):
        return [{"num_threads": 3}]

    def limit(self, limits):
        assert limits == 1
        return nullcontext()


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("dtype", [np.float32, float])
@pytest.mark.parametrize("lone_products", [0, 2**40])
def test_many_blocks_and_threads(k, dtype, lone_products, monkeypatch):
    rng = np.random.default_rng(k)
    Y = rng.standard_normal((3000, 13))
    Y[1500:2000] = Y[:500]
    Z = rng.standard_normal((700, 12))
    Z[:100] = Y[:100, :12]
    monkeypatch.setattr(bounded_search, "PRODUCTS_PER_THREAD", 2**10)
    monkeypatch.setattr(bounded_search, "LONE_PRODUCTS", lone_products)
    monkeypatch.setattr(bounded_search, "_blas", ThreeThreads)
    monkeypatch.setattr(bounded_search, "MAX_BLOCK_BOUNDS", 2**14)
    monkeypatch.setattr(bounded_search, "MAX_WIDE_BOUNDS", 2**14)
    before = threadpool_info()
    check(Z.astype(dtype).astype(float), Y.astype(dtype).astype(float), 12, k, dtype=dtype)
    assert threadpool_info() == before


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("k", [1, 5])
def test_distances_that_rounding_makes_negative_tie_at_zero(k):
    # |g|² > k(y, y), as in float32: several candidates are at −|g|²/100, which counts as 0
    Y = np.random.default_rng(0).standard_normal((60, 4)) * 0.01 + 1
    Y[30:] += 5
    check(Y[:20], Y, 4, k, shrink=0.99)


@pytest.mark.usefixtures("backend")
def test_candidates_that_come_nearer_and_nearer():
    Y = np.arange(5000, 0, -1.0)[:, None] * [1.0, 0.0]  # each is nearer than all before
    check(np.array([[0.0], [-1.0], [5001.0], [2500.2]]), Y, 1, 3)


@pytest.mark.parametrize("working_memory", [1024, 0.25])
def test_many_ties_stay_within_working_memory(working_memory):
    Z, Y = np.zeros((600, 20)), np.ones((3000, 20))
    candidates = SharedCandidates(Y, first_entries(20, 20), np.full(3000, 20.0), Y)
    with sklearn.config_context(working_memory=working_memory):
        tracemalloc.start()
        top = candidates.nearest(Z, 3)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    np.testing.assert_array_equal(top.indices, np.tile(np.arange(3), (600, 1)))
    assert peak < (2 * working_memory + 2) * 2**20


@pytest.mark.usefixtures("backend")
def test_the_bounds_hold_for_every_pair():
    rng = np.random.default_rng(0)
    compute = current_compute()
    for p, scale in ((1, 1.0), (50, 1e-3), (400, 1e3)):
        Z, g = rng.standard_normal((64, p)), scale * rng.standard_normal((300, p))
        g[::7] *= 1e3
        norms = (g**2).sum(axis=1) * rng.uniform(1, 2, 300)
        bounds = Bounds(Queries(compute.asarray(Z)), compute.asarray(g), norms, 0, compute)
        assert bounds.dtype == np.float32
        out = np.empty(64 * 300, dtype=np.float32) if compute.device is None else None
        lower = to_numpy(bounds.lower(bounds.left(slice(0, 64)), slice(0, 300), out))
        exact = norms - 2 * Z @ g.T
        assert (lower <= exact).all()
        i, j = map(compute.asarray, np.indices(exact.shape))
        assert (exact <= lower + to_numpy(bounds.spread(i, j))).all()


def test_embeddings_that_are_not_finite_are_rejected():
    Y = np.eye(3)
    candidates = SharedCandidates(Y, first_entries(3, 3), np.ones(3), np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match="not finite"):
        candidates.nearest(np.zeros((1, 3)), 1)


def test_candidates_of_another_model_are_rejected():
    candidates = SharedCandidates.build(np.eye(3), first_entries(3, 2))
    assert candidates.for_embedding(first_entries(3, 2)) is candidates  # an equal embedding, if not the same object
    for call in (candidates.require_embedding, candidates.for_embedding):
        with pytest.raises(ValueError, match="embedded by another model"):
            call(first_entries(3, 3))
    with pytest.raises(ValueError, match="do not belong to a model yet"):
        SharedCandidates(np.eye(3)).nearest(np.zeros((1, 3)), 1)


FORKS = """
import os, signal, threading, time, sys
import numpy as np
from psilearn import OEL
rng = np.random.default_rng(0)
model = OEL(n_components=10).fit(rng.random((300, 5)), (rng.random((300, 20)) > 0.7).astype(float))
X, done = rng.random((3000, 5)), threading.Event()

def predict():
    while not done.is_set():
        model.predict(X)

thread = threading.Thread(target=predict)
thread.start()
hung = 0
for i in range(20):
    time.sleep(0.003 * (i % 7))
    child = os.fork()
    if child == 0:
        model.predict(X[:20])
        os._exit(0)
    end = time.monotonic() + 30
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            hung += 1
            break
        time.sleep(0.002)
    if hung:
        break
done.set()
thread.join()
print("hung:", hung)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_is_forked_while_a_thread_predicts_can_predict():
    # Threads of OpenBLAS itself do not survive a fork: one thread of BLAS leaves our own locks as the only risk.
    environment = {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")}
    arguments = [sys.executable, "-W", "ignore", "-c", FORKS]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, env=environment, timeout=300)
    assert done.stdout.strip() == "hung: 0"
