"""Lists of molecules from files: Parquet, CSV, SMILES and SDF."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from psilearn.chem.molecules.formulas import rdkit_chem

NAMES = ("id", "name", "inchikey14", "inchikey", "identifier", "cid")  # columns that may name a molecule, in order


class MoleculeList(NamedTuple):
    """Molecules as a file has them; a record that holds no molecule has the SMILES ""."""

    smiles: list[str]
    names: list[str]  # "" where the file has none


def read_molecules(path: str | Path) -> MoleculeList:
    """Read the SMILES and names of molecules.

    Parameters
    ----------
    path : file
        ``.parquet``, ``.csv`` or ``.tsv`` with a column ``smiles`` and perhaps one of ``id``, ``name``,
        ``inchikey14``, ``inchikey``, ``identifier``, ``cid``; ``.smi``: a SMILES a line, a name after white space
        (lines that begin with # are left out); ``.sdf``.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file: it should hold molecules.")
    readers: dict[str, Callable[[Path], MoleculeList]] = {
        ".parquet": _parquet,
        ".csv": _table,
        ".tsv": _table,
        ".smi": _smi,
        ".sdf": _sdf,
    }
    if path.suffix.lower() not in readers:
        raise ValueError(f"{path.name} ends in {path.suffix!r}; molecules are read from {', '.join(readers)} files.")
    try:
        found = readers[path.suffix.lower()](path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path.name} is not a text file in UTF-8 that can be read: {error}.") from error
    if not found.smiles:
        raise ValueError(f"{path} holds no molecule.")
    return found


def _parquet(path: Path) -> MoleculeList:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError("Reading a .parquet file needs pyarrow: pip install 'psilearn[chem]'.") from error
    try:
        columns = parquet.read_schema(path).names
        smiles, name = _columns(columns, path)
        table = parquet.read_table(path, columns=[smiles, name] if name else [smiles])
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path.name} is not a Parquet file that can be read: {error}") from error
    texts = [value if isinstance(value, str) else "" for value in table[smiles].to_pylist()]
    return MoleculeList(texts, [str(v or "") for v in table[name].to_pylist()] if name else [""] * len(texts))


def _table(path: Path) -> MoleculeList:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        smiles, name = _columns(list(reader.fieldnames or []), path)
        rows = [(row[smiles] or "", (row[name] or "") if name else "") for row in reader]
    return MoleculeList([row[0] for row in rows], [row[1] for row in rows])


def _columns(columns: list[str], path: Path) -> tuple[str, str | None]:
    """Return the columns of SMILES and of names."""
    lower = {column.lower(): column for column in columns}
    if "smiles" not in lower:
        raise ValueError(f"{path.name} has no column smiles; it has {', '.join(columns) or 'none'}.")
    return lower["smiles"], next((lower[name] for name in NAMES if name in lower), None)


def _smi(path: Path) -> MoleculeList:
    smiles, names = [], []
    with path.open(encoding="utf-8-sig") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                text, _, name = line.strip().replace("\t", " ").partition(" ")
                smiles.append(text)
                names.append(name.strip())
    return MoleculeList(smiles, names)


def _sdf(path: Path) -> MoleculeList:
    chem = rdkit_chem()
    smiles, names = [], []
    with path.open("rb") as file:
        for molecule in chem.ForwardSDMolSupplier(file):
            smiles.append("" if molecule is None else chem.MolToSmiles(molecule))
            titled = molecule is not None and molecule.HasProp("_Name")
            names.append(molecule.GetProp("_Name") if titled else "")
    return MoleculeList(smiles, names)
