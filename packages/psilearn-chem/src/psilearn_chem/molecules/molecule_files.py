"""Lists of molecules from files: Parquet, CSV, SMILES and SDF."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rdkit import Chem

from psilearn.utils import convert_read_errors, validation
from psilearn_chem.untrusted_files import column_names, iter_batches, open_text

SMILES_COLUMNS = ("smiles", "canonical_smiles", "isomeric_smiles")
NAME_COLUMNS = ("id", "name", "inchikey14", "inchikey", "identifier", "cid")  # the first that exists is used


class MoleculeList(NamedTuple):
    """SMILES and names of molecules.

    Parameters
    ----------
    smiles : list of str
        SMILES as they were given. "" for a record of a file that contains no molecule.
    names : list of str
        Names or identifiers, one per molecule. "" for molecules without one.

    See Also
    --------
    read_molecules : Read a list of molecules from a file.
    CandidateLibrary.build : Build a library of candidates from a list of molecules.

    Examples
    --------
    >>> from psilearn_chem.molecules import MoleculeList
    >>> MoleculeList(["CCO"], ["ethanol"])
    MoleculeList(smiles=['CCO'], names=['ethanol'])
    """

    smiles: list[str]
    names: list[str]


def read_molecules(path: str | Path) -> MoleculeList:
    r"""Read the SMILES and names of molecules from a file.

    Parameters
    ----------
    path : str or Path
        A ``.parquet``, ``.csv`` or ``.tsv`` table with a column ``smiles`` (or ``canonical_smiles`` or
        ``isomeric_smiles``), in upper or lower case, and optionally one of ``id``, ``name``, ``inchikey14``,
        ``inchikey``, ``identifier`` or ``cid``; a ``.smi`` file with one SMILES per line, followed by white space and a
        name (lines that begin with # are ignored); or an ``.sdf`` file.

    Returns
    -------
    MoleculeList
        SMILES and names in the order of the file.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file has an unknown extension, has no column ``smiles``, is damaged, or contains no molecule.

    See Also
    --------
    CandidateLibrary.build : Build a library of candidates from a list of molecules.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psilearn_chem.molecules import read_molecules
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "molecules.smi").write_text("CCO ethanol\nCOC dimethyl ether\n")
    ...     read_molecules(Path(folder, "molecules.smi"))
    MoleculeList(smiles=['CCO', 'COC'], names=['ethanol', 'dimethyl ether'])
    """
    path = validation.check_path(path, "path")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file: a file with molecules is needed.")
    readers: dict[str, Callable[[Path], Iterator[tuple[str, str]]]] = {
        ".parquet": _read_parquet,
        ".csv": _read_delimited,
        ".tsv": _read_delimited,
        ".smi": _read_smi,
        ".sdf": _read_sdf,
    }
    if path.suffix.lower() not in readers:
        raise ValueError(f"{path.name} ends in {path.suffix!r}; molecules are read from {', '.join(readers)} files.")
    noun = {".parquet": "a Parquet file", ".sdf": "an SDF file"}.get(path.suffix.lower(), "a text file")
    molecules = MoleculeList([], [])
    with convert_read_errors(path, noun):
        for smiles, name in readers[path.suffix.lower()](path):
            molecules.smiles.append(smiles)
            molecules.names.append(name)
    if not molecules.smiles:
        raise ValueError(f"{path} contains no molecule.")
    return molecules


def _read_parquet(path: Path) -> Iterator[tuple[str, str]]:
    smiles, names = _find_columns(column_names(path), path)
    for batch in iter_batches(path, [smiles, names] if names else [smiles]):
        found = batch[names].to_pylist() if names else [""] * len(batch)
        for text, name in zip(batch[smiles].to_pylist(), found, strict=True):
            yield text if isinstance(text, str) else "", str(name or "")


def _read_delimited(path: Path) -> Iterator[tuple[str, str]]:
    with open_text(path, newline="") as file:
        reader = csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        smiles, names = _find_columns(reader.fieldnames or [], path)
        for row in reader:
            yield row[smiles] or "", (row[names] or "") if names else ""


def _find_columns(columns: Sequence[str], path: Path) -> tuple[str, str | None]:
    """Return the names of the columns with SMILES and with names; None if no column has names."""
    by_lower_case = {column.lower(): column for column in columns}
    smiles_column = next((by_lower_case[name] for name in SMILES_COLUMNS if name in by_lower_case), None)
    if smiles_column is None:
        raise ValueError(f"{path.name} has no column smiles; it has {', '.join(columns) or 'none'}.")
    name_column = next((by_lower_case[name] for name in NAME_COLUMNS if name in by_lower_case), None)
    return smiles_column, name_column


def _read_smi(path: Path) -> Iterator[tuple[str, str]]:
    with open_text(path) as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                smiles, _, name = line.strip().replace("\t", " ").partition(" ")
                yield smiles, name.strip()


def _read_sdf(path: Path) -> Iterator[tuple[str, str]]:
    with path.open("rb") as file:
        for molecule in Chem.ForwardSDMolSupplier(file):
            has_name = molecule is not None and molecule.HasProp("_Name")
            smiles = "" if molecule is None else Chem.MolToSmiles(molecule)
            yield smiles, molecule.GetProp("_Name") if has_name else ""
