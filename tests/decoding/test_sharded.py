"""Candidates in shards are one set of candidates."""

import shutil

import numpy as np
import pytest
from scipy import sparse

from psilearn import OEL
from psilearn._backend import NUMPY
from psilearn._utils.samples import distinct, match
from psilearn._utils.stacked_rows import StackedRows
from psilearn.decoding import ShardedCandidates, candidate_files
from psilearn.decoding.bounded_search import merge_nearest, search_nearest_with_slacks
from psilearn.kernels import Gaussian
from tests.dask_data import to_dask
from tests.problems import make

da = pytest.importorskip("dask.array")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


def fitted(kind):
    problem = make(kind)
    return problem, OEL(Gaussian(0.2), problem.kernel, alpha=0.1, n_components=3).fit(problem.X, problem.Y)


@pytest.mark.parametrize("form", ["rows", "csr"])
def test_stacked_rows_are_the_rows_of_all_parts(form):
    rows = np.random.default_rng(0).integers(0, 3, (12, 4))
    whole = sparse.csr_matrix(rows) if form == "csr" else rows
    stack = StackedRows([whole[:5], whole[5:6], whole[6:]])
    dense = (lambda A: A.toarray()) if form == "csr" else np.asarray
    assert stack.shape == (12, 4) and len(stack) == 12 and stack.dtype == whole.dtype
    for index in (slice(0, 5), slice(3, 8), slice(5, 6), slice(11, 40), slice(4, 4), slice(0, 12, 5)):
        np.testing.assert_array_equal(dense(stack[index]), rows[index])
    for index in (np.array([11, 0, 5, 5, 6]), np.arange(12), -np.arange(1, 4)):
        np.testing.assert_array_equal(dense(stack[index]), rows[index])
    np.testing.assert_array_equal(np.asarray(stack), rows)
    np.testing.assert_array_equal(np.ravel(dense(stack[7])), rows[7])
    np.testing.assert_array_equal(distinct(stack).first, distinct(whole).first)
    np.testing.assert_array_equal(match(whole[[3, 9]], stack), match(whole[[3, 9]], whole))
    assert np.shares_memory(stack[1:4], rows) or form == "csr"


@pytest.mark.parametrize("kind", ["vectors", "numbers", "sparse tags", "rankings"])
def test_shards_are_one_set_of_candidates(kind, tmp_path):
    problem, model = fitted(kind)
    expected = model.candidate_set(problem.candidates)
    found = model.candidate_set(to_dask(problem.candidates, (10, 11, 4)), tmp_path / "set")
    assert isinstance(found, ShardedCandidates) and len(found.shards) == 3 and len(found) == 25
    for candidates in (found, ShardedCandidates.open(tmp_path / "set", model.embedding_)):
        top, whole = (model.predict_topk(problem.X_test, 4, each) for each in (candidates, expected))
        np.testing.assert_array_equal(top.indices, whole.indices)
        np.testing.assert_allclose(top.distances, whole.distances, rtol=1e-12)
        positions = [
            model.truth_positions(problem.X_test, problem.candidates[:15], each) for each in (candidates, expected)
        ]
        np.testing.assert_array_equal(positions[0].nearer, positions[1].nearer)
    nearest = model.predict(problem.X_test, found)
    assert sparse.issparse(nearest) == (kind == "sparse tags")


def test_merged_answers_of_shards_keep_the_rule_for_ties(tmp_path):
    rng = np.random.default_rng(0)
    outputs = rng.integers(0, 2, (60, 4)).astype(float)  # at most 16 distinct: many ties across shards
    model = OEL(Gaussian(0.2), Gaussian(0.3), alpha=0.1, n_components=3).fit(rng.standard_normal((20, 3)), outputs[:20])
    Z = model.embed(rng.standard_normal((30, 3)))
    whole = model.candidate_set(outputs)
    for k in (1, 3, 10, 60):
        parts = []
        for rows in (slice(0, 7), slice(7, 40), slice(40, 60)):
            part = whole._select(rows)
            n = rows.stop - rows.start
            indices, *rest = search_nearest_with_slacks(Z, part._search_blocks, part.squared_norms, min(k, n), NUMPY)
            parts.append((indices + rows.start, *rest))
        indices, distances = merge_nearest(parts, k)
        expected = whole.nearest(Z, k)
        np.testing.assert_array_equal(indices, expected.indices)
        np.testing.assert_allclose(distances, expected.distances, rtol=1e-12, atol=1e-15)


def test_complete_shards_are_kept_on_resumption(tmp_path, monkeypatch):
    problem, model = fitted("vectors")
    chunks = to_dask(problem.candidates, (10, 15))
    built = []
    original = candidate_files.FORMAT.write.__func__

    def write(self, path, content, arrays):
        if len(built) == 1:
            raise KeyboardInterrupt
        built.append(len(arrays["g"]))
        return original(self, path, content, arrays)

    monkeypatch.setattr(candidate_files.FileFormat, "write", write)
    with pytest.raises(KeyboardInterrupt):
        model.candidate_set(chunks, tmp_path / "set")
    with pytest.raises(ValueError, match="resume"):
        ShardedCandidates.open(tmp_path / "set", model.embedding_)
    written = []

    def count(self, path, content, arrays):
        written.append(len(arrays["g"]))
        return original(self, path, content, arrays)

    monkeypatch.setattr(candidate_files.FileFormat, "write", count)
    (tmp_path / "set" / ".shard-00001.safetensors.9-9.tmp").write_bytes(b"of a lost worker")
    found = model.candidate_set(chunks, tmp_path / "set")
    assert len(built) == len(written) == 1 and sorted(built + written) == [10, 15] and len(found) == 25
    names = [candidate_files.MANIFEST, "shard-00000.safetensors", "shard-00001.safetensors"]
    assert sorted(path.name for path in (tmp_path / "set").iterdir()) == names


def test_damaged_and_foreign_shards_are_refused(tmp_path):
    problem, model = fitted("vectors")
    folder = tmp_path / "set"
    model.candidate_set(to_dask(problem.candidates, (10, 15)), folder)
    other = OEL(Gaussian(0.3), problem.kernel, alpha=0.1, n_components=2).fit(problem.X, problem.Y)
    with pytest.raises(ValueError, match="embedded by another model"):
        ShardedCandidates.open(folder, other.embedding_)
    with pytest.raises(FileExistsError, match="already contains"):
        model.candidate_set(to_dask(problem.candidates, (10, 15)), folder)
    shutil.copy(folder / "shard-00001.safetensors", folder / "shard-00000.safetensors")
    with pytest.raises(ValueError, match="not the shard that the manifest"):
        ShardedCandidates.open(folder, model.embedding_)
    (folder / "shard-00000.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="shard-00000"):
        ShardedCandidates.open(folder, model.embedding_)


def test_a_path_and_rows_are_required(tmp_path):
    problem, model = fitted("vectors")
    with pytest.raises(ValueError, match="give a path"):
        model.candidate_set(to_dask(problem.candidates, (25,)))
    problem, model = fitted("strings")
    with pytest.raises(TypeError, match="requires rows of numbers"):
        model.candidate_set(to_dask(problem.candidates, (25,)), tmp_path / "set")
