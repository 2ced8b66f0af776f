"""Manifest folders: only finished folders with the listed files are opened, and nothing else is overwritten."""

import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from psilearn._utils.files import OutputFile
from psilearn._utils.folder_files import check_file_name, open_array, write_json
from psilearn._utils.folders import FolderError, FolderFormat
from psilearn._utils.locks import LOCK
from tests.manifests import edit_manifest, reseal

BOXES = FolderFormat("tests.box", 2, "box of numbers", "Pack the box again.")
RESUMABLE = replace(BOXES, resume="Pack more.")
BAGS = FolderFormat("tests.bag", 2, "bag", "Pack the bag again.")
NUMBERS = np.arange(6.0).reshape(2, 3)


def pack(path, **content):
    writer = BOXES.claim(path)
    writer.save_array("numbers.npy", NUMBERS)
    writer.write_bytes("label.txt", b"six numbers")
    writer.write_json("colors.json", ["red", 1.5])
    writer.create_array("rows.npy", (4, 2), np.float32)[:] = 7
    writer.finish(content)
    return path


def test_what_was_written_is_read(tmp_path):
    folder = BOXES.open(pack(tmp_path / "new" / "box", owner="me"))
    assert folder.content == {"owner": "me"}
    assert set(folder.files) == {"numbers.npy", "label.txt", "colors.json", "rows.npy"}
    assert folder.file("label.txt").read_bytes() == b"six numbers"
    assert folder.read_json("colors.json") == ["red", 1.5]
    np.testing.assert_array_equal(folder.load_array("numbers.npy"), NUMBERS)
    rows = folder.load_array("rows.npy", mapped=True)
    assert isinstance(rows, np.memmap) and not rows.flags.writeable and rows.dtype == np.float32 and np.all(rows == 7)
    assert {file.name for file in folder.path.iterdir()} == {*folder.files, "manifest.json"}


@pytest.mark.parametrize(
    "array",
    [np.zeros((0, 5)), np.zeros((3, 0)), np.array(2.5), np.asfortranarray(NUMBERS), np.array(["a", "bc"])],
    ids=["no rows", "no columns", "0-d", "Fortran", "texts"],
)
@pytest.mark.parametrize("mapped", [False, True])
def test_any_array_without_objects_can_be_kept(tmp_path, array, mapped):
    writer = BOXES.claim(tmp_path / "box")
    writer.save_array("array.npy", array)
    writer.finish({})
    loaded = BOXES.open(tmp_path / "box").load_array("array.npy", mapped=mapped)
    np.testing.assert_array_equal(loaded, array)
    assert loaded.dtype == array.dtype and loaded.shape == array.shape


def test_objects_are_not_pickled(tmp_path):
    with pytest.raises(ValueError, match="allow_pickle"):
        BOXES.claim(tmp_path / "box").save_array("array.npy", np.array([{}], dtype=object))


def test_claimed_are_new_empty_and_unfinished_folders_only(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match=r"file is a file: choose a new folder for the box of numbers"):
        BOXES.claim(tmp_path / "file")
    with pytest.raises(FileExistsError, match="contains other files"):
        BOXES.claim(tmp_path)
    pack(tmp_path / "box")
    with pytest.raises(FileExistsError, match="box already contains a box of numbers"):
        BOXES.claim(tmp_path / "box")
    with pytest.raises(FileExistsError, match="contains other files"):
        BAGS.claim(tmp_path / "box")
    (tmp_path / "empty").mkdir()
    with RESUMABLE.claim(tmp_path / "empty") as writer:
        writer.write_bytes("chunk", b"1")
    with pytest.raises(FileExistsError, match="contains other files"):
        BAGS.claim(tmp_path / "empty")
    with RESUMABLE.claim(tmp_path / "empty"):
        assert (tmp_path / "empty" / "chunk").read_bytes() == b"1"  # work can be resumed
    (tmp_path / "empty" / LOCK).write_text("{")  # a kill while it was written
    with RESUMABLE.claim(tmp_path / "empty"):
        pass
    (tmp_path / "empty" / LOCK).unlink()
    with pytest.raises(FileExistsError, match="contains other files"):
        RESUMABLE.claim(tmp_path / "empty")
    assert {file.name for file in tmp_path.iterdir()} == {"file", "box", "empty"}


