"""The rows of a library of molecules: found by formula or mass, and described by SMILES, names and formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from psilearn.utils import Index, validation
from psilearn_chem.molecules import library_file
from psilearn_chem.molecules.fingerprints import Bits
from psilearn_chem.molecules.formulas import Formula
from psilearn_chem.molecules.library_file import LibraryManifest, Texts

MASS_ROUNDING = 1e-9  # Da


@dataclass(frozen=True)
class MoleculeTable:
    """Molecules in ascending order of mass, of which those of one formula or of a window of masses are a slice."""

    path: Path
    manifest: LibraryManifest
    bits: Bits
    formulas: list[str]
    masses: NDArray[np.float64]
    starts: Index
    smiles: Texts
    names: Texts

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
        index = np.arange(len(self))[rows] if isinstance(rows, slice) else np.asarray(rows, dtype=np.intp)
        return [self.formulas[i] for i in np.searchsorted(self.starts, index, side="right") - 1]

    @cached_property
    def _formula_positions(self) -> dict[str, int]:
        return {formula: i for i, formula in enumerate(self.formulas)}

    def _take_texts(self, texts: Texts, rows: slice | Sequence[int]) -> list[str]:
        index = np.arange(len(self))[rows] if isinstance(rows, slice) else np.asarray(rows, dtype=np.intp)
        with library_file.FORMAT.convert_errors(self.path):
            return texts.take(np.where(index < 0, index + len(self), index))
