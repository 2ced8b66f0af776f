"""Fingerprints of molecules from SMILES: packed bits, in parallel, kept on disk by the hash of their source."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from psilearn._utils.progress import track
from psilearn.chem.molecules.formulas import Formula, rdkit_chem

Bits = NDArray[np.uint8]

CHUNK = 4096  # molecules that are computed and kept together
N_BITS = {"morgan": 2048, "maccs": 166, "path": 2048, "atompair": 2048, "torsion": 2048}


class Fingerprinted(NamedTuple):
    """Fingerprints of molecules, in the order of their SMILES."""

    bits: Bits  # (n, b) uint8, eight bits a byte; zeros where the SMILES could not be read
    formulas: list[str]  # in Hill's order; "" where the SMILES could not be read or has isotope labels
    canonical: list[str]  # RDKit's canonical SMILES, equal for equal molecules; "" likewise

    @property
    def unreadable(self) -> list[int]:
        """Places of the SMILES that could not be read."""
        return [i for i, formula in enumerate(self.formulas) if not formula]


@dataclass(frozen=True)
class Fingerprints:
    """Which fingerprints describe a molecule: one or several, side by side.

    Rows are packed, as ``Tanimoto(packed=True)`` and ``GaussianTanimoto(packed=True)`` take them.

    Parameters
    ----------
    kinds : list of str
        ``"morgan"`` (circular, radius 2, 2048 bits), ``"maccs"`` (166 keys), ``"path"`` (RDKit's paths of up to 7
        bonds, 2048 bits), ``"atompair"`` and ``"torsion"`` (2048 bits each).

    Examples
    --------
    >>> made = Fingerprints(["maccs"])(["CCO", "not a molecule"])
    >>> made.bits.shape, made.formulas, made.unreadable
    ((2, 21), ['C2H6O', ''], [1])
    """

    kinds: tuple[str, ...] = ("morgan", "maccs")

    def __post_init__(self) -> None:
        kinds = (self.kinds,) if isinstance(self.kinds, str) else tuple(self.kinds)
        if not kinds or len(set(kinds)) < len(kinds) or not set(kinds) <= set(N_BITS):
            raise ValueError(f"kinds must be some of {', '.join(N_BITS)}, each once; got {self.kinds!r}.")
        object.__setattr__(self, "kinds", kinds)

    @property
    def n_bits(self) -> int:
        """Bits of a molecule, without what fills up the last byte."""
        return sum(N_BITS[kind] for kind in self.kinds)

    @property
    def n_bytes(self) -> int:
        """Bytes of a molecule."""
        return -(-self.n_bits // 8)

    @cached_property
    def identity(self) -> str:
        """Whatever determines the bits of a molecule, as text."""
        from rdkit import rdBase

        return json.dumps({"kinds": self.kinds, "bits": [N_BITS[k] for k in self.kinds], "rdkit": rdBase.rdkitVersion})

    def __call__(
        self, smiles: Sequence[str], *, cache: str | Path | None = None, n_jobs: int | None = None
    ) -> Fingerprinted:
        """Compute the fingerprints of molecules.

        Parameters
        ----------
        smiles : list of str
            those that cannot be read are listed in the answer, not fatal.
        cache : folder, optional
            finished chunks of 4096 molecules are kept there under the hash of their SMILES and kinds, so that an
            interrupted or repeated call goes on from them.
        n_jobs : int, optional
            processes, as joblib counts them.
        """
        rdkit_chem()
        bits = np.zeros((len(smiles), self.n_bytes), dtype=np.uint8)
        formulas: list[str] = []
        canonical: list[str] = []
        for part in self.chunks(smiles, cache, n_jobs):
            bits[len(formulas) : len(formulas) + len(part.bits)] = part.bits
            formulas += part.formulas
            canonical += part.canonical
        return Fingerprinted(bits, formulas, canonical)

    def chunks(
        self, smiles: Sequence[str], cache: str | Path | None = None, n_jobs: int | None = None
    ) -> Iterator[Fingerprinted]:
        """Yield the answer for 4096 molecules at a time; see :meth:`__call__`."""
        folder = None if cache is None else Path(cache)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        parts = [list(smiles[i : i + CHUNK]) for i in range(0, len(smiles), CHUNK)]
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        made = parallel(delayed(_chunk)(part, self, folder) for part in parts)
        yield from track(made, f"fingerprints, {CHUNK} molecules a step", len(parts))

    def _of(self, molecules: Sequence[Any]) -> Bits:
        """Return packed bits of molecules of RDKit, None among them."""
        generators = [_generator(kind) for kind in self.kinds]
        rows = np.zeros((len(molecules), self.n_bits), dtype=np.uint8)
        for row, molecule in zip(rows, molecules, strict=True):
            if molecule is not None:
                np.concatenate([generate(molecule) for generate in generators], out=row)
        return np.packbits(rows, axis=1)


def _chunk(smiles: list[str], fingerprints: Fingerprints, folder: Path | None) -> Fingerprinted:
    """Compute a chunk, or take it from the folder; what is there but damaged is computed anew."""
    key = hashlib.sha256(json.dumps([fingerprints.identity, smiles]).encode()).hexdigest()
    place = None if folder is None else folder / f"{key}.npz"
    if place is not None and (found := _stored(place, len(smiles), fingerprints.n_bytes)) is not None:
        return found
    molecules = [molecule_of(text) for text in smiles]
    formulas = [formula_of(molecule) for molecule in molecules]
    molecules = [molecule if formula else None for molecule, formula in zip(molecules, formulas, strict=True)]
    made = Fingerprinted(
        fingerprints._of(molecules),
        formulas,
        ["" if molecule is None else rdkit_chem().MolToSmiles(molecule) for molecule in molecules],
    )
    if place is not None:
        unfinished = place.with_suffix(f".{os.getpid()}.npz")
        np.savez_compressed(unfinished, bits=made.bits, formulas=made.formulas, canonical=made.canonical)
        unfinished.replace(place)
    return made


def _stored(place: Path, n: int, width: int) -> Fingerprinted | None:
    try:
        with np.load(place, allow_pickle=False) as arrays:
            found = Fingerprinted(arrays["bits"], arrays["formulas"].tolist(), arrays["canonical"].tolist())
    except Exception:  # absent, cut off, or of another kind
        return None
    return found if found.bits.shape == (n, width) and len(found.formulas) == len(found.canonical) == n else None


def molecule_of(smiles: str) -> Any:
    """Return RDKit's molecule, or None where the SMILES cannot be read or names no atom."""
    molecule = rdkit_chem().MolFromSmiles(smiles) if isinstance(smiles, str) and smiles.strip() else None
    return molecule if molecule is not None and molecule.GetNumAtoms() else None


