"""The report: one HTML file with everything in it, for any browser, without network or script."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from psilearn import __version__
from psilearn._utils.files import write_atomically
from psilearn.experiments.experiment import Experiment
from psilearn.experiments.record import Record, Row
from psilearn.experiments.runner import is_current
from psilearn.experiments.tables import TRIAL, Block, Line, blocks, short_number, short_seconds, summary

PAPER = "Learning Output Embeddings in Structured Prediction"
MARKS = {"pass": "✓", "falls short": "✗"}
DETAILS = ("Chosen", "Time")


@dataclass(frozen=True)
class Chapter:
    """An experiment, what was found of it, and why the rest is not there."""

    experiment: Experiment
    records: Sequence[Record]
    missing: Mapping[str, str]  # name of a part → why it has no (new) result
    folder: Path  # of the pictures

    @property
    def rows(self) -> list[Row]:
        """The rows that are judged: none of a trial run."""
        return [row for record in self.records if not record.trial for row in record.rows]

    @property
    def anchor(self) -> str:
        """The name that links lead to."""
        return self.experiment.name


def write_report(chapters: Sequence[Chapter], path: Path) -> None:
    """Write the report; an interrupted write leaves the former one.

    Parameters
    ----------
    chapters : Chapters
        in the order of the report; there may be none, and none of them need have a record.
    path : path
        of the HTML file.
    """
    write_atomically(path, page(chapters).encode())


def page(chapters: Sequence[Chapter]) -> str:
    """Return the report as HTML."""
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>The paper’s experiments, rerun</title>
<style>
{style}</style>
</head>
<body>
<header>
<p class="eyebrow">psilearn {escape(__version__)}</p>
<h1>The paper’s experiments, rerun</h1>
<p class="lead">The figures of <cite>{escape(PAPER)}</cite> beside our own.</p>
{_overview(chapters)}
</header>
<main>
{"".join(_chapter(chapter) for chapter in chapters)}</main>
<footer>
<p>± is the standard error of the mean over the test examples. The difference is ours minus the paper’s. A figure passes
if it is at least as good as the paper’s; otherwise it falls short, by so many standard errors where the error is known.
The best figure of a column is bold.</p>
</footer>
</body>
</html>
"""


def _overview(chapters: Sequence[Chapter]) -> str:
    found = [record for chapter in chapters for record in chapter.records]
    if not found:
        headline = "No experiment has a result yet. What is missing is said below."
        return f'<p class="headline">{headline}</p>\n{_navigation(chapters)}'
    rows = [row for chapter in chapters for row in chapter.rows]
    trial = f'<p class="trial" role="note"><strong>{TRIAL}</strong></p>' if any(r.trial for r in found) else ""
    headline = "" if all(record.trial for record in found) else f'<p class="headline">{_sentence(summary(rows))}</p>'
    short = "".join(
        f'<li><a href="#{chapter.anchor}">{escape(row.dataset)}, {escape(row.method)}</a>: {escape(row.metric.name)} '
        f"{escape(line.ours)} against {escape(line.paper)} ({escape(line.difference)}: {escape(line.verdict)})</li>\n"
        for chapter in chapters
        for row in chapter.rows
        if row.verdict == "falls short"
        for line in blocks([row])[0].lines
    )
    listed = f'<div class="short"><h2>What falls short</h2>\n<ul>\n{short}</ul></div>' if short else ""
    return "\n".join(part for part in (trial, headline, listed, _navigation(chapters)) if part)


def _navigation(chapters: Sequence[Chapter]) -> str:
    items = "".join(
        f'<li><a href="#{chapter.anchor}">{escape(chapter.experiment.title)}</a> <span>{_state(chapter)}</span></li>\n'
        for chapter in chapters
    )
    return f'<nav aria-label="Experiments">\n<ol>\n{items}</ol>\n</nav>' if items else ""


def _state(chapter: Chapter) -> str:
    if not chapter.records:
        return "no result"
    state = "trial run" if any(record.trial for record in chapter.records) else escape(summary(chapter.rows))
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
            f'<div class="missing"><h3>Without result</h3>\n<ul>\n{missing}</ul></div>' if missing else "",
            "</section>\n",
        )
    )


