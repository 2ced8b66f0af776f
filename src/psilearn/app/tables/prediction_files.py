"""Predictions of a model for the rows of a table, written as CSV or TSV in chunks."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from psilearn.app.tables.table import Table, format_number, require_columns
from psilearn.app.tables.table_formats import iter_tables
from psilearn.app.tables.table_model import TableModel
from psilearn.utils import concat, open_text_atomically

DISTANCE, ROW, POSITION = "distance", "row", "position"
DELIMITERS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class PredictionOptions:
    """What is written for each row: the prediction, the ``top`` nearest candidates, or a conformal set."""

    top: int | None = None
    coverage: float | None = None
    keep: Sequence[str] = ()
    with_distances: bool = False

    def check(self, model: TableModel) -> None:
        """Raise a ValueError for options that exclude each other, or that the model does not allow."""
        if self.top is not None and self.coverage is not None:
            raise ValueError("--top and --coverage cannot be combined: both list several outputs per row.")
        if self.coverage is not None and not 0 < self.coverage < 1:
            raise ValueError(f"--coverage must be between 0 and 1; got {self.coverage}.")
        if self.coverage is not None and not hasattr(model.model, "calibration_scores_"):
            raise ValueError("--coverage needs a calibrated model: train it with --calibration 0.2, for example.")
        reserved = {*model.outputs.names, *((ROW, POSITION) if self.lists else ()), DISTANCE}
        repeated = [name for name in self.keep if name in reserved]
        if repeated:
            raise ValueError(f"--keep: the column {repeated[0]!r} is a column of the predictions.")

    @property
    def lists(self) -> bool:
        """Whether there may be several lines per row."""
        return self.top is not None or self.coverage is not None


def predict_file(model: TableModel, path: Path, output: Path | None, options: PredictionOptions) -> tuple[int, int]:
    """Write the predictions for a table; return the numbers of its rows and of cells with unknown categories.

    Rows are read, predicted and written in chunks. Without ``output`` they are written to the standard output. If the
    work is interrupted, a previous file stays unchanged.
    """
    options.check(model)
    ending = ".csv" if output is None else output.suffix.lower()
    if ending not in DELIMITERS:
        raise ValueError(
            f"--output {output} does not end in .csv or .tsv; without --output, predictions go to the standard output."
        )
    text_columns = model.text_columns | set(options.keep).difference(model.inputs.numbers.names)  # ids as 007
    n_rows = n_unknown = 0
    with nullcontext(sys.stdout) if output is None else open_text_atomically(output) as stream:
        writer = csv.writer(stream, delimiter=DELIMITERS[ending], lineterminator="\n")
        for table in iter_tables(path, text_columns):
            columns = _predict_columns(model, table, options, n_rows)
            if not n_rows:
                writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
            n_rows += len(table)
            n_unknown += sum(column.count_unknown(table) for column in model.inputs.categories)
    return n_rows, n_unknown


def _predict_columns(
    model: TableModel, table: Table, options: PredictionOptions, first: int
) -> dict[str, Sequence[str | int]]:
    """Return the columns of the predictions for a chunk of rows."""
    require_columns(table, options.keep, "--keep")
    X = model.inputs.transform(table)
    if options.coverage is not None:
        sets = model.model.predict_set(X, options.coverage, model.candidates)
        outputs, distances = sets.outputs, sets.distances
    else:
        found = model.model.predict_topk(X, options.top or 1, model.candidates)
        outputs = found.outputs if options.lists else [found.nearest]
        distances = [row[np.isfinite(row)] for row in np.asarray(found.distances)]
    sizes = [len(row) for row in distances]
    rows = np.repeat(np.arange(len(table)), sizes).tolist()
    columns: dict[str, Sequence[str | int]] = {}
    if options.lists:
        columns[ROW] = [first + row + 1 for row in rows]
        columns[POSITION] = [position for size in sizes for position in range(1, size + 1)]
    columns |= {name: [cells[row] for row in rows] for name, cells in ((n, table.get_texts(n)) for n in options.keep)}
    columns |= model.outputs.decode(concat(outputs))
    if options.lists or options.with_distances:
        columns[DISTANCE] = [format_number(value) for row in distances for value in row.tolist()]
    return columns
