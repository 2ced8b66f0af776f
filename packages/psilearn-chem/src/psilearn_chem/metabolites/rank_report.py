"""The HTML report of rankings: drawn spectra and molecules, an index by confidence, and pages of spectra."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from html import escape
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
from jinja2 import Environment, FileSystemLoader, Template
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


MAX_STRUCTURES = 6  # per spectrum
MAX_PROBLEMS = 1000  # that are listed
CONFIDENT = 0.9
SPECTRA_PER_PAGE = 50
ENTRIES_PER_PAGE = 500
COLUMNS = (
    *("spectrum", "feature", "precursor", "s", "first molecule", "formula"),
    *("probability", "confidence", "set", "candidates"),
)
OUR_FILE = re.compile(r"(spectra|index)-\d{4,}\.html")


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
    link: str = ""  # to this page; "" for the same page

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


def order_by_confidence(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries by the probability of the first molecule, else by confidence, else by its margin.

    Spectra with one candidate come last: nothing was compared.
    """
    return sorted(
        entries, key=lambda e: (e.n_candidates == 1, -(e.probability or 0.0), -(e.confidence or 0.0), -e.margin)
    )


def summarize(entries: Sequence[Entry], n_problems: int, library: CandidateLibrary, coverage: float) -> dict[str, Any]:
    """Return what a report says about all spectra."""
    sizes = [entry.set_size for entry in entries if entry.set_size is not None]
    return {
        "n_spectra": len(entries),
        "n_problems": n_problems,
        "n_molecules": len(library),
        "library": library.hash,
        "coverage": coverage,
        "median_set": median(sizes) if sizes else None,
        "n_single_sets": sizes.count(1),
        "confident": CONFIDENT,
        "n_confident": sum(entry.confidence is not None and entry.confidence >= CONFIDENT for entry in entries),
        "n_single": sum(entry.n_candidates == 1 for entry in entries),
        "n_by_mass": sum(entry.by_mass and entry.set_size is not None for entry in entries),
    }


def is_by_mass(ranking: Ranking) -> bool:
    """Return whether candidates of several formulas may be among those of a spectrum."""
    return ranking.how.startswith("mass ")


def describe_spectrum(ranking: Ranking, library: CandidateLibrary, number: int) -> dict[str, Any]:
    """Return the section of a page about one spectrum, as values of the template."""
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
    return {
        "number": number,
        "name": spectrum.name or f"spectrum {number}",
        "facts": facts,
        "drawing": draw_spectrum(spectrum, f"p{number}"),
        "molecules": [_describe_molecule(ranking, i, f"p{number}", *texts) for i, texts in enumerate(molecules)],
    }


def _describe_molecule(ranking: Ranking, i: int, peaks: str, smiles: str, name: str, formula: str) -> dict[str, Any]:
    """Return the i-th ranked molecule with its score, and the peaks that support it."""
    spectrum = ranking.spectrum
    supporting = find_support(spectrum, smiles, formula)
    score = f"distance {ranking.distances[i]:.4f}"
    if ranking.probabilities is not None:
        score = f"probability {ranking.probabilities[i]:.3f} · {score}"
    elif np.isfinite(ranking.margins[i]):
        score = f"{score}, next {ranking.margins[i]:+.4f}"
    return {
        "smiles": smiles,
        "name": name,
        "formula": formula,
        "score": score,
        "in_set": bool(ranking.in_set[i]),
        "trained_on": bool(ranking.trained_on[i]),
        "rank": f"{ranking.ranks[i]:g}",
        "picture": draw_svg(smiles),
        "support": draw_support(spectrum, supporting, peaks),
        "n_peaks": int(supporting.sum()),
        "share": f"{spectrum.intensity[supporting].sum() / spectrum.intensity.sum():.0%}",
    }


@cache
def _template() -> Template:
    return Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True).get_template("report.html")