def _part(record: Record, chapter: Chapter) -> str:
    command = f"psilearn reproduce {record.experiment} --only {record.part}"
    stale = (
        f'<p class="remark">Computed by another version of psilearn or with other settings than this one would use; '
        f"<code>{escape(command)}</code> computes it anew.</p>"
    )
    notes = "".join(f"<li>{escape(note)}</li>\n" for note in record.notes)
    return "\n".join(
        (
            '<article class="part">',
            f"<h3>{escape(record.title)}</h3>",
            f'<p class="trial"><strong>{TRIAL}</strong></p>' if record.trial else "",
            "" if is_current(record, chapter.experiment) else stale,
            *(_table(block) for block in blocks(record.rows, judged=not record.trial)),
            f'<ul class="notes">\n{notes}</ul>' if notes else "",
            *(_figure(chapter.folder / name, caption) for name, caption in record.figures.items()),
            _how(record, command),
            "</article>",
        )
    )


def _table(block: Block) -> str:
    details = any(line.parameters or line.seconds for line in block.lines)
    columns = [heading[:1].upper() + heading[1:] for heading in block.headings]
    head = "".join(f'<th scope="col">{name}</th>' for name in (*columns, *(DETAILS if details else ())))
    body = "\n".join(_table_row(line, details) for line in block.lines)
    return f"""<div class="scroll" role="region" tabindex="0" aria-label="{escape(block.title)}"><table>
<caption>{escape(block.title)}</caption>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table></div>"""


def _table_row(line: Line, details: bool) -> str:
    kind = line.kind.replace(" ", "-") or "none"
    verdict = f"{MARKS.get(line.kind, '')} {line.verdict}".strip()
    if line.kind == "quoted" and line.source:
        verdict = f"quoted from {line.source}"
    more = f'<td class="small">{escape(line.parameters)}</td><td class="small">{_unbroken(line.seconds)}</td>'
    return (
        f'<tr class="{kind}"><th scope="row">{escape(line.method)}</th>'
        f'<td class="number">{_bold(line.ours, line.best_of_ours)}</td>'
        f'<td class="number">{_bold(line.paper, line.best_of_paper)}</td>'
        f'<td class="number">{escape(line.difference)}</td><td class="verdict">{_unbroken(verdict)}</td>'
        f"{more if details else ''}</tr>"
    )


def _figure(path: Path, caption: str) -> str:
    try:
        data = base64.b64encode(path.read_bytes()).decode()
    except OSError:
        return f'<p class="remark">The picture {escape(path.name)} is not there any more: {escape(caption)}</p>'
    text = escape(caption)
    return f"""<figure><img src="data:image/png;base64,{data}" alt="{text}">
<figcaption>{text}</figcaption></figure>"""


def _how(record: Record, command: str) -> str:
    seed = f" --seed {record.seed}" if record.seed else ""
    facts = {
        "command": f"{command}{seed}{' --quick' * record.quick}",
        "finished": f"{record.finished} UTC, after {short_seconds(record.seconds)}",
        "seed": record.seed,
        **record.config,
        **record.environment,
    }
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(_value(value))}</dd>\n" for name, value in facts.items())
    return f"<details><summary>How this was obtained</summary>\n<dl>\n{listed}</dl>\n</details>"


def _value(value: Any) -> str:
    """Return an entry of a config as text."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_value(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(_value(item) for item in value)
    return short_number(value) if isinstance(value, float) else str(value)


def _paragraphs(text: str) -> str:
    return "\n".join(f"<p>{escape(' '.join(part.split()))}</p>" for part in text.split("\n\n") if part.strip())


def _bold(text: str, best: bool) -> str:
    return f"<strong>{escape(text)}</strong>" if best else escape(text)


def _unbroken(text: str) -> str:
    """Let lines break after commas only: no unit is parted from its number."""
    return escape(", ".join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in text.split(", ")))


def _sentence(text: str) -> str:
    return escape(text[:1].upper() + text[1:] + ".")
