"""The data home: where files of datasets lie, and how a missing one gets there."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path


def data_home() -> Path:
    """Return the folder that holds datasets: the variable ``PSILEARN_DATA``, else ``~/psilearn_data``."""
    return Path(os.environ.get("PSILEARN_DATA") or Path.home() / "psilearn_data").expanduser()


@dataclass(frozen=True)
class RemoteFile:
    """A file of a dataset: where it lies in the data home, where it comes from, and what it must contain."""

    path: str  # below the data home
    url: str
    sha256: str

    def fetch(self) -> Path:
        """Return the checked file, downloaded if need be; a failed download leaves nothing behind."""
        target = data_home() / self.path
        if target.exists():
            found = hashlib.sha256(target.read_bytes()).hexdigest()
            if found != self.sha256:
                raise ValueError(
                    f"{target} is not the expected file: its sha256 is {found}, expected {self.sha256}. Remove it and "
                    f"load again, or get it from {self.url}."
                )
            return target
        try:
            import pooch

            pooch.retrieve(self.url, self.sha256, fname=target.name, path=target.parent)
        except Exception as error:  # no pooch, no network, a server's error page: one remedy for all
            raise FileNotFoundError(
                f"{target} is missing and could not be downloaded ({type(error).__name__}: {error}). Get {self.url} "
                f"and save it as {target}; another data home can be named by the variable PSILEARN_DATA. Downloads "
                f"need the extra psilearn[data]."
            ) from error
        return target


def github(repository: str, commit: str, path: str) -> str:
    """Return the address of a file of a public repository at a commit."""
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"
