"""Spectra from files: what is read, and how a malformed record is named."""

import base64
import zlib

import numpy as np
import pytest

from psilearn.chem.spectra import Cleaning, Spectrum, read_spectra, write_parquet

pytest.importorskip("matchms", reason="spectra are read with the extra psilearn[chem]")

MGF = """BEGIN IONS
TITLE=first
PEPMASS=181.0707 1000
CHARGE=1+
ADDUCT=[M+H]+
FORMULA=C6H12O6
85.03 50
60.02 100
END IONS

BEGIN IONS
TITLE=second
PEPMASS=195.0877
70.1 5
80.1 6
END IONS
"""
MSP = """NAME: first
PRECURSORMZ: 181.0707
PRECURSORTYPE: [M+H]+
FORMULA: C6H12O6
SMILES: OCC1OC(O)C(O)C(O)C1O
Num Peaks: 2
60.02 100 "a fragment"
85.03 50

NAME: second
PRECURSORMZ: 195.0877
Num Peaks: 2
70.1 5; 80.1 6
"""
MASSBANK = """ACCESSION: MSBNK-test-1
RECORD_TITLE: glucose
LICENSE: CC0
CH$NAME: Glucose
CH$FORMULA: C6H12O6
CH$SMILES: OCC1OC(O)C(O)C(O)C1O
AC$MASS_SPECTROMETRY: MS_TYPE MS2
AC$MASS_SPECTROMETRY: ION_MODE POSITIVE
MS$FOCUSED_ION: PRECURSOR_M/Z 181.0707
MS$FOCUSED_ION: PRECURSOR_TYPE [M+H]+
PK$SPLASH: splash10-0
PK$NUM_PEAK: 2
PK$PEAK: m/z int. rel.int.
  60.02 100 999
  85.03 50 499
//
"""


def mzml(scans):
    """A minimal mzML file of MS2 scans, each a precursor and peaks."""

    def array(values, kind):
        data = base64.b64encode(zlib.compress(np.array(values, dtype="<f8").tobytes())).decode()
        accession, name = (1000514, "m/z array") if kind == "mz" else (1000515, "intensity array")
        terms = [(1000523, "64-bit float"), (1000574, "zlib compression"), (accession, name)]
        told = "".join(f'<cvParam cvRef="MS" accession="MS:{number}" name="{term}"/>' for number, term in terms)
        return f'<binaryDataArray encodedLength="{len(data)}">{told}<binary>{data}</binary></binaryDataArray>'

    spectra = "".join(
        f'<spectrum index="{i}" id="scan={i + 1}" defaultArrayLength="{len(mz)}"><cvParam cvRef="MS" accession='
        f'"MS:1000511" name="ms level" value="{level}"/><precursorList count="1"><precursor><selectedIonList count="1">'
        f'<selectedIon><cvParam cvRef="MS" accession="MS:1000744" name="selected ion m/z" value="{precursor}"/>'
        f'</selectedIon></selectedIonList></precursor></precursorList><binaryDataArrayList count="2">{array(mz, "mz")}'
        f"{array(height, 'i')}</binaryDataArrayList></spectrum>"
        for i, (level, precursor, mz, height) in enumerate(scans)
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?><mzML xmlns="http://psi.hupo.org/ms/mzml" version="1.1.0"><run id="r">'
        f'<spectrumList count="{len(scans)}">{spectra}</spectrumList></run></mzML>'
    )


def put(folder, name, text):
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
    read = read_spectra(put(tmp_path, name, text), adduct="[M+Na]+")
    assert not read.problems
    first, second = read.spectra
    assert_glucose(first)
    assert [first.name, second.name] == ["first", "second"]
    assert second.adduct == "[M+Na]+"  # it does not say its own
    assert second.formula is None
    np.testing.assert_allclose(second.mz, [70.1, 80.1])


def test_lower_case_records_of_mgf(tmp_path):
    text = MGF.replace("BEGIN IONS", "begin ions").replace("END IONS", "End Ions")
    assert len(read_spectra(put(tmp_path, "a.mgf", text)).spectra) == 2


def test_massbank(tmp_path):
    read = read_spectra(put(tmp_path, "a.txt", MASSBANK + MASSBANK.replace("test-1", "test-2")))
    assert_glucose(read.spectra[0])
    assert read.spectra[0].smiles == "OCC1OC(O)C(O)C(O)C1O"
    assert [s.name for s in read.spectra] == ["MSBNK-test-1", "MSBNK-test-2"]
    assert read.spectra[0].more["license"] == "CC0"


