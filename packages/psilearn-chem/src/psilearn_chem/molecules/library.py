"""A library of candidate molecules on disk, searched by formula or mass; built once and used by many models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psilearn.decoding import ShardedCandidates, SharedCandidates
from psilearn.io import unpack_texts
from psilearn.utils import Index, explain_missing, stage, validation
from psilearn_chem.molecules import library_file
from psilearn_chem.molecules.fingerprints import Bits, Fingerprints
from psilearn_chem.molecules.formulas import Formula
from psilearn_chem.molecules.library_file import CHUNKS, LibraryManifest, Texts, check_texts, fingerprints_of
from psilearn_chem.molecules.molecule_files import MoleculeList, read_molecules

if TYPE_CHECKING:
    from psilearn import IOKR, KDE, OEL

MASS_ROUNDING = 1e-9  # Da
SHARD_ROWS = 50_000  # molecules that are embedded in one task
STORED = "float32"  # precision of embedded molecules on disk
EMBEDDINGS = "embeddings"  # folder of the molecules as embedded by models


@dataclass(frozen=True)
class CandidateLibrary:
    """Library of candidate molecules on disk, with their fingerprints.

    Molecules are in ascending order of mass, so that those of one formula, and those in a window of masses, are a slice
    of rows. All are mapped from the disk, and only the rows that are used are read. The library is a folder with the
    safetensors file ``library.safetensors``, the list ``unreadable.csv``, and later the molecules as embedded by
    models. Opening it executes no code.

    Use :meth:`build` or :meth:`open` instead of the constructor.

    Parameters
    ----------
    path : Path
        Folder of the library.
    manifest : dict
        The fingerprints, the numbers of molecules and formulas, and the SHA-256.
    bits : ndarray of shape (n, b)
        Packed fingerprints as uint8, one row per molecule, mapped from the disk.
    formulas : list of str
        The f different formulas in ascending order of mass.
    masses : ndarray of shape (f,)
        Monoisotopic masses of the formulas in Da.
    starts : ndarray of shape (f + 1,)
        First row of each formula, and n.
    smiles : Texts
        SMILES of the molecules.
    names : Texts
        Names of the molecules.

    See Also
    --------
    Fingerprints : Kinds of fingerprints that describe a molecule.
    read_molecules : Read a list of molecules from a file.
    psilearn_chem.MetaboliteIdentifier.rank : Rank the molecules of a library for spectra.

    Examples
    --------
    >>> import tempfile
    >>> from psilearn_chem.molecules import CandidateLibrary, MoleculeList
    >>> molecules = MoleculeList(["CCO", "COC", "C1CC1", "OCC"], ["ethanol", "ether", "", "repeated"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     library = CandidateLibrary.build(molecules, folder)
    ...     rows = library.find_formula("C2H6O")
    ...     print(len(library), library.get_smiles(rows), library.find_mass(42.047, ppm=5))
    3 ['CCO', 'COC'] slice(0, 1, None)
    """

    path: Path
    manifest: LibraryManifest
    bits: Bits
    formulas: list[str]
    masses: NDArray[np.float64]
    starts: Index
    smiles: Texts
    names: Texts
    _opened: dict[str, SharedCandidates] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def build(
        cls,
        molecules: str | Path | MoleculeList,
        path: str | Path,
        fingerprints: Fingerprints | None = None,
        *,
        n_jobs: int | None = None,
    ) -> CandidateLibrary:
        """Compute the fingerprints of molecules and write a library into a new folder.

        Finished chunks of fingerprints are kept in the folder until the library is complete: after an interruption, the
        same call resumes the build. Repeated molecules, which have the same canonical SMILES, are kept once. Molecules
        that cannot be read or have isotope labels are listed in ``unreadable.csv``.

        Cost: about one millisecond per molecule and process for Morgan and MACCS fingerprints. Memory: the SMILES,
        formulas and fingerprints of all molecules, about 0.7 kB each.

        Parameters
        ----------
        molecules : str, Path or MoleculeList
            Molecules, or a file that :func:`read_molecules` reads.
        path : str or Path
            Folder of the library: a new or empty one, or that of an interrupted build.
        fingerprints : Fingerprints, default=None
            Fingerprints to compute. None stands for ``Fingerprints()``: Morgan and MACCS.
        n_jobs : int, default=None
            Number of processes, as in joblib.

        Returns
        -------
        CandidateLibrary
            The library, opened.

        Raises
        ------
        FileExistsError
            If the folder contains a library or something else.
        OSError
            If the folder cannot be written.
        ValueError
            If none of the molecules can be read.

        See Also
        --------
        open : Open a library that was built before.
        read_molecules : Read a list of molecules from a file.

        Examples
        --------
        >>> import tempfile
        >>> from psilearn_chem.molecules import CandidateLibrary, MoleculeList
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     library = CandidateLibrary.build(MoleculeList(["CCO", "COC", "OCC"], ["ethanol", "ether", ""]), folder)
        ...     len(library)
        2
        """
        path = validation.check_path(path, "path")
        fingerprints = Fingerprints() if fingerprints is None else fingerprints
        if not isinstance(fingerprints, Fingerprints):
            raise TypeError(f"fingerprints must be Fingerprints or None; got {fingerprints!r:.80}.")
        if not isinstance(molecules, MoleculeList):
            molecules = validation.check_path(molecules, "molecules")
        listed = molecules if isinstance(molecules, MoleculeList) else read_molecules(molecules)
        check_texts(listed)
        library_file.prepare_folder(path)
        try:
            formulas: list[str] = []
            canonical_smiles: list[str] = []
            for chunk in fingerprints.iter_chunks(listed.smiles, cache=path / CHUNKS, n_jobs=n_jobs):
                formulas += chunk.formulas
                canonical_smiles += chunk.canonical_smiles
            with stage("sorting and writing molecules"):
                library_file.write_library(path, listed, fingerprints, formulas, canonical_smiles)
        finally:
            library_file.remove_empty_folder(path)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = True) -> CandidateLibrary:
        """Open a library; its file is mapped into memory.

        Parameters
        ----------
        path : str or Path
            Folder of the library.
        verify : bool, default=True
            Whether to read the file once and compare its SHA-256. Otherwise only its header is compared, and rows are
            read when they are needed.

        Returns
        -------
        CandidateLibrary
            The library.

        Raises
        ------
        ValueError
            If the folder is not a finished library of this version, or its file is damaged.

        See Also
        --------
        build : Build a new library.
        verify : Compare the file of a library with its hash.

        Examples
        --------
        >>> import tempfile
        >>> from psilearn_chem.molecules import CandidateLibrary, MoleculeList
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     built = CandidateLibrary.build(MoleculeList(["CCO", "COC"], ["ethanol", "ether"]), folder)
        ...     CandidateLibrary.open(folder).hash == built.hash
        True
        """
        path, verify = validation.check_path(path, "path"), validation.check_bool(verify, "verify")
        return cls(path, *library_file.read_library(path, verify=verify))

    def __len__(self) -> int:
        return len(self.bits)

    def find_formula(self, formula: str) -> slice:
        """Return the rows of the molecules with a molecular formula.

        Parameters
        ----------
        formula : str
            Molecular formula, in any order of the elements.

        Returns
        -------
        slice
            Rows of the library. It is empty if no molecule has the formula.

        Raises
        ------
        ValueError
            If the text is not a molecular formula.

        See Also
        --------
        find_mass : Return the rows of the molecules in a window of masses.

        Examples
        --------
        >>> import tempfile
        >>> from psilearn_chem.molecules import CandidateLibrary, MoleculeList
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     library = CandidateLibrary.build(MoleculeList(["CCO", "COC", "C"], ["", "", ""]), folder)
        ...     library.find_formula("OC2H6")
        slice(1, 3, None)
        """
        i = self._formula_positions.get(str(Formula.parse(formula)))
        return slice(0, 0) if i is None else slice(int(self.starts[i]), int(self.starts[i + 1]))

    def find_mass(self, mass: float, ppm: float = 10.0) -> slice:
        """Return the rows of the molecules in a window of masses, its ends included.

        Parameters
        ----------
        mass : float
            Monoisotopic mass of the neutral molecule in Da.
        ppm : float, default=10.0
            Half the width of the window, in millionths of ``mass``.

        Returns
        -------
        slice
            Rows of the library. It is empty if no molecule is in the window.

        See Also
        --------
        find_formula : Return the rows of the molecules with a formula.
        Adduct.mass : Return the mass of the molecule of an ion.

        Examples
        --------
        >>> import tempfile
        >>> from psilearn_chem.molecules import CandidateLibrary, MoleculeList
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     library = CandidateLibrary.build(MoleculeList(["CCO", "COC", "C"], ["", "", ""]), folder)
        ...     library.find_mass(46.0419, ppm=5)
        slice(1, 3, None)
        """
        mass = validation.check_positive(mass, "mass")
        tolerance = 1e-6 * validation.check_non_negative(ppm, "ppm") * mass + MASS_ROUNDING
        first = np.searchsorted(self.masses, mass - tolerance)
        last = np.searchsorted(self.masses, mass + tolerance, side="right")
        return slice(int(self.starts[first]), int(self.starts[last]))

    def get_smiles(self, rows: slice | Sequence[int]) -> list[str]:
        """Return the SMILES of molecules.

        Parameters
        ----------
        rows : slice or sequence of int
            Rows of the library.

        Returns
        -------
        list of str
            SMILES as they were given when the library was built.

        See Also
        --------
        get_names : Return the names of molecules.

        Examples
        --------
        >>> import tempfile
        >>> from psilearn_chem.molecules import CandidateLibrary, MoleculeList
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     library = CandidateLibrary.build(MoleculeList(["CCO", "C"], ["ethanol", "methane"]), folder)
        ...     library.get_smiles([0, 1])
        ['C', 'CCO']
        """
        return self._take_texts(self.smiles, rows)

    def get_names(self, rows: slice | Sequence[int]) -> list[str]:
        """Return the names of molecules.

        Parameters
        ----------
        rows : slice or sequence of int
            Rows of the library.

        Returns
        -------
        list of str
            Names, "" for molecules without one.

        See Also
        --------
        get_smiles : Return the SMILES of molecules.

        Examples
        --------
        >>> import tempfile
        >>> from psilearn_chem.molecules import CandidateLibrary, MoleculeList
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     library = CandidateLibrary.build(MoleculeList(["CCO", "C"], ["ethanol", "methane"]), folder)
        ...     library.get_names(slice(0, 2))
        ['methane', 'ethanol']
        """
        return self._take_texts(self.names, rows)

    def get_formulas(self, rows: slice | Sequence[int]) -> list[str]:
        """Return the formulas of molecules.

        Parameters
        ----------
        rows : slice or sequence of int
            Rows of the library.

        Returns
        -------
        list of str
            Molecular formulas in Hill order.

        See Also
        --------
        find_formula : Return the rows of the molecules with a formula.

        Examples
        --------
        >>> import tempfile
        >>> from psilearn_chem.molecules import CandidateLibrary, MoleculeList
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     library = CandidateLibrary.build(MoleculeList(["CCO", "C"], ["ethanol", "methane"]), folder)
        ...     library.get_formulas([1])
        ['C2H6O']
        """
        index = validation.check_rows(rows, len(self), "rows")
        return [self.formulas[i] for i in np.searchsorted(self.starts, index, side="right") - 1]

    @cached_property
    def _formula_positions(self) -> dict[str, int]:
        return {formula: i for i, formula in enumerate(self.formulas)}

    def _take_texts(self, texts: Texts, rows: slice | Sequence[int]) -> list[str]:
        index = validation.check_rows(rows, len(self), "rows")
        with library_file.FORMAT.convert_errors(self.path):
            return unpack_texts(*texts, index)

    def __repr__(self) -> str:
        return f"CandidateLibrary({str(self.path)!r}: {len(self):,} molecules, {'+'.join(self.fingerprints.kinds)})"

    @property
    def hash(self) -> str:
        """SHA-256 of the molecules and their fingerprints, by which two libraries can be compared."""
        return self.manifest["sha256"]

    @property
    def fingerprints(self) -> Fingerprints:
        """Fingerprints that describe the molecules."""
        return fingerprints_of(self.manifest)

    def verify(self) -> None:
        """Read the file and compare its hash.

        Raises
        ------
        ValueError
            If the file was changed.

        See Also
        --------
        open : Open a library without reading all of it.

        Examples
        --------
        >>> import tempfile
        >>> from psilearn_chem.molecules import CandidateLibrary, MoleculeList
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     CandidateLibrary.build(MoleculeList(["CCO"], ["ethanol"]), folder).verify()
        """
        if library_file.read_library(self.path, verify=True).manifest["sha256"] != self.hash:
            raise ValueError(f"{self.path} was changed: it contains another library than the one that was opened.")

    def embedded(
        self, model: IOKR | KDE | OEL, *, build: bool = False, on_cluster: bool = False
    ) -> SharedCandidates | None:
        """Return all molecules as embedded by a model, mapped from the disk.

        The embeddings are computed in the current precision and stored as float32, in 4·n·p bytes. After an
        interruption the same call resumes. Their checksum is verified once per library object and model.

        Parameters
        ----------
        model : IOKR, KDE or OEL
            Fitted estimator whose outputs are fingerprints of the kinds of this library.
        build : bool, default=False
            Embed the molecules now if this model has not embedded them yet. It costs n·r kernel values and 2·n·r·p
            flops.
        on_cluster : bool, default=False
            Embed the molecules in shards, on the workers of Dask's default client, or in threads if there is none. The
            workers must share the folder of the library.

        Returns
        -------
        SharedCandidates or None
            The embedded molecules. None if they are not embedded yet and ``build=False``.

        See Also
        --------
        psilearn.decoding.SharedCandidates.build : Embed any candidates once.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> from psilearn_chem.molecules import CandidateLibrary, MoleculeList
        >>> from psilearn.kernels import Tanimoto
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     library = CandidateLibrary.build(MoleculeList(["CCO", "COC", "CCC"], ["", "", ""]), folder)
        ...     model = OEL(output_kernel=Tanimoto(packed=True), n_components=2).fit(np.eye(3), library.bits)
        ...     print(library.embedded(model), library.embedded(model, build=True))
        None SharedCandidates(3 outputs, embedded)
        """
        build, on_cluster = validation.check_bool(build, "build"), validation.check_bool(on_cluster, "on_cluster")
        if not hasattr(model, "embedding_"):
            raise TypeError(f"model must be a fitted IOKR, KDE or OEL; got {model!r:.80}.")
        name = model.embedding_.fingerprint[:16]
        if name not in self._opened:
            found = self._open_embedded(model, self.path / EMBEDDINGS / name, build, on_cluster)
            if found is None:
                return None
            self._opened[name] = found
        return self._opened[name]

    def _open_embedded(
        self, model: IOKR | KDE | OEL, folder: Path, build: bool, on_cluster: bool
    ) -> SharedCandidates | None:
        embedding = model.embedding_
        shards = folder.with_name(f"{folder.name}-shards")
        if (folder / "manifest.json").is_file():
            return SharedCandidates.load(folder, embedding, self.bits)
        if (shards / "manifest.json").is_file():
            return ShardedCandidates.open(shards, embedding)
        if not build:
            return None
        if on_cluster:
            return model.candidate_set(chunks_of_bits(self), shards, dtype=STORED)
        return SharedCandidates.build(self.bits, embedding, folder, keep_outputs=False, dtype=STORED)


def chunks_of_bits(library: CandidateLibrary) -> Any:
    """Return the fingerprints as a Dask array, whose chunks each worker maps from its disk."""
    with explain_missing("Embedding on a cluster needs Dask: pip install 'psilearn[dask]'."):
        import dask.array as da
        from dask.delayed import delayed
    n, n_bytes = library.bits.shape
    read = delayed(_read_bits, pure=True)
    bounds = [(start, min(start + SHARD_ROWS, n)) for start in range(0, n, SHARD_ROWS)]
    parts = [da.from_delayed(read(library.path.resolve(), i, j), (j - i, n_bytes), np.uint8) for i, j in bounds]
    return da.concatenate(parts)


def _read_bits(path: Path, start: int, stop: int) -> Any:
    return np.array(library_file.read_library(path, verify=False).bits[start:stop])
