"""The index of a report: a summary, and one line per spectrum in the order of confidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from statistics import median
from typing import NamedTuple

from psilearn_chem.metabolites.page import is_by_mass
from psilearn_chem.metabolites.rank import Ranking
from psilearn_chem.metabolites.spectrum_fields import feature_id, retention_seconds
from psilearn_chem.molecules import CandidateLibrary
from psilearn_chem.spectra import Problem

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
