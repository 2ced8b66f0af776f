"""Numbered lines of text files, and errors about files that are not texts."""

import gzip
import os

import pytest

from psilearn_lab.datasets import read_mulan, read_svmlight_multilabel, read_xc
from psilearn_lab.datasets.sparse_rows import read_lines

READERS = [read_mulan, read_svmlight_multilabel, read_xc]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"<!DOCTYPE html>\n<html>404</html>", "line 1: a web page or XML instead of data"),
        (b"PK\x03\x04rest", "is a zip archive: unpack it"),
        (b"Rar!\x1a\x07\x00", "is a rar archive: unpack it"),
        ("@relation größe".encode("utf-16"), "line 1: not UTF-8 text"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "line 1: not UTF-8 text"),
        (b"\x00\x01\x02", "line 1: binary content"),
        (b"\x1f\x8b\x08\x00" + b"x" * 40, "the compressed file is truncated or damaged"),
    ],
)
def test_a_file_that_is_not_a_text_raises_in_every_reader(tmp_path, read, content, words):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=words) as caught:
        read(tmp_path / "file")
    assert str(tmp_path / "file") in str(caught.value)


@pytest.mark.parametrize("read", READERS)
def test_a_path_that_is_not_a_file_raises_in_every_reader(tmp_path, read):
    with pytest.raises(ValueError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"absent cannot be read"):
        read(tmp_path / "absent")


def test_a_file_without_read_permission_raises(tmp_path):
    (tmp_path / "file").write_text("1 1 1\n")
    (tmp_path / "file").chmod(0)
    if os.access(tmp_path / "file", os.R_OK):
        pytest.skip("this user can read every file")
    with pytest.raises(PermissionError, match=r"file cannot be read"):
        read_xc(tmp_path / "file")


def test_lines_are_numbered_and_have_no_line_ends(tmp_path):
    (tmp_path / "file").write_bytes("\ufeffa\r\n b\n\nc".encode())
    assert list(read_lines(tmp_path / "file")) == [(1, "a"), (2, " b"), (3, ""), (4, "c")]


def test_a_truncated_compressed_file_raises_with_its_line(tmp_path):
    (tmp_path / "file").write_bytes(gzip.compress(b"1 1 1\n" * 10_000)[:-20])
    with pytest.raises(ValueError, match=r"file, line \d+: the compressed file is truncated"):
        list(read_lines(tmp_path / "file"))
