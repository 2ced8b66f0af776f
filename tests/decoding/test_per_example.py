"""One set per example: pools of padded sets against each set alone, by embeddings and by sums over landmarks."""

import time

import numpy as np
import pytest
import sklearn
from scipy import sparse

from psilearn import OEL
from psilearn._backend import current_compute
from psilearn.decoding import PerExampleCandidates, SharedCandidates, expansions, ranked_candidates
from psilearn.decoding.output_set import OutputSet
from psilearn.embedding import Embedding
from psilearn.kernels import Gaussian, Linear

pytestmark = pytest.mark.usefixtures("backend")

RNG = np.random.default_rng(0)
E = Embedding(Linear(), np.eye(5), np.eye(5)[:, :4])
ROUTES = {"embeddings": False, "sums": True}


@pytest.fixture(params=ROUTES)
def route(request, monkeypatch):
    monkeypatch.setattr(expansions, "sums_over_landmarks", lambda *sizes: ROUTES[request.param])
    return request.param


def ragged(n):
    shared = RNG.standard_normal((9, 5)).round(1)
    sets = [RNG.standard_normal((RNG.integers(1, 30), 5)).round(1) for _ in range(n)]
    for i in range(0, n, 3):
        sets[i] = shared  # the same object
    sets[1] = np.tile(sets[1][:1], (7, 1))  # ties
    return sets


def check_against_each_set(candidates, sets, Z, truth, k, embedding=E):
    top = candidates.nearest(Z, k)
    positions = candidates.truth_positions(Z, truth)
    assert top.indices.shape[1] == min(k, max(map(len, sets)))
    for i, outputs in enumerate(sets):
        shared = SharedCandidates.build(outputs, embedding)
        alone = shared.nearest(Z[i : i + 1], k)
        size = alone.indices.shape[1]
        np.testing.assert_array_equal(top.indices[i, :size], alone.indices[0])
        np.testing.assert_allclose(top.distances[i, :size], alone.distances[0], atol=1e-12)
        assert (top.indices[i, size:] == -1).all() and np.isinf(top.distances[i, size:]).all()
        position = shared.truth_positions(Z[i : i + 1], truth[i : i + 1])
        assert (positions.nearer[i], positions.tied[i]) == (position.nearer[0], position.tied[0])


@pytest.mark.parametrize("working_memory", [1024, 1e-2, 1e-4])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_pools_answer_as_each_set_alone(working_memory, k, route):
    sets, Z = ragged(20), RNG.standard_normal((20, 4))
    truth = np.array([outputs[0] for outputs in sets])
    truth[5] = 99  # not a candidate
    with sklearn.config_context(working_memory=working_memory):
        check_against_each_set(PerExampleCandidates(sets).for_embedding(E), sets, Z, truth, k)


@pytest.mark.parametrize("is_embedded", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, list])
def test_parts_of_one_shared_set_are_separate_sets(is_embedded, form, tmp_path):
    outputs = RNG.standard_normal((60, 5)).round(1)
    outputs[20:25] = outputs[10]
    given = form(outputs)
    if is_embedded:
        shared = SharedCandidates.build(given, E, tmp_path / "set")
        assert not shared.g.flags.owndata and not shared.g.flags.writeable  # mapped from the disk
    else:
        shared = SharedCandidates(given, E)
    everything = slice(0, 60)
    rows = [slice(0, 30), slice(7, 8), slice(9, 26), slice(0, 30), everything, np.array([3, 3, 50, 20, 24]), everything]
    candidates, Z = shared.per_example(rows), RNG.standard_normal((7, 4))
    sets = [outputs[part] for part in rows]
    truth = np.array([part[-1] for part in sets])
    check_against_each_set(candidates, sets, Z, form(truth) if form is not list else list(truth), 6)
    assert len(candidates._different[0]) == 5
    nearest = candidates.nearest(Z, 1)
    expected = np.array([part[j] for part, j in zip(sets, nearest.indices[:, 0], strict=True)])
    dense = nearest.nearest.toarray() if form is sparse.csr_matrix else np.array(nearest.nearest)
    np.testing.assert_array_equal(dense, expected)
    candidates.require_embedding(E)


