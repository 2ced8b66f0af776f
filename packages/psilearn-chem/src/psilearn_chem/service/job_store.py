"""Jobs on the disk: a folder per job, whose result is a folder that appears in one rename.

Every process of the service reads the state of a job from its folder, so that any of them can answer. A job without a
result is computed again by the next process that starts; a result survives the process that wrote it.
"""

from __future__ import annotations

import fcntl
import json
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psilearn.utils import create_folder, write_atomically

JOB_ID = re.compile(r"[0-9a-f]{32}")
REQUEST, PROGRESS, CANCEL, LOCK = "request.json", "progress.json", "cancel", "lock"
RESULT, STATE = "result", "state.json"
DRAFT = "draft-"
DRAFT_SECONDS = 600  # after which an unfinished folder belongs to no process


@dataclass(frozen=True)
class JobState:
    """The state of a job, for clients."""

    state: str  # waiting, running, finished, failed or cancelled
    done: int = 0
    total: int | None = None
    error: str | None = None
    n_problems: int = 0


class JobStore:
    """The jobs in a folder."""

    def __init__(self, root: Path) -> None:
        create_folder(root)
        self.root = root
        for draft in root.glob(f"{DRAFT}*"):  # of processes that were killed; younger ones may be in use
            with suppress(FileNotFoundError):
                if time.time() - draft.stat().st_mtime > DRAFT_SECONDS:
                    shutil.rmtree(draft, ignore_errors=True)

    def create(self, request: Mapping[str, Any], payload: bytes, name: str) -> str:
        """Store a new job with its options and its data, and return its id."""
        job = secrets.token_hex(16)
        draft = self.root / f"{DRAFT}{job}"
        draft.mkdir()
        (draft / name).write_bytes(payload)
        (draft / REQUEST).write_text(json.dumps({**request, "payload": name}), encoding="utf-8")
        draft.rename(self.root / job)
        return job

    def exists(self, job: str) -> bool:
        """Return whether there is such a job; only 32 hexadecimal digits are looked up."""
        return JOB_ID.fullmatch(job) is not None and (self.root / job / REQUEST).is_file()

    def ids(self) -> list[str]:
        """Return the jobs, oldest first."""
        found = []
        for path in self.root.glob(f"*/{REQUEST}"):
            with suppress(FileNotFoundError):  # another process removes a job
                found.append((path.stat().st_mtime_ns, path.parent.name))
        return [job for _, job in sorted(found) if JOB_ID.fullmatch(job)]

    def has_result(self, job: str) -> bool:
        """Return whether a job is finished, failed, or cancelled and no longer computed."""
        return (self.root / job / RESULT / STATE).is_file()

    def read_request(self, job: str) -> tuple[dict[str, Any], Path]:
        """Return the options of a job and the file of its data."""
        request = json.loads((self.root / job / REQUEST).read_bytes())
        return request, self.root / job / request.pop("payload")

    def read_state(self, job: str) -> JobState:
        """Return the state of a job."""
        result = self.read_result(job, STATE)
        if result is not None:
            return JobState(**json.loads(result))
        if self.is_cancelled(job):
            return JobState("cancelled")
        try:
            done, total = json.loads((self.root / job / PROGRESS).read_bytes())
        except (OSError, ValueError):
            return JobState("waiting")
        return JobState("running", done, total)

    def write_progress(self, job: str, done: int, total: int | None) -> None:
        """Note how many spectra are done."""
        write_atomically(self.root / job / PROGRESS, json.dumps([done, total]).encode())

    def cancel(self, job: str) -> None:
        """Ask the process that computes a job to stop."""
        (self.root / job / CANCEL).touch()

    def is_cancelled(self, job: str) -> bool:
        """Return whether a job was cancelled."""
        return (self.root / job / CANCEL).exists()

    @contextmanager
    def claim(self, job: str) -> Iterator[None]:
        """Keep a job for this process; raise a BlockingIOError while another process computes it, or if it is done."""
        with (self.root / job / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # is released when the process ends, however it ends
            if self.has_result(job):
                raise BlockingIOError(f"The job {job} has a result.")
            yield

    def finish(self, job: str, state: JobState, files: Mapping[str, bytes]) -> None:
        """Write the result of a job in one rename, and remove its data."""
        draft = self.root / job / DRAFT
        shutil.rmtree(draft, ignore_errors=True)  # of a process that was killed
        draft.mkdir()
        for name, content in {**files, STATE: json.dumps(vars(state)).encode()}.items():
            write_atomically(draft / name, content)
        draft.rename(self.root / job / RESULT)
        _, payload = self.read_request(job)
        payload.unlink(missing_ok=True)
        (self.root / job / PROGRESS).unlink(missing_ok=True)

    def read_result(self, job: str, name: str) -> bytes | None:
        """Return a file of the result; None if there is no such result."""
        with suppress(FileNotFoundError):
            return (self.root / job / RESULT / name).read_bytes()
        return None

    def remove(self, job: str) -> None:
        """Remove a finished job."""
        shutil.rmtree(self.root / job, ignore_errors=True)

    def prune(self, n_kept: int) -> None:
        """Remove the oldest finished jobs beyond a number."""
        finished = [job for job in self.ids() if self.has_result(job)]
        for job in finished[: max(0, len(finished) - n_kept)]:
            self.remove(job)
