"""The report: one self-contained HTML file that needs neither network nor scripts."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from psilearn import __version__
from psilearn.utils import write_atomically
from psilearn_lab.experiments.experiment import Experiment
from psilearn_lab.experiments.results import Record, Row
from psilearn_lab.experiments.runner import is_current
from psilearn_lab.experiments.tables import (
    TRIAL_WARNING,
    ResultTable,
    TableLine,
    format_number,
    format_seconds,
    make_tables,
    summarize,
)

PAPER = "Learning Output Embeddings in Structured Prediction"
MARKS = {"pass": "✓", "falls short": "✗"}
DETAIL_HEADINGS = ("Chosen parameters", "Time")


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
    def anchor(self) -> str:
        """The target of links to the chapter."""
        return self.experiment.name


def write_report(chapters: Sequence[Chapter], path: Path) -> None:
    """Write the report with its chapters in this order; an interrupted write leaves the previous file unchanged."""
    write_atomically(path, render_page(chapters).encode())


def render_page(chapters: Sequence[Chapter]) -> str:
    """Return the report as HTML."""
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Reproduction of the paper’s experiments</title>
<style>
{style}</style>
</head>
<body>
<header>
<p class="eyebrow">psilearn {escape(__version__)}</p>
<h1>Reproduction of the paper’s experiments</h1>
<p class="lead">The results of <cite>{escape(PAPER)}</cite> next to ours.</p>
{_overview(chapters)}
</header>
<main>
{"".join(_chapter(chapter) for chapter in chapters)}</main>
<footer>
<p>± is followed by the standard error of the mean over the test examples (s.e.) or by the standard deviation over
repetitions (s.d.), as the heading of the column says. The difference is our value minus the paper’s. A result passes if
it is at least as good as the paper’s. Otherwise it falls short, by the given number of standard errors or deviations if
they are known. The best value of a column is bold.</p>
</footer>
</body>
</html>
"""


def _overview(chapters: Sequence[Chapter]) -> str:
    records = [record for chapter in chapters for record in chapter.records]
    if not records:
        headline = "No experiment has a result yet. The reasons are given below."
        return f'<p class="headline">{headline}</p>\n{_navigation(chapters)}'
    rows = [row for chapter in chapters for row in chapter.compared_rows]
    has_trials = any(record.trial for record in records)
    trial = f'<p class="trial" role="note"><strong>{TRIAL_WARNING}</strong></p>' if has_trials else ""
    all_trials = all(record.trial for record in records)
    headline = "" if all_trials else f'<p class="headline">{_sentence(summarize(rows))}</p>'
    return "\n".join(part for part in (trial, headline, _shortfalls(chapters), _navigation(chapters)) if part)


def _shortfalls(chapters: Sequence[Chapter]) -> str:
    """Return the list of the results that fall short, empty if there are none."""
    items = "".join(
        f'<li><a href="#{chapter.anchor}">{escape(row.dataset)}, {escape(row.method)}</a>: {escape(row.metric.name)} '
        f"{escape(line.ours)}, paper {escape(line.paper)} ({escape(line.difference)}, {escape(line.verdict)})</li>\n"
        for chapter in chapters
        for row in chapter.compared_rows
        if row.verdict == "falls short"
        for line in make_tables([row])[0].lines
    )
    return f'<div class="short"><h2>Results that fall short</h2>\n<ul>\n{items}</ul></div>' if items else ""


def _navigation(chapters: Sequence[Chapter]) -> str:
    items = "".join(
        f'<li><a href="#{chapter.anchor}">{escape(chapter.experiment.title)}</a> <span>{_state(chapter)}</span></li>\n'
        for chapter in chapters
    )
    return f'<nav aria-label="Experiments">\n<ol>\n{items}</ol>\n</nav>' if items else ""


def _state(chapter: Chapter) -> str:
    if not chapter.records:
        return "no result"
    has_trials = any(record.trial for record in chapter.records)
    state = "trial run" if has_trials else escape(summarize(chapter.compared_rows))
    missing = f"; {len(chapter.missing)} of {len(chapter.experiment.parts)} parts without result"
    return state + (missing if chapter.missing else "")