def test_both_routes_agree(monkeypatch):
    Y = RNG.standard_normal((30, 3))
    model = OEL(Gaussian(0.5), Gaussian(0.4), alpha=1e-4, n_components=20).fit(RNG.standard_normal((30, 2)), Y)
    sets = [RNG.standard_normal((RNG.integers(1, 40), 3)).round(2) for _ in range(25)]
    sets[3] = np.repeat(sets[3][:1], 33, axis=0)
    sets[7] = sets[8] = np.concatenate([sets[7], sets[7]])
    candidates = PerExampleCandidates(sets).for_embedding(model.embedding_)
    Z = RNG.standard_normal((25, model.n_components_))
    tops = []
    for sums in (False, True):
        monkeypatch.setattr(expansions, "sums_over_landmarks", lambda *sizes, sums=sums: sums)
        tops.append(candidates.nearest(Z, 50))
    finite = np.isfinite(tops[0].distances)
    np.testing.assert_allclose(tops[1].distances[finite], tops[0].distances[finite], rtol=1e-9)
    for top in tops:  # equal rows tie, and come in the order of their indices
        np.testing.assert_array_equal(top.indices[3, :33], np.arange(33))
        assert len(np.unique(top.distances[3, :33])) == 1
        for i in (7, 8):
            n = len(sets[7]) // 2
            assert (top.distances[i, 0 : 2 * n : 2] == top.distances[i, 1 : 2 * n : 2]).all()
            np.testing.assert_array_equal(top.indices[i, 0 : 2 * n : 2] + n, top.indices[i, 1 : 2 * n : 2])
    np.testing.assert_array_equal(tops[0].indices, tops[1].indices)


def test_the_cheaper_route_is_chosen():
    r, p = 1000, 100
    assert expansions.sums_over_landmarks(r, p, 10**6, 10**6, 1000)  # every example has its own candidates
    assert not expansions.sums_over_landmarks(r, 5, 10**6, 10**6, 1000)  # few components
    assert not expansions.sums_over_landmarks(r, p, 1000, 10**6, 1000)  # all examples share the candidates
    assert not expansions.sums_over_landmarks(0, 0, 10, 10, 10)


class Counting(Linear):
    """A linear kernel that counts the objects it has seen."""

    seen = 0

    def _block(self, A, B, compute):
        Counting.seen += len(A)
        return super()._block(A, B, compute)


def test_a_set_that_is_one_object_is_embedded_once(route):
    outputs = RNG.standard_normal((50, 5))
    Counting.seen = 0
    embedding = Embedding(Counting(), np.eye(5), E.basis)
    PerExampleCandidates([outputs] * 30).for_embedding(embedding).nearest(RNG.standard_normal((30, 4)), 2)
    assert Counting.seen == 50


def test_a_validated_set_stays_one_object():
    rows = [[0.0, 1.0], [1.0, 0.0]]
    validated = PerExampleCandidates([rows, rows, list(rows)]).validate(lambda A, name: np.asarray(A), 3)
    assert validated.sets[0] is validated.sets[1] and validated.sets[0] is not validated.sets[2]


def test_groups_restriction_and_repetitions():
    pair, words = ["b", "a", "b"], ["c"]
    candidates = PerExampleCandidates([pair, words, pair])
    groups = [(outputs, examples.tolist()) for outputs, examples in candidates.groups(3)]
    assert groups == [(pair, [0, 2]), (words, [1])]
    assert candidates.distinct().sets == [["b", "a"], ["c"], ["b", "a"]]
    assert candidates.distinct().sets[0] is candidates.distinct().sets[2]
    assert candidates.restrict(slice(1, 3)).sets == candidates.restrict(np.array([1, 2])).sets == [words, pair]
    assert candidates.take(np.array([1, 0, 2])) == ["a", "c", "b"]
    np.testing.assert_array_equal(candidates.match(["b", "b", "a"]), [0, -1, 1])
    assert candidates.outputs_of(1) is words and candidates.max_size == 3 and len(candidates) == 3


def test_an_example_without_candidates_has_no_nearest_one(route):
    shared = SharedCandidates.build(RNG.standard_normal((6, 5)), E)
    rows = [slice(0, 0), slice(1, 4), slice(2, 2)]
    for candidates in (shared.per_example(rows), SharedCandidates(shared.outputs, E).per_example(rows)):
        top = candidates.nearest(RNG.standard_normal((3, 4)), 2)
        assert (top.indices[[0, 2]] == -1).all() and np.isinf(top.distances[[0, 2]]).all()
        assert (top.indices[1] >= 0).all() and [len(outputs) for outputs in top.outputs] == [0, 2, 0]
        positions = candidates.positions(RNG.standard_normal((3, 4)), np.array([-1, 0, -1]))
        assert np.isinf(positions.nearer[[0, 2]]).all() and np.isfinite(positions.nearer[1])
        ranked = list(ranked_candidates(RNG.standard_normal((3, 4)), candidates, current_compute(), limit=1.0))
        assert [result.n_candidates for result in ranked] == [0, 3, 0] and ranked[0].set_size == 0


def test_short_descriptions():
    shared = SharedCandidates.build(np.eye(5), E)
    assert repr(shared) == "SharedCandidates(5 outputs, embedded)"
    assert repr(SharedCandidates(["a"])) == "SharedCandidates(1 outputs)"
    assert repr(PerExampleCandidates([shared, ["a"]])) == "PerExampleCandidates(2 sets)"
    assert PerExampleCandidates([shared, ["a"]]).sets[0] is shared.outputs


