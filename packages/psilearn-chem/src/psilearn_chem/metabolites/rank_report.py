"""The HTML report of rankings: drawn spectra and molecules, an index by confidence, and pages of spectra."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from psilearn import __version__
from psilearn.utils import draft_of, write_atomically
from psilearn_chem.metabolites.ranking import Ranking, adduct_of
from psilearn_chem.molecules import Adduct, CandidateLibrary
from psilearn_chem.molecules.fragmentation import explanation_costs, fragment_molecule
from psilearn_chem.molecules.smiles import draw_svg
from psilearn_chem.molecules.subformulas import annotate_peaks
from psilearn_chem.spectra import Problem, Spectrum
from psilearn_chem.spectra.records import feature_id, retention_seconds


def find_support(spectrum: Spectrum, smiles: str, formula: str, ppm: float = 10.0) -> NDArray[np.bool_]:
    """Return which peaks a fragment of the molecule explains, of shape (peaks,).

    Fragments of [M+H]+ and [M-H]- are the parts of the structure after one or two cuts through bonds. Those of other
    ions, and of molecules that are too large to be cut, are the parts of the formula.
    """
    fragments = fragment_molecule(smiles)
    adduct = adduct_of(spectrum, formula)
    charge = _proton_charge(adduct)
    if charge and len(fragments.masses):
        return np.isfinite(explanation_costs(spectrum.mz, fragments, negative=charge < 0, ppm=ppm))
    supporting = np.zeros(len(spectrum), dtype=bool)
    supporting[annotate_peaks(spectrum.mz, formula, adduct, ppm=ppm, floor=0.002).peaks] = True
    return supporting


def _proton_charge(adduct: str | None) -> int:
    """Return 1 for [M+H]+ and spectra without adduct, −1 for [M-H]-, and 0 for other ions."""
    return {None: 1, "[M+H]+": 1, "[M-H]-": -1}.get(adduct if adduct is None else str(Adduct.parse(adduct)), 0)


MAX_LABELS = 6  # peaks whose m/z is written
LABEL_WIDTH = 52.0  # pixels
WIDTH, HEIGHT, MARGIN = 560, 240, 34  # of the drawn spectrum, in pixels
FLOOR = HEIGHT - MARGIN


class _Scale(NamedTuple):
    """Where peaks are drawn."""

    low: float  # m/z at the left margin
    high: float  # m/z at the right margin
    x: NDArray[np.float64]  # (k,)  of each peak
    y: NDArray[np.float64]  # (k,)  of the top of each peak

    def at(self, mz: float) -> float:
        return MARGIN + (mz - self.low) * (WIDTH - 2 * MARGIN) / (self.high - self.low)


def draw_spectrum(spectrum: Spectrum, identifier: str = "") -> str:
    """Return the spectrum as an SVG element, the highest peaks labeled with their m/z.

    With an identifier, the peaks of the element can be drawn again by :func:`draw_support`.
    """
    scale = _scale(spectrum)
    x, y = scale.x, scale.y
    labels = "".join(_format_label(x[i], y[i] - 4, f"{spectrum.mz[i]:.3f}") for i in _choose_labels(x, y))
    ticks = "".join(
        _format_label(scale.at(value), FLOOR + 16, f"{value:g}") for value in _choose_ticks(scale.low, scale.high)
    )
    precursor = ""
    if spectrum.precursor_mz is not None:
        precursor = f'<path class="precursor" d="M{scale.at(spectrum.precursor_mz):.1f} {FLOOR}V{MARGIN}"/>'
    highest = max(float(spectrum.mz.max()), spectrum.precursor_mz or 0.0)
    name = escape(f"mass spectrum, m/z {scale.low:.1f} to {highest:.1f}, {len(spectrum)} peaks", quote=True)
    attribute = f' id="{escape(identifier, quote=True)}"' if identifier else ""
    return (
        f'<svg class="spectrum" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">{precursor}'
        f'<path class="axis" d="M{MARGIN} {FLOOR}H{WIDTH - MARGIN}"/>'
        f'<path class="peaks"{attribute} d="{_draw_peaks(scale)}"/>{labels}{ticks}'
        f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - 4}" text-anchor="end">m/z</text></svg>'
    )


def draw_support(spectrum: Spectrum, supporting: NDArray[np.bool_], identifier: str) -> str:
    """Return a small spectrum in which some peaks are marked; the others are those of an element of the same page."""
    scale = _scale(spectrum)
    marked = _Scale(scale.low, scale.high, scale.x[supporting], scale.y[supporting])
    name = f"the spectrum, {int(supporting.sum())} of its {len(spectrum)} peaks marked"
    return (
        f'<svg class="support" viewBox="{MARGIN} {MARGIN - 4} {WIDTH - 2 * MARGIN} {FLOOR - MARGIN + 6}" role="img" '
        f'aria-label="{name}"><use href="#{escape(identifier, quote=True)}"/>'
        f'<path class="marked" d="{_draw_peaks(marked)}"/></svg>'
    )


def _scale(spectrum: Spectrum) -> _Scale:
    low, high = float(spectrum.mz.min()), float(max(spectrum.mz.max(), spectrum.precursor_mz or 0.0))
    high = max(high, low + 1.0)
    x = MARGIN + (spectrum.mz - low) * (WIDTH - 2 * MARGIN) / (high - low)
    return _Scale(low, high, x, FLOOR - (FLOOR - MARGIN) * spectrum.intensity / spectrum.intensity.max())


def _draw_peaks(scale: _Scale) -> str:
    return " ".join(f"M{x:.1f} {FLOOR}V{y:.1f}" for x, y in zip(scale.x, scale.y, strict=True))


def _format_label(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{text}</text>'


def _choose_labels(x: NDArray[np.float64], y: NDArray[np.float64]) -> list[int]:
    """Return the highest peaks (smallest y) whose labels do not overlap, highest first."""
    chosen: list[int] = []
    for i in np.argsort(y, kind="stable"):
        if len(chosen) < MAX_LABELS and all(abs(x[i] - x[j]) > LABEL_WIDTH for j in chosen):
            chosen.append(int(i))
    return chosen


def _choose_ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers between two numbers."""
    step = 10 ** np.floor(np.log10((high - low) / 2))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= 6)
    return [float(value) for value in np.arange(np.ceil(low / step) * step, high + 1e-9, step)]


