"""Columns of CSR rows: hashed features have many that are never used."""

from __future__ import annotations

from typing import Any

import numpy as np


def column_counts(rows: Any) -> Any:
    """Return the number of entries in each column of CSR rows."""
    return np.bincount(rows.indices, minlength=rows.shape[1])


def keep_columns(rows: Any, kept: Any) -> Any:
    """Return CSR rows without the columns where ``kept`` is False."""
    entries = kept[rows.indices]
    stops = np.concatenate([[0], np.cumsum(entries)])[rows.indptr]
    columns = (np.cumsum(kept) - 1)[rows.indices[entries]]
    return type(rows)((rows.data[entries], columns, stops), shape=(rows.shape[0], int(np.count_nonzero(kept))))