def test_strings_share_sets_too():
    words = ["abc", "abd", "xyz"]
    model = OEL(Gaussian(1.0), lambda a, b: float(len(set(a) & set(b))), alpha=1e-3).fit(np.eye(3), words)
    assert model.predict(np.eye(3), candidates=PerExampleCandidates([words] * 3)) == words


def test_the_numbers_of_sets_and_queries_must_agree():
    candidates = PerExampleCandidates([np.eye(5)] * 3).for_embedding(E)
    with pytest.raises(ValueError, match="Z has 2 rows, but there are 3 sets"):
        candidates.nearest(np.zeros((2, 4)), 1)
    with pytest.raises(ValueError, match=r"candidates holds 3 sets for 2 examples: give one set per example"):
        candidates.validate(lambda A, name: A, 2)
    with pytest.raises(ValueError, match=r"candidates\[1\] is empty"):
        PerExampleCandidates([np.eye(5), np.empty((0, 5))]).validate(lambda A, name: A, 2)
    with pytest.raises(ValueError, match="do not belong to a model yet"):
        PerExampleCandidates([np.eye(5)]).nearest(np.zeros((1, 4)), 1)


def test_sets_that_do_not_fit_into_memory_are_searched_in_blocks(route):
    sets = [RNG.standard_normal((size, 5)).round(1) for size in (3, 400, 5, 700)]
    sets.append(sets[1])
    Z, truth = RNG.standard_normal((5, 4)), np.array([outputs[-1] for outputs in sets])
    candidates = PerExampleCandidates(sets).for_embedding(E)
    with sklearn.config_context(working_memory=0.01):
        pools = expansions.SetPools(*candidates._different, E, current_compute())
        if not current_compute().on_gpu:
            assert pools.large.tolist() == [1, 3]
        check_against_each_set(candidates, sets, Z, truth, 5)


def test_ten_thousand_sets_take_little_more_than_their_kernels():
    Z = RNG.standard_normal((10_000, 4))
    pool = RNG.standard_normal((10_000, 50, 5))
    candidates = PerExampleCandidates(list(pool)).for_embedding(E)
    start = time.perf_counter()
    top = candidates.nearest(Z, 5)
    assert time.perf_counter() - start < 5  # 0.2 s on an idle machine
    D = (pool**2).sum(axis=2) - 2 * np.einsum("ip,icp->ic", Z, pool[:, :, :4])
    np.testing.assert_array_equal(top.indices, np.argsort(D, axis=1)[:, :5])


def test_single_precision_agrees_with_its_own_embeddings(route):
    sets = [RNG.integers(0, 3, (RNG.integers(1, 30), 5)).astype(float) for _ in range(20)]
    Z = RNG.standard_normal((20, 4)).astype(np.float32)
    compute = current_compute().with_dtype(np.float32)
    top = PerExampleCandidates(sets).for_embedding(E).nearest(Z, 3, compute)
    for i, outputs in enumerate(sets):
        part = OutputSet(outputs, E)
        alone = SharedCandidates(part.outputs, E, g=E(outputs).astype(np.float32)).nearest(Z[i : i + 1], 3, compute)
        size = alone.indices.shape[1]
        np.testing.assert_array_equal(top.indices[i, :size], alone.indices[0])
        np.testing.assert_allclose(top.distances[i, :size], alone.distances[0], atol=1e-5)


def test_temporary_sets_are_kept_apart():
    sets = PerExampleCandidates(np.arange(24.0).reshape(2, 3, 4))
    np.testing.assert_array_equal(np.stack(sets.sets), np.arange(24.0).reshape(2, 3, 4))
    sets = PerExampleCandidates(np.full((2, 1), i) for i in range(5))
    assert [part[0, 0] for part in sets.sets] == [0, 1, 2, 3, 4]
    shared = SharedCandidates(list("abcdef"))
    rows = np.arange(6).reshape(3, 2)
    assert shared.per_example(rows).sets == [["a", "b"], ["c", "d"], ["e", "f"]]
    assert shared.per_example(np.array([i]) for i in range(6)).sets == [[c] for c in "abcdef"]


@pytest.mark.parametrize("sets", [None, "abc", 3])
def test_sets_must_be_a_sequence(sets):
    with pytest.raises(TypeError, match="sets must be a sequence of collections"):
        PerExampleCandidates(sets)


@pytest.mark.parametrize("part", [None, "abc", {1, 2}])
def test_every_set_must_be_a_collection(part):
    with pytest.raises(TypeError, match=r"candidates\[1\] must be an array or a sequence"):
        PerExampleCandidates([["a"], part])
    Y = RNG.standard_normal((6, 5))
    model = OEL(Gaussian(0.5), Gaussian(0.5), n_components=2).fit(Y, Y)
    with pytest.raises(TypeError, match=r"candidates\[1\] must be an array or a sequence"):
        model.predict(Y[:2], candidates=[Y[:3], part])