@pytest.mark.filterwarnings("ignore")
def test_mzml_takes_scans_of_level_2(tmp_path):
    text = mzml([(1, 0, [50.0], [1.0]), (2, 181.0707, [85.03, 60.02], [50.0, 100.0])])
    read = read_spectra(put(tmp_path, "a.mzML", text), adduct="[M+H]+")
    assert len(read.spectra) == 1
    np.testing.assert_allclose(read.spectra[0].mz, [60.02, 85.03])
    assert read.spectra[0].precursor_mz == pytest.approx(181.0707)


@pytest.mark.filterwarnings("ignore")
def test_a_broken_mzml_file_names_the_last_scan_that_was_read(tmp_path):
    text = mzml([(2, 181.0, [60.0, 85.0], [1.0, 2.0]), (2, 195.0, [60.0, 85.0], [1.0, 2.0])])
    path = put(tmp_path, "a.mzML", text[: text.rindex("<binary>") + 20])
    read = read_spectra(path, errors="skip")
    assert len(read.spectra) == 1
    assert "rest of the file cannot be read" in read.problems[0].why


def test_parquet_there_and_back(tmp_path):
    pytest.importorskip("pyarrow")
    spectra = read_spectra(put(tmp_path, "a.msp", MSP)).spectra
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
    "nan": ("85.03 50", "nan 50", "out of order"),
    "no peak": ("85.03 50\n60.02 100\n", "", "no peak"),
    "one peak": ("85.03 50\n", "", "1 of its 1 peaks left"),
    "all of height zero": ("85.03 50\n60.02 100\n", "85.03 0\n60.02 0\n", "one of them > 0"),
    "no precursor": ("PEPMASS=181.0707 1000", "PEPMASS=", ""),
}


@pytest.mark.parametrize(("old", "new", "why"), BAD_MGF.values(), ids=BAD_MGF.keys())
def test_a_malformed_record_is_named_and_the_other_is_read(tmp_path, old, new, why):
    path = put(tmp_path, "bad.mgf", MGF.replace(old, new))
    read = read_spectra(path, errors="skip")
    if old.startswith("PEPMASS"):  # unknown, not wrong
        assert read.spectra[0].precursor_mz is None
        return
    assert [s.name for s in read.spectra] == ["second"]
    assert read.problems[0].where == "bad.mgf, record 1"
    assert why in read.problems[0].why
    with pytest.raises(ValueError, match=r"bad\.mgf, record 1: .*errors='skip'"):
        read_spectra(path)


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        (MGF.replace("END IONS\n\n", "\n"), "record 1", "without END IONS"),
        (MGF.rstrip().removesuffix("END IONS"), "record 2", "ends without END IONS"),
        (MGF + "60.0 1\n", "after record 2", "outside of any record"),
    ],
)
def test_records_of_mgf_that_do_not_begin_or_end(tmp_path, text, where, why):
    read = read_spectra(put(tmp_path, "bad.mgf", text), errors="skip")
    assert any(p.where == f"bad.mgf, {where}" and why in p.why for p in read.problems)
    assert len(read.spectra) == 2 - (where != "after record 2")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("Num Peaks: 2\n60.02", "Num Peaks: 3\n60.02", "Num Peaks says 3, but 2"),
        ("Num Peaks: 2\n60.02", "Num Peaks: 0\n60.02", "Num Peaks says 0, but 2"),
        ("Num Peaks: 2\n60.02", "60.02", "Num Peaks says None"),
        ("85.03 50", "85.03 fifty", "neither a field nor peaks"),
        ("85.03 50", "85.03", "Wrong peak format"),
    ],
)
def test_a_wrong_number_of_peaks_in_msp_is_no_other_spectrum(tmp_path, old, new, why):
    read = read_spectra(put(tmp_path, "bad.msp", MSP.replace(old, new)), errors="skip")
    assert [s.name for s in read.spectra] == ["second"]
    assert read.problems[0].where == "bad.msp, record 1"
    assert why in read.problems[0].why


