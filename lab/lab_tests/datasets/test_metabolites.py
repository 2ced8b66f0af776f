"""Loaders of the spectra of MassBank."""

from dataclasses import replace

import pytest

pytest.importorskip("pyarrow", reason="the files are Parquet tables")

import pyarrow
from pyarrow import parquet

from psilearn_chem.metabolites.queries import COMMON_ADDUCTS
from psilearn_lab.datasets import load
from psilearn_lab.datasets.catalogue import DATASETS, RemoteFile


@pytest.fixture
def records(tmp_path, monkeypatch):
    """Return the columns of two records of one molecule in the data home."""
    columns = {
        "id": ["A1", "A2"],
        "inchikey14": ["A" * 14] * 2,
        "smiles": ["CCO"] * 2,
        "formula": ["C2H6O"] * 2,
        "adduct": ["[M+H]+", "[M-H]-"],
        "precursor_mz": [47.0491, 45.0346],
        "collision_energy": ["10", "20 eV"],
        "fold": [3, -1],
        "license": ["CC0", "CC BY-NC-SA"],
        "noncommercial": [False, True],
        "mz": [[29.0, 31.0], [43.0]],
        "intensity": [[0.5, 1.0], [1.0]],
    }
    dataset = DATASETS["metabolite_records"]
    form = replace(dataset.forms[0], files=(RemoteFile("metabolites/records.parquet"),))
    monkeypatch.setenv("PSILEARN_DATA", str(tmp_path))
    monkeypatch.setitem(DATASETS, dataset.name, replace(dataset, n_train=2, n_outputs=1, forms=(form,)))
    (tmp_path / "metabolites").mkdir()

    def write(**changes):
        parquet.write_table(pyarrow.table(columns | changes), tmp_path / "metabolites" / "records.parquet")

    return write


def test_records_keep_their_adducts_and_energies(records):
    records()
    data = load("metabolite_records")
    assert [spectrum.adduct for spectrum in data.spectra] == ["[M+H]+", "[M-H]-"]
    assert data.spectra[1].metadata["collision_energy"] == "20 eV" and data.spectra[1].name == "A2"
    assert data.fold.tolist() == [3, -1] and data.noncommercial.tolist() == [False, True]
    assert data.inchikeys.tolist() == ["A" * 14] * 2 and data.licences.tolist() == ["CC0", "CC BY-NC-SA"]


def test_other_records_are_rejected(records):
    records(inchikey14=["A" * 14, "B" * 14])
    with pytest.raises(ValueError, match="2 spectra of 2 molecules; expected 2 and 1"):
        load("metabolite_records")


@pytest.mark.data("metabolites/records.parquet")
def test_all_adducts_of_the_records_are_known():
    (file,) = DATASETS["metabolite_records"].fetch()[1]
    table = parquet.read_table(file, columns=["adduct", "inchikey14"])
    assert set(table["adduct"].to_pylist()) == set(COMMON_ADDUCTS)
    assert (len(table), len(set(table["inchikey14"].to_pylist()))) == (69_662, 5973)