# Pages need neither scripts nor a network.

MAX_STRUCTURES = 6  # per spectrum


def format_page(title: str, header: str, main: str) -> str:
    """Return a complete page; the parts are HTML, the title is text."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<p class="eyebrow">psilearn {escape(__version__)}</p>
<h1>{escape(title)}</h1>
{header}</header>
<main>
{main}</main>
</body>
</html>
"""


def is_by_mass(ranking: Ranking) -> bool:
    """Return whether candidates of several formulas may be among those of a spectrum."""
    return ranking.how.startswith("mass ")


def format_section(ranking: Ranking, library: CandidateLibrary, number: int) -> str:
    """Return the part of a page about one spectrum."""
    spectrum = ranking.spectrum
    feature, seconds = feature_id(spectrum), retention_seconds(spectrum)
    facts = [
        f"feature {feature}" if feature else "",
        f"precursor m/z {spectrum.precursor_mz:.4f}" if spectrum.precursor_mz is not None else "",
        spectrum.adduct or "",
        f"{seconds} s" if seconds else "",
        f"{len(spectrum)} peaks",
        f"{ranking.n_candidates:,} candidates of {ranking.how}",
        f"{ranking.set_size:,} in the conformal set" if ranking.set_size is not None else "",
        "its coverage is not promised" if ranking.set_size is not None and is_by_mass(ranking) else "",
    ]
    rows = [int(row) for row in ranking.rows[:MAX_STRUCTURES]]
    molecules = zip(library.get_smiles(rows), library.get_names(rows), library.get_formulas(rows), strict=True)
    cards = "".join(_format_card(ranking, i, f"p{number}", *molecule) for i, molecule in enumerate(molecules))
    return f"""<section id="s{number}">
<h2>{escape(spectrum.name or f"spectrum {number}")}</h2>
<p class="facts">{escape(" · ".join(fact for fact in facts if fact))}</p>
<div class="pair">
<figure>{draw_spectrum(spectrum, f"p{number}")}</figure>
<ol>
{cards}</ol>
</div>
</section>
"""