def _chapter(chapter: Chapter) -> str:
    experiment = chapter.experiment
    titles = {part.name: part.title for part in experiment.parts}
    missing = "".join(
        f"<li><strong>{escape(titles.get(name, name))}</strong>: {escape(reason)}</li>\n"
        for name, reason in chapter.missing.items()
    )
    return "\n".join(
        (
            f'<section class="chapter" id="{chapter.anchor}" aria-labelledby="{chapter.anchor}-title">',
            f'<p class="eyebrow">{escape(experiment.source)}</p>',
            f'<h2 id="{chapter.anchor}-title">{escape(experiment.title)}</h2>',
            _paragraphs(experiment.protocol),
            *(_part(record, chapter) for record in chapter.records),
            f'<div class="missing"><h3>Parts without result</h3>\n<ul>\n{missing}</ul></div>' if missing else "",
            "</section>\n",
        )
    )


def _part(record: Record, chapter: Chapter) -> str:
    command = f"psilearn reproduce {record.experiment} --only {record.part}"
    outdated = (
        f'<p class="remark">Computed by another version of psilearn or with other settings. Run '
        f"<code>{escape(command)}</code> to compute it again.</p>"
    )
    notes = "".join(f"<li>{escape(note)}</li>\n" for note in record.notes)
    return "\n".join(
        (
            '<article class="part">',
            f"<h3>{escape(record.title)}</h3>",
            f'<p class="trial"><strong>{TRIAL_WARNING}</strong></p>' if record.trial else "",
            "" if is_current(record, chapter.experiment) else outdated,
            *(_table(table) for table in make_tables(record.rows, with_verdicts=not record.trial)),
            f'<ul class="notes">\n{notes}</ul>' if notes else "",
            *(_figure(chapter.folder / name, caption) for name, caption in record.figures.items()),
            _provenance(record, command),
            "</article>",
        )
    )


def _table(table: ResultTable) -> str:
    has_details = any(line.parameters or line.seconds for line in table.lines)
    columns = [heading[:1].upper() + heading[1:] for heading in table.headings]
    head = "".join(f'<th scope="col">{name}</th>' for name in (*columns, *(DETAIL_HEADINGS if has_details else ())))
    body = "\n".join(_table_row(line, has_details) for line in table.lines)
    return f"""<div class="scroll" role="region" tabindex="0" aria-label="{escape(table.title)}"><table>
<caption>{escape(table.title)}</caption>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table></div>"""


def _table_row(line: TableLine, has_details: bool) -> str:
    kind = line.kind.replace(" ", "-") or "none"
    verdict = f"{MARKS.get(line.kind, '')} {line.verdict}".strip()
    if line.kind == "quoted" and line.source:
        verdict = f"quoted from {line.source}"
    details = f'<td class="small">{escape(line.parameters)}</td><td class="small">{_keep_units(line.seconds)}</td>'
    return (
        f'<tr class="{kind}"><th scope="row">{escape(line.method)}</th>'
        f'<td class="number">{_bold(line.ours, line.best_of_ours)}</td>'
        f'<td class="number">{_bold(line.paper, line.best_of_paper)}</td>'
        f'<td class="number">{escape(line.difference)}</td><td class="verdict">{_keep_units(verdict)}</td>'
        f"{details if has_details else ''}</tr>"
    )


def _figure(path: Path, caption: str) -> str:
    try:
        data = base64.b64encode(path.read_bytes()).decode()
    except OSError:
        return f'<p class="remark">The picture {escape(path.name)} is missing: {escape(caption)}</p>'
    text = escape(caption)
    return f"""<figure><img src="data:image/png;base64,{data}" alt="{text}">
<figcaption>{text}</figcaption></figure>"""


def _provenance(record: Record, command: str) -> str:
    """Return the command, settings and versions that led to a record."""
    seed = f" --seed {record.seed}" if record.seed else ""
    facts = {
        "command": f"{command}{seed}{' --quick' * record.quick}",
        "finished": f"{record.finished} UTC, after {format_seconds(record.seconds)}",
        "seed": record.seed,
        **record.config,
        **record.environment,
    }
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(_setting(value))}</dd>\n" for name, value in facts.items())
    return f"<details><summary>How this result was obtained</summary>\n<dl>\n{items}</dl>\n</details>"


def _setting(value: object) -> str:
    """Return an entry of a config as text."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_setting(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(_setting(item) for item in value)
    return format_number(value) if isinstance(value, float) else str(value)


def _paragraphs(text: str) -> str:
    return "\n".join(f"<p>{escape(' '.join(part.split()))}</p>" for part in text.split("\n\n") if part.strip())


def _bold(text: str, best: bool) -> str:
    return f"<strong>{escape(text)}</strong>" if best else escape(text)


def _keep_units(text: str) -> str:
    """Let lines break after commas only, so that no unit is separated from its number."""
    return escape(", ".join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in text.split(", ")))


def _sentence(text: str) -> str:
    return escape(text[:1].upper() + text[1:] + ".")
