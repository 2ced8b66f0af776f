"""psilearn's own layout of spectra: a Parquet table with one spectrum a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from psilearn.chem.spectra.formats import Record
from psilearn.chem.spectra.spectrum import Spectrum

MISSING = "Reading and writing .parquet files needs pyarrow: pip install 'psilearn[chem]'."
KNOWN = ("id", "precursor_mz", "adduct", "formula", "smiles")


def records(path: Path) -> Iterator[Record]:
    """Yield the rows of a table with the columns mz and intensity."""
    pyarrow, parquet = _pyarrow()
    try:
        file = parquet.ParquetFile(path)
        absent = [name for name in ("mz", "intensity") if name not in file.schema_arrow.names]
        if absent:
            raise ValueError(
                f"{path.name} has no column {' and '.join(absent)}: a table of spectra has mz and intensity as lists, "
                f"and {', '.join(KNOWN)} where they are known. It has {', '.join(file.schema_arrow.names)}."
            )
        number = 0
        for batch in file.iter_batches(1024):
            for row in batch.to_pylist():
                mz, intensity = row.pop("mz"), row.pop("intensity")
                more = {key: _text(value) for key, value in row.items()}
                yield Record(f"row {number}", mz or (), intensity or (), more)
                number += 1
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path.name} is not a Parquet file that can be read: {error}") from error


def write_parquet(spectra: Sequence[Spectrum], path: str | Path) -> None:
    """Write spectra as a Parquet table that :func:`~psilearn.chem.spectra.read_spectra` reads."""
    pyarrow, parquet = _pyarrow()
    columns: dict[str, Any] = {
        "id": [spectrum.name for spectrum in spectra],
        **{name: [getattr(spectrum, name) for spectrum in spectra] for name in KNOWN[1:]},
        "mz": [spectrum.mz for spectrum in spectra],
        "intensity": [spectrum.intensity for spectrum in spectra],
    }
    texts = {name: pyarrow.array(columns[name], pyarrow.string()) for name in ("adduct", "formula", "smiles")}
    parquet.write_table(pyarrow.table(columns | texts), path)


def _text(value: Any) -> Any:
    return ";".join(map(str, value)) if isinstance(value, list) else value


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(MISSING) from error
    return pyarrow, parquet