def _format_card(ranking: Ranking, i: int, peaks: str, smiles: str, name: str, formula: str) -> str:
    """Return the structure of the i-th ranked molecule with its rank, distance and the peaks that support it."""
    score = _format_score(ranking, i)
    title = f"<b>{escape(name)}</b> " if name else ""
    picture = draw_svg(smiles) or "<p>(cannot be drawn)</p>"
    attribute = ' class="in-set"' if ranking.in_set[i] else ""
    spectrum = ranking.spectrum
    supporting = find_support(spectrum, smiles, formula)
    share = float(spectrum.intensity[supporting].sum() / spectrum.intensity.sum())
    return f"""<li{attribute}>
{picture}
<p>rank {ranking.ranks[i]:g} · {score}</p>
<p>{title}{escape(formula)}{" · trained on" if ranking.trained_on[i] else ""}</p>
{draw_support(spectrum, supporting, peaks)}
<p>explains {int(supporting.sum())} peaks, {share:.0%} of the intensity</p>
<p><code>{escape(smiles)}</code></p>
</li>
"""


def _format_score(ranking: Ranking, i: int) -> str:
    """Return the probability of the i-th molecule, or its distance and how much farther the next one is."""
    if ranking.probabilities is not None:
        return f"probability {ranking.probabilities[i]:.3f} · distance {ranking.distances[i]:.4f}"
    margin = "" if np.isinf(ranking.margins[i]) else f", next {ranking.margins[i]:+.4f}"
    return f"distance {ranking.distances[i]:.4f}{margin}"


MAX_PROBLEMS = 1000  # that are listed
CONFIDENT = 0.9
COLUMNS = (
    *("spectrum", "feature", "precursor", "s", "first molecule", "formula"),
    *("probability", "confidence", "set", "candidates"),
)


class Entry(NamedTuple):
    """What the index says about one spectrum."""

    number: int
    name: str
    feature: str
    precursor: str
    seconds: str
    molecule: str  # name or SMILES of the first one
    formula: str
    probability: float | None  # of the first molecule; None without a second stage
    confidence: float | None  # None also for the only candidate, which had no competitor
    margin: float
    set_size: int | None
    n_candidates: int
    by_mass: bool
    page: int  # on which its section is

    @classmethod
    def of(cls, number: int, ranking: Ranking, library: CandidateLibrary, page: int) -> Entry:
        """Return the entry of a ranking."""
        spectrum, rows = ranking.spectrum, [int(row) for row in ranking.rows[:1]]
        names, formulas = library.get_names(rows), library.get_formulas(rows)
        return cls(
            number=number,
            name=spectrum.name or f"spectrum {number}",
            feature=feature_id(spectrum),
            precursor="" if spectrum.precursor_mz is None else f"{spectrum.precursor_mz:.4f}",
            seconds=retention_seconds(spectrum),
            molecule=(names[0] or library.get_smiles(rows)[0]) if rows else "",
            formula=formulas[0] if rows else "",
            probability=None if ranking.probabilities is None or not rows else float(ranking.probabilities[0]),
            confidence=ranking.confidence if ranking.n_candidates > 1 else None,
            margin=float(ranking.margins[0]) if rows else 0.0,
            set_size=ranking.set_size,
            n_candidates=ranking.n_candidates,
            by_mass=is_by_mass(ranking),
            page=page,
        )


