"""Files are written completely or not at all, and values become strict JSON."""

import json
import os
import stat

import numpy as np
import pytest

from psilearn._utils.files import OutputFile, open_text_atomically, to_json_value, write_atomically
from psilearn.kernels import Gaussian


def test_an_atomic_write_leaves_no_draft(tmp_path):
    with pytest.raises(OSError):
        write_atomically(tmp_path / "missing" / "file", b"")
    write_atomically(tmp_path / "file", b"content")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"content"}


def test_an_interrupted_write_keeps_the_previous_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"previous")

    def write_half(file, content):
        os.write(file._descriptor, content[: len(content) // 2])
        raise KeyboardInterrupt

    monkeypatch.setattr(OutputFile, "write", write_half)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"next")
    assert [other.name for other in tmp_path.iterdir()] == ["file"] and path.read_bytes() == b"previous"


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("mode", [0o600, 0o440])
def test_a_replaced_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "file"
    path.write_bytes(b"previous")
    path.chmod(mode)
    write_atomically(path, b"next")
    assert path.read_bytes() == b"next" and stat.S_IMODE(path.stat().st_mode) == mode


def test_a_text_that_is_interrupted_keeps_the_previous_one(tmp_path):
    path = tmp_path / "file"
    with open_text_atomically(path) as file:
        file.write("α\r\n")
    with pytest.raises(KeyboardInterrupt), open_text_atomically(path) as file:
        file.write("β" * 10**6)
        raise KeyboardInterrupt
    assert [other.name for other in tmp_path.iterdir()] == ["file"] and path.read_bytes() == "α\r\n".encode()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.5), 0.5),
        (np.array([[1, 2]]), [[1, 2]]),
        (np.array([1.0, np.nan]), [1.0, "nan"]),
        (float("-inf"), "-inf"),
        ({5: (1, True, None)}, {"5": [1, True, None]}),
        (Gaussian(0.5), "Gaussian(gamma=0.5)"),
    ],
)
def test_values_become_strict_json(value, expected):
    assert to_json_value(value) == expected
    json.dumps(to_json_value(value), allow_nan=False)
