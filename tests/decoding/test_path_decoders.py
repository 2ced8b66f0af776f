"""Decoding of every λ, c and p at once against decoding of each setting alone."""

import numpy as np
import pytest
import sklearn
from scipy import sparse

from psilearn import OEL
from psilearn._backend import Compute, current_compute
from psilearn.decoding import AllRankings, PerExampleCandidates, SharedCandidates, expansions
from psilearn.decoding.component_path import decode_path
from psilearn.embedding import Embedding, OutputCoordinates
from psilearn.kernels import Dice, Gaussian, Hamming, Kemeny, Lehmer, Linear, Pairwise

pytestmark = pytest.mark.usefixtures("backend")

RNG = np.random.default_rng(0)
Q, SIZES = 14, [1, 3, 6]


def coordinates(kernel, Y):
    return OutputCoordinates(kernel, Y, current_compute()).embedding()


def random_steps(embedding):
    """Return (V, Z) of several settings, with predictions Σ αᵢψ(sᵢ); the last step keeps the coordinates.

    One step has fewer directions than the others.
    """
    values = embedding(embedding.landmarks)
    r, steps = values.shape[1], []
    for width in (6, 4, 6):
        V = np.linalg.qr(RNG.standard_normal((r, min(width, r))))[0]
        steps.append((V, RNG.standard_normal((Q, len(values))) @ values @ V))
    return [*steps, (None, RNG.standard_normal((Q, len(values))) @ values)]


def rotated(embedding, V, p):
    basis = embedding.basis if V is None else embedding.basis @ V
    return Embedding(embedding.kernel, embedding.landmarks, basis[:, :p])


def check(candidates, embedding, truth=None, compute=None, sizes=SIZES):
    """Compare each step and size with candidates of that embedding alone."""
    compute = current_compute() if compute is None else compute
    decoder = candidates.path_decoder(embedding, sizes, compute, truth)
    steps = random_steps(embedding)
    for V, Z in steps:
        decoder.add(V, Z)
    assert decoder.nearest.shape == (len(steps), 1 if sizes is None else len(sizes), Q)
    for s, (V, Z) in enumerate(steps):
        for j, size in enumerate([Z.shape[1]] if sizes is None else sizes):
            p = min(size, Z.shape[1])
            alone = unbound(candidates).for_embedding(rotated(embedding, V, p))
            alone = alone.listed if isinstance(alone, AllRankings) and truth is not None else alone
            expected = alone.nearest(Z[:, :p], 1).nearest
            same = decoder.outputs(s, j)
            assert type(same) is type(expected)
            np.testing.assert_array_equal(dense(same), dense(expected))
            if truth is not None:
                positions, mine = alone.positions(Z[:, :p], truth), decoder.positions(s, j)
                np.testing.assert_array_equal(mine.nearer, positions.nearer)
                np.testing.assert_array_equal(mine.tied, positions.tied)


def unbound(candidates):
    if isinstance(candidates, AllRankings):
        rankings = AllRankings(candidates.embedding, candidates.known)
        rankings.embedding = None
        return rankings
    if isinstance(candidates, SharedCandidates):
        return SharedCandidates(candidates.outputs)
    return PerExampleCandidates(candidates.sets)


def dense(outputs):
    return outputs.toarray() if sparse.issparse(outputs) else np.asarray(outputs)


def tags(n, rng=RNG):
    return (rng.random((n, 7)) < 0.4).astype(float)


LABELED = tags(25)
POOL = np.concatenate([LABELED[:10], tags(60), LABELED[:5]])  # candidates repeat
FORMS = {
    "array": np.asarray,
    "csr": sparse.csr_matrix,
    "strings": lambda Y: ["".join(map(str, row)) for row in Y.astype(int)],
}


def letters(a, b):
    return float(sum(x == y == "1" for x, y in zip(a, b, strict=True)) + 0.5 * (a == b))


def kernel_of(form):
    return Pairwise(letters) if form == "strings" else Dice()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("working_memory", [1024, 0.02])
def test_shared_candidates(form, counts, working_memory):
    embedding = coordinates(kernel_of(form), FORMS[form](LABELED))
    truth = np.where(np.arange(Q) < 12, np.arange(Q), -1) if counts else None
    with sklearn.config_context(working_memory=working_memory):
        check(SharedCandidates(FORMS[form](POOL)), embedding, truth)
        check(SharedCandidates(FORMS[form](POOL)), embedding, truth, sizes=None)


def test_coordinates_that_are_known_are_used(monkeypatch):
    embedding = coordinates(Dice(), LABELED)
    known = SharedCandidates.build(POOL, embedding)
    step = random_steps(embedding)[0]
    monkeypatch.setattr(Embedding, "__call__", lambda *_: pytest.fail("the candidates are embedded already"))
    decoder = known.path_decoder(embedding, SIZES, current_compute())
    decoder.add(*step)
    assert decoder.nearest.shape == (1, 3, Q)


