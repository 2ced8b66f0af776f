"""Outputs from the columns of a table, and predictions as columns in the same form."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

from psilearn.app.tables.class_form import ClassColumns
from psilearn.app.tables.json_fields import from_json, to_json
from psilearn.app.tables.label_forms import LabelColumns, TagColumn
from psilearn.app.tables.number_form import NumberOutputs
from psilearn.app.tables.ranking_forms import OrderColumn, RankColumns
from psilearn.app.tables.table import Table
from psilearn.kernels import Kernel


class OutputForm(Protocol):
    """The form of the outputs: which columns they are, and how they become the outputs of an estimator."""

    kind: ClassVar[str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the outputs."""

    @property
    def width(self) -> int:
        """The number of columns of encoded outputs."""

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns that are read as texts."""

    def extend(self, table: Table) -> Self:
        """Return the form with values that only another table has."""

    def encode(self, table: Table) -> Any:
        """Return the outputs of a table as an estimator takes them; they may have values not seen in training."""

    def decode(self, Y: Any) -> dict[str, list[str]]:
        """Return predictions as columns of cells."""

    def default_kernel(self) -> Kernel:
        """Return the output kernel that corresponds to the usual metric."""

    def describe(self) -> str:
        """Return a few words about the outputs."""

    def check(self) -> None:
        """Raise a ValueError if the fields do not correspond to each other."""


_FORMS: dict[str, type[Any]] = {
    form.kind: form for form in (LabelColumns, TagColumn, OrderColumn, RankColumns, ClassColumns, NumberOutputs)
}
KINDS = tuple(_FORMS)


def form_to_json(form: OutputForm) -> dict[str, Any]:
    """Return the form of outputs as JSON data."""
    return {"kind": form.kind, "fields": to_json(form)}


def form_from_json(data: Any) -> OutputForm:
    """Return the form of outputs; raise an error for other data."""
    form: OutputForm = from_json(_FORMS[data["kind"]], data["fields"])
    form.check()
    return form
