"""Files of unlabeled outputs, which estimators read in batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from psilearn.embedding import OutputStream
from psilearn.kernels import Linear
from psilearn_lab.fuzz.target import Target
from psilearn_lab.fuzz.targets.seeds import new_seed

ROWS = np.arange(24.0).reshape(8, 3)


def _write_parquet(folder: Path) -> None:
    tables = (
        pyarrow.table({name: ROWS[:, i] for i, name in enumerate("abc")}),
        pyarrow.table({"row": ROWS.tolist()}),
        pyarrow.table({"row": pyarrow.FixedSizeListArray.from_arrays(ROWS.ravel(), 3)}),
    )
    for table in tables:
        for options in (
            {"compression": "none", "use_dictionary": False},
            {"compression": "snappy"},
            {"compression": "gzip"},
        ):
            parquet.write_table(table, new_seed(folder) / "outputs.parquet", **options)


def _write_npy(folder: Path) -> None:
    for array in (ROWS, ROWS.astype(np.float32), ROWS.astype(np.int64), np.asfortranarray(ROWS)):
        np.save(new_seed(folder) / "outputs.npy", array)


def _read(path: Path) -> Any:
    return OutputStream(path, Linear(), ROWS).collect()


TARGETS = (
    Target("outputs-parquet", _write_parquet, lambda folder: _read(folder / "outputs.parquet"), argument="unlabeled"),
    Target("outputs-npy", _write_npy, lambda folder: _read(folder / "outputs.npy"), argument="unlabeled"),
)
