"""A folder is as before or complete, whatever write fails; and only regular files are opened."""

import errno
import json
import os
import resource
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

from psilearn._utils import files, folders
from psilearn._utils.folders import FolderError, FolderFormat
from psilearn._utils.locks import FolderBusyError, FolderLock
from tests.manifests import data_folder, edit_manifest, reseal

FIXED = FolderFormat("tests.box", 2, "box", "Pack the box again.")
REPLACEABLE = replace(FIXED, replaceable=True)
NUMBERS = np.arange(12.0).reshape(3, 4)


def pack(format, path, scale=1.0, overwrite=False):
    with format.claim(path, overwrite=overwrite) as writer:
        writer.save_array("numbers.npy", scale * NUMBERS)
        writer.write_json("scale.json", scale)
        writer.create_array("rows.npy", (5,), np.float32)[:] = scale
        writer.finish({"scale": scale})
    return path


def content_of(format, path):
    folder = format.open(path)
    scales = [folder.content["scale"], folder.read_json("scale.json"), float(folder.load_array("numbers.npy")[0, 1])]
    assert len({*scales, *np.unique(folder.load_array("rows.npy"))}) == 1
    return scales[0]


def names(path):
    return {str(file.relative_to(path)) for file in path.rglob("*")}


def test_a_folder_is_replaced(tmp_path):
    path = pack(REPLACEABLE, tmp_path / "box")
    first = names(path)
    for scale in (2.0, 3.0):
        pack(REPLACEABLE, path, scale, overwrite=True)
        assert content_of(REPLACEABLE, path) == scale
        assert len(names(path)) == len(first)  # nothing of the former version is left
    with pytest.raises(FileExistsError, match="pass overwrite=True to replace it"):
        pack(REPLACEABLE, path)
    with pytest.raises(FileExistsError, match="open it, or choose another folder"):
        pack(FIXED, pack(FIXED, tmp_path / "fixed"), overwrite=True)


class Fault:
    """Fails at one call of a function of the operating system, or writes one byte at a time."""

    def __init__(self, function, at, number):
        self.function, self.at, self.number, self.calls = function, at, number, 0

    def __call__(self, *args):
        self.calls += 1
        if self.calls - 1 == self.at:
            if self.number is None:
                raise KeyboardInterrupt
            raise OSError(self.number, os.strerror(self.number))
        return self.function(*args)


@pytest.mark.parametrize("format", [FIXED, REPLACEABLE], ids=["new", "replaced"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, None], ids=["ENOSPC", "EIO", "interrupt"])
@pytest.mark.parametrize("name", ["write", "fsync", "posix_fallocate", "ftruncate"])
def test_a_fault_at_any_write_leaves_the_old_state(tmp_path, monkeypatch, format, number, name):
    path = tmp_path / "box"
    if format.replaceable:
        pack(format, path)
    before, at = names(tmp_path), 0
    while True:
        fault = Fault(getattr(os, name), at, number)
        with monkeypatch.context() as patch:
            patch.setattr(files.os, name, fault)
            try:
                pack(format, path, 2.0, overwrite=True)
                break
            except OSError as error:
                assert error.errno == number and str(path) in str(error.filename)
            except KeyboardInterrupt:
                assert number is None
        assert names(tmp_path) == before
        at += 1
    assert at >= 1 and content_of(format, path) == 2.0


