"""Outputs that are rankings: one column of orders, or one column of ranks per item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from psilearn.app.tables.output_cells import check_names, get_output_numbers, to_dense
from psilearn.app.tables.table import Table, row_error
from psilearn.kernels import Kemeny, Kernel
from psilearn.rankings import from_orders, to_orders
from psilearn.utils import check_ranks


@dataclass(frozen=True)
class OrderColumn:
    """One column of orders such as ``b>c>a``, the preferred item first."""

    kind: ClassVar[str] = "orders"
    name: str
    items: tuple[str, ...]

    @classmethod
    def fit(cls, table: Table, name: str) -> OrderColumn:
        """Collect the items, which are those of the first row."""
        return cls(name, tuple(_ranks_of_orders(table, name, None)[1]))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the outputs."""
        return (self.name,)

    @property
    def width(self) -> int:
        """The number of columns of encoded outputs."""
        return len(self.items)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns that are read as texts."""
        return (self.name,)

    def extend(self, table: Table) -> Self:
        """Return the form with values that only another table has."""
        return self

    def encode(self, table: Table) -> Any:
        """Return the ranks (n, K)."""
        return _ranks_of_orders(table, self.name, self.items)[0]

    def decode(self, Y: Any) -> dict[str, list[str]]:
        """Return one column of orders."""
        return {self.name: to_orders(Y, self.items).tolist()}

    def default_kernel(self) -> Kernel:
        """Return the kernel of Kendall's τ."""
        return Kemeny()

    def describe(self) -> str:
        """Return a few words about the outputs."""
        return f"rankings of {len(self.items)} items in the column {self.name!r}"

    def check(self) -> None:
        """Raise a ValueError if items are repeated."""
        check_names(self.items)


@dataclass(frozen=True)
class RankColumns:
    """One column of ranks per item, 1 for the preferred item."""

    kind: ClassVar[str] = "ranks"
    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the outputs."""
        return self.names

    @property
    def width(self) -> int:
        """The number of columns of encoded outputs."""
        return len(self.names)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns that are read as texts."""
        return ()

    def extend(self, table: Table) -> Self:
        """Return the form with values that only another table has."""
        return self

    def encode(self, table: Table) -> Any:
        """Return the ranks (n, K)."""
        ranks = to_dense(get_output_numbers(table, self.names))
        for row in np.flatnonzero((np.sort(ranks, axis=1) != np.arange(1, ranks.shape[1] + 1)).any(axis=1))[:1]:
            try:
                check_ranks(ranks[row : row + 1], "the ranking", False)
            except ValueError as error:
                raise row_error(table, int(row), str(error).replace(" in row 0", "")) from error
        return ranks.astype(np.int64)

    def decode(self, Y: Any) -> dict[str, list[str]]:
        """Return one column of ranks per item."""
        ranks = np.asarray(Y).astype(np.int64)
        return {name: list(map(str, ranks[:, j].tolist())) for j, name in enumerate(self.names)}

    def default_kernel(self) -> Kernel:
        """Return the kernel of Kendall's τ."""
        return Kemeny()

    def describe(self) -> str:
        """Return a few words about the outputs."""
        return f"ranks of {len(self.names)} items"

    def check(self) -> None:
        """Raise a ValueError if columns are repeated."""
        check_names(self.names)


def _ranks_of_orders(table: Table, name: str, items: Sequence[str] | None) -> tuple[Any, list[str]]:
    cells = table.get_texts(name)
    try:
        return from_orders(cells, items)
    except ValueError:
        for row, cell in enumerate(cells):  # the row that is wrong
            try:
                items = from_orders([cell], items)[1]
            except ValueError as error:
                reason = str(error).replace("orders in row 0: ", "").partition(" Partial rankings")[0]
                raise row_error(table, row, f"the order {name!r}: {reason}") from error
        raise
