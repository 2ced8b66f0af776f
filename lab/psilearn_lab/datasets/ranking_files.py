"""Label-ranking data as CSV text: numeric features, and a ranking as columns of ranks or as one column of orders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from psilearn.rankings import from_orders
from psilearn.utils import check_ranks, validation
from psilearn_lab.datasets.csv_cells import CellTable, read_cells

_UNKNOWN = ("", "?", "na", "nan")  # cells of an unknown rank, in lower case


def read_ranks_csv(path: str | Path, ranks: str | Sequence[str] = "L", partial: bool = False) -> Bunch:
    r"""Read a CSV text in which each item has a column of ranks, 1 for the preferred item.

    The first line names the columns; all columns without ranks are numeric features. Empty lines are skipped.

    Parameters
    ----------
    path : str or Path
        The text file, compressed with gzip or not.
    ranks : str or sequence of str, default="L"
        The columns of ranks: a prefix that is followed by digits (``L1``, ``L2``, …), or their names.
    partial : bool, default=False
        Whether ranks may be tied or unknown: an empty cell, ``?``, ``NA`` or ``nan``.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``X`` : array of float64 of shape (n, d), the features.
        - ``Y`` : array of int64 of shape (n, K), the ranks; float64 with NaN for unknown ranks if ``partial`` is true.
        - ``feature_names`` : list of d str.
        - ``item_names`` : list of K str, the names of the columns of ranks.

    Raises
    ------
    ValueError
        If a row is not a ranking or a feature is not a finite number; the message names the line.

    See Also
    --------
    read_orders_csv : The same with one column of orders.
    load_label_ranking : Datasets in these formats.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psilearn_lab.datasets import read_ranks_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "toy.csv"
    ...     _ = path.write_text("size,L1,L2,L3\n0.5,3,1,2\n1.5,1,2,3\n")
    ...     toy = read_ranks_csv(path)
    >>> toy.X.tolist(), toy.Y.tolist(), toy.item_names
    ([[0.5], [1.5]], [[3, 1, 2], [1, 2, 3]], ['L1', 'L2', 'L3'])
    """
    validation.check_bool(partial, "partial")
    table = read_cells(validation.check_path(path, "path"))
    items = _find_rank_columns(table, ranks)
    Y = table.numbers(items)  # (n, K)
    wrong = ~np.isfinite(Y)
    hint = "."
    if partial:
        wrong &= np.array([[cell.lower() not in _UNKNOWN for cell in row] for row in table.columns(items)])
    else:
        hint = "; unknown ranks are allowed with partial=True."
    table.raise_for_cell(items, wrong, f"the rank in column {{name}} is {{cell!r}}; ranks are numbers from 1 on{hint}")
    try:
        check_ranks(Y, "the row", partial)
    except ValueError as error:
        raise table.with_line(error, "the row") from error
    return _make_bunch(table, Y if partial else Y.astype(np.int64), items, items)


def read_orders_csv(
    path: str | Path, order: str = "ranking", items: Sequence[str] | None = None, partial: bool = False
) -> Bunch:
    r"""Read a CSV text in which one column contains orders such as ``f>a>d``, the preferred item first.

    The first line names the columns; all other columns are numeric features. Empty lines are skipped.

    Parameters
    ----------
    path : str or Path
        The text file, compressed with gzip or not.
    order : str, default="ranking"
        The column of orders.
    items : sequence of K str, default=None
        The names of all items, in the order of the columns of ``Y``. By default the items are those named in the
        orders, sorted, with names that are numbers first and by value.
    partial : bool, default=False
        Whether orders may tie items, as in ``a>b=c``, and omit items.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``X`` : array of float64 of shape (n, d), the features.
        - ``Y`` : array of int64 of shape (n, K), the ranks of the items, 1 for the preferred item, and not the order
          itself; float64 with NaN for omitted items if ``partial`` is true.
        - ``feature_names`` : list of d str.
        - ``item_names`` : list of K str, the item of each column of ``Y``.

    Raises
    ------
    ValueError
        If an order is invalid or a feature is not a finite number; the message names the line.

    See Also
    --------
    read_ranks_csv : The same with one column of ranks per item.
    load_label_ranking : Datasets in these formats.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psilearn_lab.datasets import read_orders_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "toy.csv"
    ...     _ = path.write_text("size,ranking\n0.5,b>c>a\n1.5,a>b>c\n")
    ...     toy = read_orders_csv(path)
    >>> toy.X.tolist(), toy.Y.tolist(), toy.item_names
    ([[0.5], [1.5]], [[3, 1, 2], [1, 2, 3]], ['a', 'b', 'c'])
    """
    validation.check_bool(partial, "partial")
    table = read_cells(validation.check_path(path, "path"))
    if not isinstance(order, str):
        raise TypeError(f"order must be the name of a column; got {order!r:.80}.")
    table.require([order], "orders")
    try:
        Y, names = from_orders([cell for (cell,) in table.columns([order])], items, partial, "the order")
    except ValueError as error:
        raise table.with_line(error, "the order") from error
    return _make_bunch(table, Y, [order], names)


def _find_rank_columns(table: CellTable, ranks: str | Sequence[str]) -> list[str]:
    """Return the names of the columns of ranks, each of them once and in the table."""
    if not isinstance(ranks, str) and (not isinstance(ranks, Iterable) or getattr(ranks, "ndim", 1) != 1):
        raise TypeError(f"ranks must be the name of columns, or a list of names; got {ranks!r:.80}.")
    if isinstance(ranks, str):
        items = [name for name in table.names if re.fullmatch(re.escape(ranks) + "[0-9]+", name)]
        fault = f"{len(items)} columns are named {ranks!r} and a number"
    else:
        items = list(ranks)
        fault = f"ranks names {len(items)} columns"
        table.require(items, "ranks")
        if len(set(items)) < len(items):
            raise ValueError(f"ranks names a column more than once: {items!r}.")
    if len(items) < 2:
        raise table.header_error(f"{fault}, but a ranking needs at least 2 columns of ranks")
    return items


def _make_bunch(table: CellTable, Y: NDArray[Any], ranking_columns: list[str], items: list[str]) -> Bunch:
    """Return rankings with all columns but those of the ranking as features."""
    names = [name for name in table.names if name not in ranking_columns]
    X = table.numbers(names)
    table.raise_for_cell(
        names,
        ~np.isfinite(X),
        "the feature {name} is {cell!r}, but features must be finite numbers: fill in missing values, and make "
        "categories numeric, for example one-hot.",
    )
    return Bunch(X=X, Y=Y, feature_names=names, item_names=items)  # a Bunch has a method "items"
