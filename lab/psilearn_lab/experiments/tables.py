"""Tables of results: the same words and digits on the terminal and in the report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from psilearn_lab.experiments.results import Metric, Row

TRIAL_WARNING = "Trial run on little data: these results are not meaningful."
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
_GAUSSIAN = re.compile(r"Gaussian\(gamma=([-+.\de]+)\)")


@dataclass(frozen=True)
class TableLine:
    """A row as text; unknown values are empty strings."""

    method: str
    ours: str
    paper: str
    difference: str
    verdict: str
    kind: str  # Row.verdict
    parameters: str
    seconds: str
    source: str
    best_of_ours: bool  # whether it is the best value of its dataset and metric, if there are several
    best_of_paper: bool

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts below :data:`HEADINGS`."""
        return self.method, self.ours, self.paper, self.difference, self.verdict


@dataclass(frozen=True)
class ResultTable:
    """The rows of one dataset and metric."""

    dataset: str
    metric: Metric
    lines: tuple[TableLine, ...]

    @property
    def headings(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(heading.format(spread=self.metric.spread) for heading in HEADINGS)

    @property
    def title(self) -> str:
        """The dataset, the metric, and which direction is better."""
        return f"{self.dataset} · {self.metric.name}, {self.metric.better} is better"


def make_tables(rows: Iterable[Row], with_verdicts: bool = True) -> list[ResultTable]:
    """Return one table per dataset and metric, in the order of their first rows.

    ``with_verdicts`` is False for a trial run, whose verdicts would be misleading.
    """
    groups: dict[str, dict[Metric, list[Row]]] = {}
    for row in rows:
        groups.setdefault(row.dataset, {}).setdefault(row.metric, []).append(row)
    tables = []
    for dataset, metrics in groups.items():
        for metric, members in metrics.items():
            best = _best(metric, [row.value for row in members]), _best(metric, [row.paper for row in members])
            tables.append(ResultTable(dataset, metric, tuple(_make_line(row, best, with_verdicts) for row in members)))
    return tables


def summarize(rows: Iterable[Row]) -> str:
    """Count the results that are at least as good as the paper's.

    >>> loss = Metric("loss", "lower")
    >>> summarize([Row("USPS", "OEL", loss, 0.72, paper=0.725), Row("USPS", "IOKR", loss, 0.76, paper=0.751)])
    "1 of 2 results is at least as good as the paper's; 1 falls short"
    """
    verdicts = [row.verdict for row in rows]
    n_passed, n_short = verdicts.count("pass"), verdicts.count("falls short")
    total = n_passed + n_short
    if not total:
        return "no result can be compared with the paper's"
    count = f"all {total}" if n_passed == total > 1 else f"{n_passed} of {total}"
    noun, verb = ("result" if total == 1 else "results"), ("is" if 1 in (n_passed, total) else "are")
    text = f"{count} {noun} {verb} at least as good as the paper's"
    return f"{text}; {n_short} {'falls' if n_short == 1 else 'fall'} short" if n_short else text


def render_tables(rows: Iterable[Row], with_verdicts: bool = True) -> RenderableType:
    """Return tables for a terminal of 80 or more columns; below each, chosen parameters and times."""
    tables = make_tables(rows, with_verdicts)
    lines = [cells for table in tables for cells in (table.headings, *(line.cells for line in table.lines))]
    widths = [max(len(cells[i]) for cells in lines) for i in range(len(HEADINGS))] if lines else []
    return Group(*(part for table in tables for part in (_render_table(table, widths), _render_details(table))))


def format_number(value: float) -> str:
    """Return a number in few characters.

    >>> [format_number(x) for x in (98, 0.15, 1e-4, 3.1623e-7, 0.0)]
    ['98', '0.15', '1e-4', '3.16e-7', '0']
    """
    if isinstance(value, int):
        return str(value)
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1e3 else f"{value:.0f}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def format_parameters(parameters: Mapping[str, object]) -> str:
    """Return hyper-parameters with the paper's symbols.

    >>> format_parameters({"input_kernel": "Gaussian(gamma=0.04)", "alpha": 1e-4, "n_components": 98})
    'γ_x=0.04 λ=1e-4 p=98'
    """
    return " ".join(_format_parameter(name, value) for name, value in parameters.items())


def format_seconds(seconds: float) -> str:
    """Return a time in seconds, minutes or hours.

    >>> [format_seconds(x) for x in (0.0123, 4.56, 59.98, 3750)]
    ['0.012 s', '4.6 s', '1 min 00 s', '1 h 02 min']
    """
    if seconds < 59.95:
        return f"{seconds:.2g} s" if seconds < 1 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _make_line(row: Row, best: tuple[float | None, float | None], with_verdicts: bool) -> TableLine:
    digits = row.metric.digits
    return TableLine(
        method=row.method,
        ours="" if row.value is None else f"{row.value:.{digits}f}" + _format_error(row.error, digits),
        paper="" if row.paper is None else f"{row.paper:.{digits}f}" + _format_error(row.paper_error, digits),
        difference="" if row.difference is None else _format_difference(row.difference, digits),
        verdict=_format_verdict(row) if with_verdicts or row.quoted else "",
        kind=row.verdict if with_verdicts or row.quoted else "",
        parameters=format_parameters(row.parameters),
        seconds=", ".join(f"{name} {format_seconds(value)}" for name, value in row.seconds.items()),
        source=row.source,
        best_of_ours=row.value is not None and round(row.value, digits) == best[0],
        best_of_paper=row.paper is not None and round(row.paper, digits) == best[1],
    )


def _format_error(error: float | None, digits: int) -> str:
    return "" if error is None else f" ± {error:.{digits}f}"


def _format_difference(difference: float, digits: int) -> str:
    """Return a signed difference; if the digits of the metric round it to zero, its first significant digit."""
    text = f"{difference:+.{digits}f}"
    return (f"{difference:+.1g}" if difference and not float(text) else text).replace("-", "−")


def _format_verdict(row: Row) -> str:
    """Return the verdict; for a result that falls short, with the number of standard errors."""
    if row.verdict == "falls short" and row.error and row.difference is not None:
        n_errors = abs(row.difference) / row.error
        return f"falls short by {'under 0.1' if n_errors < 0.1 else f'{n_errors:.1f}'} {row.metric.spread}"
    return "quoted from the paper" if row.quoted and not row.source else row.verdict


def _best(metric: Metric, values: Iterable[float | None]) -> float | None:
    """Return the best of several values after rounding to the digits of the metric."""
    known = [round(value, metric.digits) for value in values if value is not None]
    if len(known) < 2:
        return None
    return min(known) if metric.better == "lower" else max(known)


def _format_parameter(name: str, value: object) -> str:
    symbol = SYMBOLS.get(name, name)
    gaussian = _GAUSSIAN.fullmatch(value) if isinstance(value, str) and symbol.startswith("k_") else None
    if gaussian:
        symbol, value = symbol.replace("k_", "γ_"), float(gaussian[1])
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = format_number(value)
    return f"{symbol}={value}"


def _render_table(table: ResultTable, widths: list[int]) -> Table:
    rendered = Table(title=Text(table.title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, (heading, width) in enumerate(zip(table.headings, widths, strict=True)):
        numeric = 0 < i < 4
        rendered.add_column(
            heading, justify="right" if numeric else "left", no_wrap=numeric, min_width=width if numeric else 0
        )
    for line in table.lines:
        bold = {1: line.best_of_ours, 2: line.best_of_paper}
        cells = [Text(cell, style="bold" if bold.get(i) else "") for i, cell in enumerate(line.cells)]
        cells[4].stylize(STYLES.get(line.kind, "dim"))
        rendered.add_row(*cells)
    return rendered


def _render_details(table: ResultTable) -> Text:
    """Return one line per row: chosen parameters, times, and where a quoted value comes from."""
    text = Text(style="dim")
    for line in table.lines:
        quoted = f"quoted from {line.source}" if line.kind == "quoted" and line.source else ""
        details = [detail for detail in (line.parameters, line.seconds, quoted) if detail]
        if details:
            text.append(f"{line.method}: {'; '.join(details)}\n")
    return text
