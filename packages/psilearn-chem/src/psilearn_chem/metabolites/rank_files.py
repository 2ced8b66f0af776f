"""The files of rankings: tables and the HTML report, written while spectra are ranked."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Protocol

from psilearn.app.console import check_output_file
from psilearn_chem.metabolites.csv_table import CSVTable
from psilearn_chem.metabolites.mztab import MzTab
from psilearn_chem.metabolites.rank import Ranking
from psilearn_chem.metabolites.rank_report import check_pages, open_report
from psilearn_chem.metabolites.sirius_table import SiriusTable
from psilearn_chem.molecules import CandidateLibrary
from psilearn_chem.spectra import Problem


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

    ``title`` is that of the mzTab-M file.

    If an error or a signal ends the work, all files stay as they were. Memory: that of one page of the report, and
    about a kilobyte per spectrum for its index.
    """
    number = 0
    with ExitStack() as stack:
        writers: list[_Writer] = [stack.enter_context(CSVTable.open(files.csv, library))]
        if files.tsv is not None:
            writers.append(stack.enter_context(SiriusTable.open(files.tsv, library)))
        if files.mztab is not None:
            writers.append(stack.enter_context(MzTab.open(files.mztab, library, title)))
        report = None if files.html is None else stack.enter_context(open_report(files.html, library, coverage))
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
