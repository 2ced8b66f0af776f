"""A dataset of the catalogue: its sizes, its origin, and the forms in which its files are accepted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from psilearn_lab.datasets.home import RemoteFile, data_home

NOT_STATED = "not stated by the source"


@dataclass(frozen=True)
class Form:
    """Files that contain a whole dataset in one format.

    The kinds are ``"mulan"``, ``"xc"``, ``"npz"`` and ``"hdf5"``; for rankings as CSV, ``"ranks"`` and ``"orders"``;
    for spectra and molecules, ``"metabolites"``; for one text per line, ``"lines"``.
    """

    kind: str
    files: tuple[RemoteFile, ...]

    @property
    def is_public(self) -> bool:
        """Whether each file can be downloaded."""
        return all(file.url for file in self.files)


@dataclass(frozen=True)
class Dataset:
    """A dataset: its sizes, its description, and the accepted forms of its files, the preferred one first.

    If its source gives no split, all rows are training rows.
    """

    name: str
    summary: str
    n_train: int
    n_test: int
    n_features: int | None  # None: the inputs are spectra or texts
    n_outputs: int  # columns of outputs, or candidate molecules
    citation: str
    source: str
    forms: tuple[Form, ...]
    licence: str = NOT_STATED

    @property
    def has_split(self) -> bool:
        """Whether the source separates training rows from test rows."""
        return self.n_test > 0

    @property
    def is_ranking(self) -> bool:
        """Whether the outputs are rankings."""
        return self.forms[0].kind in ("ranks", "orders")

    @property
    def is_public(self) -> bool:
        """Whether one of its forms can be downloaded."""
        return any(form.is_public for form in self.forms)

    @property
    def description(self) -> str:
        """The summary, the sizes and the reference."""
        if self.forms[0].kind == "lines":
            return f"{self.summary}\n\n{self.n_train} molecules.\n\nReference: {self.citation}"
        split = f" ({self.n_train} train, {self.n_test} test)" if self.has_split else ""
        size = (
            f"{self.n_train} spectra, {self.n_outputs} candidate molecules"
            if self.n_features is None
            else f"{self.n_train + self.n_test} rows{split}, {self.n_features} features, {self.n_outputs} outputs"
        )
        return f"{self.summary}\n\n{size}.\n\nReference: {self.citation}"

    def available_form(self) -> Form:
        """Return the first form in the data home, else the first public one, else the preferred one."""
        present = (form for form in self.forms if all(file.exists() for file in form.files))
        public = (form for form in self.forms if form.is_public)
        return next(present, None) or next(public, self.forms[0])

    def describe_files(self) -> str:
        """Return which files are accepted, where they belong and from where they can be obtained."""
        files = "; or ".join(
            ", ".join(file.path for file in form.files)
            + (" (a conversion, not public)" if form.kind in ("npz", "metabolites") else "")
            for form in self.forms
        )
        return (
            f"Put into the data home {data_home()}: {files}, from {self.source}. The variable PSILEARN_DATA names "
            f"another data home."
        )

    def fetch(self) -> tuple[str, list[Path]]:
        """Return the kind of the available form and its checked files, downloaded if they are public and missing."""
        form = self.available_form()
        missing = [file for file in form.files if not file.exists()]
        if missing and not form.is_public:
            raise FileNotFoundError(f"{self.name} cannot be downloaded automatically. {self.describe_files()}")
        return form.kind, [file.fetch() for file in form.files]
