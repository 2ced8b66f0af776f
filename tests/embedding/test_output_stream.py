"""Unlabeled outputs in batches: every source gives the same embedding, and what is malformed is named."""

import numpy as np
import pytest
from scipy import sparse

from psilearn import IOKR, KDE, OEL
from psilearn._utils.samples import concat, take
from psilearn.kernels import Dice, Gaussian, Pairwise

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.usefixtures("backend")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 3))
Y = RNG.standard_normal((80, 4)).round(2)
U = RNG.standard_normal((500, 4)).round(2)


def fitted(unlabeled, landmarks=120, supervision=0.3):
    model = OEL(
        Gaussian(0.5), Gaussian(0.3), alpha=1e-3, n_components=5, supervision=supervision, output_landmarks=landmarks
    )
    return model.fit(X, Y, unlabeled=unlabeled)


def products(model):
    return model.embed(X) @ model.transform_outputs(U).T


@pytest.fixture
def sources(tmp_path):
    np.save(tmp_path / "u.npy", U)
    pq.write_table(pa.table({f"c{j}": U[:, j] for j in range(4)}), tmp_path / "columns.parquet", row_group_size=70)
    pq.write_table(pa.table({"y": list(U)}), tmp_path / "lists.parquet", row_group_size=70)
    return {
        "npy": tmp_path / "u.npy",
        "npy as text": str(tmp_path / "u.npy"),
        "memmap": np.load(tmp_path / "u.npy", mmap_mode="r"),
        "columns": tmp_path / "columns.parquet",
        "lists": tmp_path / "lists.parquet",
        "iterator": (U[i : i + 33] for i in range(0, 500, 33)),
        "CSR": sparse.csr_matrix(U),
        "iterator of CSR": (sparse.csr_matrix(U[i : i + 33]) for i in range(0, 500, 33)),
    }


KINDS = ("npy", "npy as text", "memmap", "columns", "lists", "iterator", "CSR", "iterator of CSR")


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_gives_the_same_embedding(sources, kind):
    # all 580 outputs are landmarks, so that the order in which they are sampled plays no part
    np.testing.assert_allclose(products(fitted(sources[kind], 1000)), products(fitted(U, 1000)), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_is_held_where_there_are_no_landmarks(sources, kind):
    model = fitted(sources[kind], None)
    np.testing.assert_allclose(products(model), products(fitted(U, None)), atol=1e-9)
    assert len(model.candidates_) == len(np.unique(concat([Y, U]), axis=0))


def test_outputs_on_disk_do_not_join_the_candidates(sources):
    assert len(fitted(U).candidates_) == len(np.unique(concat([Y, U]), axis=0))
    for kind in ("npy", "memmap", "columns", "iterator"):
        assert len(fitted(sources[kind]).candidates_) == 80


def test_further_outputs_count_as_if_fit_had_seen_them():
    landmarks = 1000
    at_once = fitted(concat([U[:200], U]), landmarks)
    later = fitted(concat([U[:200], U[:300]]), landmarks).partial_fit(U[300:450]).partial_fit(iter([U[450:]]))
    assert at_once.approximation_error_ < 1e-8
    assert later.approximation_error_ < 1  # the landmarks were chosen before the last outputs came
    span = fitted(U, landmarks).partial_fit(U[:200])  # all landmarks known: exactly the same
    np.testing.assert_allclose(products(span), products(at_once), atol=1e-8)
    np.testing.assert_allclose(span.eigenvalues_, at_once.eigenvalues_, rtol=1e-9)
    assert len(later.candidates_) == len(np.unique(concat([Y, U[:450]]), axis=0))


def test_the_first_unlabeled_outputs_take_the_place_of_y():
    later = fitted(None, 1000).partial_fit(Y[:40])
    np.testing.assert_allclose(products(later), products(fitted(Y[:40], 1000)), atol=1e-8)


def test_further_outputs_have_no_say_in_a_fully_supervised_embedding():
    before = fitted(None, 60, supervision=1.0)
    expected = products(before)
    np.testing.assert_allclose(products(before.partial_fit(U)), expected, atol=1e-12)


def test_a_refused_batch_changes_nothing():
    model = fitted(U)
    before, count = products(model), len(model.candidates_)
    for bad in (iter([U[:5], U[:5, :2]]), np.full((2, 4), np.nan), U[:, :3], 3.5):
        with pytest.raises((ValueError, TypeError)):
            model.partial_fit(bad)
        np.testing.assert_array_equal(products(model), before)
        assert len(model.candidates_) == count
    model.partial_fit(U)


def test_partial_fit_needs_landmarks():
    assert not hasattr(OEL(), "partial_fit") and not hasattr(IOKR(output_landmarks=5), "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit") as e:
        OEL().partial_fit(U)
    assert "requires output_landmarks" in str(e.value.__cause__)
    model = KDE(Gaussian(0.5), Gaussian(0.3)).fit(X, Y)
    model.output_landmarks = 10
    with pytest.raises(ValueError, match="fitted without output_landmarks"):
        model.partial_fit(U)


def test_bad_sources_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"unlabeled = .*nothing.npy': there is no such file"):
        fitted(tmp_path / "nothing.npy")
    (tmp_path / "u.csv").write_text("1,2\n")
    with pytest.raises(ValueError, match=r"must be a .npy or a .parquet file, not '.csv'"):
        fitted(tmp_path / "u.csv")
    with pytest.raises(TypeError, match="unlabeled must be a collection of outputs, a path or an iterable of batches"):
        fitted(3.5)
    with pytest.raises(ValueError, match=r"batch 1 of unlabeled must have the same width as y: shape \(5, 2\)"):
        fitted(iter([U[:5], U[:5, :2]]))
    with pytest.raises(ValueError, match="batch 2 of unlabeled contains NaN"):
        fitted(iter([U[:5], U[:5], U[:5] * np.nan]))


