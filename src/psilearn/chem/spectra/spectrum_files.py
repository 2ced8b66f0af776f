"""Spectra from files: each record by itself, so that a malformed one is named and does not spoil the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from psilearn.chem.spectra import formats, spectrum_table
from psilearn.chem.spectra.cleaning import Cleaning
from psilearn.chem.spectra.spectrum import Spectrum

ERRORS = ("raise", "skip")
DEFAULT = Cleaning()


class Problem(NamedTuple):
    """What was left out, and why."""

    where: str  # file and record
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


class SpectraRead(NamedTuple):
    """What a file holds."""

    spectra: list[Spectrum]
    problems: list[Problem]  # records that could not be used


def read_spectra(
    path: str | Path, *, errors: str = "raise", adduct: str | None = None, cleaning: Cleaning | None = DEFAULT
) -> SpectraRead:
    """Read tandem mass spectra from a file.

    MGF, MSP and mzML are read with matchms (extra ``psilearn[chem]``); of mzML, scans of MS level 2. MassBank records
    are text files, one or several in one file. A Parquet table has the columns ``mz`` and ``intensity`` (lists) and,
    where known, ``id``, ``precursor_mz``, ``adduct``, ``formula`` and ``smiles``; other columns are kept as text.

    Parameters
    ----------
    path : file
        ``.mgf``, ``.msp``, ``.mzml``, ``.txt`` or ``.massbank`` (MassBank), ``.parquet``.
    errors : "raise" or "skip"
        what happens to a record that is no spectrum, or has too few peaks: it is refused with file and record, or left
        out and listed among ``problems``.
    adduct : str, optional
        of spectra that do not say theirs.
    cleaning : Cleaning or None
        what is done to each spectrum; None takes it as it is.

    Returns
    -------
    SpectraRead
        with ``spectra`` and ``problems``.
    """
    path = Path(path)
    if errors not in ERRORS:
        raise ValueError(f"errors must be one of {', '.join(ERRORS)}; got {errors!r}.")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file: it should hold spectra.")
    if path.suffix.lower() == ".parquet":
        records: Iterable[formats.Record] = spectrum_table.records(path)
    else:
        records = formats.records(path)
    spectra, problems = [], []
    for name, made in _made(records, path, adduct, cleaning):
        if isinstance(made, Spectrum):
            spectra.append(made)
        elif errors == "raise":
            raise ValueError(f"{name}: {made}. With errors='skip' it is left out.") from made
        else:
            problems.append(Problem(name, str(made)))
    if not spectra and not problems:
        raise ValueError(f"{path} holds no spectrum.")
    return SpectraRead(spectra, problems)


def _made(
    records: Iterable[formats.Record], path: Path, adduct: str | None, cleaning: Cleaning | None
) -> Iterator[tuple[str, Spectrum | Exception]]:
    """Yield the name of each record with its spectrum, or with what is wrong with it."""
    for record in records:
        where = f"{path.name}, {record.where}"
        if record.fault is not None:
            yield where, record.fault
            continue
        try:
            spectrum = record.spectrum(f"{path.name}:{record.where}", adduct)
            yield where, spectrum if cleaning is None else cleaning(spectrum)
        except ValueError as error:
            yield where, error
