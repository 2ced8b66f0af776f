"""Files of ranked molecules: CSV, the columns of SIRIUS, mzTab-M and an HTML report, written ranking by ranking."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TextIO

import numpy as np
from numpy.typing import NDArray

from psilearn.app.console import check_output_file
from psilearn.utils import open_text_atomically
from psilearn_chem.metabolites.mztab import MzTab
from psilearn_chem.metabolites.rank_report import Report, check_pages
from psilearn_chem.metabolites.ranking import Ranking
from psilearn_chem.molecules import CandidateLibrary
from psilearn_chem.molecules.smiles import compute_inchi
from psilearn_chem.spectra import Problem, Spectrum
from psilearn_chem.spectra.records import feature_id, precursor_text, retention_seconds


class Row(NamedTuple):
    """The i-th ranked molecule of a spectrum."""

    number: int  # of the spectrum
    ranking: Ranking
    i: int
    smiles: str
    name: str
    formula: str

    @property
    def spectrum(self) -> Spectrum:
        """The spectrum."""
        return self.ranking.spectrum

    def format(self, values: NDArray[np.float64] | None, digits: int = 6) -> str:
        """Return the number of this molecule as text; "" if it is unknown or infinite."""
        return "" if values is None or not np.isfinite(values[self.i]) else f"{values[self.i]:.{digits}f}"

    def in_set(self, yes: str, no: str) -> str:
        """Return whether the molecule is in the conformal set; "" if the model is not calibrated."""
        return "" if self.ranking.set_size is None else yes if self.ranking.in_set[self.i] else no


Columns = dict[str, Callable[[Row], object]]

CSV_COLUMNS: Columns = {
    "query": lambda row: row.number,
    "spectrum": lambda row: row.spectrum.name,
    "feature_id": lambda row: feature_id(row.spectrum),
    "precursor_mz": lambda row: precursor_text(row.spectrum),
    "adduct": lambda row: row.spectrum.adduct or "",
    "retention_time": lambda row: retention_seconds(row.spectrum),
    "rank": lambda row: f"{row.ranking.ranks[row.i]:g}",
    "smiles": lambda row: row.smiles,
    "inchikey": lambda row: compute_inchi(row.smiles)[1],
    "name": lambda row: row.name,
    "formula": lambda row: row.formula,
    "distance": lambda row: f"{row.ranking.distances[row.i]:.6f}",
    "margin": lambda row: row.format(row.ranking.margins),  # infinite after the last candidate
    "probability": lambda row: row.format(row.ranking.probabilities),
    "evidence": lambda row: row.format(row.ranking.evidence, 3),  # NaN without reference spectra
    "p_value": lambda row: row.format(row.ranking.p_values),
    "in_set": lambda row: row.in_set("yes", "no"),
    "trained_on": lambda row: "yes" if row.ranking.trained_on[row.i] else "no",
    "set_size": lambda row: "" if row.ranking.set_size is None else row.ranking.set_size,
    "candidates": lambda row: row.ranking.n_candidates,
    "found_by": lambda row: row.ranking.how,
}
# Those of structure_identifications.tsv, which tools join by feature and InChIKey, without the scores of SIRIUS.
SIRIUS_COLUMNS: Columns = {
    "structurePerIdRank": lambda row: row.i + 1,
    "molecularFormula": lambda row: row.formula,
    "adduct": lambda row: row.spectrum.adduct or "",
    "InChIkey2D": lambda row: compute_inchi(row.smiles)[1].partition("-")[0],
    "InChI": lambda row: compute_inchi(row.smiles)[0],
    "name": lambda row: row.name,
    "smiles": lambda row: row.smiles,
    "ionMass": lambda row: precursor_text(row.spectrum),
    "retentionTimeInSeconds": lambda row: retention_seconds(row.spectrum),
    "mappingFeatureId": lambda row: feature_id(row.spectrum) or row.number,
    "psilearnSpectrum": lambda row: row.spectrum.name,
    "psilearnDistance": lambda row: f"{row.ranking.distances[row.i]:.6f}",
    "psilearnProbability": lambda row: row.format(row.ranking.probabilities),
    "psilearnPValue": lambda row: row.format(row.ranking.p_values),
    "psilearnInSet": lambda row: row.in_set("true", "false"),
}


class Table:
    """A table with one row per ranked molecule: CSV, or separated by tabs, which become spaces in texts."""

    def __init__(self, file: TextIO, library: CandidateLibrary, columns: Columns, *, tabs: bool = False) -> None:
        dialect: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None}
        self._file = csv.writer(file, **dialect, lineterminator="\n") if tabs else csv.writer(file)
        self._library, self._columns, self._tabs = library, columns, tabs
        self._file.writerow(columns)

    def add(self, number: int, ranking: Ranking) -> None:
        """Write the rows of a ranking."""
        rows, library = [int(row) for row in ranking.rows], self._library
        molecules = zip(library.get_smiles(rows), library.get_names(rows), library.get_formulas(rows), strict=True)
        for i, molecule in enumerate(molecules):
            values = [column(Row(number, ranking, i, *molecule)) for column in self._columns.values()]
            self._file.writerow([" ".join(str(value).split()) for value in values] if self._tabs else values)


def format_table(rankings: Iterable[Ranking], library: CandidateLibrary) -> str:
    """Return rankings as the text of a CSV file."""
    text = io.StringIO(newline="")
    table = Table(text, library, CSV_COLUMNS)
    for number, ranking in enumerate(rankings, 1):
        table.add(number, ranking)
    return text.getvalue()


class _Writer(Protocol):
    def add(self, number: int, ranking: Ranking) -> None: ...


class RankFiles(NamedTuple):
    """The files to write; None for those that are not wanted."""

    csv: Path
    html: Path | None = None
    tsv: Path | None = None
    mztab: Path | None = None

    def check(self) -> None:
        """Raise an error that names the option if a file cannot be written."""
        options = ("--output", "--html", "--tsv", "--mztab")
        for option, path in zip(options, self, strict=True):
            if path is not None:
                check_output_file(path, option)
        if self.html is not None:
            check_pages(self.html)

    def __str__(self) -> str:
        return ", ".join(str(path) for path in self if path is not None)


def write_rankings(
    results: Iterable[Ranking | Problem],
    library: CandidateLibrary,
    files: RankFiles,
    coverage: float,
    problems: list[Problem],
    title: str = "spectra",
) -> int:
    """Write rankings as they come, and return their number; problems are appended to the list.

    If an error or a signal ends the work, all files stay as they were. Memory: that of one page of the report, and
    about a kilobyte per spectrum for its index. ``title`` is that of the mzTab-M file.
    """
    number = 0
    with ExitStack() as stack:
        writers: list[_Writer] = [Table(stack.enter_context(open_text_atomically(files.csv)), library, CSV_COLUMNS)]
        if files.tsv is not None:
            file = stack.enter_context(open_text_atomically(files.tsv))
            writers.append(Table(file, library, SIRIUS_COLUMNS, tabs=True))
        if files.mztab is not None:
            writers.append(stack.enter_context(MzTab.open(files.mztab, library, title)))
        report = None if files.html is None else stack.enter_context(Report.open(files.html, library, coverage))
        if report is not None:
            writers.append(report)
        for result in results:
            if isinstance(result, Problem):
                problems.append(result)
                continue
            number += 1
            for writer in writers:
                writer.add(number, result)
        if report is not None:
            report.finish(problems)
    return number