def test_an_unfinished_folder_is_not_opened(tmp_path):
    writer = BOXES.claim(tmp_path / "box")
    writer.save_array("numbers.npy", NUMBERS)
    with pytest.raises(FolderError, match=r"box is an unfinished box of numbers\. Pack the box again\."):
        BOXES.open(tmp_path / "box")
    with pytest.raises(FolderError, match=r"box is an unfinished box of numbers\. Pack more\."):
        RESUMABLE.open(tmp_path / "box")
    with pytest.raises(FolderError, match="box is not a bag"):
        BAGS.open(tmp_path / "box")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FolderError, match=r"empty is not a box of numbers: it has no manifest\.json"):
        BOXES.open(tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match=r"absent does not exist: there is no box of numbers to open"):
        BOXES.open(tmp_path / "absent")


@pytest.mark.parametrize(("owner", "step"), [(OutputFile, "write"), (Path, "replace")])
def test_an_interrupted_manifest_leaves_the_folder_unfinished(tmp_path, monkeypatch, owner, step):
    writer = RESUMABLE.claim(tmp_path / "box")
    writer.save_array("numbers.npy", NUMBERS)
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            writer.finish({})
    with pytest.raises(FolderError, match="unfinished"):
        RESUMABLE.open(tmp_path / "box")
    assert {file.name for file in (tmp_path / "box").iterdir()} == {"numbers.npy", LOCK}
    writer.release()
    assert BOXES.open(pack(tmp_path / "box")).content == {}


def test_an_interrupted_write_leaves_the_previous_file(tmp_path, monkeypatch):
    record = tmp_path / "record.json"
    BOXES.write_manifest(record, {"value": 1})
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        BOXES.write_manifest(record, {"value": 2})
    assert BOXES.read_manifest(record) == {"value": 1}
    assert list(tmp_path.iterdir()) == [record]
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(record, {"value": float("nan")})
    assert BOXES.read_manifest(record) == {"value": 1}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", "null", "{}", '{"format": "tests.box"}', '{"version": NaN}', "[" * 100_000, "\udcff"]
)
def test_a_file_that_is_not_a_manifest(tmp_path, text):
    (tmp_path / "manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(FolderError, match=r"manifest\.json is not the manifest of a box of numbers\. Pack"):
        BOXES.open(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(format="tests.bag"), r"box contains 'tests\.bag', not a box of numbers"),
        (lambda m: m.update(version=1), r"box has version 1 of the format tests\.box; this psilearn reads version 2"),
        (lambda m: m.pop("files"), "KeyError: 'files'"),
        (lambda m: m.update(files=["numbers.npy"]), "AttributeError"),
        (lambda m: m["files"].update({"numbers.npy": 7}), "AttributeError"),
        (lambda m: m["files"]["numbers.npy"].update(bytes=7), "numbers.npy has 176 bytes instead of 7"),
        (lambda m: m["files"]["numbers.npy"].update(shape=[3, 2]), r"shape \(2, 3\) .* lists shape \(3, 2\)"),
        (lambda m: m["files"]["numbers.npy"].update(dtype="<f4"), "dtype <f8; .* dtype <f4"),
        (lambda m: m["files"]["numbers.npy"].pop("shape"), "lists shape None"),
        (
            lambda m: m["files"].update({"../box/label.txt": {"bytes": 11, "sha256": ""}}),
            "not the name of a file in the folder",
        ),
        (lambda m: m["files"].update({"absent": {"bytes": 11, "sha256": ""}}), "absent is missing"),
    ],
)
def test_changed_manifests_are_rejected(tmp_path, change, message):
    edit_manifest(pack(tmp_path / "box"), change)
    with pytest.raises(FolderError, match=message) as caught:
        BOXES.open(tmp_path / "box")
    assert str(tmp_path / "box") in str(caught.value) and "Pack the box again." in str(caught.value)


