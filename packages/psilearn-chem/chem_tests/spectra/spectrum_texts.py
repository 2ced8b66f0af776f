"""Small files of spectra in the formats that are text: seeds of the targets, and examples of the tests."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence

import numpy as np

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
GNPS = """BEGIN IONS
FEATURE_ID=7
PEPMASS=181.0707
SCANS=7
RTINSECONDS=61.5
CHARGE=1+
MSLEVEL=1
181.0707 100
182.074 6
END IONS

BEGIN IONS
FEATURE_ID=7
PEPMASS=181.0707
SCANS=7
RTINSECONDS=61.5
CHARGE=1+
MSLEVEL=2
IONMODE=Positive
NAME=Glucose M+H
60.02 100
85.03 50
END IONS
"""
ANNOTATED_MSP = """NAME: first
PRECURSORMZ: 181.0707
PRECURSORTYPE: [M+H]⁺
RETENTIONTIME: 1.025
IONMODE: Positive
Num Peaks: 3
60.02\t100\t"C2H4O2+: 1.2 ppm; loss: C4H9O4"
70.5 20 999
85.03\t50\tC4H5O2+

NAME: second
PRECURSORMZ: 195.0877
Ion_mode: N
Num Peaks: 2
70.1 5 a; 80.1 6 y2-H2O;
"""
SIRIUS = """>compound first
>parentmass 181.0707
>formula C6H12O6
>ionization [M + H]+
>rt 61.5s
>feature_id 7
# a comment

>ms1
181.0707 100
182.074 6

>collision 20
60.02 100
85.03 50

>collision 40
41.03 100
60.02 80

>compound second
>parentmass 195.0877
>ionization [M + ?]-
>ms2
70.1 5
80.1 6
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


def format_mzml(scans: Sequence[tuple[int, float, list[float], list[float]]], *, compressed: bool = True) -> str:
    """Return a minimal mzML file; a scan is its MS level, precursor m/z, m/z values and intensities."""
    spectra = "\n".join(
        f'<spectrum index="{i}" id="scan={i + 1}" defaultArrayLength="{len(mz)}"><cvParam cvRef="MS" accession='
        f'"MS:1000511" name="ms level" value="{level}"/><precursorList count="1"><precursor><selectedIonList count="1">'
        f'<selectedIon><cvParam cvRef="MS" accession="MS:1000744" name="selected ion m/z" value="{precursor}"/>'
        f'</selectedIon></selectedIonList></precursor></precursorList><binaryDataArrayList count="2">'
        f"{_format_array(mz, 1000514, 'm/z array', compressed)}"
        f"{_format_array(intensities, 1000515, 'intensity array', compressed)}</binaryDataArrayList></spectrum>"
        for i, (level, precursor, mz, intensities) in enumerate(scans)
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?><mzML xmlns="http://psi.hupo.org/ms/mzml" version="1.1.0"><run id="r">'
        f'<spectrumList count="{len(scans)}">{spectra}</spectrumList></run></mzML>'
    )


def _format_array(values: list[float], accession: int, name: str, compressed: bool) -> str:
    """Return numbers as a binary array of mzML."""
    data = np.array(values, dtype="<f8").tobytes()
    text = base64.b64encode(zlib.compress(data) if compressed else data).decode()
    compression = (1000574, "zlib compression") if compressed else (1000576, "no compression")
    terms = ((1000523, "64-bit float"), compression, (accession, name))
    parameters = "".join(f'<cvParam cvRef="MS" accession="MS:{number}" name="{term}"/>' for number, term in terms)
    return f'<binaryDataArray encodedLength="{len(text)}">{parameters}<binary>{text}</binary></binaryDataArray>'
