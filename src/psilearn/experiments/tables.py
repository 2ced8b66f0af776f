"""How rows read: the same words and digits on the terminal and in the report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from psilearn.experiments.record import Metric, Row

TRIAL = "Trial run on little data: these figures say nothing."
HEADINGS = ("method", "ours ± {spread}", "paper", "difference", "verdict")
SYMBOLS = {
    "alpha": "λ",
    "n_components": "p",
    "supervision": "c",
    "input_kernel": "k_x",
    "output_kernel": "k_y",
    "input_kernel__gamma": "γ_x",
    "output_kernel__gamma": "γ_y",
    "input_landmarks": "q_x",
    "output_landmarks": "q_y",
}
STYLES = {"pass": "green", "falls short": "bold red"}
_WIDTH = re.compile(r"Gaussian\(gamma=([-+.\de]+)\)")


@dataclass(frozen=True)
class Line:
    """One row as text. What is not known is an empty text."""

    method: str
    ours: str
    paper: str
    difference: str
    verdict: str
    kind: str  # Row.verdict
    parameters: str
    seconds: str
    source: str
    best_of_ours: bool  # the best of its dataset and metric, where there are several
    best_of_paper: bool

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts below :data:`HEADINGS`."""
        return self.method, self.ours, self.paper, self.difference, self.verdict


@dataclass(frozen=True)
class Block:
    """The rows of one dataset and metric."""

    dataset: str
    metric: Metric
    lines: tuple[Line, ...]

    @property
    def headings(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(heading.format(spread=self.metric.spread) for heading in HEADINGS)

    @property
    def title(self) -> str:
        """What is measured on what, and which way is better."""
        return f"{self.dataset} · {self.metric.name}, {self.metric.better} is better"


def blocks(rows: Iterable[Row], judged: bool = True) -> list[Block]:
    """Put the rows of a dataset together, and among them those of a metric, in the order of their first appearance.

    Parameters
    ----------
    rows : Rows
    judged : bool
        whether verdicts are given; those of a trial run would mislead.
    """
    together: dict[str, dict[Metric, list[Row]]] = {}
    for row in rows:
        together.setdefault(row.dataset, {}).setdefault(row.metric, []).append(row)
    made = []
    for dataset, metrics in together.items():
        for metric, members in metrics.items():
            best = _best(metric, [row.value for row in members]), _best(metric, [row.paper for row in members])
            made.append(Block(dataset, metric, tuple(_line(row, best, judged) for row in members)))
    return made


def summary(rows: Iterable[Row]) -> str:
    """Count how many figures reach the paper's.

    >>> loss = Metric("loss", "lower")
    >>> summary([Row("USPS", "OEL", loss, 0.72, paper=0.725), Row("USPS", "IOKR", loss, 0.76, paper=0.751)])
    "1 of 2 figures at least as good as the paper's; 1 falls short"
    """
    verdicts = [row.verdict for row in rows]
    passed, short = verdicts.count("pass"), verdicts.count("falls short")
    total = passed + short
    if not total:
        return "no figure to compare with the paper's"
    count = f"all {total}" if passed == total > 1 else f"{passed} of {total}"
    line = f"{count} {'figure' if total == 1 else 'figures'} at least as good as the paper's"
    return f"{line}; {short} {'falls' if short == 1 else 'fall'} short" if short else line


def terminal(rows: Iterable[Row], judged: bool = True) -> RenderableType:
    """Return the tables for a terminal of 80 columns or more; below each, what was chosen and how long it took."""
    made = blocks(rows, judged)
    cells = [line for block in made for line in (block.headings, *(line.cells for line in block.lines))]
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEADINGS))] if cells else []
    return Lines(*(part for block in made for part in (_terminal_table(block, widths), _terminal_details(block))))