def own_sets(form):
    sets = [FORMS[form](np.concatenate([tags(RNG.integers(1, 40)), POOL[i : i + 1]])) for i in range(Q)]
    sets[3] = sets[5]  # the same object
    sets[7] = FORMS[form](np.repeat(POOL[:1], 9, axis=0))  # all equal
    return sets


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize(("working_memory", "max_rows"), [(1024, 8192), (1024, 11), (0.02, 8192)])
def test_one_set_per_example(form, counts, working_memory, max_rows, monkeypatch):
    monkeypatch.setattr(expansions, "MAX_POOL_ROWS", max_rows)
    sets = own_sets(form)
    sizes = [len(part) if isinstance(part, list) else part.shape[0] for part in sets]
    truth = np.array(sizes) - 1 if counts else None
    if counts:
        truth[2] = -1
    embedding = coordinates(kernel_of(form), FORMS[form](LABELED))
    with sklearn.config_context(working_memory=working_memory):
        check(PerExampleCandidates(sets), embedding, truth)
        check(PerExampleCandidates(sets), embedding, truth, sizes=None)


def test_sets_that_are_embedded_by_another_model():
    other = Embedding(Linear(), np.eye(7), np.eye(7))
    shared = SharedCandidates.build(POOL, other)
    rows = [slice(i, i + 20) for i in range(Q)]
    check(shared.per_example(rows), coordinates(Dice(), LABELED), np.full(Q, 3))
    check(shared, coordinates(Dice(), LABELED), np.full(Q, 3))


def test_single_precision_of_weights_changes_no_tie():
    sets, embedding = own_sets("array"), coordinates(Dice(), LABELED)
    compute = Compute(np.dtype(np.float32), current_compute().device)
    truth = np.array([len(part) for part in sets]) - 1
    decoders = [
        PerExampleCandidates(sets).path_decoder(embedding, SIZES, c, truth) for c in (compute, current_compute())
    ]
    for V, Z in random_steps(embedding):
        for decoder in decoders:
            decoder.add(V, Z)
    assert decoders[0]._weights[0].dtype == np.float32
    np.testing.assert_array_equal(decoders[0].nearest, decoders[1].nearest)
    for step in range(4):
        for size in range(3):
            single, double = (decoder.positions(step, size) for decoder in decoders)
            assert (single.nearer <= double.nearer).all() and (single.tied >= double.tied).all()
            assert (single.nearer + single.tied >= double.nearer + double.tied).all()
            assert single.tied[7] == double.tied[7] == 9


def test_weights_are_processed_before_they_fill_the_memory():
    sets, embedding = own_sets("array"), coordinates(Dice(), LABELED)
    whole, parts = (PerExampleCandidates(sets).path_decoder(embedding, SIZES, current_compute()) for _ in range(2))
    steps = random_steps(embedding)
    for V, Z in steps:
        whole.add(V, Z)
        with sklearn.config_context(working_memory=1e-3):
            parts.add(V, Z)
        assert not parts._weights
    assert len(whole._weights) == len(steps)
    np.testing.assert_array_equal(whole.nearest, parts.nearest)


@pytest.mark.parametrize("kernel", [Kemeny(), Hamming(), Lehmer()], ids=repr)
@pytest.mark.parametrize("as_orders", [False, True])
def test_all_rankings(kernel, as_orders):
    known = np.array([RNG.permutation(4) + 1 for _ in range(12)])
    known = kernel.to_form_of(np.array(["a>b>c>d"]), known) if as_orders else known
    embedding = coordinates(kernel, known)
    rankings = AllRankings(embedding, known)
    check(rankings, embedding)
    check(rankings, embedding, sizes=None)
    check(rankings, embedding, truth=np.arange(Q))  # listed
    decoder = rankings.path_decoder(embedding, SIZES, current_compute())
    for V, Z in random_steps(embedding):
        decoder.add(V, Z)
        assert len(decoder.outputs(0, 0)) == Q
    with pytest.raises(ValueError, match="Positions need the true outputs"):
        decoder.positions(0, 0)


@pytest.mark.parametrize("supervision", [0.3, 1.0])
def test_steps_are_the_predictions_of_refitted_models(supervision):
    """A model of each p, fitted anew, predicts what the decoder finds with the directions of the largest p."""
    X, Y, X_new = RNG.standard_normal((40, 3)), tags(40), RNG.standard_normal((Q, 3))
    sets = own_sets("array")
    fitted = {
        p: OEL(Gaussian(0.2), Dice(), alpha=1e-3, n_components=p, supervision=supervision).fit(X, Y) for p in SIZES
    }
    largest = fitted[max(SIZES)]
    for given in (POOL, PerExampleCandidates(sets)):
        candidates = SharedCandidates(given) if given is POOL else given
        decoder = candidates.path_decoder(largest.embedding_, SIZES, current_compute())
        decoder.add(None, largest.embed(X_new))
        for j, p in enumerate(SIZES):
            np.testing.assert_array_equal(decoder.outputs(0, j), fitted[p].predict(X_new, given))


