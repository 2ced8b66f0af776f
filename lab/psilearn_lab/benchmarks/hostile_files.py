"""Files of spectra that try to harm their reader: they expand, nest, lie about their size or never end."""

import base64
import gzip
import io
import zipfile
import zlib
from functools import cache

EXPANDED = 20_000_000  # bytes of compressed contents
SPECTRUM = b"BEGIN IONS\nTITLE=%s\nPEPMASS=123.0441\nCHARGE=1+\nADDUCT=[M+H]+\n%s\nEND IONS\n"


@cache
def list_hostile_files() -> list[tuple[str, bytes]]:
    """Return the format and the content of each file."""
    zeros = bytes(EXPANDED)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("spectra.mgf", zeros)
    return [
        ("mgf", gzip.compress(zeros)),
        ("mgf", archive.getvalue()),
        ("mgf", SPECTRUM % (b"a" * 1_000_000, b"50.0 1.0")),
        ("mgf", SPECTRUM % (b"peaks", b"50.0 1.0\n" * 200_000)),
        ("mgf", SPECTRUM % (b"\x00\xff", b"nan inf\n-1 1e999")),
        ("msp", b"NAME: a\nPRECURSORMZ: 1e308\nNum Peaks: 999999999999\n50 1\n"),
        ("massbank", b"PK$NUM_PEAK: 999999999\nPK$PEAK: m/z int.\n" + b"  1 1 1\n" * 1000),
        ("mzml", make_entity_bomb()),
        ("mzml", b"<mzML>" + b"<spectrum>" * 50_000),
        ("mzml", make_array_bomb(zeros)),
        ("parquet", b"PAR1" + b"\xff" * 1000 + b"PAR1"),
        ("parquet", make_parquet_bomb()),
    ]


def make_entity_bomb() -> bytes:
    """Return an mzML file whose last entity would have 10⁹ characters."""
    entities = [b'<!ENTITY e0 "aaaaaaaaaa">']
    entities += [b'<!ENTITY e%d "%s">' % (i, (b"&e%d;" % (i - 1)) * 10) for i in range(1, 9)]
    return b'<?xml version="1.0"?><!DOCTYPE mzML [' + b"".join(entities) + b"]><mzML>&e8;</mzML>"


def make_array_bomb(zeros: bytes) -> bytes:
    """Return an mzML file whose only array is compressed a thousand times."""
    array = base64.b64encode(zlib.compress(zeros, 9))
    head = b'<?xml version="1.0"?><mzML><run><spectrumList><spectrum index="0" id="a" defaultArrayLength="2500000">'
    array = (
        b"<binaryDataArrayList><binaryDataArray><binary>" + array + b"</binary></binaryDataArray></binaryDataArrayList>"
    )
    return head + array + b"</spectrum></spectrumList></run></mzML>"


def make_parquet_bomb() -> bytes:
    """Return a table of a few kilobytes with a spectrum of 2 million equal peaks."""
    import numpy as np
    import pyarrow
    from pyarrow import parquet

    values = pyarrow.array(np.full(2_000_000, 50.0))
    peaks = pyarrow.ListArray.from_arrays(pyarrow.array([0, len(values)], pyarrow.int32()), values)
    file = io.BytesIO()
    parquet.write_table(pyarrow.table({"mz": peaks, "intensity": peaks}), file, compression="zstd")
    return file.getvalue()
