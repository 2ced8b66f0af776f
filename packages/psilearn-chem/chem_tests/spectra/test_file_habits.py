"""Files as they are in practice: annotated peaks, blocks of MS level 1, adducts in names, scan numbers, encodings."""

import numpy as np
import pytest

from chem_tests.spectra.spectrum_texts import ANNOTATED_MSP, GNPS, MASSBANK, MGF, MSP, SIRIUS, format_mzml
from psilearn_chem.spectra import Problem, iter_spectra, read_spectra
from psilearn_chem.spectra.formats import count_records


def read(folder, name, text, **options):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_spectra(path, **options)


def test_sirius_files(tmp_path):
    """Each block of fragments is a spectrum with the fields of its compound; the block of MS level 1 is left out."""
    first, other, second = read(tmp_path, "a.ms", SIRIUS, adduct="[M+H]+").spectra
    for spectrum, energy in ((first, "20"), (other, "40")):
        assert (spectrum.precursor_mz, spectrum.adduct, spectrum.formula) == (181.0707, "[M+H]+", "C6H12O6")
        assert spectrum.metadata["feature_id"] == "7" and spectrum.metadata["retention_time"] == "61.5"
        assert spectrum.metadata["collision_energy"] == energy and spectrum.metadata["compound_name"] == "first"
    np.testing.assert_allclose(first.mz, [60.02, 85.03])
    np.testing.assert_allclose(other.mz, [41.03, 60.02])
    assert second.adduct is None and second.metadata["ionmode"] == "negative"  # [M + ?]-: not the default adduct


@pytest.mark.parametrize(
    ("old", "new", "position", "reason"),
    [
        (">ms2\n70.1 5\n80.1 6\n", "", "compound 2", "no peaks at MS level 2"),
        ("70.1 5", "70.1", "compound 2", "'70.1' has no intensity"),
        (">ms2\n", "", "compound 2", "'70.1 5' stands outside of any block"),
        ("70.1 5", "70.1 five", "compound 2", "must be numbers"),
        ("41.03 100", "41.03 -1", "compound 1, block 2", "intensities ≥ 0"),
        (">parentmass 195.0877", ">parentmass heavy", "compound 2", "precursor_mz = 'heavy' is not a number"),
        (">compound first\n", "99 1\n>compound first\n", "compound 0", "outside of any block"),
    ],
)
def test_malformed_compounds_of_sirius_are_reported(tmp_path, old, new, position, reason):
    result = read(tmp_path, "bad.ms", SIRIUS.replace(old, new), errors="skip")
    assert [problem.source for problem in result.problems] == [f"bad.ms, {position}"]
    assert reason in result.problems[0].reason
    assert len(result.spectra) == (3 if position == "compound 0" else 2)


def test_blocks_of_ms_level_1_are_left_out_and_names_of_gnps_state_the_adduct(tmp_path):
    (spectrum,) = read(tmp_path, "a.mgf", GNPS).spectra
    assert spectrum.adduct == "[M+H]+"
    assert spectrum.metadata["feature_id"] == "7" and float(spectrum.metadata["retention_time"]) == 61.5
    assert spectrum.metadata["ionmode"] == "positive"
    with pytest.raises(ValueError, match="no spectrum of MS level 2: only 1 of MS level 1"):
        read(tmp_path, "b.mgf", GNPS.split("\n\n")[0] + "\n")
    with pytest.raises(ValueError, match="only 1 of MS level 1"):
        read(tmp_path, "b.txt", MASSBANK.replace("MS_TYPE MS2", "MS_TYPE MS"))


@pytest.mark.parametrize(
    ("name", "adduct"),
    [
        ("Hoiamide B M+H", "[M+H]+"),
        ("x [M-H2O+H]+", "[M-H2O+H]+"),
        ("Vitamin K", None),
        ("Compound M", None),
        ("M+H", "[M+H]+"),
        ("DM-H", None),
        ("name M+2", None),
    ],
)
def test_adducts_at_the_end_of_names(tmp_path, name, adduct):
    assert read(tmp_path, "a.mgf", GNPS.replace("Glucose M+H", name)).spectra[0].adduct == adduct


@pytest.mark.parametrize("field", ["ADDUCT=[M+H]⁺", "ION=[M+H]+", "ADDUCT=M+H", "PRECURSOR_TYPE=[M + H]1+"])
def test_adducts_are_given_their_usual_spelling(tmp_path, field):
    assert read(tmp_path, "a.mgf", MGF.replace("ADDUCT=[M+H]+", field)).spectra[0].adduct == "[M+H]+"
    other = read(tmp_path, "b.mgf", MGF.replace("ADDUCT=[M+H]+", "ION=electrospray"), adduct="M+Na").spectra[0]
    assert other.adduct == "[M+Na]+"  # "electrospray" is not an adduct


