"""The folder of a library of candidate molecules: its files, written once and mapped into memory."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psilearn._utils.folder_writer import FolderWriter
from psilearn._utils.folders import FolderFormat
from psilearn.utils import Index
from psilearn_chem._optional import import_pyarrow
from psilearn_chem.molecules.chunk_files import remove_chunks
from psilearn_chem.molecules.fingerprints import Bits, Fingerprints
from psilearn_chem.molecules.formulas import Formula
from psilearn_chem.molecules.library_checks import (
    LibraryManifest,
    check_formulas,
    check_manifest,
    fingerprints_of,
    molecules_schema,
    open_molecules,
)
from psilearn_chem.molecules.molecule_files import MoleculeList

if TYPE_CHECKING:
    import pyarrow

FORMAT = FolderFormat(
    "psilearn.library",
    3,
    "library of candidates",
    "Build the library again.",
    resume="The build was interrupted; run the same command again to resume it.",
)
MOLECULES = "molecules.arrow"
BITS = "fingerprints.npy"
FORMULAS = "formulas.json"
UNREADABLE = "unreadable.csv"
CHUNKS = "unfinished"  # folder of finished chunks of fingerprints while a library is built
HASHED_FILES = (MOLECULES, BITS, FORMULAS)


class LibraryContents(NamedTuple):
    """What the files of a library contain."""

    manifest: LibraryManifest
    bits: Bits  # (n, b), mapped
    formulas: list[str]  # f formulas in ascending order of mass
    masses: NDArray[np.float64]  # (f,)
    starts: Index  # (f + 1,)  first molecule of each formula, and n


def claim_folder(path: Path) -> FolderWriter:
    """Claim a new or empty folder, or one in which a build was interrupted."""
    writer = FORMAT.claim(path)
    (path / CHUNKS).mkdir(exist_ok=True)
    return writer


def write_library(
    writer: FolderWriter,
    molecules: MoleculeList,
    fingerprints: Fingerprints,
    formulas: Sequence[str],
    canonical_smiles: Sequence[str],
) -> None:
    """Write the files of a library into a claimed folder with all chunks of fingerprints; the manifest comes last."""
    kept = _find_first_of_each(canonical_smiles)
    if not len(kept):
        raise ValueError(f"None of the {len(formulas):,} molecules could be read: there is nothing to build.")
    masses = {formula: Formula.parse(formula).mass for formula in {formulas[i] for i in kept}}
    kept = kept[np.lexsort(([formulas[i] for i in kept], [masses[formulas[i]] for i in kept]))]
    groups = _find_groups([formulas[i] for i in kept])
    unreadable = [i for i, formula in enumerate(formulas) if not formula]
    _write_bits(writer, fingerprints, molecules.smiles, kept)
    _write_molecules(writer, molecules, kept)
    writer.write_json(FORMULAS, [[formula, masses[formula], start] for formula, start in groups])
    _write_unreadable(writer, molecules, unreadable)
    manifest: LibraryManifest = {
        "fingerprints": json.loads(fingerprints.identity),
        "molecules": len(kept),
        "formulas": len(groups),
        "unreadable": len(unreadable),
        "repeated": len(formulas) - len(unreadable) - len(kept),
        "sha256": compute_hash(writer.path),
    }
    writer.finish(manifest)
    remove_chunks(writer.path / CHUNKS)


def read_library(path: Path, *, verify: bool) -> LibraryContents:
    """Return the contents of a finished library; raise a ValueError for any other folder."""
    folder = FORMAT.open(path, verify=verify)
    with folder.convert_errors():
        manifest = check_manifest(folder.content)
        bits = folder.load_array(BITS, mapped=True)
        if bits.shape != (manifest["molecules"], fingerprints_of(manifest).n_bytes) or bits.dtype != np.uint8:
            raise ValueError(f"{BITS} has shape {bits.shape} and dtype {bits.dtype}")
        formulas = check_formulas(folder.read_json(FORMULAS), manifest)
        open_molecules(folder.file(MOLECULES), manifest["molecules"], full=False)
        return LibraryContents(manifest, bits, *formulas)


def verify_library(path: Path, expected: str) -> None:
    """Read all files of a library; raise a ValueError if one of them was changed since it was written."""
    if compute_hash(path) != expected:
        raise ValueError(f"{path} was changed: its files do not have the hash of its manifest.")
    FORMAT.open(path, verify=True)


def read_texts(path: Path, n_molecules: int) -> pyarrow.Table:
    """Return the SMILES and names of an opened library, after all of them were validated."""
    with FORMAT.convert_errors(path):
        return open_molecules(path / MOLECULES, n_molecules, full=True)


def compute_hash(path: Path) -> str:
    """Return the SHA-256 of the files of a library."""
    digest = hashlib.sha256()
    for name in HASHED_FILES:
        with (path / name).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _find_first_of_each(canonical_smiles: Sequence[str]) -> Index:
    """Return the first position of each molecule that could be read."""
    first: dict[str, int] = {}
    for i, smiles in enumerate(canonical_smiles):
        if smiles:
            first.setdefault(smiles, i)
    return np.fromiter(first.values(), np.intp, len(first))


def _find_groups(formulas: Sequence[str]) -> list[tuple[str, int]]:
    """Return each formula of sorted molecules with the first position that has it."""
    return [(formula, i) for i, formula in enumerate(formulas) if i == 0 or formulas[i - 1] != formula]


def _write_bits(writer: FolderWriter, fingerprints: Fingerprints, smiles: Sequence[str], kept: Index) -> None:
    """Copy the rows of finished chunks into the order of the library, one chunk at a time."""
    rows = np.full(len(smiles), -1, dtype=np.intp)  # of each molecule in the library
    rows[kept] = np.arange(len(kept))
    bits = writer.create_array(BITS, (len(kept), fingerprints.n_bytes), np.uint8)
    start = 0
    for chunk in fingerprints.iter_chunks(smiles, cache=writer.path / CHUNKS):
        chunk_rows = rows[start : start + len(chunk.bits)]
        bits[chunk_rows[chunk_rows >= 0]] = chunk.bits[chunk_rows >= 0]
        start += len(chunk.bits)
    bits.flush()


def _write_molecules(writer: FolderWriter, molecules: MoleculeList, kept: Index) -> None:
    """Write SMILES and names as an Arrow table."""
    arrow, _ = import_pyarrow()
    columns = [[texts[i] for i in kept] for texts in (molecules.smiles, molecules.names)]
    arrays = [arrow.array(texts, arrow.large_string()) for texts in columns]
    content = arrow.BufferOutputStream()
    with arrow.ipc.new_file(content, molecules_schema()) as file:
        file.write_table(arrow.table(arrays, schema=molecules_schema()))
    writer.write_bytes(MOLECULES, content.getvalue().to_pybytes())


def _write_unreadable(writer: FolderWriter, molecules: MoleculeList, unreadable: Sequence[int]) -> None:
    """Write a CSV file of the molecules that could not be read."""
    table = io.StringIO(newline="")
    rows = csv.writer(table)
    rows.writerow(["record", "name", "smiles"])
    rows.writerows([i + 1, molecules.names[i], molecules.smiles[i]] for i in unreadable)
    writer.write_bytes(UNREADABLE, table.getvalue().encode())
