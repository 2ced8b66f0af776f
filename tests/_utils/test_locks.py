"""One process at a time writes into a folder; the lock of a process that ended is taken over."""

import os
import signal
import subprocess
import sys

import pytest

from psilearn._utils.locks import LOCK, FolderBusyError, FolderLock, read_lock

HOLD = """
import sys, time
from pathlib import Path
from psilearn._utils.locks import FolderLock
lock = FolderLock(Path(sys.argv[1]), "tests.box")
print("held", flush=True)
time.sleep(60)
"""


def test_a_second_lock_is_refused_with_the_process(tmp_path):
    lock = FolderLock(tmp_path, "tests.box")
    assert read_lock(tmp_path) == {"format": "tests.box", "process": os.getpid()}
    for _ in range(2):
        with pytest.raises(FolderBusyError, match=rf"{tmp_path} is being written .* \(process {os.getpid()}\)"):
            FolderLock(tmp_path, "tests.box")
    assert lock.is_held
    lock.release(remove=True)
    assert not (tmp_path / LOCK).exists() and not lock.is_held
    lock.release(remove=True)
    FolderLock(tmp_path, "tests.box").release(remove=False)
    assert (tmp_path / LOCK).exists()


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(FolderBusyError, match=f"process {process.pid}"):
            FolderLock(tmp_path, "tests.box")
        process.send_signal(signal.SIGKILL)
    lock = FolderLock(tmp_path, "tests.box")
    assert read_lock(tmp_path)["process"] == os.getpid()
    lock.release(remove=True)


def test_a_lock_that_is_not_referenced_is_released(tmp_path):
    lock = FolderLock(tmp_path, "tests.box")
    del lock
    FolderLock(tmp_path, "tests.box")


@pytest.mark.parametrize("content", [b"", b"{", b"7", b"\xff", None])
def test_unreadable_locks_name_no_process(tmp_path, content):
    if content is not None:
        (tmp_path / LOCK).write_bytes(content)
    assert read_lock(tmp_path) == {}


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / LOCK).symlink_to(tmp_path / "victim")
    with pytest.raises(OSError):
        FolderLock(tmp_path, "tests.box")
    assert (tmp_path / "victim").read_text() == "precious" and read_lock(tmp_path) == {}
