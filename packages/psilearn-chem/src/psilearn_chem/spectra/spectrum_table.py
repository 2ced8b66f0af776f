"""Parquet tables of spectra, one spectrum per row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from psilearn.utils import convert_read_errors, validation
from psilearn_chem._optional import import_pyarrow
from psilearn_chem.spectra.records import Record
from psilearn_chem.spectra.spectrum import Spectrum

OPTIONAL_COLUMNS = ("id", "precursor_mz", "adduct", "formula", "smiles")
BATCH_ROWS = 1024  # rows that are in memory at once


def iter_table_records(path: Path) -> Iterator[Record]:
    """Yield the rows of a table with the columns mz and intensity."""
    _, parquet = import_pyarrow()
    with convert_read_errors(path, "a Parquet file"):
        file = parquet.ParquetFile(path)
        _check_columns(file.schema_arrow.names, path)
        number = 0
        for batch in file.iter_batches(BATCH_ROWS):
            batch.validate(full=True)  # offsets out of range would read other memory
            for row in batch.to_pylist():
                mz, intensity = row.pop("mz"), row.pop("intensity")
                metadata = {name: _join_list(value) for name, value in row.items()}
                yield Record(f"row {number}", mz or (), intensity or (), metadata)
                number += 1


def write_parquet(spectra: Sequence[Spectrum], path: str | Path) -> None:
    """Write spectra to a Parquet table with one spectrum per row.

    The table has the columns ``id`` (the name of the spectrum), ``precursor_mz``, ``adduct``, ``formula``, ``smiles``,
    ``mz`` and ``intensity`` (lists). Other metadata is not written.

    Parameters
    ----------
    spectra : sequence of Spectrum
        Spectra to write.
    path : str or Path
        File to write. An existing file is replaced.

    See Also
    --------
    read_spectra : Read spectra from this and other formats.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psilearn_chem.spectra import Spectrum, read_spectra, write_parquet
    >>> spectrum = Spectrum([41.0, 59.01], [100.0, 10.0], precursor_mz=77.02, name="s1")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet([spectrum], Path(folder, "spectra.parquet"))
    ...     read_spectra(Path(folder, "spectra.parquet")).spectra
    [Spectrum('s1', 2 peaks, precursor_mz=77.02)]
    """
    pyarrow, parquet = import_pyarrow()
    path = validation.check_path(path, "path")
    if not isinstance(spectra, list | tuple) or not all(isinstance(item, Spectrum) for item in spectra):
        raise TypeError(f"spectra must be a list of Spectrum objects; got {spectra!r:.80}.")
    columns: dict[str, object] = {
        "id": [spectrum.name for spectrum in spectra],
        **{name: [getattr(spectrum, name) for spectrum in spectra] for name in OPTIONAL_COLUMNS[1:]},
        "mz": [spectrum.mz for spectrum in spectra],
        "intensity": [spectrum.intensity for spectrum in spectra],
    }
    texts = {name: pyarrow.array(columns[name], pyarrow.string()) for name in ("adduct", "formula", "smiles")}
    parquet.write_table(pyarrow.table(columns | texts), path)


def _check_columns(columns: Sequence[str], path: Path) -> None:
    """Raise an error if a table has no peaks."""
    missing = [name for name in ("mz", "intensity") if name not in columns]
    if missing:
        raise ValueError(
            f"{path.name} has no column {' and '.join(missing)}: a table of spectra has the columns mz and intensity "
            f"with lists, and optionally {', '.join(OPTIONAL_COLUMNS)}. It has {', '.join(columns)}."
        )


def _join_list(value: object) -> object:
    """Return the items of a list as one text; any other value as it is."""
    return ";".join(map(str, value)) if isinstance(value, list) else value
