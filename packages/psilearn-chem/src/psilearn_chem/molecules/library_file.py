"""The file of a library of candidate molecules, written once and mapped into memory, and its folder."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from psilearn.io import ArrayFile, FileFormat, pack_texts, unpack_texts
from psilearn.utils import Index, create_folder, write_atomically
from psilearn_chem.molecules.fingerprints import CHUNK_SUFFIX, Bits, Fingerprints, remove_chunks
from psilearn_chem.molecules.formulas import Formula
from psilearn_chem.molecules.molecule_files import MoleculeList

FORMAT = FileFormat("psilearn_chem.library", 1, "library of candidates", "Build the library again.")
LIBRARY = "library.safetensors"
UNREADABLE = "unreadable.csv"
CHUNKS = "unfinished"  # folder of finished chunks of fingerprints while a library is built
MAX_CHARACTERS = 2**18  # of a SMILES or a name
COUNTS = ("molecules", "formulas", "unreadable", "repeated")


class LibraryManifest(TypedDict):
    """What a library states about itself."""

    fingerprints: dict[str, Any]  # as in Fingerprints.identity
    molecules: int
    formulas: int
    unreadable: int
    repeated: int
    sha256: str  # of the file


Texts: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.int64]]  # packed, mapped: read when they are used


class LibraryContents(NamedTuple):
    """What the file of a library contains."""

    manifest: LibraryManifest
    bits: Bits  # (n, b), mapped
    formulas: list[str]  # f formulas in ascending order of mass
    masses: NDArray[np.float64]  # (f,)
    starts: Index  # (f + 1,)  first molecule of each formula, and n
    smiles: Texts
    names: Texts


def check_texts(molecules: MoleculeList) -> None:
    """Raise a ValueError for molecules that a library cannot store."""
    if len(molecules.smiles) != len(molecules.names):
        raise ValueError(f"There are {len(molecules.smiles):,} SMILES but {len(molecules.names):,} names.")
    for i, texts in enumerate(zip(*molecules, strict=True)):
        if any(len(text) > MAX_CHARACTERS for text in texts):
            raise ValueError(f"Molecule {i + 1} has a SMILES or a name of more than {MAX_CHARACTERS:,} characters.")


def prepare_folder(path: Path) -> None:
    """Create a folder, or continue with one in which a build was interrupted; reject any other."""
    if (path / LIBRARY).exists():
        raise FileExistsError(f"{path} already contains a library of candidates: open it, or choose another folder.")
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file: choose a new folder for the library.")
    if path.is_dir() and any(path.iterdir()) and not _is_unfinished(path):
        raise FileExistsError(f"{path} contains other files: choose a new or empty folder for the library.")
    create_folder(path / CHUNKS)


def remove_empty_folder(path: Path) -> None:
    """Remove the folder of a build that has failed before anything was computed."""
    for folder in (path / CHUNKS, path):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def write_library(
    path: Path,
    molecules: MoleculeList,
    fingerprints: Fingerprints,
    formulas: Sequence[str],
    canonical_smiles: Sequence[str],
) -> None:
    """Write a library into a folder with all chunks of fingerprints; its file, in one rename, comes last."""
    kept = _find_first_of_each(canonical_smiles)
    if not len(kept):
        raise ValueError(f"None of the {len(formulas):,} molecules could be read: there is nothing to build.")
    masses = {formula: Formula.parse(formula).mass for formula in {formulas[i] for i in kept}}
    kept = kept[np.lexsort(([formulas[i] for i in kept], [masses[formulas[i]] for i in kept]))]
    groups = _find_groups([formulas[i] for i in kept])
    unreadable = [i for i, formula in enumerate(formulas) if not formula]
    _write_unreadable(path, molecules, unreadable)
    content = {
        "fingerprints": json.loads(fingerprints.identity),
        "molecules": len(kept),
        "formulas": len(groups),
        "unreadable": len(unreadable),
        "repeated": len(formulas) - len(unreadable) - len(kept),
    }
    columns = {
        "smiles": [molecules.smiles[i] for i in kept],
        "names": [molecules.names[i] for i in kept],
        "formulas": [formula for formula, _ in groups],
    }
    arrays: dict[str, Any] = {
        "bits": _read_bits(path / CHUNKS, fingerprints, molecules.smiles, kept),
        "masses": np.array([masses[formula] for formula, _ in groups]),
        "starts": np.array([start for _, start in groups], dtype=np.int64),
    }
    for name, texts in columns.items():
        arrays[name], arrays[f"{name}_ends"] = pack_texts(texts)
    FORMAT.write(path / LIBRARY, content, arrays)
    remove_chunks(path / CHUNKS)


def read_library(path: Path, *, verify: bool) -> LibraryContents:
    """Return the contents of a finished library; raise a ValueError for any other folder."""
    if not (path / LIBRARY).exists():
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist: there is no library of candidates to open.")
        reason = "its build was interrupted; run the same command again to resume it"
        raise FORMAT.error(path, reason if _is_unfinished(path) else f"it has no {LIBRARY}")
    file = FORMAT.read(path / LIBRARY, mapped=True, verify=verify)
    with FORMAT.convert_errors(path / LIBRARY):
        return _check_contents(file, verify)


def fingerprints_of(manifest: LibraryManifest) -> Fingerprints:
    """Return the fingerprints that a manifest describes."""
    described = manifest.get("fingerprints")
    kinds = described.get("kinds") if isinstance(described, dict) else None
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise ValueError(f"its fingerprints are {described!r:.80}")
    return Fingerprints(tuple(kinds))


def _check_contents(file: ArrayFile, verify: bool) -> LibraryContents:
    """Return the contents of a file; raise an error if they contradict each other."""
    counts = [file.content[name] for name in COUNTS]
    if not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError(f"its numbers of molecules are {counts!r:.80}")
    n, f = counts[:2]
    manifest = cast(LibraryManifest, {**file.content, "sha256": file.sha256})
    arrays = file.arrays
    bits, masses, starts = (arrays[name] for name in ("bits", "masses", "starts"))
    shape = (n, fingerprints_of(manifest).n_bytes)
    if bits.shape != shape or bits.dtype != np.uint8:
        raise ValueError(f"its fingerprints have shape {bits.shape} and dtype {bits.dtype}")
    smiles, names, formulas = ((arrays[k], arrays[f"{k}_ends"]) for k in ("smiles", "names", "formulas"))
    for (_, ends), count in ((smiles, n), (names, n), (formulas, f)):
        if ends.shape != (count,) or (verify and (np.diff(ends) < 0).any()):
            raise ValueError(f"it does not have {count:,} texts")
    starts = np.array([*starts.tolist(), n], dtype=np.intp)
    if starts.shape != (f + 1,) or starts[0] != 0 or (np.diff(starts) <= 0).any():
        raise ValueError("its formulas are not in order")
    is_ascending = bool((np.diff(masses) >= 0).all() and np.isfinite(masses).all() and (masses > 0).all())
    if masses.shape != (f,) or masses.dtype != np.float64 or not is_ascending:
        raise ValueError("its masses are not in order")
    listed = unpack_texts(*formulas)
    if len(set(listed)) < f:
        raise ValueError("a formula is repeated")
    return LibraryContents(manifest, bits, listed, np.array(masses), starts, smiles, names)


def _is_unfinished(path: Path) -> bool:
    """Return whether a folder has only what an interrupted build leaves."""
    names = {file.name for file in path.iterdir()} if path.is_dir() else set()
    own = {name for name in names if name in (CHUNKS, UNREADABLE) or name.startswith((f".{LIBRARY}", f".{UNREADABLE}"))}
    is_own = CHUNKS in names and names == own and (path / CHUNKS).is_dir()
    return is_own and all(CHUNK_SUFFIX in file.name for file in (path / CHUNKS).iterdir())


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


def _read_bits(chunks: Path, fingerprints: Fingerprints, smiles: Sequence[str], kept: Index) -> Bits:
    """Return the rows of finished chunks in the order of the library, read one chunk at a time."""
    rows = np.full(len(smiles), -1, dtype=np.intp)  # of each molecule in the library
    rows[kept] = np.arange(len(kept))
    bits = np.empty((len(kept), fingerprints.n_bytes), np.uint8)
    start = 0
    for chunk in fingerprints.iter_chunks(smiles, cache=chunks):
        chunk_rows = rows[start : start + len(chunk.bits)]
        bits[chunk_rows[chunk_rows >= 0]] = chunk.bits[chunk_rows >= 0]
        start += len(chunk.bits)
    return bits


def _write_unreadable(path: Path, molecules: MoleculeList, unreadable: Sequence[int]) -> None:
    """Write a CSV file of the molecules that could not be read."""
    table = io.StringIO(newline="")
    rows = csv.writer(table)
    rows.writerow(["record", "name", "smiles"])
    rows.writerows([i + 1, molecules.names[i], molecules.smiles[i]] for i in unreadable)
    write_atomically(path / UNREADABLE, table.getvalue().encode())