def test_changed_files_are_rejected(tmp_path):
    path = pack(tmp_path / "box")
    content = (path / "numbers.npy").read_bytes()
    for changed, message in [
        (content[:-8], "truncated or changed"),
        (b"x" * len(content), "not a readable .npy file"),
        (b"", "truncated or changed"),
    ]:
        (path / "numbers.npy").write_bytes(changed)
        with pytest.raises(FolderError, match=rf"box is not .*numbers\.npy .*{message}"):
            BOXES.open(path)
    (path / "numbers.npy").unlink()
    with pytest.raises(FolderError, match=r"numbers\.npy is missing"):
        BOXES.open(path)


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("executed",))


@pytest.mark.parametrize("kind", ["objects", "pickle", "zip", "header"])
def test_no_file_is_unpickled(tmp_path, kind):
    path = pack(tmp_path / "box")
    file = path / "numbers.npy"
    if kind == "objects":
        np.save(file, np.array([Evil()], dtype=object), allow_pickle=True)
    elif kind == "pickle":
        file.write_bytes(pickle.dumps(Evil()))
    elif kind == "zip":
        with file.open("wb") as stream:
            np.savez(stream, numbers=NUMBERS)
    else:
        file.write_bytes(b"\x93NUMPY\x01\x00\x40\x00" + b"pytest.fail('executed') or ('''".ljust(64))
    reseal(path)
    with pytest.raises(FolderError, match=r"not a readable \.npy file"):
        BOXES.open(path)
    with pytest.raises(ValueError, match=r"not a readable \.npy file"):
        open_array(file, mapped=False)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../other", "/etc/passwd", "a/b", "a\\b", "C:x.npy", "nul\0", 7, None, b"a"]
)
def test_names_that_leave_the_folder_are_rejected(tmp_path, name):
    with pytest.raises(ValueError, match="not the name of a file"):
        check_file_name(name)
    with pytest.raises(ValueError, match="not the name of a file"):
        BOXES.claim(tmp_path / "new").add_file(name)
    with pytest.raises(FolderError, match=r"box is not .* not a file of its manifest"):
        BOXES.open(pack(tmp_path / "box")).file(name)


def test_names_of_files_are_unique_and_have_their_suffix(tmp_path):
    assert check_file_name("a-b.png", ".png") == "a-b.png"
    with pytest.raises(ValueError, match=r"not the name of a \.png file"):
        check_file_name("a.svg", ".png")
    writer = BOXES.claim(tmp_path / "box")
    writer.write_bytes("label.txt", b"")
    for name in ("label.txt", "manifest.json", LOCK):
        with pytest.raises(ValueError, match="already"):
            writer.add_file(name)
    with pytest.raises(ValueError, match=r"\.npy file"):
        writer.save_array("array.txt", NUMBERS)


def test_contents_that_cannot_be_used_name_the_folder(tmp_path):
    folder = BOXES.open(pack(tmp_path / "box"))
    for error, message in [
        (KeyError("owner"), "KeyError: 'owner'"),
        (ValueError("no numbers."), "no numbers. Pack the box again."),
        (folder.error("no numbers"), "no numbers. Pack the box again."),
    ]:
        with pytest.raises(FolderError) as caught, folder.convert_errors():
            raise error
        assert str(caught.value).startswith(f"{tmp_path / 'box'} is not a box of numbers that can be used: ")
        assert message in str(caught.value) and str(caught.value).count(str(tmp_path)) == 1
    with pytest.raises(KeyboardInterrupt), folder.convert_errors():
        raise KeyboardInterrupt


def test_a_full_disk_is_reported_before_writing(tmp_path, monkeypatch):
    writer = BOXES.claim(tmp_path / "box")
    writer.require_space(1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("", (), {"free": 10}))
    with pytest.raises(OSError, match=r"box: the box of numbers needs 1,000 bytes, but only 10 are free"):
        writer.require_space(1000)
