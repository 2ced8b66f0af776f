"""Merged spectra of one adduct from single records: the data of the experiment for other ions than [M+H]+."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from psilearn_chem import Cleaning, merge_spectra
from psilearn_lab.datasets.metabolites import load_metabolite_records, load_metabolites

N_FOLDS = 5


def load_merged_records(adduct: str) -> Bunch:
    """Return one merged spectrum per molecule with records of an adduct, in the form of ``load_metabolites``.

    Molecules that are not among the candidates are left out. A molecule keeps its fold; those without one are dealt to
    the folds in the order of their InChIKeys.
    """
    records, data = load_metabolite_records(), load_metabolites()
    known = np.isin(records.inchikeys, data.candidates.names)
    rows = np.flatnonzero(known & (np.array([spectrum.adduct for spectrum in records.spectra]) == adduct))
    inchikeys, first = np.unique(records.inchikeys[rows], return_index=True)
    groups = [rows[records.inchikeys[rows] == inchikey] for inchikey in inchikeys]
    clean = Cleaning(min_peaks=1)
    fold = records.fold[rows[first]]
    is_new = fold < 0
    fold[is_new] = np.arange(is_new.sum()) % N_FOLDS
    return Bunch(
        spectra=[clean(merge_spectra([records.spectra[i] for i in group])) for group in groups],
        inchikeys=inchikeys,
        fold=fold,
        noncommercial=np.array([records.noncommercial[group].any() for group in groups]),
        candidates=data.candidates,
        unlabeled=data.unlabeled,
    )