def formula_of(molecule: Any) -> str:
    """Return the formula of a molecule in Hill's order; "" for None, and for molecules with isotope labels."""
    from rdkit.Chem.rdMolDescriptors import CalcMolFormula

    if molecule is None or any(atom.GetIsotope() for atom in molecule.GetAtoms()):
        return ""
    try:
        return str(Formula.parse(CalcMolFormula(molecule)))
    except ValueError:  # a dummy atom has no place in a formula
        return ""


def _generator(kind: str) -> Callable[[Any], Bits]:
    """Return what turns a molecule into an array of 0/1."""
    from rdkit import DataStructs
    from rdkit.Chem import rdFingerprintGenerator as generators
    from rdkit.Chem.rdMolDescriptors import GetMACCSKeysFingerprint

    if kind == "maccs":

        def maccs(molecule: Any) -> Bits:
            keys = np.zeros(N_BITS["maccs"] + 1, dtype=np.uint8)
            DataStructs.ConvertToNumpyArray(GetMACCSKeysFingerprint(molecule), keys)
            return keys[1:]  # key 0 is never set

        return maccs
    makers: dict[str, Callable[..., Any]] = {
        "morgan": partial(generators.GetMorganGenerator, radius=2),
        "path": generators.GetRDKitFPGenerator,
        "atompair": generators.GetAtomPairGenerator,
        "torsion": generators.GetTopologicalTorsionGenerator,
    }
    return makers[kind](fpSize=N_BITS[kind]).GetFingerprintAsNumPy
