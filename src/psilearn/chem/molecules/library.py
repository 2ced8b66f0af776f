"""A library of candidate molecules on disk: found by formula or by mass, built once and used by many models."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.files import write_atomically
from psilearn._utils.progress import stage
from psilearn._utils.samples import Index
from psilearn.chem.molecules.fingerprints import CHUNK, Bits, Fingerprints
from psilearn.chem.molecules.formulas import Formula
from psilearn.chem.molecules.molecule_files import MoleculeList, read_molecules
from psilearn.decoding import CandidateSet

FORMAT, VERSION = "psilearn.CandidateLibrary", 1
MANIFEST, MOLECULES, BITS, FORMULAS, UNREADABLE = (
    "manifest.json",
    "molecules.arrow",
    "fingerprints.npy",
    "formulas.json",
    "unreadable.csv",
)
CHUNKS, MARK, EMBEDDINGS = "unfinished", "psilearn-library.txt", "embeddings"


@dataclass(frozen=True)
class CandidateLibrary:
    """Molecules in order of mass, those of one formula side by side, with fingerprints mapped from the disk.

    A folder of plain files: ``manifest.json``, ``fingerprints.npy``, ``molecules.arrow`` (SMILES, name), and
    ``formulas.json`` with the place and the mass of each formula. A set of candidates, by formula or by a window of
    masses, is a slice: nothing is read but its rows. Nothing in it is ever executed.

    Examples
    --------
    >>> import tempfile
    >>> from psilearn.chem.molecules import CandidateLibrary
    >>> from psilearn.chem.molecules.molecule_files import MoleculeList
    >>> molecules = MoleculeList(["CCO", "COC", "C1CC1", "CCO"], ["ethanol", "ether", "", "again"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     library = CandidateLibrary.build(molecules, folder)
    ...     print(len(library), library.smiles(library.of_formula("C2H6O")), library.of_mass(42.047, ppm=5))
    3 ['CCO', 'COC'] slice(0, 1, None)
    """

    path: Path
    manifest: dict[str, Any]
    bits: Bits  # (n, b), mapped
    formulas: list[str]  # f formulas, ascending in mass
    masses: Array  # (f,)
    starts: Index  # (f + 1,)  where the molecules of each formula begin

    @classmethod
    def build(
        cls,
        molecules: str | Path | MoleculeList,
        path: str | Path,
        fingerprints: Fingerprints | None = None,
        *,
        n_jobs: int | None = None,
    ) -> CandidateLibrary:
        """Compute fingerprints and write the library into a new folder.

        An interrupted build goes on where it was when it is called again with the same molecules: finished chunks lie
        in the folder until the end. Molecules that occur twice, known by their canonical SMILES, are kept once; those
        that cannot be read, or have isotope labels, are listed in ``unreadable.csv``.

        Cost: about a millisecond a molecule and process, for Morgan and MACCS. Memory: the SMILES and formulas of all
        molecules (about 0.4 kB each) and their fingerprints in the page cache.

        Parameters
        ----------
        molecules : file, as :func:`~psilearn.chem.molecules.molecule_files.read_molecules` takes it, or MoleculeList
        path : folder that is made
        fingerprints : Fingerprints, optional
            by default Morgan and MACCS.
        n_jobs : int, optional
            processes, as joblib counts them.
        """
        path, fingerprints = Path(path), fingerprints or Fingerprints()
        listed = molecules if isinstance(molecules, MoleculeList) else read_molecules(molecules)
        _claim(path)
        formulas: list[str] = []
        canonical: list[str] = []
        for chunk in fingerprints.chunks(listed.smiles, path / CHUNKS, n_jobs):
            formulas += chunk.formulas
            canonical += chunk.canonical
        with stage("sorting and writing molecules"):
            kept = _first_of_each(canonical)
            if not len(kept):
                raise ValueError(f"None of the {len(canonical):,} molecules could be read: there is nothing to build.")
            known = {formula: Formula.parse(formula).mass for formula in {formulas[i] for i in kept}}
            kept = kept[np.lexsort(([formulas[i] for i in kept], [known[formulas[i]] for i in kept]))]
            _write_bits(path / BITS, fingerprints, listed.smiles, path / CHUNKS, kept)
            _write_molecules(path / MOLECULES, listed, kept)
            groups = _groups([formulas[i] for i in kept])
            text = json.dumps([[formula, known[formula], start] for formula, start in groups])
            (path / FORMULAS).write_text(text, encoding="utf-8")
            unreadable = [i for i, formula in enumerate(formulas) if not formula]
            _write_unreadable(path / UNREADABLE, listed, unreadable)
            manifest = {
                "format": FORMAT,
                "version": VERSION,
                "fingerprints": json.loads(fingerprints.identity),
                "molecules": len(kept),
                "formulas": len(groups),
                "unreadable": len(unreadable),
                "repeated": len(canonical) - len(unreadable) - len(kept),
                "files": {name: (path / name).stat().st_size for name in (MOLECULES, BITS, FORMULAS)},
                "sha256": _hash(path),
            }
            write_atomically(path / MANIFEST, json.dumps(manifest, indent=1).encode())
            _remove_chunks(path / CHUNKS)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | Path) -> CandidateLibrary:
        """Open a library; its files are mapped, and read when they are needed.

        Raises
        ------
        ValueError
            where the folder is no finished library, of another version, or its files are not those of the manifest.
        """
        path = Path(path)
        if not (path / MANIFEST).is_file():
            half = " Its building was interrupted: build it again, it goes on." if (path / CHUNKS).is_dir() else ""
            raise ValueError(f"{path} is no library of candidates: it has no {MANIFEST}.{half}")
        try:
            manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
            if manifest["format"] != FORMAT or manifest["version"] != VERSION:
                raise ValueError(f"it holds {manifest['format']!r}, version {manifest['version']!r}")
            for name, size in manifest["files"].items():
                if name not in (MOLECULES, BITS, FORMULAS) or (path / name).stat().st_size != size:
                    raise ValueError(f"{name} is not {size:,} bytes long")
            bits = np.load(path / BITS, mmap_mode="r", allow_pickle=False)
            rows = json.loads((path / FORMULAS).read_text(encoding="utf-8"))
            fingerprints = Fingerprints(tuple(manifest["fingerprints"]["kinds"]))
            if bits.shape != (manifest["molecules"], fingerprints.n_bytes) or bits.dtype != np.uint8:
                raise ValueError(f"{BITS} holds shape {bits.shape} of {bits.dtype}")
            starts = np.array([*(row[2] for row in rows), len(bits)], dtype=np.intp)
            masses = np.array([row[1] for row in rows], dtype=np.float64)
            if starts[0] != 0 or (np.diff(starts) <= 0).any() or (np.diff(masses) < 0).any():
                raise ValueError(f"{FORMULAS} is not in order")
            made = cls(path, manifest, bits, [str(row[0]) for row in rows], masses, starts)
        except (ValueError, KeyError, TypeError, IndexError, OSError) as error:
            raise ValueError(f"{path} is no library of candidates that can be used: {error}.") from error
        return made

    def __len__(self) -> int:
        return len(self.bits)

    def __repr__(self) -> str:
        return f"CandidateLibrary({str(self.path)!r}: {len(self):,} molecules, {'+'.join(self.fingerprints.kinds)})"

    @property
    def hash(self) -> str:
        """SHA-256 of the molecules and their fingerprints: what makes two results comparable."""
        return str(self.manifest["sha256"])

    @property
    def fingerprints(self) -> Fingerprints:
        """The fingerprints that describe its molecules."""
        return Fingerprints(tuple(self.manifest["fingerprints"]["kinds"]))

    def verify(self) -> None:
        """Read all files and compare their hash with the manifest's; refuse a library that was changed."""
        if _hash(self.path) != self.hash:
            raise ValueError(f"{self.path} was changed: its files do not have the hash of its manifest.")

    def of_formula(self, formula: str) -> slice:
        """Return the rows of a molecular formula; an empty slice where there is none.

        Raises
        ------
        ValueError
            where the text is no formula.
        """
        place = self._places.get(str(Formula.parse(formula)))
        return slice(0, 0) if place is None else slice(int(self.starts[place]), int(self.starts[place + 1]))

    def of_mass(self, mass: float, ppm: float = 10.0) -> slice:
        """Return the rows whose monoisotopic mass lies within ``ppm`` of a neutral mass in Da, the ends included."""
        mass = validation.check_positive(mass, "mass")
        room = 1e-6 * validation.check_non_negative(ppm, "ppm") * mass + 1e-9  # rounding of a mass
        first = np.searchsorted(self.masses, mass - room)
        last = np.searchsorted(self.masses, mass + room, side="right")
        return slice(int(self.starts[first]), int(self.starts[last]))

    def smiles(self, rows: slice | Sequence[int]) -> list[str]:
        """Return the SMILES of some molecules, as they were given."""
        return self._texts("smiles", rows)

    def names(self, rows: slice | Sequence[int]) -> list[str]:
        """Return the names of some molecules, "" where they have none."""
        return self._texts("name", rows)

    def formulas_of(self, rows: slice | Sequence[int]) -> list[str]:
        """Return the formulas of some molecules."""
        index = np.arange(len(self))[rows] if isinstance(rows, slice) else np.asarray(rows, dtype=np.intp)
        return [self.formulas[i] for i in np.searchsorted(self.starts, index, side="right") - 1]

    def embedded(self, model: Any, *, build: bool = False) -> CandidateSet | None:
        """Return all molecules as embedded by a model, mapped from the disk; None where that was not done yet.

        Parameters
        ----------
        model : fitted estimator on fingerprints of this library
        build : bool
            embed them now where they are not: n·r kernel values and 2·n·r·p flops; n·p numbers of disk.
        """
        embedding = model.embedding_
        place = self.path / EMBEDDINGS / embedding.fingerprint[:16]
        if (place / MANIFEST).is_file():
            return CandidateSet.load(place, embedding, self.bits)
        return CandidateSet.build(self.bits, embedding, place, keep_outputs=False) if build else None

    @cached_property
    def _places(self) -> dict[str, int]:
        return {formula: i for i, formula in enumerate(self.formulas)}

    @cached_property
    def _molecules(self) -> Any:
        import pyarrow

        return pyarrow.ipc.open_file(pyarrow.memory_map(str(self.path / MOLECULES))).read_all()

    def _texts(self, column: str, rows: slice | Sequence[int]) -> list[str]:
        values = self._molecules[column]
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            return values.slice(start, max(0, stop - start)).to_pylist()
        return values.take(np.asarray(rows, dtype=np.int64)).to_pylist()


def _claim(path: Path) -> None:
    """Make the folder, or take over one that is empty or an interrupted build of ours; leave anything else alone."""
    if (path / MANIFEST).exists():
        raise FileExistsError(f"{path} holds a library already: open it, or choose another folder.")
    ours = {CHUNKS, MOLECULES, BITS, FORMULAS, UNREADABLE}
    if path.exists() and (
        not path.is_dir()
        or any(file.name not in ours for file in path.iterdir())
        or (any(path.iterdir()) and not (path / CHUNKS / MARK).is_file())
    ):
        raise FileExistsError(f"{path} holds something else: choose a new folder for the library.")
    (path / CHUNKS).mkdir(parents=True, exist_ok=True)
    (path / CHUNKS / MARK).write_text("Finished chunks of an unfinished library.\n", encoding="utf-8")


def _remove_chunks(folder: Path) -> None:
    for file in [*folder.glob("*.npz"), folder / MARK]:
        file.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


def _first_of_each(canonical: list[str]) -> Any:
    """Return the first place of each molecule that could be read."""
    seen: dict[str, int] = {}
    for i, text in enumerate(canonical):
        if text:
            seen.setdefault(text, i)
    return np.fromiter(seen.values(), np.intp, len(seen))


def _groups(formulas: list[str]) -> list[tuple[str, int]]:
    """Return each formula with the first place that has it."""
    return [(f, i) for i, f in enumerate(formulas) if i == 0 or formulas[i - 1] != f]


def _write_bits(path: Path, fingerprints: Fingerprints, smiles: list[str], chunks: Path, kept: Any) -> None:
    """Bring the rows of finished chunks into the order of the library, a chunk at a time."""
    to = np.full(len(smiles), -1, dtype=np.intp)
    to[kept] = np.arange(len(kept))
    bits = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(len(kept), fingerprints.n_bytes))
    for start, chunk in zip(range(0, len(smiles), CHUNK), fingerprints.chunks(smiles, chunks), strict=True):
        places = to[start : start + CHUNK]
        bits[places[places >= 0]] = chunk.bits[places >= 0]
    bits.flush()


def _write_molecules(path: Path, listed: MoleculeList, kept: Any) -> None:
    import pyarrow

    columns = {"smiles": listed.smiles, "name": listed.names}
    schema = pyarrow.schema([(name, pyarrow.large_string()) for name in columns])
    with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_file(file, schema) as writer:
        arrays = [pyarrow.array([texts[i] for i in kept], pyarrow.large_string()) for texts in columns.values()]
        writer.write_table(pyarrow.table(arrays, schema=schema))


def _write_unreadable(path: Path, listed: MoleculeList, unreadable: list[int]) -> None:
    import csv

    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["record", "name", "smiles"])
        writer.writerows([i + 1, listed.names[i], listed.smiles[i]] for i in unreadable)


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    for name in (MOLECULES, BITS, FORMULAS):
        with (path / name).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
