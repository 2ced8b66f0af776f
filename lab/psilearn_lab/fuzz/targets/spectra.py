"""Readers of spectra."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import matchms.importing
import numpy as np
import pyarrow
import pyteomics.xml
from pyarrow import parquet

from psilearn_chem.spectra import Spectrum, read_spectra, write_parquet
from psilearn_lab.fuzz.spectrum_texts import ANNOTATED_MSP, GNPS, MASSBANK, MGF, MSP, SIRIUS, format_mzml
from psilearn_lab.fuzz.target import Target
from psilearn_lab.fuzz.targets.seeds import new_seed, texts

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


def make_mzml(compressed: bool) -> str:
    """Return a minimal mzML file with two scans."""
    return format_mzml([(2, 181.07, [60.02, 85.03], [100.0, 50.0])] * 2, compressed=compressed)


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
        texts("spectra.mgf", MGF, GNPS),
        partial(_read, "spectra.mgf"),
        tokens=(b"BEGIN IONS\n", b"END IONS\n", b"="),
    ),
    Target(
        "spectra-msp",
        texts("spectra.msp", MSP, ANNOTATED_MSP),
        partial(_read, "spectra.msp"),
        tokens=(b"NAME:", b"Num Peaks: ", b";"),
    ),
    Target(
        "spectra-sirius",
        texts("spectra.ms", SIRIUS),
        partial(_read, "spectra.ms"),
        tokens=(b">compound ", b">ms2\n", b">collision ", b">"),
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
