"""A file of arrays is as before or complete, whatever write fails, and other programs can read it."""

import errno
import os

import numpy as np
import pytest

from psilearn.io import FileFormat, pack_texts, unpack_texts

BOX = FileFormat("tests.box", 1, "box", "Pack the box again.")
ARRAYS = {
    "numbers": np.arange(12.0).reshape(3, 4),
    "columns": np.arange(12, dtype=">i4").reshape(3, 4).T,
    "bytes": np.arange(7, dtype=np.uint8),
    "empty": np.zeros((3, 0), np.float32),
    "scalar": np.array(True),
    "half": np.arange(3, dtype=np.float16)[::2],
}


def assert_holds(path, content):
    for mapped in (False, True):
        file = BOX.read(path, mapped=mapped)
        assert file.content == content and set(file.arrays) == set(ARRAYS) and file.n_bytes == path.stat().st_size
        for name, array in ARRAYS.items():
            found = file.arrays[name]
            np.testing.assert_array_equal(found, array)
            assert found.shape == array.shape and found.dtype == array.dtype.newbyteorder("<")
            assert found.flags.writeable != mapped and (found.flags.aligned or name == "half")


@pytest.mark.parametrize("content", [None, {"a": [1, 2.5, "é\udcff", "0" * 64]}, "0" * 64])
def test_a_file_is_read_as_it_was_written(tmp_path, content):
    written = BOX.write(tmp_path / "new" / "box", content, ARRAYS)
    assert_holds(tmp_path / "new" / "box", content)
    assert BOX.read(tmp_path / "new" / "box").sha256 == written.sha256
    assert BOX.write(tmp_path / "same", content, dict(reversed(ARRAYS.items()))).sha256 == written.sha256
    assert BOX.write(tmp_path / "other", [content], ARRAYS).sha256 != written.sha256
    assert BOX.write(tmp_path / "third", content, {**ARRAYS, "bytes": ARRAYS["bytes"] + 1}).sha256 != written.sha256


def test_other_programs_read_the_arrays(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    BOX.write(tmp_path / "box", None, ARRAYS)
    found = safetensors.load_file(tmp_path / "box")
    assert set(found) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([None]), np.array([1j]), np.array(["2020"], "M8[D]")])
def test_other_arrays_are_rejected(tmp_path, array):
    with pytest.raises(TypeError, match="cannot be stored as a tensor"):
        BOX.write(tmp_path / "box", None, {"a": array})
    assert not (tmp_path / "box").exists()


class Fault:
    """Fails at one call of a function of the operating system."""

    def __init__(self, function, at, number):
        self.function, self.at, self.number, self.calls = function, at, number, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        if self.calls - 1 == self.at:
            if self.number is None:
                raise KeyboardInterrupt
            raise OSError(self.number, os.strerror(self.number))
        return self.function(*args, **kwargs)


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, None], ids=["ENOSPC", "EIO", "interrupt"])
@pytest.mark.parametrize("name", ["write", "fsync", "lseek", "open"])
def test_a_fault_at_any_write_leaves_the_old_state(tmp_path, monkeypatch, is_new, number, name):
    path = tmp_path / "box"
    if not is_new:
        BOX.write(path, "old", ARRAYS)
    before, at = sorted(tmp_path.iterdir()), 0
    while True:
        fault = Fault(getattr(os, name), at, number)
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fault)
            try:
                BOX.write(path, "new", ARRAYS)
            except (OSError, KeyboardInterrupt) as error:
                failure = error
            else:
                break
        assert sorted(tmp_path.iterdir()) == before
        assert isinstance(failure, KeyboardInterrupt) == (number is None)
        assert number is None or name == "open" or str(tmp_path) in str(failure)
        if not is_new:
            assert_holds(path, "old")
        at += 1
    assert at >= 1 and fault.calls == at
    assert_holds(path, "new")


def test_writes_of_one_byte_are_continued(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:1]))
    BOX.write(tmp_path / "box", "slow", ARRAYS)
    assert_holds(tmp_path / "box", "slow")


def test_texts_are_unpacked():
    texts = ["ab", "", "é∞", "\udcff", "x" * 300]
    content, ends = pack_texts(texts)
    assert unpack_texts(content, ends) == texts and unpack_texts(content, ends, np.array([4, 0, 1])) == [
        texts[4],
        "ab",
        "",
    ]
    assert unpack_texts(*pack_texts([])) == []
    for changed in (ends[::-1], ends + 1, ends - 3, ends.astype(float), ends[None]):
        with pytest.raises(ValueError):
            unpack_texts(content, np.ascontiguousarray(changed))
