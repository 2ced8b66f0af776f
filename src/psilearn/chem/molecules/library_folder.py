"""The folder of a library of candidate molecules: its files, written once and mapped into memory."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from psilearn._utils.folders import FolderFormat, FolderWriter
from psilearn._utils.samples import Index
from psilearn.chem._optional import import_pyarrow
from psilearn.chem.molecules.fingerprints import Bits, Fingerprints
from psilearn.chem.molecules.formulas import Formula
from psilearn.chem.molecules.molecule_files import MoleculeList

FORMAT = FolderFormat(
    "psilearn.library",
    2,
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


class LibraryManifest(TypedDict):
    """Contents of ``manifest.json``, without format, version and files."""

    fingerprints: dict[str, object]  # as in Fingerprints.identity
    molecules: int
    formulas: int
    unreadable: int
    repeated: int
    sha256: str


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
    _write_molecules(writer.add_file(MOLECULES), molecules, kept)
    writer.write_json(FORMULAS, [[formula, masses[formula], start] for formula, start in groups])
    _write_unreadable(writer.path / UNREADABLE, molecules, unreadable)
    manifest: LibraryManifest = {
        "fingerprints": json.loads(fingerprints.identity),
        "molecules": len(kept),
        "formulas": len(groups),
        "unreadable": len(unreadable),
        "repeated": len(formulas) - len(unreadable) - len(kept),
        "sha256": compute_hash(writer.path),
    }
    writer.finish(manifest)
    _remove_chunks(writer.path / CHUNKS)


def read_library(path: Path) -> LibraryContents:
    """Return the contents of a finished library; raise a ValueError for any other folder."""
    folder = FORMAT.open(path)
    with folder.convert_errors():
        manifest = cast(LibraryManifest, folder.content)
        bits = folder.load_array(BITS, mapped=True)
        if bits.shape != (manifest["molecules"], fingerprints_of(manifest).n_bytes) or bits.dtype != np.uint8:
            raise ValueError(f"{BITS} has shape {bits.shape} and dtype {bits.dtype}")
        rows = folder.read_json(FORMULAS)
        starts = np.array([*(row[2] for row in rows), len(bits)], dtype=np.intp)
        masses = np.array([row[1] for row in rows], dtype=np.float64)
        if starts[0] != 0 or (np.diff(starts) <= 0).any() or (np.diff(masses) < 0).any():
            raise ValueError(f"{FORMULAS} is not in order")
        return LibraryContents(manifest, bits, [str(row[0]) for row in rows], masses, starts)


def fingerprints_of(manifest: LibraryManifest) -> Fingerprints:
    """Return the fingerprints that a manifest describes."""
    kinds = manifest["fingerprints"]["kinds"]
    if not isinstance(kinds, list):
        raise ValueError(f"its fingerprints are {kinds!r}")
    return Fingerprints(tuple(kinds))


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


def _write_molecules(path: Path, molecules: MoleculeList, kept: Index) -> None:
    """Write SMILES and names as an Arrow table."""
    pyarrow, _ = import_pyarrow()
    columns = {"smiles": molecules.smiles, "name": molecules.names}
    schema = pyarrow.schema([(name, pyarrow.large_string()) for name in columns])
    with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_file(file, schema) as writer:
        arrays = [pyarrow.array([texts[i] for i in kept], pyarrow.large_string()) for texts in columns.values()]
        writer.write_table(pyarrow.table(arrays, schema=schema))


def _write_unreadable(path: Path, molecules: MoleculeList, unreadable: Sequence[int]) -> None:
    """Write a CSV file of the molecules that could not be read."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["record", "name", "smiles"])
        writer.writerows([i + 1, molecules.names[i], molecules.smiles[i]] for i in unreadable)


def _remove_chunks(folder: Path) -> None:
    """Remove the chunks of fingerprints, and the folder unless something else is in it."""
    for file in folder.glob("*.npz"):
        file.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()
