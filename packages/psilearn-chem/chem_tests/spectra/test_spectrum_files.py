"""Spectra from files: the formats, and how malformed records are reported."""

import numpy as np
import pytest

from chem_tests.spectra.spectrum_texts import MASSBANK, MGF, MSP, format_mzml
from psilearn_chem.spectra import read_spectra, write_parquet


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def assert_glucose(spectrum):
    np.testing.assert_allclose(spectrum.mz, [60.02, 85.03])
    np.testing.assert_allclose(spectrum.intensity, [1.0, 0.5])
    assert spectrum.precursor_mz == pytest.approx(181.0707)
    assert (spectrum.adduct, spectrum.formula) == ("[M+H]+", "C6H12O6")


@pytest.mark.parametrize(("name", "text"), [("a.mgf", MGF), ("a.msp", MSP)])
def test_several_records(tmp_path, name, text):
    read = read_spectra(write(tmp_path, name, text), adduct="[M+Na]+")
    assert not read.problems
    first, second = read.spectra
    assert_glucose(first)
    assert [first.name, second.name] == ["first", "second"]
    assert second.adduct == "[M+Na]+"  # the file states none
    assert second.formula is None
    np.testing.assert_allclose(second.mz, [70.1, 80.1])


def test_keywords_of_mgf_may_be_in_lower_case(tmp_path):
    text = MGF.replace("BEGIN IONS", "begin ions").replace("END IONS", "End Ions")
    assert len(read_spectra(write(tmp_path, "a.mgf", text)).spectra) == 2


def test_massbank(tmp_path):
    read = read_spectra(write(tmp_path, "a.txt", MASSBANK + MASSBANK.replace("test-1", "test-2")))
    assert_glucose(read.spectra[0])
    assert read.spectra[0].smiles == "OCC1OC(O)C(O)C(O)C1O"
    assert [s.name for s in read.spectra] == ["MSBNK-test-1", "MSBNK-test-2"]
    assert read.spectra[0].metadata["license"] == "CC0"


@pytest.mark.filterwarnings("ignore")
def test_only_scans_of_level_2_are_read_from_mzml(tmp_path):
    text = format_mzml([(1, 0, [50.0], [1.0]), (2, 181.0707, [85.03, 60.02], [50.0, 100.0])])
    read = read_spectra(write(tmp_path, "a.mzML", text), adduct="[M+H]+")
    assert len(read.spectra) == 1
    np.testing.assert_allclose(read.spectra[0].mz, [60.02, 85.03])
    assert read.spectra[0].precursor_mz == pytest.approx(181.0707)


@pytest.mark.filterwarnings("ignore")
def test_a_truncated_mzml_file_is_read_up_to_the_last_complete_scan(tmp_path):
    text = format_mzml([(2, 181.0, [60.0, 85.0], [1.0, 2.0]), (2, 195.0, [60.0, 85.0], [1.0, 2.0])])
    path = write(tmp_path, "a.mzML", text[: text.rindex("<binary>") + 20])
    read = read_spectra(path, errors="skip")
    assert len(read.spectra) == 1
    assert "rest of the file cannot be read" in read.problems[0].reason


def test_spectra_survive_a_round_trip_through_parquet(tmp_path):
    spectra = read_spectra(write(tmp_path, "a.msp", MSP)).spectra
    write_parquet(spectra, tmp_path / "a.parquet")
    again = read_spectra(tmp_path / "a.parquet").spectra
    for a, b in zip(spectra, again, strict=True):
        np.testing.assert_array_equal(a.mz, b.mz)
        np.testing.assert_array_equal(a.intensity, b.intensity)
        assert (a.name, a.precursor_mz, a.adduct, a.formula, a.smiles) == (
            b.name,
            b.precursor_mz,
            b.adduct,
            b.formula,
            b.smiles,
        )


BAD_MGF = {
    "a letter for a number": ("85.03 50", "85.03 x", "parsing"),
    "negative m/z": ("85.03 50", "-85.03 50", "m/z > 0"),
    "nan": ("85.03 50", "nan 50", "must be finite numbers"),
    "no peak": ("85.03 50\n60.02 100\n", "", "no peak"),
    "one peak": ("85.03 50\n", "", "1 of its 1 peaks left"),
    "all of height zero": ("85.03 50\n60.02 100\n", "85.03 0\n60.02 0\n", "one of them > 0"),
    "no precursor": ("PEPMASS=181.0707 1000", "PEPMASS=", ""),
}


