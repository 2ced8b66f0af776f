"""Files of any origin: readers need a bounded amount of memory and print nothing."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from pyarrow import DictionaryArray, array, parquet, string, table

from psilearn_chem import iter_spectra, read_molecules, read_spectra
from psilearn_chem.spectra.formats import MAX_RECORD

SIZE = 4_000_000
PEAKS = "".join(f"{50 + i / 1000:.4f} {i % 997 + 1}\n" for i in range(90_000))  # of a record that is not too large
SPECTRUM = f"PEPMASS=181.0707\n{PEAKS[:1200].rpartition(chr(10))[0]}\nEND IONS\n"


def repeat(text):
    return text * (SIZE // len(text))


FILES = {
    "one record": ("a.mgf", f"BEGIN IONS\n{repeat(PEAKS)}END IONS\n", 1),
    "the largest records": ("a.mgf", repeat(f"BEGIN IONS\n{PEAKS}END IONS\n"), SIZE // (len(PEAKS) + 20)),
    "no record": ("a.mgf", repeat("neither a field nor a peak\n"), 1),
    "usual spectra": ("a.mgf", repeat(f"BEGIN IONS\n{SPECTRUM}"), SIZE // (len(SPECTRUM) + 11)),
    "one compound": ("a.ms", f">compound a\n>ms2\n{repeat(PEAKS)}", 1),
    "one record of MassBank": ("a.txt", f"ACCESSION: a\nPK$PEAK: m\n{repeat('  50.0 1 1' + chr(10))}//\n", 1),
    "one record of MSP": ("a.msp", f"NAME: a\nNum Peaks: 9\n{repeat(PEAKS)}", 1),
    "usual molecules": ("a.smi", repeat("CC(=O)Oc1ccccc1C(=O)O aspirin\n"), SIZE // 30),
    "a table": ("a.csv", "smiles,name\n" + repeat("CC(=O)Oc1ccccc1C(=O)O,aspirin\n"), SIZE // 30),
}


@pytest.mark.parametrize("kind", FILES)
def test_readers_need_four_times_the_file_and_64_mb(tmp_path, kind):
    name, text, count = FILES[kind]
    path = tmp_path / name
    path.write_text(text)
    molecules = path.suffix in (".smi", ".csv")
    tracemalloc.start()
    try:
        read = read_molecules(path) if molecules else read_spectra(path, errors="skip")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(read.smiles) if molecules else sum(map(len, read))) == count
    assert peak <= 4 * len(text) + 64_000_000


def test_records_and_lines_that_are_too_long_do_not_affect_others(tmp_path):
    good = "BEGIN IONS\nPEPMASS=99\n50 1\n60 2\nEND IONS\n"
    path = tmp_path / "a.mgf"
    path.write_text(good + "BEGIN IONS\n" + "50.25 1\n" * (MAX_RECORD // 8 + 1) + "END IONS\n" + good)
    read = read_spectra(path, errors="skip")
    assert [spectrum.precursor_mz for spectrum in read.spectra] == [99.0, 99.0]
    assert [problem.source for problem in read.problems] == ["a.mgf, record 2"]
    assert "more than 2,097,152 characters" in read.problems[0].reason
    path.write_text(good + "x" * 2_000_000)
    spectra = iter_spectra(path)
    assert next(spectra).precursor_mz == 99.0
    with pytest.raises(ValueError, match=r"a\.mgf is not a file of spectra .*a line has 1,048,576 characters or more"):
        next(spectra)


def write_table(path, columns):
    parquet.write_table(table(columns), path, compression="zstd")
    assert path.stat().st_size < 30_000
    return path


def test_tables_whose_values_repeat_are_not_expanded(tmp_path):
    """A dictionary and run lengths make any number of equal values a few bytes: gigabytes of objects here."""
    n = 100_000
    long = array(["C" * 20_000] * 1000, string())
    peaks = {"mz": [[50.0, 60.0]] * 20, "intensity": [[1.0, 2.0]] * 20, "note": [["x" * 100_000] * 20] * 20}
    tables = {
        "a": (read_molecules, {"smiles": array(["C"] * n)}),
        "b": (read_molecules, {"smiles": long}),
        "c": (read_spectra, {"mz": [np.full(n, 50.0)], "intensity": [np.ones(n)]}),
        "d": (read_spectra, peaks),
        "e": (read_molecules, {"smiles": DictionaryArray.from_arrays(np.zeros(99, np.int8), ["C", "N" * 20_000_000])}),
    }
    for name, (read, columns) in tables.items():
        with pytest.raises(ValueError, match=r"its contents are over 200 times as large as the file"):
            read(write_table(tmp_path / f"{name}.parquet", columns))


def test_readers_print_nothing(tmp_path):
    """matchms logs to the standard output, where results may be."""
    path = tmp_path / "a.mgf"
    path.write_text("BEGIN IONS\nTITLE=x\nPRECURSOR_MZ=abc\nPEPMASS=\n50 1\n60 2\nEND IONS\n")
    code = "import sys; from psilearn_chem import read_spectra; read_spectra(sys.argv[1], errors='skip')"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