def test_an_empty_record_of_msp_does_not_lend_its_name_to_the_next(tmp_path):
    text = "NAME: empty\nPRECURSORMZ: 99.0\nNum Peaks: 0\n\n" + MSP
    read = read_spectra(put(tmp_path, "a.msp", text), errors="skip")
    assert [s.name for s in read.spectra] == ["first", "second"]
    assert "no peak" in read.problems[0].why


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("PK$NUM_PEAK: 2", "PK$NUM_PEAK: 5", "says 5, but 2"),
        ("ACCESSION: MSBNK-test-1\n", "", "no MassBank record"),
        ("MS_TYPE MS2", "MS_TYPE MS", "not MS2"),
        ("  85.03 50 499", "  85.03", "no intensity"),
        ("  85.03 50 499", "  85.03 x 499", "numbers"),
        ("//\n", "", "cut off"),
    ],
)
def test_malformed_massbank_records(tmp_path, old, new, why):
    text = MASSBANK.replace(old, new) if old != "//\n" else MASSBANK.removesuffix(old)
    read = read_spectra(put(tmp_path, "bad.txt", text), errors="skip")
    assert not read.spectra
    assert why in read.problems[0].why


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        read_spectra(tmp_path / "absent.mgf")
    with pytest.raises(ValueError, match=r"'\.xyz'.*\.mgf, \.msp"):
        read_spectra(put(tmp_path, "a.xyz", ""))
    with pytest.raises(ValueError, match="holds no spectrum"):
        read_spectra(put(tmp_path, "a.mgf", ""))
    with pytest.raises(ValueError, match="errors must be"):
        read_spectra(put(tmp_path, "b.mgf", MGF), errors="ignore")


def test_a_parquet_table_of_something_else(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"mz": [[50.0, 60.0]], "heights": [[1.0, 2.0]]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"no column intensity.*It has mz, heights"):
        read_spectra(tmp_path / "a.parquet")
    put(tmp_path, "b.parquet", "text")
    with pytest.raises(ValueError, match="not a Parquet file"):
        read_spectra(tmp_path / "b.parquet")
    rows = {"mz": [[50.0, 60.0], None, [50.0, 60.0]], "intensity": [[1.0, 2.0], [1.0], [1.0]]}
    parquet.write_table(pyarrow.table(rows), tmp_path / "c.parquet")
    read = read_spectra(tmp_path / "c.parquet", errors="skip")
    assert len(read.spectra) == 1
    assert [p.where for p in read.problems] == ["c.parquet, row 1", "c.parquet, row 2"]


def test_cleaning():
    spectrum = Spectrum([50, 60, 70, 99.5, 101.0, 103.0], [0.05, 40, 100, 30, 20, 500], precursor_mz=100.0)
    assert Cleaning()(spectrum).mz.tolist() == [60, 70, 99.5, 101]  # below 0.1 %, above the precursor
    assert Cleaning(noise=0.0)(spectrum).mz.tolist() == [50, 60, 70, 99.5, 101]
    assert Cleaning(around_precursor=1.0)(spectrum).mz.tolist() == [60, 70]
    assert Cleaning(above_precursor=None)(spectrum).intensity.max() == 1
    assert Cleaning(max_peaks=2)(spectrum).mz.tolist() == [60, 70]
    twice = Spectrum(spectrum.mz, spectrum.intensity, 100.0, adduct="[M+2H]2+")
    assert 103.0 in Cleaning()(twice).mz  # fragments of one charge may lie above
    told = Spectrum(spectrum.mz, spectrum.intensity, 100.0, more={"charge": "2"})
    assert 103.0 in Cleaning()(told).mz
    for adduct in ("[M+H]1+", "M+NH4", "[2M+H]+"):
        assert 103.0 not in Cleaning()(Spectrum(spectrum.mz, spectrum.intensity, 100.0, adduct=adduct)).mz
    with pytest.raises(ValueError, match="0 of its 6 peaks left"):
        Cleaning(above_precursor=0.0)(Spectrum(spectrum.mz, spectrum.intensity, 10.0))


@pytest.mark.parametrize(
    "bad", [{"noise": 2}, {"max_peaks": 0}, {"min_peaks": 0}, {"max_peaks": 1}, {"above_precursor": -1}]
)
def test_bad_cleaning(bad):
    with pytest.raises(ValueError, match=r"must be|below"):
        Cleaning(**bad)


@pytest.mark.parametrize(
    ("mz", "intensity", "why"),
    [
        ([1.0, 2.0], [1.0], "2 m/z values and 1 intensities"),
        ([], [], "empty"),
        ([[1.0]], [[1.0]], "one a peak"),
        (["a"], [1.0], "numbers"),
        ([np.inf], [1.0], "finite"),
        ([0.0], [1.0], "m/z > 0"),
        ([1e17], [1.0], "nothing is measured"),
        ([1.0], [-1.0], "≥ 0"),
    ],
)
def test_a_spectrum_holds_peaks(mz, intensity, why):
    with pytest.raises(ValueError, match=why):
        Spectrum(mz, intensity, name="mine")


def test_losses_need_a_precursor():
    with pytest.raises(ValueError, match="no precursor_mz"):
        _ = Spectrum([1.0], [1.0]).losses
    with pytest.raises(ValueError, match="precursor_mz must be"):
        Spectrum([1.0], [1.0], precursor_mz=-3)
