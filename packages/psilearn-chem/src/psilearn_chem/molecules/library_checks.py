"""Validate the contents of the files of a library before they are used. The errors do not name the folder."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from psilearn.utils import Index
from psilearn_chem._optional import import_pyarrow
from psilearn_chem.molecules.fingerprints import Fingerprints
from psilearn_chem.molecules.molecule_files import MoleculeList

if TYPE_CHECKING:
    import pyarrow

COLUMNS = ("smiles", "name")
MAX_CHARACTERS = 2**18  # of a SMILES or a name
MAX_BYTES = 4 * MAX_CHARACTERS


class LibraryManifest(TypedDict):
    """Contents of ``manifest.json``, without format, version and files."""

    fingerprints: dict[str, Any]  # as in Fingerprints.identity
    molecules: int
    formulas: int
    unreadable: int
    repeated: int
    sha256: str


class FormulaTable(NamedTuple):
    """The formulas of a library in ascending order of mass."""

    formulas: list[str]
    masses: NDArray[np.float64]  # (f,)
    starts: Index  # (f + 1,)  first molecule of each formula, and n


def check_texts(molecules: MoleculeList) -> None:
    """Raise a ValueError for molecules that a library cannot store."""
    if len(molecules.smiles) != len(molecules.names):
        raise ValueError(f"There are {len(molecules.smiles):,} SMILES but {len(molecules.names):,} names.")
    for i, texts in enumerate(zip(*molecules, strict=True)):
        if any(len(text) > MAX_CHARACTERS for text in texts):
            raise ValueError(f"Molecule {i + 1} has a SMILES or a name of more than {MAX_CHARACTERS:,} characters.")


def check_manifest(content: dict[str, Any]) -> LibraryManifest:
    """Return the manifest; raise a ValueError if a value is missing or of another type."""
    for name in ("molecules", "formulas", "unreadable", "repeated"):
        if not _is_count(content.get(name)):
            raise ValueError(f"the manifest has {name} = {content.get(name)!r}, which is not a number of molecules")
    if not re.fullmatch("[0-9a-f]{64}", str(content.get("sha256"))):
        raise ValueError("the manifest has no SHA-256")
    manifest = cast(LibraryManifest, content)
    fingerprints_of(manifest)
    return manifest


def fingerprints_of(manifest: LibraryManifest) -> Fingerprints:
    """Return the fingerprints that a manifest describes."""
    described = manifest.get("fingerprints")
    kinds = described.get("kinds") if isinstance(described, dict) else None
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise ValueError(f"its fingerprints are {described!r}")
    return Fingerprints(tuple(kinds))


def check_formulas(rows: Any, manifest: LibraryManifest) -> FormulaTable:
    """Return the table of ``formulas.json``; raise a ValueError unless its slices are all molecules of the library."""
    if not isinstance(rows, list) or len(rows) != manifest["formulas"]:
        raise ValueError(f"the table of formulas does not have {manifest['formulas']:,} rows")
    for i, row in enumerate(rows):
        if not _is_formula_row(row):
            raise ValueError(f"row {i} of the formulas is {row!r:.100}, which is not a formula, a mass and a position")
    formulas = [formula for formula, _, _ in rows]
    masses = np.array([mass for _, mass, _ in rows], dtype=np.float64)
    starts = np.array([*(start for _, _, start in rows), manifest["molecules"]], dtype=np.intp)
    if starts[0] != 0 or (np.diff(starts) <= 0).any() or (np.diff(masses) < 0).any():
        raise ValueError("the formulas are not in order")
    if len(set(formulas)) < len(formulas):
        raise ValueError("a formula is repeated")
    return FormulaTable(formulas, masses, starts)


def molecules_schema() -> pyarrow.Schema:
    """Return the schema of the table of molecules."""
    arrow, _ = import_pyarrow()
    return arrow.schema([(name, arrow.large_string()) for name in COLUMNS])


def open_molecules(file: Path, n_molecules: int, *, full: bool) -> pyarrow.Table:
    """Return the table of SMILES and names, mapped from the disk; raise a ValueError if it is not as written.

    With ``full`` all offsets and texts are validated too, which reads the whole file.
    """
    arrow, _ = import_pyarrow()
    try:
        reader = arrow.ipc.open_file(arrow.memory_map(str(file)))
        if not reader.schema.equals(molecules_schema(), check_metadata=True):
            raise ValueError(f"{file.name} has other columns than SMILES and names as large_string")
        table = reader.read_all()
        if table.num_rows != n_molecules:
            raise ValueError(f"{file.name} has {table.num_rows:,} rows instead of {n_molecules:,}")
        if full:
            _check_columns(table, file)
    except arrow.ArrowException as error:
        raise ValueError(f"{file.name} is not a readable Arrow file: {error}") from error
    return table


def _check_columns(table: pyarrow.Table, file: Path) -> None:
    """Validate offsets and UTF-8 of all texts; reject missing and very long ones."""
    from pyarrow import compute

    table.validate(full=True)
    for name in COLUMNS:
        if table[name].null_count:
            raise ValueError(f"{file.name} has missing values in the column {name}")
        longest = compute.max(compute.binary_length(table[name])).as_py() or 0
        if longest > MAX_BYTES:
            raise ValueError(f"{file.name} has a {name} of {longest:,} bytes; at most {MAX_BYTES:,} are accepted")


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _is_formula_row(row: Any) -> bool:
    return (
        isinstance(row, list)
        and len(row) == 3
        and isinstance(row[0], str)
        and type(row[1]) in (int, float)
        and 0 < row[1] < math.inf
        and _is_count(row[2])
    )
