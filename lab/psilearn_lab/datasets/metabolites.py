"""The metabolites datasets: spectra of known molecules, and the candidate molecules of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from psilearn.utils import convert_read_errors
from psilearn_chem.molecules import read_molecules
from psilearn_chem.spectra import Spectrum, read_spectra
from psilearn_lab.datasets.catalogue import DATASETS


def load_metabolites() -> Bunch:
    """Load tandem mass spectra of MassBank with their molecules, and lists of candidate molecules.

    The files are read from the data home; nothing is downloaded.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``spectra`` : list of 3942 :class:`~psilearn_chem.spectra.Spectrum` of [M+H]+ ions, one per molecule, with
          formula and SMILES. ``metadata["accessions"]`` names the MassBank records that a spectrum was merged from.
        - ``inchikeys`` : array of shape (3942,), the first block of the InChIKey of each molecule.
        - ``fold`` : array of shape (3942,), fold of the cross-validation, 0 to 4.
        - ``licences`` : array of shape (3942,), the license of each spectrum.
        - ``noncommercial`` : array of shape (3942,), whether that license excludes commercial use.
        - ``candidates`` : :class:`~psilearn_chem.molecules.MoleculeList` of 460,559 molecules that contain the true
          ones; ``names`` are the first blocks of InChIKeys.
        - ``unlabeled`` : :class:`~psilearn_chem.molecules.MoleculeList` of 92,121 molecules with other formulas;
          ``names`` are "".
        - ``DESCR``, ``licence`` and ``source`` : description, license and origin of the dataset.

    Raises
    ------
    FileNotFoundError
        If a file is not in the data home.
    ValueError
        If the files are not those of this dataset.

    See Also
    --------
    load_metabolite_records : Load the single records, also of negative ions.
    psilearn_chem.MetaboliteIdentifier : Train a model on spectra of known molecules.
    psilearn_lab.datasets : Loaders of the other datasets.

    Examples
    --------
    >>> from psilearn_lab.datasets.metabolites import load_metabolites
    >>> data = load_metabolites()  # doctest: +SKIP
    >>> data.spectra[0].formula  # doctest: +SKIP
    'C21H33NO8'
    """
    dataset = DATASETS["metabolites"]
    spectra_file, candidates_file, unlabeled_file = dataset.fetch()[1]
    spectra = read_spectra(spectra_file, adduct="[M+H]+", cleaning=None).spectra
    candidates = read_molecules(candidates_file)
    if (len(spectra), len(candidates.smiles)) != (dataset.n_train, dataset.n_outputs):
        raise ValueError(
            f"{spectra_file.parent} has {len(spectra)} spectra and {len(candidates.smiles)} candidates; expected "
            f"{dataset.n_train} and {dataset.n_outputs}."
        )
    return Bunch(
        spectra=spectra,
        **_columns(spectra, spectra_file),
        candidates=candidates,
        unlabeled=read_molecules(unlabeled_file),
        DESCR=dataset.description,
        licence=dataset.licence,
        source=dataset.source,
    )


def load_metabolite_records() -> Bunch:
    """Load the single tandem mass spectra of MassBank, of nine adducts and both polarities, with their molecules.

    The file is read from the data home; nothing is downloaded. Reading takes 8 seconds.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``spectra`` : list of 69,662 :class:`~psilearn_chem.spectra.Spectrum` with adduct, formula and SMILES, named
          by their accession; ``metadata`` has the fields ``collision_energy``, ``instrument`` and
          ``instrument_family``.
        - ``inchikeys`` : array of shape (69662,), the first block of the InChIKey of each molecule, of 5973 molecules.
        - ``fold`` : array of shape (69662,), the fold of the molecule in :func:`load_metabolites`, −1 if it is not
          there.
        - ``licences`` : array of shape (69662,), the license of each spectrum.
        - ``noncommercial`` : array of shape (69662,), whether that license excludes commercial use.
        - ``DESCR``, ``licence`` and ``source`` : description, license and origin of the dataset.

    Raises
    ------
    FileNotFoundError
        If the file is not in the data home.
    ValueError
        If the file is not that of this dataset.

    See Also
    --------
    load_metabolites : Load merged spectra of [M+H]+ ions, and candidate molecules.
    merge_spectra : Merge the spectra of one ion.

    Examples
    --------
    >>> from psilearn_lab.datasets.metabolites import load_metabolite_records
    >>> data = load_metabolite_records()  # doctest: +SKIP
    >>> sorted({spectrum.adduct for spectrum in data.spectra})[:2]  # doctest: +SKIP
    ['[M+CH3COO]-', '[M+Cl]-']
    """
    dataset = DATASETS["metabolite_records"]
    (file,) = dataset.fetch()[1]
    spectra = read_spectra(file, cleaning=None).spectra
    columns = _columns(spectra, file)
    if (len(spectra), len(np.unique(columns["inchikeys"]))) != (dataset.n_train, dataset.n_outputs):
        raise ValueError(
            f"{file} has {len(spectra)} spectra of {len(np.unique(columns['inchikeys']))} molecules; expected "
            f"{dataset.n_train} and {dataset.n_outputs}."
        )
    return Bunch(spectra=spectra, **columns, DESCR=dataset.description, licence=dataset.licence, source=dataset.source)


def _columns(spectra: Sequence[Spectrum], file: Path) -> dict[str, NDArray[Any]]:
    """Return the fields of spectra that are columns of both datasets."""
    with convert_read_errors(file, "a table of this dataset"):
        return {
            "inchikeys": np.array([spectrum.metadata["inchikey14"] for spectrum in spectra]),
            "fold": np.array([int(spectrum.metadata["fold"]) for spectrum in spectra]),
            "licences": np.array([spectrum.metadata["license"] for spectrum in spectra]),
            "noncommercial": np.array([spectrum.metadata["noncommercial"] == "True" for spectrum in spectra]),
        }
