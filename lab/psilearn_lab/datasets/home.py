"""The data home: the folder of dataset files, and the download of missing files."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten


def data_home() -> Path:
    """Return the folder that contains the files of datasets.

    It is the value of the environment variable ``PSILEARN_DATA``, or ``~/psilearn_data`` if the variable is not set.

    Returns
    -------
    pathlib.Path
        The folder; it need not exist.

    See Also
    --------
    load_bibtex : A loader that reads from this folder.

    Examples
    --------
    >>> import os
    >>> from psilearn_lab.datasets import data_home
    >>> os.environ["PSILEARN_DATA"] = "/data"  # doctest: +SKIP
    >>> data_home()  # doctest: +SKIP
    PosixPath('/data')
    """
    return Path(os.environ.get("PSILEARN_DATA") or Path.home() / "psilearn_data").expanduser()


def cache_home() -> Path:
    """Return the folder of recomputable files: the variable ``PSILEARN_CACHE``, else ``~/.cache/psilearn``."""
    folder = os.environ.get("PSILEARN_CACHE")
    return Path(folder or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "psilearn").expanduser()


@dataclass(frozen=True)
class RemoteFile:
    """A file of a dataset: its place in the data home, its public address, and its expected size and checksum."""

    path: str  # below the data home
    url: str | None = None  # None: it cannot be downloaded and must be put into the data home
    sha256: str | None = None  # None: unknown
    size: int | None = None  # bytes; None: unknown

    @property
    def target(self) -> Path:
        """The place of the file in the data home."""
        return data_home() / self.path

    def exists(self) -> bool:
        """Return whether anything exists at the place of the file."""
        home = data_home()
        if home.exists() and not home.is_dir():
            raise NotADirectoryError(
                f"the data home {home} is not a folder: set the variable PSILEARN_DATA to another one."
            )
        try:
            return self.target.exists()
        except PermissionError as error:
            raise PermissionError(
                f"{self.target} cannot be read: you have no permission to open {self.target.parent}."
            ) from error

    def find_fault(self, check_hash: bool = True) -> str | None:
        """Return what is wrong with the file in the data home, or None; ``check_hash=False`` compares only the size."""
        return _find_fault(self.target, self.size, self.sha256 if check_hash else None)

    def fetch(self) -> Path:
        """Return the path of the checked file, downloaded if it is missing; a failed download leaves no file behind."""
        if not self.exists():
            self.download()
        elif (fault := self.find_fault()) is not None:
            origin = f", or get it from {self.url}" if self.url else ""
            raise ValueError(f"{self.target} is not the expected file: {fault}. Remove it and load again{origin}.")
        return self.target

    def download(self) -> None:
        """Download the file next to its place, check it, and move it there."""
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.target.parent, prefix=".download-") as folder:
                import pooch

                pooch.retrieve(self.url, known_hash=None, fname=self.target.name, path=folder)
                downloaded = Path(folder) / self.target.name
                if (fault := _find_fault(downloaded, self.size, self.sha256)) is not None:
                    raise ValueError(f"the downloaded file is not the expected one: {fault}")
                downloaded.replace(self.target)
        except Exception as error:  # no pooch, no network, an error page, no permission: the remedy is the same
            reason = f"{type(error).__name__}: {shorten(str(error), 300)}"
            raise FileNotFoundError(
                f"{self.target} is missing and could not be downloaded ({reason}). "
                f"Download {self.url} and save it as {self.target}. The data home must be a folder that you can write; "
                f"the variable PSILEARN_DATA names another one. Downloads need the extra psilearn[data]."
            ) from None  # the reason is in the message; the traceback of the network library is long


def _find_fault(path: Path, size: int | None, sha256: str | None) -> str | None:
    """Return how a file differs from the expected one, or None."""
    if not path.is_file():
        return "it is not a file"
    n_bytes = path.stat().st_size
    if size is not None and n_bytes != size:
        return f"it has {n_bytes:,} bytes, expected {size:,}"
    if sha256 is None:
        return None
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return None if digest == sha256 else f"its sha256 is {digest}, expected {sha256}"


def github_url(repository: str, commit: str, path: str) -> str:
    """Return the address of a file of a public GitHub repository at a commit."""
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"
