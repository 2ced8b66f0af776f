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
from psilearn_lab.datasets.catalogue import Dataset


def load_merged(dataset: Dataset) -> Bunch:
    """Return merged spectra of [M+H]+ ions, one per molecule, candidate molecules, and molecules without spectra."""
    spectra_file, candidates_file, unlabeled_file = dataset.fetch()[1]
    spectra = read_spectra(spectra_file, adduct="[M+H]+", cleaning=None).spectra
    candidates = read_molecules(candidates_file)
    _check_sizes(dataset, spectra_file, len(spectra), len(candidates.smiles))
    columns = _columns(spectra, spectra_file)
    return Bunch(spectra=spectra, **columns, candidates=candidates, unlabeled=read_molecules(unlabeled_file))


def load_records(dataset: Dataset) -> Bunch:
    """Return the single spectra, also of other adducts and of negative ions."""
    (file,) = dataset.fetch()[1]
    spectra = read_spectra(file, cleaning=None).spectra
    columns = _columns(spectra, file)
    _check_sizes(dataset, file, len(spectra), len(np.unique(columns["inchikeys"])))
    return Bunch(spectra=spectra, **columns)


def _check_sizes(dataset: Dataset, file: Path, n_spectra: int, n_molecules: int) -> None:
    if (n_spectra, n_molecules) != (dataset.n_train, dataset.n_outputs):
        raise ValueError(
            f"{file} has {n_spectra} spectra of {n_molecules} molecules; expected {dataset.n_train} and "
            f"{dataset.n_outputs}."
        )


def _columns(spectra: Sequence[Spectrum], file: Path) -> dict[str, NDArray[Any]]:
    """Return the fields of spectra that are columns of both datasets."""
    with convert_read_errors(file, "a table of this dataset"):
        return {
            "inchikeys": np.array([spectrum.metadata["inchikey14"] for spectrum in spectra]),
            "fold": np.array([int(spectrum.metadata["fold"]) for spectrum in spectra]),
            "licences": np.array([spectrum.metadata["license"] for spectrum in spectra]),
            "noncommercial": np.array([spectrum.metadata["noncommercial"] == "True" for spectrum in spectra]),
        }