RANDOM_Z, RANDOM_G = RNG.standard_normal((12, 9)), RNG.standard_normal((40, 9)).round(1)
NORMS = (RANDOM_G**2).sum(axis=1) + RNG.random(40)
RANDOM_G[30:], NORMS[30:] = RANDOM_G[:10], NORMS[:10]  # candidates repeat
COMPONENTS = [0, 1, 4, 9]


def all_distances(p):
    return (RANDOM_Z[:, :p] ** 2).sum(axis=1)[:, None] - 2 * RANDOM_Z[:, :p] @ RANDOM_G[:, :p].T + NORMS


@pytest.mark.parametrize("working_memory", [1024, 1e-3])
@pytest.mark.parametrize("block", [4096, 7])
@pytest.mark.parametrize("together", [2**14, 1000, 1])
def test_accumulated_distances_for_each_p(working_memory, block, together, monkeypatch):
    monkeypatch.setattr("psilearn.decoding.component_path.MAX_SCORED_CANDIDATES", block)
    monkeypatch.setattr("psilearn.decoding.component_path.MAX_TOGETHER", together)
    truth, compute = np.r_[np.arange(11), -1], current_compute()
    arrays = map(compute.asarray, (RANDOM_Z, RANDOM_G, NORMS))
    with sklearn.config_context(working_memory=working_memory):
        nearest, nearer, tied = decode_path(*arrays, COMPONENTS, truth, compute)
    assert nearest.max() < 30  # a tie goes to the lowest index
    for j, p in enumerate(COMPONENTS):
        D = all_distances(p)
        np.testing.assert_array_equal(nearest[j], np.argmin(D.round(9), axis=1))
        own = D[np.arange(11), np.arange(11)][:, None]
        np.testing.assert_array_equal(nearer[j, :11], (D[:11] < own - 1e-9).sum(axis=1))
        np.testing.assert_array_equal(tied[j, :11], (np.abs(D[:11] - own) <= 1e-9).sum(axis=1))
        assert nearer[j, 11] == np.inf and tied[j, 11] == 0


@pytest.mark.parametrize("own", [False, True])
def test_finished_steps_are_taken_once_and_forgotten(own):
    embedding, truth = coordinates(Dice(), LABELED), np.zeros(Q, dtype=np.intp)
    candidates = PerExampleCandidates(own_sets("array")) if own else SharedCandidates(POOL)
    kept, drained = (candidates.path_decoder(embedding, SIZES, current_compute(), truth) for _ in range(2))
    taken = []
    for V, Z in random_steps(embedding):
        kept.add(V, Z)
        drained.add(V, Z)
        taken += drained.take_finished()
    taken += drained.take_finished(flush=True)
    assert drained.take_finished(flush=True) == []
    np.testing.assert_array_equal([step.nearest for step in taken], kept.nearest)
    for i, step in enumerate(taken):
        np.testing.assert_array_equal(step.positions().nearer[1], kept.positions(i, 1).nearer)
        np.testing.assert_array_equal(step.positions().tied[1], kept.positions(i, 1).tied)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("own", [False, True])
def test_candidates_by_example_and_index(form, own):
    sets = own_sets(form) if own else [FORMS[form](POOL)] * Q
    candidates = PerExampleCandidates(sets) if own else SharedCandidates(sets[0])
    decoder = candidates.path_decoder(coordinates(kernel_of(form), FORMS[form](LABELED)), SIZES, current_compute())
    assert decoder.shares_candidates is not own
    examples, indices = np.array([3, 3, 0, 13]), np.array([1, 0, 0, 1])
    expected = [dense(sets[i])[j] for i, j in zip(examples, indices, strict=True)]
    np.testing.assert_array_equal(dense(decoder.take(examples, indices)), expected)


@pytest.mark.parametrize("scale", [1.0, 1e8])
def test_ties_are_found_by_their_definition(scale):
    """Integers, so that distances are exact: many ties, and candidates with large k(y, y) next to them."""
    rng, compute = np.random.default_rng(0), current_compute()
    Z, g = rng.integers(-2, 3, (40, 3)).astype(float), rng.integers(-1, 2, (60, 3)).astype(float)
    norms = (g**2).sum(axis=1) + rng.integers(0, 2, 60)
    norms[::9] = 3 + scale
    nearest, _, _ = decode_path(*map(compute.asarray, (Z, g, norms)), [1, 2, 3], None, compute)
    for j, p in enumerate([1, 2, 3]):
        D = (Z[:, :p] ** 2).sum(axis=1)[:, None] - 2 * Z[:, :p] @ g[:, :p].T + norms
        np.testing.assert_array_equal(nearest[j], np.argmin(D, axis=1))
        assert np.mean((D.min(axis=1)[:, None] == D).sum(axis=1) > 1) > 0.3, "ties are common"
