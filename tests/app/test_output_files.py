"""Files that cannot be written are found before any work starts, and the check leaves nothing behind."""

import os

import pytest

from psilearn.app.console import check_output_file


def test_a_new_and_an_existing_file_are_accepted(tmp_path):
    check_output_file(tmp_path / "new.csv", "--output")
    (tmp_path / "old.csv").write_text("old")
    check_output_file(tmp_path / "old.csv", "--output")
    assert [file.name for file in tmp_path.iterdir()] == ["old.csv"] and (tmp_path / "old.csv").read_text() == "old"


def test_a_relative_file_is_looked_for_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_output_file(type(tmp_path)("new.csv"), "--output")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("folder", "is a folder; name a file"),
        ("missing/x.csv", "missing does not exist"),
        ("file/x.csv", "file does not exist"),
        ("fifo", "is not an ordinary file"),
        (200 * "long", "cannot be written: File name too long"),
    ],
)
def test_other_files_are_rejected_by_the_name_of_the_option(tmp_path, name, reason):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match=f"^--html: .*{reason}"):
        check_output_file(tmp_path / name, "--html")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["fifo", "file", "folder"]


def test_a_full_disk_is_found(tmp_path, monkeypatch):
    def write_bytes(file, content):  # as on a disk that is full, which the superuser cannot write to either
        raise OSError(28, "No space left on device", str(file))

    monkeypatch.setattr(type(tmp_path), "write_bytes", write_bytes)
    with pytest.raises(OSError, match=r"^--output: .*x\.csv cannot be written: No space left"):
        check_output_file(tmp_path / "x.csv", "--output")
