"""Spectra of known molecules, and the molecules that each may be."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from psilearn.chem.molecules.molecule_files import read_molecules
from psilearn.chem.spectra import read_spectra
from psilearn.datasets.catalogue import DATASETS


def load_metabolites() -> Bunch:
    """Load metabolites: tandem mass spectra of MassBank with their molecules, and lists of candidate molecules.

    Taken from files in the data home; nothing is downloaded. Reading needs the extra ``psilearn[chem]``.

    Returns
    -------
    Bunch with ``spectra``, 3942 :class:`~psilearn.chem.spectra.Spectrum` of [M+H]+ ions, one a molecule, with formula and
    SMILES; ``inchikeys`` (3942,), the first block of each; ``fold`` (3942,), 0 to 4; ``licences`` (3942,) of the
    rows and ``noncommercial`` (3942,); ``candidates`` and ``unlabeled``, lists of molecules with ``smiles`` and
    ``names`` (the keys; "" for unlabeled): 460,559 that include the true ones, and 92,121 of other formulas; ``DESCR``,
    ``licence`` and ``source``. The accessions of the records that a spectrum was merged from are in its ``more``.
    """
    dataset = DATASETS["metabolites"]
    spectra_file, candidates_file, unlabeled_file = dataset.fetch()[1]
    spectra = read_spectra(spectra_file, adduct="[M+H]+", cleaning=None).spectra
    candidates = read_molecules(candidates_file)
    if (len(spectra), len(candidates.smiles)) != (dataset.n_train, dataset.n_outputs):
        raise ValueError(f"{spectra_file.parent}: {len(spectra)} spectra and {len(candidates.smiles)} candidates.")
    return Bunch(
        spectra=spectra,
        inchikeys=np.array([spectrum.more["inchikey14"] for spectrum in spectra]),
        fold=np.array([int(spectrum.more["fold"]) for spectrum in spectra]),
        licences=np.array([spectrum.more["license"] for spectrum in spectra]),
        noncommercial=np.array([spectrum.more["noncommercial"] == "True" for spectrum in spectra]),
        candidates=candidates,
        unlabeled=read_molecules(unlabeled_file),
        DESCR=dataset.description,
        licence=dataset.licence,
        source=dataset.source,
    )
