"""Outputs that are rows of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from psilearn.app.tables.input_columns import SPARSE_SHARE, apply_scale, find_scale, zero_share
from psilearn.app.tables.output_cells import check_names, get_output_numbers, to_dense
from psilearn.app.tables.table import Table, format_number
from psilearn.kernels import Gaussian, Kernel


@dataclass(frozen=True)
class NumberOutputs:
    """Columns of numbers, which an estimator sees as (y − center)/scale."""

    kind: ClassVar[str] = "numbers"
    names: tuple[str, ...]
    centers: tuple[float, ...]
    scales: tuple[float, ...]

    @classmethod
    def fit(cls, table: Table, names: Sequence[str], scale: str) -> NumberOutputs:
        """Learn means and standard deviations."""
        matrix = to_dense(get_output_numbers(table, names))
        if scale == "none" or (scale == "auto" and zero_share(matrix) >= SPARSE_SHARE):
            return cls(tuple(names), (0.0,) * len(names), (1.0,) * len(names))
        return cls(tuple(names), *find_scale(matrix))

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
        """Return the scaled numbers (n, d)."""
        return apply_scale(to_dense(get_output_numbers(table, self.names)), self.centers, self.scales)

    def decode(self, Y: Any) -> dict[str, list[str]]:
        """Return columns of numbers with 12 significant digits."""
        values = self.unscale(Y)
        return {name: list(map(format_number, values[:, j].tolist())) for j, name in enumerate(self.names)}

    def unscale(self, Y: Any) -> Any:
        """Return outputs in the units of the table."""
        return to_dense(Y) * np.array(self.scales) + np.array(self.centers)

    def default_kernel(self) -> Kernel:
        """Return a Gaussian kernel with the median width."""
        return Gaussian()

    def describe(self) -> str:
        """Return a few words about the outputs."""
        return f"{len(self.names)} column{'s' if len(self.names) > 1 else ''} of numbers"

    def check(self) -> None:
        """Raise a ValueError if the fields do not correspond to each other."""
        check_names(self.names)
        is_valid = len(self.names) == len(self.centers) == len(self.scales) and all(s > 0 for s in self.scales)
        if not is_valid:
            raise ValueError("the scales of the outputs do not fit their names")
