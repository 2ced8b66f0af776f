"""Lists of molecules from files."""

import pytest
from rdkit import Chem

from psilearn_chem.molecules import MoleculeList, read_molecules


def test_all_formats_are_read(tmp_path):
    import pyarrow
    from pyarrow import parquet

    expected = MoleculeList(["CCO", "c1ccccc1"], ["ethanol", "benzene"])
    (tmp_path / "a.smi").write_text("# comment\nCCO ethanol\n\nc1ccccc1\tbenzene\n")
    (tmp_path / "a.csv").write_text("Name,SMILES\nethanol,CCO\nbenzene,c1ccccc1\n")
    (tmp_path / "a.tsv").write_text("smiles\tid\nCCO\tethanol\nc1ccccc1\tbenzene\n")
    parquet.write_table(pyarrow.table({"smiles": expected.smiles, "id": expected.names}), tmp_path / "a.parquet")
    with Chem.SDWriter(str(tmp_path / "a.sdf")) as writer:
        for smiles, name in zip(*expected, strict=True):
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetProp("_Name", name)
            writer.write(molecule)
    for extension in ("smi", "csv", "tsv", "parquet", "sdf"):
        assert read_molecules(tmp_path / f"a.{extension}") == expected


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "name,formula\nx,CH4\n", "no column smiles; it has name, formula"),
        ("a.smi", "# nothing\n", "contains no molecule"),
        ("a.mol2", "x", "molecules are read from"),
        ("a.parquet", "x", "not a Parquet file"),
        ("a.csv", "smiles\n" + "C" * 200_000, "not a text file that can be read"),
    ],
)
def test_unusable_files_are_rejected(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        read_molecules(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read_molecules(tmp_path / "absent.smi")


def test_names_in_latin_1(tmp_path):
    for name, text in (("a.csv", "smiles,name\nCCO,café\n"), ("a.smi", "CCO café\n")):
        (tmp_path / name).write_bytes(text.encode("latin-1"))
        assert read_molecules(tmp_path / name) == (["CCO"], ["café"])


def test_columns_of_public_lists(tmp_path):
    for header in ("identifier,canonical_smiles,name", "Identifier,SMILES,name", "cid,Isomeric_SMILES,NAME"):
        (tmp_path / "a.csv").write_text(f"{header}\nCNP1,CCO,ethanol\n")
        assert read_molecules(tmp_path / "a.csv") == (["CCO"], ["ethanol"])
