"""Fingerprints of molecules from SMILES: packed bits, computed in parallel and cached on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import delayed
from numpy.typing import NDArray
from rdkit import DataStructs, rdBase
from rdkit.Chem import Mol
from rdkit.Chem import rdFingerprintGenerator as generators
from rdkit.Chem.rdMolDescriptors import GetMACCSKeysFingerprint

from psilearn.io import FileFormat, pack_texts, unpack_texts
from psilearn.utils import run_parallel, track, validation
from psilearn_chem.molecules.smiles import compute_formula, parse_smiles, to_smiles

Bits = NDArray[np.uint8]

CHUNK_SIZE = 4096  # molecules that are computed and cached together
CHUNK_FORMAT = FileFormat("psilearn_chem.fingerprints", 1, "chunk of fingerprints", "Compute it again.")
CHUNK_SUFFIX = ".chunk"
N_BITS = {"morgan": 2048, "maccs": 166, "path": 2048, "atompair": 2048, "torsion": 2048}


class FingerprintTable(NamedTuple):
    """Fingerprints, formulas and canonical SMILES of molecules, in the order in which the molecules were given.

    Parameters
    ----------
    bits : ndarray of shape (n, b)
        Fingerprints as uint8, eight bits per byte. Zeros where the SMILES cannot be used.
    formulas : list of str
        Molecular formulas in Hill order. "" where the SMILES cannot be parsed, or has isotope labels or dummy atoms.
    canonical_smiles : list of str
        RDKit's canonical SMILES, which are equal for equal molecules. "" where the formula is "".

    See Also
    --------
    Fingerprints : Compute fingerprints of molecules.

    Examples
    --------
    >>> from psilearn_chem.molecules import Fingerprints
    >>> table = Fingerprints(["maccs"])(["OCC", "not a molecule"])
    >>> table.canonical_smiles, table.unreadable
    (['CCO', ''], [1])
    """

    bits: Bits
    formulas: list[str]
    canonical_smiles: list[str]

    @property
    def unreadable(self) -> list[int]:
        """Positions of the SMILES that cannot be used."""
        return [i for i, formula in enumerate(self.formulas) if not formula]


@dataclass(frozen=True)
class Fingerprints:
    """Kinds of fingerprints that describe a molecule, concatenated.

    Rows are packed, eight bits per byte, as the kernels ``Tanimoto(packed=True)`` and ``GaussianTanimoto(packed=True)``
    require them.

    Parameters
    ----------
    kinds : sequence of str, default=("morgan", "maccs")
        One or several of ``"morgan"`` (circular, radius 2, 2048 bits), ``"maccs"`` (166 keys), ``"path"`` (RDKit's
        paths of up to 7 bonds, 2048 bits), ``"atompair"`` and ``"torsion"`` (2048 bits each).

    See Also
    --------
    CandidateLibrary : Molecules with their fingerprints on disk.
    psilearn.kernels.GaussianTanimoto : Kernel on packed fingerprints.

    Examples
    --------
    >>> from psilearn_chem.molecules import Fingerprints
    >>> table = Fingerprints(["maccs"])(["CCO", "not a molecule"])
    >>> table.bits.shape, table.formulas, table.unreadable
    ((2, 21), ['C2H6O', ''], [1])
    """

    kinds: tuple[str, ...] = ("morgan", "maccs")

    def __post_init__(self) -> None:
        given = (self.kinds,) if isinstance(self.kinds, str) else self.kinds
        kinds = tuple(given) if isinstance(given, list | tuple) else ()
        if (
            not all(isinstance(kind, str) for kind in kinds)
            or not kinds
            or len(set(kinds)) < len(kinds)
            or not set(kinds) <= set(N_BITS)
        ):
            raise ValueError(f"kinds must be some of {', '.join(N_BITS)}, each once; got {self.kinds!r}.")
        object.__setattr__(self, "kinds", kinds)

    @property
    def n_bits(self) -> int:
        """Number of bits per molecule, without those that pad the last byte."""
        return sum(N_BITS[kind] for kind in self.kinds)

    @property
    def n_bytes(self) -> int:
        """Number of bytes per molecule."""
        return -(-self.n_bits // 8)

    @cached_property
    def identity(self) -> str:
        """JSON text of everything that determines the bits of a molecule: kinds, sizes and the version of RDKit."""
        return json.dumps({"kinds": self.kinds, "bits": [N_BITS[k] for k in self.kinds], "rdkit": rdBase.rdkitVersion})

    def __call__(
        self, smiles: Sequence[str], *, cache: str | Path | None = None, n_jobs: int | None = None
    ) -> FingerprintTable:
        """Compute the fingerprints of molecules.

        Parameters
        ----------
        smiles : sequence of str
            SMILES of the molecules. Those that cannot be used are listed in ``unreadable`` of the result.
        cache : str or Path, default=None
            Folder in which finished chunks of 4096 molecules are kept, by the hash of their SMILES and the kinds. An
            interrupted or repeated call resumes from them.
        n_jobs : int, default=None
            Number of processes, as in joblib.

        Returns
        -------
        FingerprintTable
            Fingerprints, formulas and canonical SMILES, one per molecule.

        See Also
        --------
        iter_chunks : Compute fingerprints chunk by chunk, without all of them in memory.

        Examples
        --------
        >>> from psilearn_chem.molecules import Fingerprints
        >>> table = Fingerprints(["maccs"])(["CCO", "C1CC1"])
        >>> table.bits.shape, table.formulas
        ((2, 21), ['C2H6O', 'C3H6'])
        """
        bits = np.zeros((_check_smiles(smiles), self.n_bytes), dtype=np.uint8)
        formulas: list[str] = []
        canonical_smiles: list[str] = []
        for chunk in self.iter_chunks(smiles, cache=cache, n_jobs=n_jobs):
            bits[len(formulas) : len(formulas) + len(chunk.bits)] = chunk.bits
            formulas += chunk.formulas
            canonical_smiles += chunk.canonical_smiles
        return FingerprintTable(bits, formulas, canonical_smiles)

    def iter_chunks(
        self, smiles: Sequence[str], *, cache: str | Path | None = None, n_jobs: int | None = None
    ) -> Iterator[FingerprintTable]:
        """Compute the fingerprints of 4096 molecules at a time.

        Parameters
        ----------
        smiles : sequence of str
            SMILES of the molecules. Those that cannot be used are listed in ``unreadable`` of the result.
        cache : str or Path, default=None
            Folder in which finished chunks are kept, by the hash of their SMILES and the kinds. An interrupted or
            repeated call resumes from them.
        n_jobs : int, default=None
            Number of processes, as in joblib.

        Yields
        ------
        FingerprintTable
            Fingerprints, formulas and canonical SMILES of the next molecules.

        See Also
        --------
        CandidateLibrary.build : Write the fingerprints of molecules into a library.

        Examples
        --------
        >>> from psilearn_chem.molecules import Fingerprints
        >>> [chunk.bits.shape for chunk in Fingerprints(["maccs"]).iter_chunks(["C"] * 4100)]
        [(4096, 21), (4, 21)]
        """
        _check_smiles(smiles)
        validation.check_n_jobs(n_jobs)
        folder = None if cache is None else validation.check_path(cache, "cache")
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        chunks = [list(smiles[i : i + CHUNK_SIZE]) for i in range(0, len(smiles), CHUNK_SIZE)]
        tables = run_parallel((delayed(_load_or_compute_chunk)(chunk, self, folder) for chunk in chunks), n_jobs)
        yield from track(tables, f"fingerprints, {CHUNK_SIZE} molecules per step", len(chunks))

    def _compute_bits(self, molecules: Sequence[Mol | None]) -> Bits:
        """Return the packed bits of molecules, zeros for None."""
        generators = [_make_generator(kind) for kind in self.kinds]
        rows = np.zeros((len(molecules), self.n_bits), dtype=np.uint8)
        for row, molecule in zip(rows, molecules, strict=True):
            if molecule is not None:
                np.concatenate([generate(molecule) for generate in generators], out=row)
        return np.packbits(rows, axis=1)


def _load_or_compute_chunk(smiles: list[str], fingerprints: Fingerprints, folder: Path | None) -> FingerprintTable:
    """Return a chunk from the cache folder; compute it and write it there if it is missing or damaged."""
    if folder is None:
        return _compute_chunk(smiles, fingerprints)
    key = hashlib.sha256(json.dumps([fingerprints.identity, smiles]).encode()).hexdigest()
    stored = read_chunk(folder, key, (len(smiles), fingerprints.n_bytes))
    if stored is not None:
        return stored
    table = _compute_chunk(smiles, fingerprints)
    write_chunk(folder, key, table)
    return table


def _compute_chunk(smiles: list[str], fingerprints: Fingerprints) -> FingerprintTable:
    molecules = [parse_smiles(text) for text in smiles]
    formulas = [compute_formula(molecule) for molecule in molecules]
    molecules = [molecule if formula else None for molecule, formula in zip(molecules, formulas, strict=True)]
    return FingerprintTable(fingerprints._compute_bits(molecules), formulas, [to_smiles(m) for m in molecules])


def _make_generator(kind: str) -> Callable[[Mol], Bits]:
    """Return a function that computes the bits of a molecule as an array of 0 and 1."""
    if kind == "maccs":
        return _compute_maccs
    makers: dict[str, Callable[..., generators.FingerprintGenerator64]] = {
        "morgan": partial(generators.GetMorganGenerator, radius=2),
        "path": generators.GetRDKitFPGenerator,
        "atompair": generators.GetAtomPairGenerator,
        "torsion": generators.GetTopologicalTorsionGenerator,
    }
    generate: Callable[[Mol], Bits] = makers[kind](fpSize=N_BITS[kind]).GetFingerprintAsNumPy
    return generate


def _compute_maccs(molecule: Mol) -> Bits:
    keys = np.zeros(N_BITS["maccs"] + 1, dtype=np.uint8)
    DataStructs.ConvertToNumpyArray(GetMACCSKeysFingerprint(molecule), keys)
    return keys[1:]  # key 0 is never set


def _check_smiles(smiles: Sequence[str]) -> int:
    """Return the number of SMILES; raise an error unless they are a sequence of text."""
    is_sequence = isinstance(smiles, list | tuple) or (isinstance(smiles, np.ndarray) and smiles.ndim == 1)
    if not is_sequence or not all(isinstance(text, str | None) for text in smiles):
        raise TypeError(f"smiles must be a list of SMILES, that is text; got {smiles!r:.80}.")
    return len(smiles)


def write_chunk(folder: Path, key: str, chunk: FingerprintTable) -> None:
    """Write a chunk of the molecules with this key."""
    bits, formulas, canonical_smiles = chunk
    texts, ends = pack_texts([*formulas, *canonical_smiles])
    CHUNK_FORMAT.write(folder / f"{key}{CHUNK_SUFFIX}", key, {"bits": bits, "texts": texts, "ends": ends})


def read_chunk(folder: Path, key: str, shape: tuple[int, int]) -> FingerprintTable | None:
    """Return the chunk with this key; None if it has no ordinary file, or one that was truncated or changed."""
    try:
        file = CHUNK_FORMAT.read(folder / f"{key}{CHUNK_SUFFIX}")
        bits, texts = file.arrays["bits"], unpack_texts(file.arrays["texts"], file.arrays["ends"])
    except (OSError, ValueError, KeyError):
        return None
    n = shape[0]
    is_expected = file.content == key and bits.shape == shape and bits.dtype == np.uint8 and len(texts) == 2 * n
    return FingerprintTable(bits, texts[:n], texts[n:]) if is_expected else None


def remove_chunks(folder: Path) -> None:
    """Remove all chunks, also those that were being written, and the folder unless something else is in it."""
    for file in (*folder.glob(f"*{CHUNK_SUFFIX}"), *folder.glob(f".*{CHUNK_SUFFIX}.*.tmp")):
        file.unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