class Report:
    """A report that is written ranking by ranking; only the sections of one page are in memory.

    Pages need neither scripts nor a network.
    """

    def __init__(self, path: Path, library: CandidateLibrary, coverage: float) -> None:
        self.path = path
        self.folder = _folder_of(path)
        self._draft = draft_of(self.folder)
        self._library = library
        self._coverage = coverage
        self._entries: list[Entry] = []
        self._spectra: list[dict[str, Any]] = []  # of the page that is not written yet
        self._n_pages = 0

    @classmethod
    @contextmanager
    def open(cls, path: Path, library: CandidateLibrary, coverage: float) -> Iterator[Report]:
        """Open a report, whose :meth:`finish` the caller calls; otherwise the previous report stays unchanged."""
        report = cls(path, library, coverage)
        check_pages(path)
        try:
            yield report
        finally:
            shutil.rmtree(report._draft, ignore_errors=True)

    def add(self, number: int, ranking: Ranking) -> None:
        """Add the section of a spectrum."""
        if len(self._spectra) == SPECTRA_PER_PAGE:
            self._write_spectra()
        self._spectra.append(describe_spectrum(ranking, self._library, number))
        self._entries.append(Entry.of(number, ranking, self._library, self._n_pages))

    def finish(self, problems: Sequence[Problem]) -> None:
        """Write the index, or the only page; the pages of an earlier report are replaced."""
        title, summary = "Ranked molecules", summarize(self._entries, len(problems), self._library, self._coverage)
        entries = order_by_confidence(self._entries)
        if self._n_pages:
            self._write_spectra(is_last=True)
            parts = [entries[i : i + ENTRIES_PER_PAGE] for i in range(0, len(entries), ENTRIES_PER_PAGE)]
            first, *others = quote(self.path.name), *(f"index-{i:04d}.html" for i in range(2, len(parts) + 1))
            for number, part in enumerate(parts[1:], 2):
                values = {"entries": _link(part, ""), "pages": [f"../{first}", *others], "page": number}
                self._write(self._draft / others[number - 2], f"{title}: index, page {number}", **values)
            folder = f"{quote(self.folder.name)}/"
            pages = [first, *(f"{folder}{name}" for name in others)]
            values = {"entries": _link(parts[0], folder), "pages": pages, "page": 1}
        else:
            values = {"entries": entries if len(entries) > 1 else [], "spectra": self._spectra}
        if self.folder.exists():
            shutil.rmtree(self.folder)
        if self._n_pages:
            self._draft.replace(self.folder)
        self._write(self.path, title, summary=summary, problems=problems, max_problems=MAX_PROBLEMS, **values)

    def _write_spectra(self, *, is_last: bool = False) -> None:
        """Write the next page of spectra."""
        self._draft.mkdir(exist_ok=True)
        links = [("index", f"../{quote(self.path.name)}")]
        if self._n_pages:
            links.append(("previous page", _page_name(self._n_pages - 1)))
        if not is_last:
            links.append(("next page", _page_name(self._n_pages + 1)))
        title = f"Ranked molecules: spectra {self._spectra[0]['number']} to {self._spectra[-1]['number']}"
        self._write(self._draft / _page_name(self._n_pages), title, links=links, spectra=self._spectra)
        self._spectra.clear()
        self._n_pages += 1

    @staticmethod
    def _write(path: Path, title: str, **values: Any) -> None:
        page = _template().render(title=title, version=__version__, columns=COLUMNS, **values)
        write_atomically(path, page.encode())


def check_pages(path: Path) -> None:
    """Raise an error if the folder of the pages of a report contains other files, which would be removed."""
    folder = _folder_of(path)
    is_plain = folder.is_dir() and not folder.is_symlink()
    names = [file.name for file in folder.iterdir()] if is_plain else [folder.name] if folder.exists() else []
    others = [name for name in names if not OUR_FILE.fullmatch(name)]
    if others:
        raise FileExistsError(
            f"--html: the pages are written to the folder {folder}, which contains {others[0]!r}: choose another name."
        )


def _folder_of(path: Path) -> Path:
    return path.with_name(f"{path.stem}-pages")


def _page_name(page: int) -> str:
    return f"spectra-{page + 1:04d}.html"


def _link(entries: Sequence[Entry], folder: str) -> list[Entry]:
    """Return entries with links to their pages."""
    return [entry._replace(link=f"{folder}{_page_name(entry.page)}") for entry in entries]
