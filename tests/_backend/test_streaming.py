"""Blocks that pass through a device: all rows, in order, halved where memory runs out."""

import numpy as np
import pytest
from scipy import sparse

torch = pytest.importorskip("torch")

from psilearn import OEL, Landmarks  # noqa: E402
from psilearn._backend import (  # noqa: E402
    NUMPY,
    computing,
    halve_if_needed,
    is_tensor,
    row_blocks,
    stream,
    to_numpy,
)
from psilearn.decoding import bounds as score  # noqa: E402
from psilearn.kernels import Kernel  # noqa: E402
from tests.problems import make  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
on_devices = pytest.mark.parametrize("device", DEVICES)


def full(size):
    """Return work that a memory of so many rows suffices for."""

    def work(block):
        if len(block) > size:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        return to_numpy(block).copy()

    return work


def blocks(n, step):
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


@on_devices
@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("moved", [True, False])
def test_a_block_that_is_too_large_is_halved(size, moved, device):
    A = np.arange(46.0).reshape(23, 2)
    with computing("float64", device) as compute:
        found = list(stream(row_blocks(A, blocks(23, 9)), full(size), compute, moved))
    assert [row for rows, _ in found for row in range(23)[rows]] == list(range(23))
    assert all(np.array_equal(block, A[rows]) for rows, block in found)
    assert max(len(block) for _, block in found) <= min(size, 9)


@on_devices
def test_one_row_that_is_too_large_is_an_error(device):
    with computing("float64", device) as compute, pytest.raises(MemoryError, match="no memory for a single row"):
        list(halve_if_needed(slice(0, 4), lambda rows: full(0)(np.zeros(rows.stop - rows.start)), compute))


def test_in_numpy_memory_that_does_not_suffice_is_an_error():
    def work(block):
        raise MemoryError

    with pytest.raises(MemoryError):
        list(stream(row_blocks(np.zeros(4), blocks(4, 2)), work, NUMPY, True))


@on_devices
@pytest.mark.parametrize(
    "form", ["array", "memory-mapped", "float16", "int32", "bool", "big-endian", "reversed", "list"]
)
def test_every_form_arrives(form, device, tmp_path):
    A = np.random.default_rng(0).integers(0, 2, (1000, 7)).astype(float)
    np.save(tmp_path / "A.npy", A)
    forms = {
        "array": A,
        "memory-mapped": np.load(tmp_path / "A.npy", mmap_mode="r"),
        "float16": A.astype(np.float16),
        "int32": A.astype(np.int32),
        "bool": A.astype(bool),
        "big-endian": A.astype(">f8"),
        "reversed": A[::-1],
        "list": list(A),
    }
    with computing("float64", device) as compute:
        parts = list(stream(row_blocks(forms[form], blocks(1000, 300)), lambda block: block, compute, True))
    assert [rows for rows, _ in parts] == blocks(1000, 300)
    assert all(is_tensor(block) for _, block in parts) == (form not in ("big-endian", "list"))
    found = np.concatenate([np.asarray(to_numpy(block) if is_tensor(block) else block) for _, block in parts])
    assert np.array_equal(found, A[::-1] if form == "reversed" else A)


@on_devices
@pytest.mark.parametrize("size", [1, 5, 13])
def test_a_fit_and_its_predictions_go_on_where_memory_runs_out(size, device, monkeypatch):
    problem = make("fingerprints")
    options = {"n_components": 4, "input_landmarks": 15, "output_landmarks": Landmarks(12)}
    expected = OEL(None, problem.kernel, **options).fit(problem.X, problem.Y, unlabeled=problem.unlabeled)
    answers = expected.predict_topk(problem.X_test, 3, problem.candidates)
    whole = Kernel.__call__

    def narrow(kernel, A, B=None, *, compute=None):
        if compute is not None and compute.device is not None and B is not None and len(A) > size:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        return whole(kernel, A, B, compute=compute)

    model = OEL(None, problem.kernel, device=device, **options)
    monkeypatch.setattr(Kernel, "__call__", narrow)
    model.fit(problem.X, problem.Y, unlabeled=problem.unlabeled)
    found = model.predict_topk(problem.X_test, 3, problem.candidates)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-9)
    assert np.array_equal(found.indices, answers.indices)


@on_devices
@pytest.mark.parametrize("when", ["lower", "_distances"])
def test_a_search_goes_on_where_memory_runs_out(when, device, monkeypatch):
    problem = make("tags")  # with many ties
    expected = OEL(None, problem.kernel, n_components=3).fit(problem.X, problem.Y)
    model = OEL(None, problem.kernel, n_components=3, device=device).fit(problem.X, problem.Y)
    whole, left = getattr(score.Bounds, when), [3 if when == "lower" else 1]

    def failing(self, *arguments):
        if left[0]:
            left[0] -= 1
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        return whole(self, *arguments)

    monkeypatch.setattr(score.Bounds, when, failing)
    found = model.predict_topk(problem.X_test, 5)
    assert left == [0]
    monkeypatch.undo()
    assert np.array_equal(found.indices, expected.predict_topk(problem.X_test, 5).indices)


@pytest.mark.parametrize("canonical", [True, False])
def test_blocks_of_csr_rows_share_entries_that_nobody_sorts(canonical):
    A = sparse.random(9, 5, 0.5, "csr", random_state=0)
    if not canonical:
        indptr = np.r_[A.indptr[:-1], A.nnz + 2]
        A = sparse.csr_matrix((np.r_[A.data, 1.0, 2.0], np.r_[A.indices, 3, 3], indptr), A.shape)
    before = A.toarray()
    for rows, block in row_blocks(A, blocks(9, 4)):
        assert np.array_equal(block.toarray(), before[rows])
        assert block.has_canonical_format == A[rows].has_canonical_format
        assert np.shares_memory(block.data, A.data) == canonical
        block.sum_duplicates()
    assert np.array_equal(A.toarray(), before)