def test_empty_batches_and_empty_iterators_are_nothing():
    np.testing.assert_allclose(products(fitted(iter([U[:0], U, U[:0]]), 1000)), products(fitted(U, 1000)), atol=1e-9)
    with pytest.warns(UserWarning, match="unlabeled contains no outputs. .An iterator can be read only once"):
        model = fitted(iter([]), 1000)
    np.testing.assert_allclose(products(model), products(fitted(None, 1000)), atol=1e-9)


def test_objects_stream_too(tmp_path):
    words = [a + b for a in "abcde" for b in "abcde"]
    kernel = Pairwise(lambda a, b: float(a[0] == b[0]) + float(a[1] == b[1]))
    pq.write_table(pa.table({"word": words}), tmp_path / "words.parquet")
    held, streamed = (
        OEL(Gaussian(0.5), kernel, alpha=1e-3, n_components=4, supervision=0.3, output_landmarks=100).fit(
            X[:20], words[:20], unlabeled=unlabeled
        )
        for unlabeled in (words, tmp_path / "words.parquet")
    )
    np.testing.assert_allclose(held.eigenvalues_, streamed.eigenvalues_, rtol=1e-9)


def test_a_large_file_is_sampled_evenly(tmp_path, monkeypatch):
    # sorted tags: a head of the file would miss the second half
    bits = np.repeat(np.eye(6, dtype=np.uint8), 50, axis=0)
    table = pa.table({f"c{j}": bits[:, j] for j in range(6)})
    pq.write_table(table, tmp_path / "bits.parquet")
    monkeypatch.setattr("psilearn.landmarks.selection.MIN_POOL", 40)
    monkeypatch.setattr("psilearn.embedding.output_stream.MAX_BATCH_ROWS", 16)
    tags = take(bits, np.arange(20))
    model = OEL(Gaussian(0.5), Dice(), alpha=1e-3, n_components=6, supervision=0.0, output_landmarks=6).fit(
        X[:20], tags, tmp_path / "bits.parquet"
    )
    assert model.n_components_ == 6
    assert model.approximation_error_ < 1e-12


def test_damaged_files_are_named(tmp_path):
    (tmp_path / "u.npy").write_bytes(b"not an array")
    with pytest.raises(ValueError, match=r"unlabeled: .*u.npy is not a .npy file of numbers"):
        fitted(tmp_path / "u.npy")
    (tmp_path / "u.parquet").write_bytes(b"not a table")
    with pytest.raises(ValueError, match=r"u.parquet is not a Parquet file that can be read"):
        fitted(tmp_path / "u.parquet")
    for column, message in (
        ([[1.0, 2.0, 3.0, 4.0], [1.0]], "unequal lengths"),
        ([[1.0] * 4, None], "has missing values"),
    ):
        pq.write_table(pa.table({"y": column}), tmp_path / "u.parquet")
        with pytest.raises(ValueError, match=message):
            fitted(tmp_path / "u.parquet")


def test_parameters_that_changed_since_fit():
    for before, after in ((1.0, 0.3), (0.0, 0.3), (0.3, 1.0), (0.3, 0.0)):
        model = fitted(U, supervision=before).set_params(supervision=after)
        with pytest.raises(ValueError, match="supervision has changed since fit in a way that requires a new fit"):
            model.partial_fit(U)
    with pytest.raises(ValueError, match="n_components must be an integer ≥ 1"):
        fitted(U).set_params(n_components=-3).partial_fit(U)
    assert fitted(U).set_params(n_components=2, supervision=0.9).partial_fit(U).n_components_ == 2
    with pytest.raises(ValueError, match=r"unlabeled must have the same width as the known outputs: shape \(500, 3\)"):
        fitted(U).partial_fit(U[:, :3])
