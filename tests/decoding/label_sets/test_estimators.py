"""Estimators with candidates="all", "near" and "known", against the same sets passed as a list."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from psilearn import IOKR, KDE, OEL
from psilearn._backend import NUMPY
from psilearn.decoding import AllLabelSets, NearLabelSets
from psilearn.io import load_model, save_model
from psilearn.kernels import Dice, Gaussian, Kemeny, Linear, Tanimoto
from tests.decoding.label_sets.set_cases import all_sets

L = 6
MODELS = [
    IOKR(Gaussian(0.3), Dice(), alpha=1e-2),
    IOKR(Gaussian(0.3), Linear(), alpha=1e-2),
    KDE(Gaussian(0.3), Dice(), alpha=1e-2, n_components=5),
    OEL(Gaussian(0.3), Dice(), alpha=1e-2, n_components=5),
    OEL(Gaussian(0.3), Dice(), alpha=1e-2, n_components=5, output_landmarks=12),
    OEL(Gaussian(0.3), Dice(), alpha=1e-2, n_components=5, dtype="float32"),
    OEL(Gaussian(0.3), Tanimoto(), alpha=1e-2, n_components=5),
    OEL(Gaussian(0.3), Gaussian(0.5), alpha=1e-2, n_components=5),
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((80, 4)), rng.standard_normal((4, L))
    Y = (X @ weights + 0.3 * rng.standard_normal((80, L)) > 0.6).astype(int)
    return X[:60], Y[:60], X[60:], Y[60:]


def near_sets(Y):
    return np.unique(np.concatenate([Y, *(Y ^ row for row in np.eye(L, dtype=int))]), axis=0)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__}-{model.output_kernel}")
def test_names_stand_for_lists(model, data):
    X, Y, X_new, Y_new = data
    model.fit(X, Y)
    tolerance = 1e-5 if model.dtype == "float32" else 1e-9
    for name, sets in (("all", all_sets(L)), ("near", near_sets(Y)), ("known", np.unique(Y, axis=0))):
        for k in (1, 3):
            found, expected = model.predict_topk(X_new, k, name), model.predict_topk(X_new, k, sets)
            np.testing.assert_allclose(found.distances, expected.distances, atol=tolerance)
        np.testing.assert_array_equal(model.predict(X_new, name), expected.nearest)
        assert model.score(X_new, Y_new, name) == pytest.approx(model.score(X_new, Y_new, sets), abs=1e-12)
        found, expected = (model.truth_positions(X_new, Y_new, given) for given in (name, sets))
        np.testing.assert_array_equal(found.nearer, expected.nearer)


def test_conformal_sets_and_ranks_of_listed_sets(data):
    X, Y, X_new, Y_new = data
    model = OEL(Gaussian(0.3), Dice(), alpha=1e-2, n_components=5).fit(X, Y)
    found = model.calibrate(X_new, Y_new, "all").predict_set(X_new, 0.8, "all")
    expected = model.calibrate(X_new, Y_new, all_sets(L)).predict_set(X_new, 0.8, all_sets(L))
    np.testing.assert_array_equal(found.sizes, expected.sizes)
    np.testing.assert_array_equal(found.outputs[0], expected.outputs[0])
    assert next(model.rank_candidates(X_new, "all")).n_candidates == 2**L


def test_sets_that_cannot_be_listed_raise_and_say_what_is_possible(data):
    X, Y, X_new, _ = data
    wide = np.hstack([Y, Y, Y])  # 18 labels
    model = OEL(Gaussian(0.3), Dice(), alpha=1e-2, n_components=5).fit(X, wide)
    assert model.predict_topk(X_new, 5, "all").indices.shape == (20, 5)
    for call in (
        lambda: model.truth_positions(X, wide, "all"),
        lambda: model.calibrate(X, wide, "all"),
        lambda: next(model.rank_candidates(X, "all")),
        lambda: model.predict_topk(X, 2, AllLabelSets(label_groups=[0] * 3 + [-1] * 15)),
    ):
        with pytest.raises(ValueError, match=r"sets of 18 labels\) are too many sets to list \(at most 65,536\)"):
            call()
    limited = AllLabelSets(max_labels=3)
    assert model.calibrate(X, wide, limited).predict_set(X_new, 0.2, limited).sizes.shape == (20,)
    other = OEL(Gaussian(0.3), Gaussian(0.5), n_components=5).fit(X, wide)
    with pytest.raises(ValueError, match=r"found with Dice, Linear and Tanimoto .*, but not with Gaussian\("):
        other.predict(X_new, "all")
    assert other.predict(X_new, "near").shape == (20, 18)


def test_limits_of_a_call(data):
    X, Y, X_new, _ = data
    model = IOKR(Gaussian(0.3), Dice(), alpha=1e-2).fit(X, sparse.csr_matrix(Y))
    predicted = model.predict(X_new, AllLabelSets(min_labels=2, max_labels=3))
    assert sparse.issparse(predicted)
    sizes = predicted.toarray().sum(axis=1)
    assert ((sizes >= 2) & (sizes <= 3)).all()
    allowed = all_sets(L)[np.isin(all_sets(L).sum(axis=1), [2, 3])]
    np.testing.assert_array_equal(predicted.toarray(), model.predict(X_new, sparse.csr_matrix(allowed)).toarray())


def test_a_loaded_model_predicts_the_same_sets(data, tmp_path):
    X, Y, X_new, _ = data
    model = OEL(Gaussian(0.3), Dice(), alpha=1e-2, n_components=5).fit(X, Y)
    save_model(model, tmp_path / "model")
    for name in ("all", "near"):
        loaded = load_model(tmp_path / "model").predict(X_new, name)
        np.testing.assert_array_equal(loaded, model.predict(X_new, name))


def test_names_for_other_outputs(data):
    X, Y, X_new, _ = data
    with pytest.raises(
        ValueError, match="candidates must be 'known', 'near', 'all', or a collection of outputs; got 'a'"
    ):
        IOKR().fit(X, Y).predict(X_new, "a")
    with pytest.raises(ValueError, match=r"Label sets are 0/1 rows, but the outputs of the model contain 0\.\d+"):
        IOKR(Gaussian(1.0), Gaussian(1.0)).fit(X, np.abs(X)).predict(X_new, "all")
    with pytest.raises(
        ValueError, match="Label sets are 0/1 rows, one column per label, but the outputs of the model are"
    ):
        IOKR(Gaussian(1.0), Gaussian(1.0)).fit(X, X[:, 0]).predict(X_new, "near")
    ranks = np.argsort(np.argsort(X, axis=1), axis=1) + 1
    model = IOKR(Gaussian(1.0), Kemeny()).fit(X, ranks)
    np.testing.assert_array_equal(model.predict(X_new, "all"), model.predict(X_new))
    with pytest.raises(ValueError, match="candidates='near' is not possible with rankings"):
        model.predict(X_new, "near")


@pytest.mark.parametrize("kernel", [Dice(), Gaussian(0.5)], ids=repr)
@pytest.mark.parametrize("sets", [AllLabelSets, NearLabelSets])
def test_path_decoders_are_models(kernel, sets, data):
    X, Y, X_new, Y_new = data
    model = IOKR(Gaussian(0.3), kernel, alpha=1e-2).fit(X, Y)
    embedding, Z = model.embedding_, model.embed(X_new)
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((Z.shape[1], Z.shape[1])))[0]
    candidates = sets(None, Y)
    decoder = candidates.path_decoder(embedding, [2, Z.shape[1]], NUMPY)
    decoder.add(rotation, Z @ rotation)
    decoder.add(None, Z)
    part = type(embedding)(kernel, embedding.landmarks, embedding.basis @ rotation[:, :2])
    expected = candidates.for_embedding(part).nearest((Z @ rotation)[:, :2], 1).nearest
    np.testing.assert_array_equal(decoder.outputs(0, 0), expected)
    for step in (0, 1):
        np.testing.assert_array_equal(decoder.outputs(step, 1), model.predict(X_new, sets()))
    assert decoder.nearest.shape == (2, 2, len(X_new))
    decoder.add(None, Z)
    np.testing.assert_array_equal(decoder.outputs(2, 1), model.predict(X_new, sets()))
    truth = candidates.match(Y_new)
    counting = candidates.path_decoder(embedding, None, NUMPY, truth)
    counting.add(None, Z)
    np.testing.assert_array_equal(counting.positions(0, 0).nearer, model.truth_positions(X_new, Y_new, sets()).nearer)


def test_candidates_are_pickled_without_what_was_computed(data):
    X, Y, X_new, _ = data
    model = IOKR(Gaussian(0.3), 2.0 * Dice(), alpha=1e-2).fit(X, Y)
    for sets in (AllLabelSets(model.embedding_, Y), NearLabelSets(model.embedding_, Y)):
        expected = sets.nearest(model.embed(X_new), 1).nearest
        copy = pickle.loads(pickle.dumps(sets))
        np.testing.assert_array_equal(copy.nearest(model.embed(X_new), 1).nearest, expected)


@pytest.mark.parametrize("sets", [AllLabelSets, NearLabelSets])
@pytest.mark.parametrize("known", [np.ones((2, L + 1)), np.zeros((0, L)), np.full((2, L), np.nan)])
def test_given_known_sets_are_validated(sets, known, data):
    X, Y, X_test, _ = data
    model = IOKR(Gaussian(0.3), Dice(), alpha=1e-2).fit(X, Y)
    with pytest.raises(ValueError, match=f"known of {sets.__name__}"):
        model.predict(X_test, sets(known=known))


@pytest.mark.parametrize("sets", [AllLabelSets, NearLabelSets])
def test_the_number_of_packed_labels_must_fit_the_bytes_and_the_labels(sets, data):
    X, Y, X_test, _ = data
    wide = np.hstack([Y, np.zeros((len(Y), 5), dtype=int), Y[:, :1]])  # 12 labels
    model = IOKR(Gaussian(0.3), Dice(packed=True), alpha=1e-2).fit(X, np.packbits(wide, axis=1))
    rows = IOKR(Gaussian(0.3), Dice(), alpha=1e-2).fit(X, wide).predict(X_test, sets())
    np.testing.assert_array_equal(model.predict(X_test, sets(n_labels=12)), np.packbits(rows, axis=1))
    for n_labels, message in ((3, "16 labels in 2 bytes"), (11, "contain the label 11")):
        with pytest.raises(ValueError, match=message):
            model.predict(X_test, sets(n_labels=n_labels))
