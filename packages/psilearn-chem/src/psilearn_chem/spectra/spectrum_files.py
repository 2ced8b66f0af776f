"""Files of spectra: a malformed record is reported and does not affect the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from psilearn.utils import convert_read_errors, validation
from psilearn_chem.spectra.formats import iter_massbank, iter_mgf, iter_msp, iter_sirius
from psilearn_chem.spectra.mzml import iter_mzml
from psilearn_chem.spectra.records import Record
from psilearn_chem.spectra.spectrum import Cleaning, Spectrum
from psilearn_chem.untrusted_files import column_names, iter_batches

ErrorHandling = Literal["raise", "skip"]
DEFAULT_CLEANING = Cleaning()
OPTIONAL_COLUMNS = ("id", "precursor_mz", "adduct", "formula", "smiles")


class Problem(NamedTuple):
    """A record or spectrum that could not be used, and the reason.

    Parameters
    ----------
    source : str
        The file and the position of the record in it, or the name of the spectrum.
    reason : str
        Why it could not be used.

    See Also
    --------
    read_spectra : Read spectra from a file and report records that cannot be used.

    Examples
    --------
    >>> from psilearn_chem.spectra import Problem
    >>> print(Problem("spectra.mgf, record 3", "the file ends without END IONS"))
    spectra.mgf, record 3: the file ends without END IONS
    """

    source: str
    reason: str

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


class SpectrumReadResult(NamedTuple):
    """Spectra of a file, and its records that could not be used.

    Parameters
    ----------
    spectra : list of Spectrum
        Spectra in the order of the file.
    problems : list of Problem
        Records that were skipped.

    See Also
    --------
    read_spectra : Read spectra from a file.

    Examples
    --------
    >>> from psilearn_chem.spectra import Spectrum, SpectrumReadResult
    >>> result = SpectrumReadResult([Spectrum([50.0, 60.0], [1.0, 2.0], name="s1")], problems=[])
    >>> result.spectra
    [Spectrum('s1', 2 peaks)]
    """

    spectra: list[Spectrum]
    problems: list[Problem]


def read_spectra(
    path: str | Path,
    *,
    errors: ErrorHandling = "raise",
    adduct: str | None = None,
    cleaning: Cleaning | None = DEFAULT_CLEANING,
) -> SpectrumReadResult:
    r"""Read tandem mass spectra from a file.

    MGF, MSP and mzML files are read with matchms. MassBank files contain one or several records, and SIRIUS files one
    or several compounds, each block of whose fragment peaks is a spectrum. A Parquet table has the columns ``mz`` and
    ``intensity`` (lists) and optionally ``id``, ``precursor_mz``, ``adduct``, ``formula`` and ``smiles``; other columns
    are kept as metadata. Records of MS level 1 are left out.

    Adducts are given their usual spelling: ``[M+H]⁺`` and ``M+H`` become ``[M+H]+``; a name that ends with an adduct,
    as in libraries of GNPS, states it. In the metadata, ``feature_id`` is the identifier of the feature in the file,
    ``retention_time`` is in seconds, ``ionmode`` is "positive" or "negative", and ``scan_number`` that of an mzML file.
    Text that is not UTF-8 is read as Windows-1252 (Latin-1).

    Parameters
    ----------
    path : str or Path
        File that ends in ``.mgf``, ``.msp``, ``.mzml``, ``.ms`` (SIRIUS), ``.txt`` or ``.massbank`` (both MassBank), or
        ``.parquet``.
    errors : {"raise", "skip"}, default="raise"
        What to do with a record that is malformed or has too few peaks after cleaning: raise an error that names the
        file and the record, or skip it and list it in ``problems``.
    adduct : str, default=None
        Adduct of spectra for which the file states none, except those of the other polarity.
    cleaning : Cleaning or None, default=Cleaning()
        Cleaning of each spectrum. None keeps spectra as they were measured.

    Returns
    -------
    SpectrumReadResult
        The ``spectra`` of the file, and the ``problems`` that were skipped.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file has an unknown extension or no record, or if a record cannot be used and ``errors="raise"``.
    ImportError
        If the library that reads the format is not installed.

    See Also
    --------
    iter_spectra : Read spectra one after the other.
    write_parquet : Write spectra to a Parquet table.
    Cleaning : Steps that clean a spectrum.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psilearn_chem.spectra import read_spectra
    >>> peaks = "BEGIN IONS\nTITLE=s1\nPEPMASS=181.0707\n60.02 100\n85.03 50\nEND IONS\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "spectra.mgf").write_text(peaks)
    ...     read_spectra(Path(folder, "spectra.mgf"), adduct="[M+H]+").spectra
    [Spectrum('s1', 2 peaks, precursor_mz=181.0707, adduct='[M+H]+')]
    """
    result = SpectrumReadResult([], [])
    for item in iter_spectra(path, errors=errors, adduct=adduct, cleaning=cleaning):
        (result.problems if isinstance(item, Problem) else result.spectra).append(item)  # type: ignore[arg-type]
    return result


def iter_spectra(
    path: str | Path,
    *,
    errors: ErrorHandling = "raise",
    adduct: str | None = None,
    cleaning: Cleaning | None = DEFAULT_CLEANING,
) -> Iterator[Spectrum | Problem]:
    r"""Read tandem mass spectra from a file one after the other, for files that are larger than the memory.

    Parameters
    ----------
    path : str or Path
        File with spectra, as for :func:`read_spectra`.
    errors : {"raise", "skip"}, default="raise"
        What to do with a record that cannot be used: raise an error, or yield a problem and continue.
    adduct : str, default=None
        Adduct of spectra for which the file states none.
    cleaning : Cleaning or None, default=Cleaning()
        Cleaning of each spectrum. None keeps spectra as they were measured.

    Returns
    -------
    iterator of Spectrum or Problem
        The spectra in the order of the file. With ``errors="skip"`` also the records that cannot be used.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file has an unknown extension or no record, or if a record cannot be used and ``errors="raise"``; the
        latter two when the iterator gets there.

    See Also
    --------
    read_spectra : Read all spectra of a file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psilearn_chem.spectra import iter_spectra
    >>> peaks = "BEGIN IONS\nTITLE=s1\nPEPMASS=181.0707\n60.02 100\n85.03 50\nEND IONS\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "spectra.mgf").write_text(2 * peaks)
    ...     [spectrum.precursor_mz for spectrum in iter_spectra(Path(folder, "spectra.mgf"))]
    [181.0707, 181.0707]
    """
    path = validation.check_path(path, "path")
    validation.check_option(errors, get_args(ErrorHandling), "errors")
    if cleaning is not None and (isinstance(cleaning, type) or not callable(cleaning)):
        raise TypeError(f"cleaning must be a Cleaning, another function of a spectrum or None; got {cleaning!r:.80}.")
    if adduct is not None and not isinstance(adduct, str):
        raise TypeError(f"adduct must be text such as '[M+H]+' or None; got {adduct!r:.80}.")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file: a file with spectra is needed.")
    return _iter_items(path, errors, adduct, cleaning)


def _iter_items(
    path: Path, errors: ErrorHandling, adduct: str | None, cleaning: Cleaning | None
) -> Iterator[Spectrum | Problem]:
    """Yield the spectra of all records, and the records that cannot be used; records of MS level 1 are left out."""
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise ValueError(
            f"{path.name} ends in {path.suffix!r}; spectra are read from files that end in {', '.join(READERS)}."
        )
    n_items = n_ms1 = 0
    with convert_read_errors(path, "a file of spectra"):
        for record in READERS[suffix](path):
            if record.is_ms1:
                n_ms1 += 1
                continue
            n_items += 1
            item = _to_item(record, path, adduct, cleaning)
            if errors == "raise" and isinstance(item, Problem):
                raise ValueError(f"{item}. Use errors='skip' to skip such records.")
            yield item
    if not n_items:
        found = f"only {n_ms1:,} of MS level 1, which have no fragments" if n_ms1 else "no record at all"
        raise ValueError(f"{path} contains no spectrum of MS level 2: {found}.")


def _to_item(record: Record, path: Path, adduct: str | None, cleaning: Cleaning | None) -> Spectrum | Problem:
    """Return the cleaned spectrum of a record, or the reason why it cannot be used."""
    try:
        spectrum = record.to_spectrum(f"{path.name}:{record.position}", adduct)
        return spectrum if cleaning is None else cleaning(spectrum)
    except ValueError as error:
        return Problem(f"{path.name}, {record.position}", str(error))


def _iter_rows(path: Path) -> Iterator[Record]:
    """Yield the rows of a table with the columns mz and intensity."""
    columns = column_names(path)
    missing = [name for name in ("mz", "intensity") if name not in columns]
    if missing:
        raise ValueError(
            f"{path.name} has no column {' and '.join(missing)}: a table of spectra has the columns mz and intensity "
            f"with lists, and optionally {', '.join(OPTIONAL_COLUMNS)}. It has {', '.join(columns)}."
        )
    for number, row in enumerate(row for batch in iter_batches(path) for row in batch.to_pylist()):
        mz, intensity = row.pop("mz"), row.pop("intensity")
        metadata = {k: ";".join(map(str, value)) if isinstance(value, list) else value for k, value in row.items()}
        yield Record(f"row {number}", mz or (), intensity or (), metadata)


READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    ".mgf": iter_mgf,
    ".msp": iter_msp,
    ".mzml": iter_mzml,
    ".ms": iter_sirius,
    ".txt": iter_massbank,
    ".massbank": iter_massbank,
    ".parquet": _iter_rows,
}


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
    import pyarrow
    from pyarrow import parquet

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
