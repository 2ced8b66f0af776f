"""Readers of tables, and models of tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from psilearn.app.tables import Table, TableModel, read_table
from psilearn.app.tables.column_choice import ColumnOptions
from psilearn.app.tables.table_training import Fit, Method, SplitOptions, train
from psilearn_lab.fuzz.target import Target
from psilearn_lab.fuzz.targets.seeds import new_seed, texts

CSV = (
    'size,color,text,tags\n1.5,red,"a cup of tea, warm",hot;sweet\n-2e3,blue,"two\nlines ""quoted""",\n'
    "0,red,dog,cold\n3,blue,cat and dog,hot\n"
)
SEMICOLONS = "a;b;c\n1;2;NA\n?;-1;0.5\n"
WORDS_ARFF = """@relation 'toy: -C 1'
@attribute tag {0,1}
@attribute color {red,'dark blue',green}
@attribute size numeric
@data
1,'dark blue',2.5
{1 green,2 -1}
{}
"""
SVMLIGHT = "0,2 1:0.5 4:1.25\n 2:1 # no label\n\n1 3:-3e2 999999999:4\n"


def save_table_model(table: Path, folder: Path, options: ColumnOptions | None = None) -> None:
    """Train a model on a small table and save it."""
    parameters: dict[str, Any] = {"alpha": 1e-3, "components": None, "supervision": None, "candidates": "known"}
    learner = Fit(Method("iokr"), None, None, **parameters)
    columns = ColumnOptions(outputs=["tag_*"]) if options is None else options
    train(table, columns, SplitOptions(), learner)[0].save(folder)


def _read(name: str) -> Callable[[Path], Any]:
    return lambda folder: read_table(folder / name)


def _use(table: Any) -> object:
    columns = [table.get_texts(name) for name in table.names]
    return columns, table.get_numbers(table.number_names, allow_missing=True), table.take([0])


def _write_parquet(folder: Path) -> None:
    table = pyarrow.table({"a": [1.5, None, 3.0], "b": [1, 2, 3], "c": ["x", "y", None], "d": [True, False, None]})
    for options in ({"compression": "none", "use_dictionary": False}, {"compression": "snappy"}):
        parquet.write_table(table, new_seed(folder) / "table.parquet", **options)


def _write_models(folder: Path) -> None:
    options = (
        ColumnOptions(label_column="tags", text=["text"], impute=True),
        ColumnOptions(outputs=["color"], text=["text"], drop=["tags"]),
        ColumnOptions(outputs=["size"], drop=["text", "tags"]),
    )
    for option in options:
        file = folder.with_name(f"{folder.name}-train.csv")
        file.write_text(CSV, encoding="utf-8")
        save_table_model(file, new_seed(folder), option)
        file.unlink()


def _use_model(model: TableModel) -> object:
    names = model.inputs.names
    numbers = np.zeros((2, len(names)))
    texts_of = {name: ["red", "a cup"] for name in model.inputs.text_names}
    number_names = tuple(name for name in names if name not in texts_of)
    table = Table(Path("new.csv"), tuple(names), number_names, numbers[:, : len(number_names)], texts_of, np.arange(2))
    return model.predict(table)


TARGETS = (
    Target(
        "table-csv",
        texts("table.csv", CSV, SEMICOLONS, compressed=True),
        _read("table.csv"),
        _use,
        tokens=(b'"', b";", b",", b"\n", b"1e309", b"_", b"?"),
    ),
    Target(
        "table-arff",
        texts("table.arff", WORDS_ARFF, compressed=True),
        _read("table.arff"),
        _use,
        tokens=(b"{", b"}", b"red", b"'", b"@data", b"-C"),
    ),
    Target("table-svmlight", texts("table.svm", SVMLIGHT, compressed=True), _read("table.svm"), _use),
    Target("table-parquet", _write_parquet, _read("table.parquet"), _use),
    Target("table-model", _write_models, TableModel.load, _use_model, is_folder=True),
)
