"""The results of an experiment as one CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from psilearn.utils import write_atomically
from psilearn_lab.experiments.record import Record
from psilearn_lab.experiments.result_rows import Row


def write_csv(records: Iterable[Record], path: Path) -> None:
    """Write one line per row, with one column per hyper-parameter, time and version."""
    lines = [_csv_line(record, row) for record in records for row in record.rows]
    columns = list(dict.fromkeys(column for line in lines for column in line))
    table = io.StringIO(newline="")
    writer = csv.DictWriter(table, columns)
    writer.writeheader()
    writer.writerows(lines)
    write_atomically(path, table.getvalue().encode())


def _csv_line(record: Record, row: Row) -> dict[str, object]:
    nested = ("metric", "parameters", "seconds")
    return {
        "experiment": record.experiment,
        "part": record.part,
        **{field.name: getattr(row, field.name) for field in fields(row) if field.name not in nested},
        "metric": row.metric.name,
        "better": row.metric.better,
        "spread": row.metric.spread,
        "difference": row.difference,
        "verdict": row.verdict,
        **{f"param_{name}": value for name, value in row.parameters.items()},
        **{f"{name}_seconds": value for name, value in row.seconds.items()},
        "seed": record.seed,
        "quick": record.quick,
        "finished": record.finished,
        **record.environment,
    }
