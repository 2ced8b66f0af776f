"""Readers of spectra."""

from __future__ import annotations

import base64
import zlib
from functools import cache, partial
from pathlib import Path
from typing import Any

import matchms.importing
import numpy as np
import pyarrow
import pyteomics.xml
from pyarrow import parquet

from fuzz.target import Target
from fuzz.targets.seeds import new_seed, texts
from psilearn.chem.spectra import Spectrum, read_spectra, write_parquet

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
MS$FOCUSED_ION: PRECURSOR_M/Z 181.0707
MS$FOCUSED_ION: PRECURSOR_TYPE [M+H]+
PK$NUM_PEAK: 2
PK$PEAK: m/z int. rel.int.
  60.02 100 999
  85.03 50 499
//
"""
MZML = (
    '<?xml version="1.0" encoding="utf-8"?><mzML xmlns="http://psi.hupo.org/ms/mzml" version="1.1.0"><run id="r">'
    '<spectrumList count="2">{}</spectrumList></run></mzML>'
)
SCAN = (
    '<spectrum index="{0}" id="scan={0}" defaultArrayLength="2"><cvParam cvRef="MS" accession="MS:1000511" '
    'name="ms level" value="2"/><precursorList count="1"><precursor><selectedIonList count="1"><selectedIon>'
    '<cvParam cvRef="MS" accession="MS:1000744" name="selected ion m/z" value="181.07"/></selectedIon>'
    "</selectedIonList></precursor></precursorList>"
    '<binaryDataArrayList count="2">{1}{2}</binaryDataArrayList></spectrum>\n'
)
SPECTRA = [
    Spectrum(
        np.array([60.02, 85.03]),
        np.array([100.0, 50.0]),
        181.0707,
        "[M+H]+",
        "C6H12O6",
        "OCC1OC(O)C(O)C(O)C1O",
        "first",
    ),
    Spectrum(np.array([70.1, 80.1, 90.5]), np.array([5.0, 6.0, 7.0]), 195.0877, name="second"),
]


def _format_array(values: list[float], accession: int, name: str, compressed: bool) -> str:
    data = np.array(values, dtype="<f8").tobytes()
    text = base64.b64encode(zlib.compress(data) if compressed else data).decode()
    compression = (1000574, "zlib compression") if compressed else (1000576, "no compression")
    terms = ((1000523, "64-bit float"), compression, (accession, name))
    parameters = "".join(f'<cvParam cvRef="MS" accession="MS:{number}" name="{term}"/>' for number, term in terms)
    return f'<binaryDataArray encodedLength="{len(text)}">{parameters}<binary>{text}</binary></binaryDataArray>'


def make_mzml(compressed: bool) -> str:
    """Return a minimal mzML file with two scans."""
    mz = _format_array([60.02, 85.03], 1000514, "m/z array", compressed)
    intensity = _format_array([100.0, 50.0], 1000515, "intensity array", compressed)
    return MZML.format("".join(SCAN.format(i, mz, intensity) for i in (1, 2)))


def _write_parquet(folder: Path) -> None:
    write_parquet(SPECTRA, new_seed(folder) / "spectra.parquet")
    table = parquet.read_table(folder / "00" / "spectra.parquet")
    table = table.append_column("fold", pyarrow.array([1, 2])).append_column("tags", pyarrow.array([["a"], ["b", "c"]]))
    for options in (
        {"compression": "none", "use_dictionary": False},
        {"compression": "gzip"},
        {"data_page_version": "2.0"},
    ):
        parquet.write_table(table, new_seed(folder) / "spectra.parquet", **options)


def _read(name: str, folder: Path) -> Any:
    """Read a file with errors raised, and again with errors skipped."""
    try:
        return read_spectra(folder / name)
    finally:
        read_spectra(folder / name, errors="skip")


def _keep_vocabulary() -> None:
    """Load the vocabulary of mzML once per process, and not for each file."""
    pyteomics.xml.load_psims = cache(pyteomics.xml.load_psims)


assert matchms.importing  # imported before the process is forked

TARGETS = (
    Target(
        "spectra-mgf",
        texts("spectra.mgf", MGF),
        partial(_read, "spectra.mgf"),
        tokens=(b"BEGIN IONS\n", b"END IONS\n", b"="),
    ),
    Target(
        "spectra-msp", texts("spectra.msp", MSP), partial(_read, "spectra.msp"), tokens=(b"NAME:", b"Num Peaks: ", b";")
    ),
    Target(
        "spectra-massbank",
        texts("spectra.txt", MASSBANK, MASSBANK * 2),
        partial(_read, "spectra.txt"),
        tokens=(b"//\n",),
    ),
    Target(
        "spectra-mzml",
        texts("spectra.mzML", make_mzml(True), make_mzml(False)),
        partial(_read, "spectra.mzML"),
        prepare=_keep_vocabulary,
        tokens=(b"<spectrum>", b"</spectrum>", b"<binary>", b"</binary>", b"32-bit integer", b"no compression"),
    ),
    Target("spectra-parquet", _write_parquet, partial(_read, "spectra.parquet")),
)