def test_annotated_peaks_of_msp(tmp_path):
    first, second = read(tmp_path, "a.msp", ANNOTATED_MSP).spectra
    np.testing.assert_allclose(first.mz, [60.02, 70.5, 85.03])
    np.testing.assert_allclose(first.intensity, [1.0, 0.2, 0.5])
    assert first.adduct == "[M+H]+" and float(first.metadata["retention_time"]) == pytest.approx(61.5)  # minutes
    np.testing.assert_allclose(second.mz, [70.1, 80.1])
    assert second.metadata["ionmode"] == "negative"
    plain = read(tmp_path, "b.msp", MSP.replace('60.02 100 "a fragment"\n85.03 50', "60.02 100 85.03 50")).spectra[0]
    np.testing.assert_allclose(plain.mz, [60.02, 85.03])


@pytest.mark.parametrize(
    ("stated", "seconds"), [("5.2 min", "312"), ("90 sec", "90"), ("90s", "90"), ("1.5", "90"), ("late", "late")]
)
def test_retention_times_of_msp_and_massbank_are_in_seconds(tmp_path, stated, seconds):
    text = ANNOTATED_MSP.replace("RETENTIONTIME: 1.025", f"RETENTIONTIME: {stated}")
    assert read(tmp_path, "a.msp", text).spectra[0].metadata["retention_time"] == seconds
    text = MASSBANK.replace("PK$SPLASH", f"AC$CHROMATOGRAPHY: RETENTION_TIME {stated}\nPK$SPLASH")
    assert read(tmp_path, "a.txt", text).spectra[0].metadata["retention_time"] == seconds


SCAN = """<cvParam cvRef="MS" accession="MS:1000511" name="ms level" value="2"/>"""
DETAILS = (
    '<cvParam cvRef="MS" accession="MS:1000129" name="negative scan"/><scanList count="1"><scan><cvParam cvRef="MS" '
    'accession="MS:1000016" name="scan start time" value="1.5" unitCvRef="UO" unitAccession="UO:{unit}"/>'
    "</scan></scanList>"
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("identifier", "number"),
    [
        ("controllerType=0 controllerNumber=1 scan=1234", "1234"),
        ("scanId=17", "17"),
        ("sample=1 period=1 cycle=5 experiment=2", "sample=1 period=1 cycle=5 experiment=2"),
    ],
)
def test_scan_numbers_polarity_and_times_of_mzml(tmp_path, identifier, number):
    text = format_mzml([(2, 181.0707, [85.03, 60.02], [50.0, 100.0])]).replace('id="scan=1"', f'id="{identifier}"')
    unit = '0000031" unitName="minute'
    text = text.replace(SCAN, SCAN + DETAILS.format(unit=unit))
    assert "negative scan" in text
    (spectrum,) = read(tmp_path, "a.mzML", text, adduct="[M+H]+").spectra
    assert spectrum.metadata["scan_number"] == number and spectrum.name == f"a.mzML:scan {number}"
    assert spectrum.metadata["ionmode"] == "negative"
    assert spectrum.adduct is None  # the default is of the other polarity
    assert float(spectrum.metadata["retention_time"]) == pytest.approx(90)
    assert read(tmp_path, "a.mzML", text, adduct="M-H").spectra[0].adduct == "[M-H]-"


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8", "utf-8-sig"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_names_in_old_encodings(tmp_path, encoding, newline):
    text = MGF.replace("TITLE=first", "TITLE=café µ").replace("\n", newline)
    first, second = read(tmp_path, "a.mgf", text.encode(encoding)).spectra
    assert first.name == "café µ" and second.name == "second"
    other = SIRIUS.replace(">compound first", ">compound café").encode(encoding)
    assert read(tmp_path, "a.ms", other).spectra[0].metadata["compound_name"] == "café"


def test_spectra_are_read_one_after_the_other(tmp_path):
    path = tmp_path / "a.mgf"
    path.write_text(MGF + "junk\n")
    items = list(iter_spectra(path, errors="skip"))
    assert [getattr(item, "name", None) for item in items] == ["first", "second", None]
    assert isinstance(items[-1], Problem)
    reading = iter_spectra(path)
    assert next(reading).name == "first" and next(reading).name == "second"
    with pytest.raises(ValueError, match="outside of any record"):
        next(reading)
    with pytest.raises(FileNotFoundError, match="absent"):
        iter_spectra(tmp_path / "absent.mgf")


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("a.mgf", GNPS, 2),  # one of MS level 1
        ("a.msp", MSP + ANNOTATED_MSP, 4),
        ("a.ms", SIRIUS, 3),
        ("a.txt", MASSBANK * 3, 3),
        ("a.mzML", "", None),
    ],
)
def test_records_are_counted_without_parsing(tmp_path, name, text, count):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert count_records(tmp_path / name) == count
    assert count_records(tmp_path / "absent.mgf") is None
