"""The report: one self-contained HTML file that needs neither network nor scripts."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from psilearn import __version__
from psilearn.utils import write_atomically
from psilearn_lab.experiments.experiment import Experiment
from psilearn_lab.experiments.results import Record, Row
from psilearn_lab.experiments.runner import is_current
from psilearn_lab.experiments.tables import TRIAL_WARNING, format_number, format_seconds, make_tables, summarize

MARKS = {"pass": "✓", "falls short": "✗"}


@dataclass(frozen=True)
class Chapter:
    """An experiment with its records and the reasons why other parts have none."""

    experiment: Experiment
    records: Sequence[Record]
    missing: Mapping[str, str]  # name of a part → why it has no current record
    folder: Path  # of the pictures

    @property
    def compared_rows(self) -> list[Row]:
        """The rows that are compared with the paper: those of trial runs are not."""
        return [row for record in self.records if not record.trial for row in record.rows]

    @property
    def titles(self) -> dict[str, str]:
        """The titles of the parts by their names."""
        return {part.name: part.title for part in self.experiment.parts}


def write_report(chapters: Sequence[Chapter], path: Path) -> None:
    """Write the report with its chapters in this order; an interrupted write leaves the previous file unchanged."""
    write_atomically(path, render_page(chapters).encode())


def render_page(chapters: Sequence[Chapter]) -> str:
    """Return the report as HTML."""
    loader = FileSystemLoader(Path(__file__).parent)
    template = Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template("report.html.j2")
    rows = [(chapter, row) for chapter in chapters for row in chapter.compared_rows]
    return template.render(
        style=Path(__file__).with_name("report.css").read_text(encoding="utf-8"),
        version=__version__,
        trial_warning=TRIAL_WARNING,
        marks=MARKS,
        chapters=chapters,
        records=[record for chapter in chapters for record in chapter.records],
        rows=[row for _, row in rows],
        shortfalls=[(chapter, row, _line_of(row)) for chapter, row in rows if row.verdict == "falls short"],
        is_current=is_current,
        make_tables=make_tables,
        summarize=summarize,
        sentence=lambda text: f"{text[:1].upper()}{text[1:]}.",
        keep_units=_keep_units,
        encode_picture=_encode_picture,
        facts=_list_facts,
        format_setting=_format_setting,
    )


def _line_of(row: Row) -> Any:
    return make_tables([row])[0].lines[0]


def _encode_picture(folder: Path, name: str) -> str:
    """Return a picture in base64, empty if it is missing."""
    try:
        return base64.b64encode((folder / name).read_bytes()).decode()
    except OSError:
        return ""


def _list_facts(record: Record, command: str) -> dict[str, Any]:
    """Return the command, settings and versions that led to a record."""
    seed = f" --seed {record.seed}" if record.seed else ""
    return {
        "command": f"{command}{seed}{' --quick' * record.quick}",
        "finished": f"{record.finished} UTC, after {format_seconds(record.seconds)}",
        "seed": record.seed,
        **record.config,
        **record.environment,
    }


def _format_setting(value: object) -> str:
    """Return an entry of a config as text."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_format_setting(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(_format_setting(item) for item in value)
    return format_number(value) if isinstance(value, float) else str(value)


def _keep_units(text: str) -> str:
    """Let lines break after commas only, so that no unit is separated from its number."""
    return ", ".join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in text.split(", "))
