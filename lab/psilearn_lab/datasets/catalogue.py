"""The catalogue of all datasets, the data home, and the download of missing files."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

NOT_STATED = "not stated by the source"


def data_home() -> Path:
    """Return the folder that contains the files of datasets.

    Returns
    -------
    Path
        The folder that the variable ``PSILEARN_DATA`` names, else ``~/psilearn_data``.

    See Also
    --------
    load : Load a dataset from it.

    Examples
    --------
    >>> import os
    >>> from psilearn_lab.datasets import data_home
    >>> os.environ["PSILEARN_DATA"] = "/data"
    >>> data_home().as_posix()
    '/data'
    """
    return Path(os.environ.get("PSILEARN_DATA") or Path.home() / "psilearn_data").expanduser()


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
        return self.target.exists()

    def find_fault(self, check_hash: bool = True) -> str | None:
        """Return what is wrong with the file, or None; ``check_hash=False`` compares only the size."""
        if not self.target.is_file():
            return "it is not a file"
        n_bytes = self.target.stat().st_size
        if self.size is not None and n_bytes != self.size:
            return f"it has {n_bytes:,} bytes, expected {self.size:,}"
        if self.sha256 is None or not check_hash:
            return None
        with self.target.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return None if digest == self.sha256 else f"its sha256 is {digest}, expected {self.sha256}"

    def fetch(self) -> Path:
        """Return the path of the checked file, downloaded if it is missing; a failed download leaves no file behind."""
        if not self.exists():
            self.download()
        elif (fault := self.find_fault()) is not None:
            origin = f", or get it from {self.url}" if self.url else ""
            raise ValueError(f"{self.target} is not the expected file: {fault}. Remove it and load again{origin}.")
        return self.target

    def download(self) -> None:
        """Download the file; pooch compares its checksum before it appears at its place."""
        known_hash = self.sha256 and f"sha256:{self.sha256}"
        try:
            import pooch

            pooch.retrieve(self.url, known_hash, fname=self.target.name, path=self.target.parent)
            if (fault := self.find_fault(check_hash=False)) is not None:
                self.target.unlink()
                raise ValueError(f"the downloaded file is not the expected one: {fault}")
        except Exception as error:  # no network, an error page, no permission: the remedy is the same
            reason = f"{type(error).__name__}: {shorten(str(error), 300)}"
            raise FileNotFoundError(
                f"{self.target} is missing and could not be downloaded ({reason}). Download {self.url} and save it as "
                f"{self.target}. The data home must be a folder that you can write; the variable PSILEARN_DATA names "
                f"another one."
            ) from None  # the reason is in the message; the traceback of the network library is long


@dataclass(frozen=True)
class Form:
    """Files that contain a whole dataset in one format; ``kind`` names its reader."""

    kind: str
    files: tuple[RemoteFile, ...]

    @property
    def is_public(self) -> bool:
        """Whether each file can be downloaded."""
        return all(file.url for file in self.files)


@dataclass(frozen=True)
class Dataset:
    """A dataset: its sizes, its description, and the accepted forms of its files, the preferred one first."""

    name: str
    summary: str
    n_train: int
    n_test: int  # 0: the source has no split
    n_features: int | None  # None: the inputs are spectra or texts
    n_outputs: int  # columns of outputs, tags or candidate molecules
    citation: str
    source: str
    forms: tuple[Form, ...]
    licence: str = NOT_STATED

    @property
    def is_public(self) -> bool:
        """Whether one of its forms can be downloaded."""
        return any(form.is_public for form in self.forms)

    @property
    def description(self) -> str:
        """The summary, the sizes and the reference."""
        split = f" ({self.n_train} train, {self.n_test} test)" if self.n_test else ""
        features = "" if self.n_features is None else f", {self.n_features} features"
        size = f"{self.n_train + self.n_test} rows{split}{features}, {self.n_outputs} outputs"
        return f"{self.summary}\n\n{size}.\n\nReference: {self.citation}"

    def available_form(self) -> Form:
        """Return the first form in the data home, else the first public one, else the preferred one."""
        present = (form for form in self.forms if all(file.exists() for file in form.files))
        public = (form for form in self.forms if form.is_public)
        return next(present, None) or next(public, self.forms[0])

    def describe_files(self) -> str:
        """Return which files are accepted, where they belong and from where they can be obtained."""
        files = "; or ".join(", ".join(file.path for file in form.files) for form in self.forms)
        return (
            f"Put into the data home {data_home()}: {files}, from {self.source}. The variable PSILEARN_DATA names "
            f"another data home."
        )

    def fetch(self) -> tuple[str, list[Path]]:
        """Return the kind of the available form and its checked files, downloaded if they are public and missing."""
        form = self.available_form()
        if not form.is_public and not all(file.exists() for file in form.files):
            raise FileNotFoundError(f"{self.name} cannot be downloaded automatically. {self.describe_files()}")
        return form.kind, [file.fetch() for file in form.files]


def _read_catalogue() -> Iterator[Dataset]:
    """Yield the datasets of ``catalogue.toml``; each entry of its ``rankings`` stands for several."""
    content = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
    rankings = content.pop("rankings")
    for name, entry in content.items():
        n_train, n_test = entry["rows"]
        forms = tuple(
            Form(form["kind"], tuple(_make_file(form, *file.split()) for file in form["files"]))
            for form in entry["forms"]
        )
        yield Dataset(
            name,
            entry["summary"],
            n_train,
            n_test,
            entry.get("features"),
            entry["outputs"],
            entry["citation"],
            entry["source"],
            forms,
            entry.get("licence", NOT_STATED),
        )
    for entry in rankings:
        for name, rows, features, items, size, sha256 in map(str.split, entry["files"]):
            form = Form("ranks", (_make_file(entry, f"{name}.csv", size, sha256),))
            sizes, origin = (int(rows), 0, int(features), int(items)), (entry["citation"], entry["source"])
            yield Dataset(name + entry["suffix"], entry["summary"], *sizes, *origin, (form,))


def _make_file(entry: Mapping[str, Any], name: str, size: str, sha256: str) -> RemoteFile:
    url = f"{entry['url']}/{name}" if "url" in entry else None
    known = None if sha256 == "?" else sha256
    return RemoteFile(f"{entry['folder']}/{name}", url, known, None if size == "?" else int(size))


DATASETS = {dataset.name: dataset for dataset in _read_catalogue()}
