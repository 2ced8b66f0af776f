"""Turn the stored records of experiments into a Markdown page.

Usage: ``python tools/reproduction_page.py RESULTS PAGE``. RESULTS is a folder that ``psilearn reproduce`` or
``psilearn_lab.experiments.run`` wrote: one folder per experiment with one JSON file per part. Every number of the page
comes from a record; the page is written again whenever a record changes. Trial runs are marked as such.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from psilearn_lab.experiments import NAMES, Record, find
from psilearn_lab.experiments.tables import TRIAL_WARNING, ResultTable, format_seconds, make_tables

INTRODUCTION = """# Reproduction

This page is generated from the stored records of experiments in `lab/records`, by
`python tools/reproduction_page.py lab/records docs/reproduction.md`. A record has every value with its
hyper-parameters, grids, random seed, versions and time. All figures that were measured, also those without a stored
record, and their discussion are in [the paper's experiments](experiments.md).
"""


def load_all(folder: Path) -> dict[str, list[Record]]:
    """Return the records of a results folder by the name of their experiment, the paper's experiments first."""
    records: dict[str, list[Record]] = {}
    for path in sorted(folder.glob("**/*.json")):
        record = Record.load(path)
        records.setdefault(record.experiment, []).append(record)
    if not records:
        raise ValueError(f"{folder} has no records: run psilearn reproduce, or give another folder.")
    order = {name: number for number, name in enumerate(NAMES)}
    return dict(sorted(records.items(), key=lambda item: (order.get(item[0], len(order)), item[0])))


def render_page(records: dict[str, list[Record]]) -> str:
    """Return the page as Markdown."""
    lines = [INTRODUCTION]
    for name, members in records.items():
        lines += _experiment_lines(name, members)
    return "\n".join(lines).rstrip() + "\n"


def _experiment_lines(name: str, records: list[Record]) -> Iterator[str]:
    if name in NAMES:
        experiment = find(name)
        yield f"## {experiment.title}\n"
        yield f"`psilearn reproduce {name}`; {experiment.source}.\n"
        for paragraph in experiment.protocol.split("\n\n"):
            yield _escape(" ".join(paragraph.split())) + "\n"
    else:
        yield f"## {name}\n"
    for record in records:
        yield from _part_lines(record)


def _part_lines(record: Record) -> Iterator[str]:
    yield f"### {_escape(record.title)}\n"
    if record.trial:
        yield f"**{TRIAL_WARNING}**\n"
    for table in make_tables(record.rows, with_verdicts=not record.trial):
        yield from _table_lines(table)
    if record.notes:
        yield from (f"- {_escape(note)}" for note in record.notes)
        yield ""
    versions = ", ".join(f"{package} {version}" for package, version in record.environment.items())
    quick = ", a quick run" if record.quick else ""
    duration = format_seconds(record.seconds)
    yield f"Seed {record.seed}{quick}; finished {record.finished} UTC after {duration}; {versions}.\n"


def _table_lines(table: ResultTable) -> Iterator[str]:
    """Yield one table, without the columns that are empty in all lines, with chosen parameters at the end."""
    headings = (*table.headings, "chosen parameters")
    cells = [(*line.cells, line.parameters) for line in table.lines]
    shown = [column for column in range(len(headings)) if any(row[column] for row in cells)]
    yield f"**{_escape(table.title)}**\n"
    yield _row(headings[column] for column in shown)
    yield _row("---" for _ in shown)
    for line, row in zip(table.lines, cells, strict=True):
        texts = [_escape(text) for text in row]
        if line.best_of_ours:
            texts[1] = f"**{texts[1]}**"
        yield _row(texts[column] for column in shown)
    yield ""


def _row(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape(text: str) -> str:
    """Escape the characters that Markdown would interpret."""
    for character in "\\|*_<>$":
        text = text.replace(character, f"\\{character}")
    return text


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(render_page(load_all(Path(sys.argv[1]))), encoding="utf-8")
