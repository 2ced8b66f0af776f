"""Rows of a table model as JSON objects: one value per column, by its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from psilearn.app.serve.json_values import describe
from psilearn.app.tables import Table, TableModel
from psilearn.utils import Samples

Row = dict[str, str | float | None]


def to_inputs(values: Sequence[Any], model: TableModel) -> Samples:
    """Return rows as inputs of the estimator; raise a ValueError that names a wrong or missing value."""
    table = _to_table(values, model.inputs.numbers.names, model.inputs.text_names, "inputs")
    return model.inputs.transform(table)


def to_candidates(values: Sequence[Any], model: TableModel) -> Samples:
    """Return rows of output columns as outputs of the estimator; their texts are those of predictions."""
    form = model.outputs
    numbers = [name for name in form.columns if name not in form.text_columns]
    return form.encode(_to_table(values, numbers, form.text_columns, "candidates"))


def to_outputs(outputs: Samples, model: TableModel) -> list[Any]:
    """Return outputs of the estimator as rows, in the form of the training table."""
    columns = model.outputs.decode(outputs)
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _to_table(values: Sequence[Any], number_names: Sequence[str], text_names: Sequence[str], noun: str) -> Table:
    names = (*number_names, *text_names)
    for i, value in enumerate(values):
        if not isinstance(value, dict):
            raise ValueError(f"{noun}[{i}] must be an object with one value per column; got {describe(value)}.")
        missing = [name for name in names if name not in value]
        if missing:
            raise ValueError(f"{noun}[{i}] lacks the column {missing[0]!r}.")
    numbers = [
        [_to_number(value[name], f"{noun}[{i}].{name}") for name in number_names] for i, value in enumerate(values)
    ]
    texts = {
        name: [_to_text(value[name], f"{noun}[{i}].{name}") for i, value in enumerate(values)] for name in text_names
    }
    matrix = np.array(numbers, dtype=np.float64).reshape(len(values), len(number_names))
    return Table(Path(noun), names, tuple(number_names), matrix, texts, np.arange(len(values)), "row")


def _to_number(value: Any, place: str) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{place} must be a number or null; got {describe(value)}.")
    return float(value)


def _to_text(value: Any, place: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{place} must be text or null; got {describe(value)}.")
    return value
