"""The data home: where files of datasets lie, and how a missing one gets there."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten


def data_home() -> Path:
    """Return the folder that holds datasets: the variable ``PSILEARN_DATA``, else ``~/psilearn_data``."""
    return Path(os.environ.get("PSILEARN_DATA") or Path.home() / "psilearn_data").expanduser()


def cache_home() -> Path:
    """Return the folder for what can be computed again: the variable ``PSILEARN_CACHE``, else ``~/.cache/psilearn``."""
    own = os.environ.get("PSILEARN_CACHE")
    return Path(own or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "psilearn").expanduser()


@dataclass(frozen=True)
class RemoteFile:
    """A file of a dataset: where it lies in the data home, where it comes from, and what it must contain."""

    path: str  # below the data home
    url: str | None = None  # None: nothing to download; it must be put there
    sha256: str | None = None  # None: unknown
    size: int | None = None  # bytes

    @property
    def target(self) -> Path:
        """Where the file lies or belongs."""
        return data_home() / self.path

    def is_there(self) -> bool:
        """Whether something lies at the file's place."""
        home = data_home()
        if home.exists() and not home.is_dir():
            raise NotADirectoryError(f"the data home {home} is not a folder: name one by the variable PSILEARN_DATA.")
        try:
            return self.target.exists()
        except PermissionError as error:
            raise PermissionError(
                f"{self.target} cannot be looked at: {self.target.parent} is closed to you."
            ) from error

    def fault(self, hashed: bool = True) -> str | None:
        """Say what is wrong with the file at its place, or None; without ``hashed``, judge by its size alone."""
        return _fault(self.target, self.size, self.sha256 if hashed else None)

    def fetch(self) -> Path:
        """Return the checked file, downloaded if need be; a failed download leaves nothing behind."""
        if not self.is_there():
            self.download()
        elif (fault := self.fault()) is not None:
            origin = f", or get it from {self.url}" if self.url else ""
            raise ValueError(f"{self.target} is not the expected file: {fault}. Remove it and load again{origin}.")
        return self.target

    def download(self) -> None:
        """Download the file beside its place, check it, and move it there."""
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.target.parent, prefix=".download-") as folder:
                import pooch

                pooch.retrieve(self.url, known_hash=None, fname=self.target.name, path=folder)
                arrived = Path(folder) / self.target.name
                if (fault := _fault(arrived, self.size, self.sha256)) is not None:
                    raise ValueError(f"what arrived is not the expected file: {fault}")
                arrived.replace(self.target)
        except Exception as error:  # no pooch, no network, a server's error page, a closed folder: one remedy for all
            reason = f"{type(error).__name__}: {shorten(str(error), 300)}"
            raise FileNotFoundError(
                f"{self.target} is missing and could not be downloaded ({reason}). "
                f"Get {self.url} and save it as {self.target}; the data home must be a folder that you may write, and "
                f"another one can be named by the variable PSILEARN_DATA. Downloads need the extra psilearn[data]."
            ) from None  # the reason is in the message; the network's own traceback fills a page


def _fault(path: Path, size: int | None, sha256: str | None) -> str | None:
    if not path.is_file():
        return "it is not a file"
    found = path.stat().st_size
    if size is not None and found != size:
        return f"it has {found:,} bytes, expected {size:,}"
    if sha256 is None:
        return None
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return None if digest == sha256 else f"its sha256 is {digest}, expected {sha256}"


def github(repository: str, commit: str, path: str) -> str:
    """Return the address of a file of a public repository at a commit."""
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"
