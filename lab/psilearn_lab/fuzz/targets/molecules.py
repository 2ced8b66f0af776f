"""Readers of lists of molecules."""

from __future__ import annotations

from pathlib import Path

import pyarrow
from pyarrow import parquet
from rdkit import Chem

from psilearn_chem.molecules import read_molecules
from psilearn_lab.fuzz.target import Target
from psilearn_lab.fuzz.targets.seeds import new_seed, texts

SMILES = ("CCO", "COC", "c1ccccc1O", "C[C@H](N)C(=O)O")
NAMES = ("ethanol", "dimethyl ether", "", "alanine")
CSV = "id,smiles,mass\n" + "".join(f'"{name}",{smiles},1.5\n' for name, smiles in zip(NAMES, SMILES, strict=True))


def _make_sdf() -> str:
    blocks = []
    for name, smiles in zip(NAMES, SMILES, strict=True):
        molecule = Chem.MolFromSmiles(smiles)
        molecule.SetProp("_Name", name)
        blocks.append(f"{Chem.MolToMolBlock(molecule)}>  <mass>\n1.5\n\n$$$$\n")
    blocks.append(f"{Chem.MolToV3KMolBlock(Chem.MolFromSmiles('CCO'))}$$$$\n")
    return "".join(blocks)


def _write_parquet(folder: Path) -> None:
    table = pyarrow.table({"name": NAMES, "smiles": SMILES, "mass": [1.0, 2.0, 3.0, 4.0]})
    dictionary = table.set_column(1, "smiles", table["smiles"].dictionary_encode())
    for content in (table, dictionary):
        for options in (
            {"compression": "none", "use_dictionary": False},
            {"compression": "snappy"},
            {"data_page_version": "2.0"},
        ):
            parquet.write_table(content, new_seed(folder) / "molecules.parquet", **options)


TARGETS = (
    Target("molecules-csv", texts("molecules.csv", CSV), lambda folder: read_molecules(folder / "molecules.csv")),
    Target(
        "molecules-tsv",
        texts("molecules.tsv", CSV.replace(",", "\t")),
        lambda folder: read_molecules(folder / "molecules.tsv"),
    ),
    Target(
        "molecules-smi",
        texts("molecules.smi", "# list\nCCO ethanol\nCOC\tdimethyl ether\n\nc1ccccc1O\n"),
        lambda folder: read_molecules(folder / "molecules.smi"),
    ),
    Target(
        "molecules-sdf",
        lambda folder: texts("molecules.sdf", _make_sdf())(folder),
        lambda folder: read_molecules(folder / "molecules.sdf"),
        tokens=(b"$$$$\n", b"M  END\n", b"M  CHG  1   1   9\n", b"V3000", b">  <a>\n", b"M  V30 "),
    ),
    Target("molecules-parquet", _write_parquet, lambda folder: read_molecules(folder / "molecules.parquet")),
)
