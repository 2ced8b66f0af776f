"""The HTML report of rankings: one page, or an index by confidence and pages of spectra, written as they are ranked."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from psilearn.utils import draft_of, write_atomically
from psilearn_chem.metabolites.page import format_page, format_section
from psilearn_chem.metabolites.rank import Ranking
from psilearn_chem.metabolites.report_index import Entry, Summary, format_index, format_problems, order_by_confidence
from psilearn_chem.molecules import CandidateLibrary
from psilearn_chem.spectra import Problem

SPECTRA_PER_PAGE = 50
ENTRIES_PER_PAGE = 500
OUR_FILE = re.compile(r"(spectra|index)-\d{4,}\.html")


class Report:
    """A report that is written ranking by ranking; only the sections of one page are in memory."""

    def __init__(self, path: Path, library: CandidateLibrary, coverage: float) -> None:
        self.path = path
        self.folder = _folder_of(path)
        self._draft = draft_of(self.folder)
        self._library = library
        self._coverage = coverage
        self._entries: list[Entry] = []
        self._sections: list[str] = []  # of the page that is not written yet
        self._n_pages = 0

    def add(self, number: int, ranking: Ranking) -> None:
        """Add the section of a spectrum."""
        if len(self._sections) == SPECTRA_PER_PAGE:
            self._write_sections()
        self._sections.append(format_section(ranking, self._library, number))
        self._entries.append(Entry.of(number, ranking, self._library, self._n_pages))

    def finish(self, problems: Sequence[Problem]) -> None:
        """Write the index, or the only page; the pages of an earlier report are replaced."""
        summary = Summary.of(self._entries, len(problems), self._library, self._coverage)
        if not self._n_pages:
            entries = format_index(order_by_confidence(self._entries), lambda page: "")
            main = "".join([entries if len(self._entries) > 1 else "", *self._sections, format_problems(problems)])
            self._replace_pages()
            write_atomically(self.path, format_page("Ranked molecules", summary.to_html(), main).encode())
            return
        self._write_sections(is_last=True)
        self._write_index(summary, problems)

    def discard(self) -> None:
        """Remove what is not part of a finished report."""
        shutil.rmtree(self._draft, ignore_errors=True)

    def _write_sections(self, *, is_last: bool = False) -> None:
        """Write the next page of spectra."""
        if not self._n_pages:
            self._draft.mkdir()
        first, last = self._entries[-len(self._sections)].number, self._entries[-1].number
        links = [f'<a href="../{quote(self.path.name)}">index</a>']
        if self._n_pages:
            links.append(f'<a href="{_page_name(self._n_pages - 1)}">previous page</a>')
        if not is_last:
            links.append(f'<a href="{_page_name(self._n_pages + 1)}">next page</a>')
        header = f"<p>{' · '.join(links)}</p>\n"
        text = format_page(f"Ranked molecules: spectra {first} to {last}", header, "".join(self._sections))
        write_atomically(self._draft / _page_name(self._n_pages), text.encode())
        self._sections.clear()
        self._n_pages += 1

    def _write_index(self, summary: Summary, problems: Sequence[Problem]) -> None:
        ordered = order_by_confidence(self._entries)
        parts = [ordered[i : i + ENTRIES_PER_PAGE] for i in range(0, len(ordered), ENTRIES_PER_PAGE)]
        links = [quote(self.path.name), *(f"index-{number:04d}.html" for number in range(2, len(parts) + 1))]
        for number, entries in enumerate(parts[1:], 2):
            pages = _link_pages([f"../{links[0]}", *links[1:]], number)
            main = format_index(entries, _page_name)
            text = format_page(f"Ranked molecules: index, page {number}", pages, main)
            write_atomically(self._draft / links[number - 1], text.encode())
        folder = quote(self.folder.name)
        main = format_index(parts[0], lambda page: f"{folder}/{_page_name(page)}") + format_problems(problems)
        header = summary.to_html() + _link_pages([links[0], *(f"{folder}/{link}" for link in links[1:])], 1)
        self._replace_pages()
        write_atomically(self.path, format_page("Ranked molecules", header, main).encode())

    def _replace_pages(self) -> None:
        """Replace the folder of an earlier report by the new one, or remove it if the new report has one page."""
        if self.folder.exists():
            shutil.rmtree(self.folder)
        if self._n_pages:
            self._draft.replace(self.folder)


@contextmanager
def open_report(path: Path, library: CandidateLibrary, coverage: float) -> Iterator[Report]:
    """Open a report, whose :meth:`Report.finish` the caller calls; otherwise the previous report stays unchanged."""
    report = Report(path, library, coverage)
    check_pages(path)
    report.discard()
    try:
        yield report
    finally:
        report.discard()


def check_pages(path: Path) -> None:
    """Raise an error if the folder of the pages of a report contains other files, which would be removed."""
    folder = _folder_of(path)
    others = _list_others(folder) if folder.exists() else []
    if others:
        raise FileExistsError(
            f"--html: the pages are written to the folder {folder}, which contains {others[0]!r}: choose another name."
        )


def _folder_of(path: Path) -> Path:
    return path.with_name(f"{path.stem}-pages")


def _list_others(folder: Path) -> list[str]:
    if not folder.is_dir() or folder.is_symlink():
        return [folder.name]
    return [file.name for file in folder.iterdir() if not OUR_FILE.fullmatch(file.name)]


def _page_name(page: int) -> str:
    return f"spectra-{page + 1:04d}.html"


def _link_pages(links: Sequence[str], current: int) -> str:
    """Return links to the pages of the index; "" if there is one."""
    texts = [
        f"<b>{number}</b>" if number == current else f'<a href="{link}">{number}</a>'
        for number, link in enumerate(links, 1)
    ]
    return f'<p class="pages">pages of the index: {" ".join(texts)}</p>\n' if len(links) > 1 else ""