class Summary(NamedTuple):
    """What a report says about all spectra."""

    entries: Sequence[Entry]
    n_problems: int
    n_molecules: int
    library_hash: str
    coverage: float

    @classmethod
    def of(cls, entries: Sequence[Entry], n_problems: int, library: CandidateLibrary, coverage: float) -> Summary:
        """Return the summary of the entries of a report."""
        return cls(entries, n_problems, len(library), library.hash, coverage)

    def to_html(self) -> str:
        """Return the paragraphs at the top of the report."""
        spectra = f"{len(self.entries):,} spectra" + (f", {self.n_problems:,} not ranked" if self.n_problems else "")
        first = (
            f"{spectra}; a library of {self.n_molecules:,} molecules (sha256 {escape(self.library_hash[:16])}…). "
            f"Distances are squared distances in the output space; smaller is nearer. Marked peaks are those that a "
            f"fragment of the molecule explains."
        )
        return "".join(f"<p>{text}</p>\n" for text in (first, self._describe_sets(), self._describe_masses()) if text)

    def _describe_sets(self) -> str:
        sizes = [entry.set_size for entry in self.entries if entry.set_size is not None]
        if not sizes:
            return "The model was not calibrated, so no conformal sets are shown."
        confident = sum(entry.confidence is not None and entry.confidence >= CONFIDENT for entry in self.entries)
        n_single = sum(entry.n_candidates == 1 for entry in self.entries)
        return (
            f"A colored frame marks the conformal set: over many spectra like those of the calibration, it contains "
            f"the true molecule with probability {self.coverage:.0%} if that molecule is among the candidates. Half of "
            f"the sets have at most {median(sizes):g} molecules, {sum(size == 1 for size in sizes):,} have one. The "
            f"confidence is one minus the largest p-value of the other candidates: it is at least {CONFIDENT:.0%} for "
            f"{confident:,} spectra. {n_single:,} have one candidate only, which was compared with none."
        )

    def _describe_masses(self) -> str:
        n_by_mass = sum(entry.by_mass and entry.set_size is not None for entry in self.entries)
        return (
            f"<b>The candidates of {n_by_mass:,} spectra were found by mass, and the coverage of their sets (marked "
            f"by *) is not promised</b>: the calibration used candidates of one formula, but here several formulas "
            f"compete, so that the true molecule may have another rank, set and p-value than in the calibration."
            if n_by_mass
            else ""
        )


def order_by_confidence(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries by the probability of the first molecule, else by confidence, else by its margin.

    Spectra with one candidate come last: nothing was compared.
    """

    def key(entry: Entry) -> tuple[bool, float, float, float]:
        return entry.n_candidates == 1, -(entry.probability or 0.0), -(entry.confidence or 0.0), -entry.margin

    return sorted(entries, key=key)


def format_index(entries: Sequence[Entry], page_link: Callable[[int], str]) -> str:
    """Return a table with one line per spectrum; ``page_link`` returns the address of a page, "" for the same one."""
    rows = "".join(_format_entry(entry, page_link(entry.page)) for entry in entries)
    columns = "".join(f"<th>{name}</th>" for name in COLUMNS)
    return f'<table class="index">\n<thead><tr>{columns}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n'


def format_problems(problems: Sequence[Problem]) -> str:
    """Return the list of the spectra that could not be ranked; "" if there is none."""
    if not problems:
        return ""
    items = "".join(
        f"<li><b>{escape(problem.source)}</b>: {escape(problem.reason)}</li>\n" for problem in problems[:MAX_PROBLEMS]
    )
    rest = len(problems) - MAX_PROBLEMS
    more = f"<p>{rest:,} more are not listed.</p>\n" if rest > 0 else ""
    return f"<section><h2>Not ranked</h2>\n<ul>\n{items}</ul>{more}</section>\n"


def _format_entry(entry: Entry, page: str) -> str:
    confidence = "" if entry.confidence is None else f"{entry.confidence:.3f}"
    confidence = "only candidate" if entry.n_candidates == 1 else confidence
    probability = "" if entry.probability is None else f"{entry.probability:.3f}"
    set_size = "" if entry.set_size is None else f"{entry.set_size:,}{' *' if entry.by_mass else ''}"
    values = (entry.feature, entry.precursor, entry.seconds, entry.molecule, entry.formula)
    numbers = (probability, confidence, set_size, f"{entry.n_candidates:,}")
    cells = "".join(
        f"<td{' class=molecule' if value is entry.molecule else ''}>{escape(value)}</td>"
        for value in (*values, *numbers)
    )
    return f'<tr><td><a href="{page}#s{entry.number}">{escape(entry.name)}</a></td>{cells}</tr>\n'


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