def short_number(value: float) -> str:
    """Return a number in few characters.

    >>> [short_number(x) for x in (98, 0.15, 1e-4, 3.1623e-7, 0.0)]
    ['98', '0.15', '1e-4', '3.16e-7', '0']
    """
    if isinstance(value, int):
        return str(value)
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1e3 else f"{value:.0f}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def short_parameters(parameters: Mapping[str, Any]) -> str:
    """Return hyper-parameters by the paper's symbols.

    >>> short_parameters({"input_kernel": "Gaussian(gamma=0.04)", "alpha": 1e-4, "n_components": 98})
    'γ_x=0.04 λ=1e-4 p=98'
    """
    return " ".join(_parameter(name, value) for name, value in parameters.items())


def short_seconds(seconds: float) -> str:
    """Return a time.

    >>> [short_seconds(x) for x in (0.0123, 4.56, 59.98, 3750)]
    ['0.012 s', '4.6 s', '1 min 00 s', '1 h 02 min']
    """
    if seconds < 59.95:
        return f"{seconds:.2g} s" if seconds < 1 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _line(row: Row, best: tuple[float | None, float | None], judged: bool) -> Line:
    digits = row.metric.digits
    return Line(
        method=row.method,
        ours="" if row.value is None else f"{row.value:.{digits}f}" + _error(row.error, digits),
        paper="" if row.paper is None else f"{row.paper:.{digits}f}" + _error(row.paper_error, digits),
        difference="" if row.difference is None else _signed(row.difference, digits),
        verdict=_verdict(row) if judged or row.quoted else "",
        kind=row.verdict if judged or row.quoted else "",
        parameters=short_parameters(row.parameters),
        seconds=", ".join(f"{name} {short_seconds(value)}" for name, value in row.seconds.items()),
        source=row.source,
        best_of_ours=row.value is not None and round(row.value, digits) == best[0],
        best_of_paper=row.paper is not None and round(row.paper, digits) == best[1],
    )


def _error(error: float | None, digits: int) -> str:
    return "" if error is None else f" ± {error:.{digits}f}"


def _signed(difference: float, digits: int) -> str:
    """A difference that the metric's digits would hide is shown by its first one."""
    text = f"{difference:+.{digits}f}"
    return (f"{difference:+.1g}" if difference and not float(text) else text).replace("-", "−")


def _verdict(row: Row) -> str:
    if row.verdict == "falls short" and row.error and row.difference is not None:
        errors = abs(row.difference) / row.error
        return f"falls short, {'under 0.1' if errors < 0.1 else f'{errors:.1f}'} {row.metric.spread}"
    return "quoted from the paper" if row.quoted and not row.source else row.verdict


def _best(metric: Metric, values: Iterable[float | None]) -> float | None:
    """Return the best of several values as shown; equal digits are equally good."""
    known = [round(value, metric.digits) for value in values if value is not None]
    if len(known) < 2:
        return None
    return min(known) if metric.better == "lower" else max(known)


def _parameter(name: str, value: Any) -> str:
    symbol = SYMBOLS.get(name, name)
    width = _WIDTH.fullmatch(value) if isinstance(value, str) and symbol.startswith("k_") else None
    if width:
        symbol, value = symbol.replace("k_", "γ_"), float(width[1])
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{symbol}={short_number(value) if number else value}"


def _terminal_table(block: Block, widths: list[int]) -> Table:
    table = Table(title=Text(block.title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, (heading, width) in enumerate(zip(block.headings, widths, strict=True)):
        numeric = 0 < i < 4
        table.add_column(
            heading, justify="right" if numeric else "left", no_wrap=numeric, min_width=width if numeric else 0
        )
    for line in block.lines:
        bold = {1: line.best_of_ours, 2: line.best_of_paper, 4: False}
        cells = [Text(cell, style="bold" if bold.get(i) else "") for i, cell in enumerate(line.cells)]
        cells[4].stylize(STYLES.get(line.kind, "dim"))
        table.add_row(*cells)
    return table


def _terminal_details(block: Block) -> Text:
    """Return one line a row: what was chosen, how long it took, where a quoted figure comes from."""
    text = Text(style="dim")
    for line in block.lines:
        quoted = f"quoted from {line.source}" if line.kind == "quoted" and line.source else ""
        details = [part for part in (line.parameters, line.seconds, quoted) if part]
        if details:
            text.append(f"{line.method}: {'; '.join(details)}\n")
    return text
