"""Merged spectra of records of one adduct."""

import numpy as np
from sklearn.utils import Bunch

from chem_tests.chemistry import different_smiles, spectra_of
from psilearn_chem import MoleculeList, merge_spectra
from psilearn_lab import datasets
from psilearn_lab.experiments import metabolite_data


def test_records_of_one_adduct_are_merged_per_molecule(monkeypatch):
    smiles = different_smiles()[:9]
    keys = [f"k{i}" for i in range(9)]
    negative = [*spectra_of(smiles, adduct="[M-H]-"), *spectra_of(smiles[:4], seed=1, adduct="[M-H]-")]
    spectra = [*negative, *spectra_of(smiles)]
    records = Bunch(
        spectra=spectra,
        inchikeys=np.array([*keys, *keys[:4], *keys]),
        fold=np.array([3, *[-1] * 8, 3, *[-1] * 3, 3, *[-1] * 8]),
        noncommercial=np.arange(len(spectra)) == 9,  # the second record of k0
    )
    data = Bunch(candidates=MoleculeList(smiles[:8], keys[:8]), unlabeled=MoleculeList([], []))  # without k8
    monkeypatch.setattr(datasets, "load", {"metabolite_records": records, "metabolites": data}.get)
    merged = metabolite_data.load_merged_records("[M-H]-")
    assert merged.inchikeys.tolist() == keys[:8] and merged.fold.tolist() == [3, 0, 1, 2, 3, 4, 0, 1]
    assert merged.noncommercial.tolist() == [True, *[False] * 7]
    assert {spectrum.adduct for spectrum in merged.spectra} == {"[M-H]-"}
    np.testing.assert_allclose(merged.spectra[2].mz, merge_spectra([negative[2], negative[11]]).mz)
    np.testing.assert_allclose(merged.spectra[7].mz, negative[7].mz)
    assert merged.candidates is data.candidates