@pytest.mark.parametrize(("old", "new", "reason"), BAD_MGF.values(), ids=BAD_MGF.keys())
def test_a_malformed_record_is_reported_and_the_others_are_read(tmp_path, old, new, reason):
    path = write(tmp_path, "bad.mgf", MGF.replace(old, new))
    read = read_spectra(path, errors="skip")
    if old.startswith("PEPMASS"):  # unknown, not an error
        assert read.spectra[0].precursor_mz is None
        return
    assert [s.name for s in read.spectra] == ["second"]
    assert read.problems[0].source == "bad.mgf, record 1"
    assert reason in read.problems[0].reason
    with pytest.raises(ValueError, match=r"bad\.mgf, record 1: .*errors='skip'"):
        read_spectra(path)


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        (MGF.replace("END IONS\n\n", "\n"), "record 1", "without END IONS"),
        (MGF.rstrip().removesuffix("END IONS"), "record 2", "ends without END IONS"),
        (MGF + "60.0 1\n", "after record 2", "outside of any record"),
    ],
)
def test_incomplete_records_of_mgf_are_reported(tmp_path, text, position, reason):
    read = read_spectra(write(tmp_path, "bad.mgf", text), errors="skip")
    assert any(p.source == f"bad.mgf, {position}" and reason in p.reason for p in read.problems)
    assert len(read.spectra) == 2 - (position != "after record 2")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("Num Peaks: 2\n60.02", "Num Peaks: 3\n60.02", "Num Peaks is 3, but the record has 2"),
        ("Num Peaks: 2\n60.02", "Num Peaks: 0\n60.02", "Num Peaks is 0, but the record has 2"),
        ("Num Peaks: 2\n60.02", "60.02", "Num Peaks is None"),
        ("85.03 50", "85.03 fifty", "neither a field nor peaks"),
        ("85.03 50", "85.03", "neither a field nor peaks"),
        ("85.03 50", "85.03 50; C3", "neither a field nor peaks"),
    ],
)
def test_malformed_records_of_msp_are_reported(tmp_path, old, new, reason):
    read = read_spectra(write(tmp_path, "bad.msp", MSP.replace(old, new)), errors="skip")
    assert [s.name for s in read.spectra] == ["second"]
    assert read.problems[0].source == "bad.msp, record 1"
    assert reason in read.problems[0].reason


def test_an_empty_record_of_msp_does_not_affect_the_next(tmp_path):
    text = "NAME: empty\nPRECURSORMZ: 99.0\nNum Peaks: 0\n\n" + MSP
    read = read_spectra(write(tmp_path, "a.msp", text), errors="skip")
    assert [s.name for s in read.spectra] == ["first", "second"]
    assert "no peak" in read.problems[0].reason


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("PK$NUM_PEAK: 2", "PK$NUM_PEAK: 5", "PK$NUM_PEAK is 5, but the record has 2"),
        ("ACCESSION: MSBNK-test-1\n", "", "not a MassBank record"),
        ("MS_TYPE MS2", "MS_TYPE MS3", "not MS2"),
        ("  85.03 50 499", "  85.03", "no intensity"),
        ("  85.03 50 499", "  85.03 x 499", "numbers"),
        ("//\n", "", "cut off"),
    ],
)
def test_malformed_records_of_massbank_are_reported(tmp_path, old, new, reason):
    text = MASSBANK.replace(old, new) if old != "//\n" else MASSBANK.removesuffix(old)
    read = read_spectra(write(tmp_path, "bad.txt", text), errors="skip")
    assert not read.spectra
    assert reason in read.problems[0].reason


def test_unusable_files_are_rejected(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        read_spectra(tmp_path / "absent.mgf")
    with pytest.raises(ValueError, match=r"'\.xyz'.*\.mgf, \.msp"):
        read_spectra(write(tmp_path, "a.xyz", ""))
    with pytest.raises(ValueError, match="contains no spectrum"):
        read_spectra(write(tmp_path, "a.mgf", ""))
    with pytest.raises(ValueError, match="errors must be"):
        read_spectra(write(tmp_path, "b.mgf", MGF), errors="ignore")


def test_unusable_parquet_tables_are_rejected(tmp_path):
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"mz": [[50.0, 60.0]], "heights": [[1.0, 2.0]]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"no column intensity.*It has mz, heights"):
        read_spectra(tmp_path / "a.parquet")
    write(tmp_path, "b.parquet", "text")
    with pytest.raises(ValueError, match="not a Parquet file"):
        read_spectra(tmp_path / "b.parquet")
    rows = {"mz": [[50.0, 60.0], None, [50.0, 60.0]], "intensity": [[1.0, 2.0], [1.0], [1.0]]}
    parquet.write_table(pyarrow.table(rows), tmp_path / "c.parquet")
    read = read_spectra(tmp_path / "c.parquet", errors="skip")
    assert len(read.spectra) == 1
    assert [p.source for p in read.problems] == ["c.parquet, row 1", "c.parquet, row 2"]


@pytest.mark.parametrize(
    "line", ["9" * 200_000, "60 1;" + "9" * 200_000, f"Comments: =1 {'a' * 200_000}", "RT: " + "9" * 200_000]
)
def test_long_words_in_msp_are_parsed_once(tmp_path, line):
    """Regular expressions that try each part of a word again would take minutes."""
    read = read_spectra(write(tmp_path, "a.msp", f"{MSP}{line}\n\n{MSP}"), errors="skip")
    assert len(read.spectra) + len(read.problems) == 4


def test_comments_of_msp_are_fields(tmp_path):
    comments = (
        """Comments: "SMILES=CC(=O)O" "computed InChI=InChI=1S/C2" 'a b=c d' Charge=2 Mz=5.5x RT="1.2 min" none=x"""
    )
    (spectrum, *_) = read_spectra(
        write(tmp_path, "a.msp", MSP.replace("Num Peaks", f"{comments}\nNum Peaks", 1))
    ).spectra
    expected = {"computed_inchi": "InChI=1S/C2", "a_b": "c d", "charge": "2", "mz": "5.5"}
    assert {key: spectrum.metadata.get(key) for key in expected} == expected
    assert "none" not in spectrum.metadata
