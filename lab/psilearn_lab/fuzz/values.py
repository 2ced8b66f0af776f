"""Hostile values: wrong types, numbers and arrays that replace one argument of a valid call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas
import torch
from scipy import sparse


class Hostile(NamedTuple):
    """A value with a label; ``keeps_result`` if a call that accepts it must return what the valid call returns."""

    label: str
    value: Any
    keeps_result: bool = False


def hostile_values(valid: Any) -> Iterator[Hostile]:
    """Yield new hostile values for an argument, those for arrays made from the valid value."""
    yield from (Hostile(label, make()) for label, make in VALUES.items())
    if isinstance(valid, int) and not isinstance(valid, bool):
        yield Hostile("NumPy integer", np.int64(valid), keeps_result=True)
    if isinstance(valid, list) and valid and isinstance(valid[0], np.ndarray):
        for hostile in hostile_values(valid[-1]):
            yield Hostile(f"last item: {hostile.label}", [*valid[:-1], hostile.value], hostile.keeps_result)
        yield Hostile("one item less", valid[:-1])
        yield Hostile("one item more", [*valid, valid[0]])
        return
    rows = _as_rows(valid)
    if rows is None:
        for label in ("empty", "NaN inside", "3-d", "strings"):
            yield Hostile(f"array: {label}", BROKEN_ARRAYS[label](np.ones((4, 2))))
        return
    for label, change in BROKEN_ARRAYS.items():
        yield Hostile(f"array: {label}", change(rows))
    for label, change in SAME_ARRAYS.items():
        yield Hostile(f"array: {label}", change(rows), keeps_result=rows.ndim == 2)


def _as_rows(valid: Any) -> Any:
    """Return a valid array argument as a dense array; None if the argument is not an array of numbers."""
    if sparse.issparse(valid):
        return valid.toarray()
    rows = None
    if isinstance(valid, np.ndarray) or (
        isinstance(valid, list) and valid and isinstance(valid[0], list | int | float)
    ):
        try:
            rows = np.asarray(valid)
        except ValueError:  # ragged
            return None
    return rows if rows is not None and rows.dtype.kind in "bifu" and 0 < rows.ndim < 3 and rows.size else None


SCALARS = """None; object(); {'a': 1}; {}; {1, 2}; []; [None, None]; ['a']; int; True; 1 + 2j; b'bytes'; ...; slice(2)
    np; nan; inf; -inf; -1; -10**9; 0; 1e308; -1e308; 5e-324; 10**30; 0.5; ''; np.float32('nan'); np.int8(-1)
    np.array(1.5); np.datetime64('2020-01-01'); (i for i in [1]); lambda *_: None"""
VALUES: dict[str, Callable[[], Any]] = {
    **{text: partial(eval, text, {"np": np, "nan": np.nan, "inf": np.inf}) for text in re.split(r";\s|\n\s*", SCALARS)},
    "text": lambda: "no such option",
}


def _with_value(rows: Any, value: float) -> Any:
    rows = np.array(rows, dtype=np.float64)
    rows.flat[rows.size - 1] = value
    return rows


def _masked(rows: Any) -> Any:
    mask = np.zeros(rows.shape, dtype=bool)
    mask.flat[mask.size - 1] = True
    return np.ma.masked_array(rows, mask)


def _with_last(rows: Any, last: Any) -> Any:
    return [*rows.tolist()[:-1], last]


def _broken_csr(rows: Any) -> Any:
    matrix = sparse.csr_matrix(np.atleast_2d(np.ones_like(rows, dtype=np.float64)))
    matrix.indices[0] = matrix.shape[1] + 7
    return matrix


def _frame(rows: Any, *, with_text: bool = False, with_missing: bool = False) -> Any:
    frame = pandas.DataFrame(np.atleast_2d(rows))
    if with_text:
        frame["text"] = "a"
    if with_missing:
        frame = frame.astype("Float64")
        frame.iloc[0, 0] = pandas.NA
    return frame


def _tensor(rows: Any) -> Any:
    return torch.as_tensor(np.ascontiguousarray(rows))


def _read_only(rows: Any) -> Any:
    rows = rows.copy()
    rows.flags.writeable = False
    return rows


def _strided(rows: Any) -> Any:
    wide = np.zeros((*rows.shape[:-1], 2 * rows.shape[-1]), dtype=rows.dtype)
    wide[..., ::2] = rows
    return wide[..., ::2]


BROKEN_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "empty": lambda rows: rows[:0],
    "0 columns": lambda rows: np.atleast_2d(rows)[:, :0],
    "3-d": lambda rows: np.zeros((2, 2, 2)),
    "0 rows and columns": lambda rows: np.empty((0, 0)),
    "wrong length": lambda rows: rows[:-1],
    "longer": lambda rows: np.concatenate([rows, rows[:3]]),
    "wrong width": lambda rows: np.concatenate([np.atleast_2d(rows)] * 2, axis=1),
    "1-d": lambda rows: rows.ravel(),
    "column": lambda rows: rows.reshape(-1, 1),
    **{f"{value} inside": partial(_with_value, value=value) for value in (np.inf, -np.inf, 1e308, -1, 0.5)},
    "NaN inside": lambda rows: _with_value(rows, np.nan),
    "all 1e200": lambda rows: np.full(rows.shape, 1e200),
    "objects": lambda rows: np.full(rows.shape, object(), dtype=object),
    "strings": lambda rows: np.full(rows.shape, "a"),
    "list of strings": lambda rows: ["a"] * len(rows),
    "bytes": lambda rows: np.full(rows.shape, b"a"),
    "datetime64": lambda rows: np.full(rows.shape, "2020-01-01", dtype="datetime64[D]"),
    "timedelta64": lambda rows: np.full(rows.shape, 3, dtype="timedelta64[s]"),
    "complex": lambda rows: rows + 1j,
    "masked": _masked,
    "structured": lambda rows: np.zeros(len(rows), dtype=[("a", "f8"), ("b", "i4")]),
    "ragged list": lambda rows: _with_last(rows, [1.0, *([0.0] * (rows.shape[-1] + 1))]),
    "list with None": lambda rows: _with_last(rows, None),
    "sparse with NaN": lambda rows: sparse.csr_matrix(np.atleast_2d(_with_value(rows, np.nan))),
    "broken CSR": _broken_csr,
    "memoryview": lambda rows: np.ascontiguousarray(rows).data,
    "float16": lambda rows: rows.astype(np.float16),
    "big-endian": lambda rows: rows.astype(rows.dtype.newbyteorder(">")),
    "column of text in a frame": lambda rows: _frame(rows, with_text=True),
    "frame with NA": lambda rows: _frame(rows, with_missing=True),
    "tensor with NaN": lambda rows: _tensor(_with_value(rows, np.nan)),
    "integer tensor": lambda rows: _tensor(rows).long(),
}
SAME_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "read-only": _read_only,
    "Fortran order": np.asfortranarray,
    "not contiguous": _strided,
    "negative strides": lambda rows: np.ascontiguousarray(rows[::-1])[::-1],
    "longdouble": lambda rows: rows.astype(np.longdouble),
    "lists": lambda rows: rows.tolist(),
    "tuples": lambda rows: tuple(map(tuple, rows)) if rows.ndim == 2 else tuple(rows.tolist()),
    **{
        make.__name__: lambda rows, make=make: make(np.atleast_2d(rows))  # type: ignore[misc]
        for make in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array, sparse.lil_matrix)
    },
    "frame": lambda rows: _frame(rows) if rows.ndim == 2 else rows,
    "tensor": _tensor,
    "objects of numbers": lambda rows: rows.astype(object),
}