def test_short_writes_are_completed(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(files.os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    assert content_of(FIXED, pack(FIXED, tmp_path / "box")) == 1.0
    monkeypatch.setattr(files.os, "write", lambda descriptor, data: 0)
    with pytest.raises(OSError, match=r"numbers\.npy"):
        pack(FIXED, tmp_path / "other")


LIMITED = """
import resource, signal, sys
from pathlib import Path
from tests._utils.test_folder_faults import FIXED
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
with FIXED.claim(Path(sys.argv[1])) as writer:
    writer.create_array("rows.npy", (10**5,), float)[:] = 1.0
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="needs a limit on the size of files")
def test_a_mapped_array_without_space_is_an_error_and_not_a_crash(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "box")], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1 and "OSError" in run.stderr and "rows.npy" in run.stderr
    assert not (tmp_path / "box").exists()


def test_a_second_writer_is_told_at_once(tmp_path):
    with REPLACEABLE.claim(tmp_path / "box") as writer:
        with pytest.raises(FolderBusyError, match=f"box is being written by .*process {os.getpid()}"):
            REPLACEABLE.claim(tmp_path / "box")
        writer.finish({"scale": 1.0})
    REPLACEABLE.claim(tmp_path / "box", overwrite=True).release()
    assert REPLACEABLE.open(tmp_path / "box").content == {"scale": 1.0}


def test_a_failed_write_leaves_no_new_parents(tmp_path):
    with pytest.raises(KeyboardInterrupt), FIXED.claim(tmp_path / "a" / "b" / "box") as writer:
        writer.write_bytes("file", b"1")
        raise KeyboardInterrupt
    assert names(tmp_path) == set()
    (tmp_path / "a").mkdir()
    FIXED.claim(tmp_path / "a" / "b" / "box").release()
    assert names(tmp_path) == {"a"}


@pytest.mark.parametrize("number", [5, 999_999_999])
def test_any_number_of_versions_can_be_replaced(tmp_path, number):
    path = pack(REPLACEABLE, tmp_path / "box")
    (path / f"version-{number}").mkdir()
    for scale in (2.0, 3.0, 4.0):
        pack(REPLACEABLE, path, scale, overwrite=True)
        assert content_of(REPLACEABLE, path) == scale


def test_a_folder_that_is_replaced_all_the_time_is_not_called_damaged(tmp_path, monkeypatch):
    path, scales = pack(REPLACEABLE, tmp_path / "box"), iter(range(2, 1000))
    monkeypatch.setattr(folders, "READ_PAUSE", 0)

    def replaced_meanwhile(folder):
        pack(REPLACEABLE, path, float(next(scales)), overwrite=True)
        return folder.load_array("numbers.npy")

    with pytest.raises(OSError, match="was replaced 50 times while it was read"):
        REPLACEABLE.read(path, replaced_meanwhile)


@pytest.mark.parametrize(
    ("name", "message"), [("dangling", "is a link to a folder that does not exist"), ("a\0b", "null character")]
)
def test_paths_that_cannot_be_folders_are_named(tmp_path, name, message):
    (tmp_path / "dangling").symlink_to(tmp_path / "absent")
    with pytest.raises((OSError, ValueError), match=message):
        FIXED.claim(tmp_path / name)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_lock_file_is_a_regular_file(tmp_path, kind):
    lock = tmp_path / ".psilearn-lock"
    {"link": lambda: lock.symlink_to(tmp_path), "pipe": lambda: os.mkfifo(lock), "folder": lock.mkdir}[kind]()
    with pytest.raises(FileExistsError, match=r"\.psilearn-lock is not a lock file"):
        FolderLock(tmp_path, "tests.box")


def test_what_a_killed_writer_left_is_removed(tmp_path):
    path = pack(REPLACEABLE, tmp_path / "box")
    (path / "version-2").mkdir()
    (path / "version-2" / "numbers.npy").write_bytes(b"half")
    (path / ".manifest.json.123.tmp").write_text("{")
    (path / ".psilearn-lock").write_text('{"format": "tests.box", "process": 123}')
    assert content_of(REPLACEABLE, path) == 1.0
    pack(REPLACEABLE, path, 2.0, overwrite=True)
    assert content_of(REPLACEABLE, path) == 2.0
    assert names(path) == {"manifest.json", "version-3", *(f"version-3/{n}" for n in REPLACEABLE.open(path).files)}


def test_readers_see_the_old_or_the_new_folder(tmp_path):
    path, stop, seen = pack(REPLACEABLE, tmp_path / "box"), threading.Event(), set()

    def replace_again_and_again():
        for scale in range(2, 40):
            pack(REPLACEABLE, path, float(scale), overwrite=True)
        stop.set()

    writer = threading.Thread(target=replace_again_and_again)
    writer.start()
    while not stop.is_set():
        seen.add(REPLACEABLE.read(path, lambda folder: float(folder.load_array("rows.npy")[0])))
    writer.join()
    assert seen <= set(range(1, 40)) and content_of(REPLACEABLE, path) == 39.0


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "device"])
@pytest.mark.parametrize("name", ["numbers.npy", "scale.json", "manifest.json"])
def test_only_regular_files_are_opened(tmp_path, kind, name):
    path = pack(FIXED, tmp_path / "box")
    file = path / name
    copy = tmp_path / "copy"
    file.rename(copy)
    if kind == "link":
        file.symlink_to(copy)
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to("/dev/zero")
    with pytest.raises(FolderError, match=r"manifest of a box" if name == "manifest.json" else f"{name} is a "):
        FIXED.open(path)


def test_the_subfolder_of_the_files_is_not_a_link(tmp_path):
    path = pack(REPLACEABLE, tmp_path / "box")
    data_folder(path).rename(tmp_path / "elsewhere")
    data_folder(path).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FolderError, match="version-1 is missing, or a link"):
        REPLACEABLE.open(path)
    edit_manifest(path, lambda m: m.update(data="../elsewhere"))
    with pytest.raises(FolderError, match="not the subfolder of a version"):
        REPLACEABLE.open(path)


@pytest.mark.parametrize("name", ["numbers.npy", "scale.json", "rows.npy"])
def test_a_changed_byte_is_detected(tmp_path, name):
    path = pack(FIXED, tmp_path / "box")
    content = bytearray((path / name).read_bytes())
    content[-1] ^= 1
    (path / name).write_bytes(content)
    with pytest.raises(FolderError, match=rf"box is not .*{name} is damaged or was replaced"):
        FIXED.open(path)
    assert FIXED.open(path, verify=False).content == {"scale": 1.0}


def test_swapped_files_are_detected(tmp_path):
    with FIXED.claim(tmp_path / "box") as writer:
        writer.save_array("a.npy", NUMBERS)
        writer.save_array("b.npy", NUMBERS + 1)
        writer.finish({})
    first, second = tmp_path / "box" / "a.npy", tmp_path / "box" / "b.npy"
    first.rename(tmp_path / "c")
    second.rename(first)
    (tmp_path / "c").rename(second)
    with pytest.raises(FolderError, match=r"a\.npy is damaged or was replaced"):
        FIXED.open(tmp_path / "box")


def test_any_change_of_the_manifest_is_detected(tmp_path):
    path = pack(FIXED, tmp_path / "box")
    content = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**content, "scale": 1.5}))
    with pytest.raises(FolderError, match=r"manifest\.json is damaged or was changed"):
        FIXED.open(path)
    (path / "manifest.json").write_text(json.dumps(content, indent=3, sort_keys=True))
    assert FIXED.open(path).content == {"scale": 1.0}


@pytest.mark.parametrize("shape", [(10**12,), (3, 10**9), (-3, -4), (3, 4, 10**6)])
def test_declared_shapes_are_compared_with_the_file_before_memory_is_allocated(tmp_path, shape):
    path = pack(FIXED, tmp_path / "box")
    content = (path / "numbers.npy").read_bytes()
    header = content[:128].replace(b"(3, 4), }", f"{shape}, }}".encode())
    (path / "numbers.npy").write_bytes(header[:127] + b"\n" + content[128:])
    reseal(path)
    edit_manifest(path, lambda m: m["files"]["numbers.npy"].update(shape=list(shape)))
    with pytest.raises(FolderError, match=r"numbers\.npy is not a readable"):
        FIXED.open(path)


def test_the_number_of_files_is_limited(tmp_path):
    path = pack(FIXED, tmp_path / "box")
    entry = {"bytes": 0, "sha256": ""}
    edit_manifest(path, lambda m: m.update(files={str(i): entry for i in range(10_001)}))
    with pytest.raises(FolderError, match="more than 10,000 files"):
        FIXED.open(path)
