"""A fitted estimator with the description of its columns, saved in one file without pickle."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from psilearn import IOKR, KDE, OEL
from psilearn.app.tables.input_columns import Description, InputColumns
from psilearn.app.tables.output_forms import OutputForm
from psilearn.app.tables.table import Table
from psilearn.app.tables.table_formats import read_table
from psilearn.io import load_with_notes, save_model
from psilearn.utils import convert_read_errors, require_regular_file, validation

KIND: Literal["psilearn.app.tables"] = "psilearn.app.tables"


class _Notes(Description):
    """The notes of a saved model: all but the estimator."""

    kind: Literal["psilearn.app.tables"] = KIND
    inputs: InputColumns
    outputs: OutputForm
    candidates: Literal["known", "near", "all"] | None
    training: dict[str, Any]


@dataclass(frozen=True)
class TableModel:
    """A model that predicts from tables, as ``psilearn fit`` and ``psilearn search`` save it.

    Parameters
    ----------
    model : IOKR, KDE or OEL
        The fitted estimator.
    inputs : InputColumns
        The columns that are inputs, and how they become numbers.
    outputs : OutputForm
        The columns that are outputs, and their form.
    candidates : {"known", "near", "all"} or None, default=None
        The candidates of predictions. None is the default of the estimator.
    training : mapping, default={}
        JSON data about the training: rows, parameters, scores.

    See Also
    --------
    read_table : Read a table.
    psilearn.load_model : Load the estimator alone.

    Examples
    --------
    >>> from psilearn.app.tables import TableModel
    >>> TableModel.load("model").predict("new.csv")  # doctest: +SKIP
    {'tags': ['red;round', 'blue']}
    """

    model: IOKR | KDE | OEL
    inputs: InputColumns
    outputs: OutputForm
    candidates: str | None = None
    training: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text_columns(self) -> set[str]:
        """The columns that are read as texts."""
        return {*self.inputs.text_names, *self.outputs.text_columns}

    def predict(self, table: Table | str | Path) -> dict[str, list[str]]:
        """Predict the outputs of each row of a table.

        Parameters
        ----------
        table : Table, str or Path
            The table or its file. It has the input columns; other columns are ignored.

        Returns
        -------
        dict of str to list of n str
            The output columns, in the form of the training table.

        See Also
        --------
        load : Load a model.

        Examples
        --------
        >>> from psilearn.app.tables import TableModel
        >>> TableModel.load("model").predict("new.csv")  # doctest: +SKIP
        {'tags': ['red;round', 'blue']}
        """
        if not isinstance(table, Table):
            table = read_table(validation.check_path(table, "table"), self.text_columns)
        X = self.inputs.transform(table)
        return self.outputs.decode(self.model.predict(X, self.candidates))

    def was_trained_on(self, path: str | Path) -> bool:
        """Return whether a file has the contents of the training file.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        bool
            Whether the contents are equal. False for models that were saved without the SHA-256 of the training file.

        See Also
        --------
        predict : Predict the outputs of the rows.

        Examples
        --------
        >>> from psilearn.app.tables import TableModel
        >>> TableModel.load("model").was_trained_on("train.csv")  # doctest: +SKIP
        True
        """
        recorded = self.training.get("file_sha256")
        return recorded is not None and recorded == file_sha256(validation.check_path(path, "path"))

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save the model in one file, as :func:`psilearn.save_model` does.

        Parameters
        ----------
        path : str or Path
            The file.
        overwrite : bool, default=False
            Whether a saved model at this path is replaced.

        See Also
        --------
        load : Load a model.

        Examples
        --------
        >>> from psilearn.app.tables import TableModel
        >>> TableModel.load("model").save("copy")  # doctest: +SKIP
        """
        notes = _Notes.model_validate(self, from_attributes=True)
        save_model(self.model, path, notes=notes.model_dump(mode="json"), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> TableModel:
        """Load a model; files of unknown origin are safe to load.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        TableModel
            The model.

        Raises
        ------
        ValueError
            If the file is not a model of tables, or is damaged.

        See Also
        --------
        save : Save a model.

        Examples
        --------
        >>> from psilearn.app.tables import TableModel
        >>> TableModel.load("model").outputs.names  # doctest: +SKIP
        ('tags',)
        """
        return cls.from_notes(path, *load_with_notes(path))

    @classmethod
    def from_notes(cls, path: str | Path, model: IOKR | KDE | OEL, notes: dict[str, Any]) -> TableModel:
        """Return a model of tables from what :func:`psilearn.io.load_with_notes` returned for a file.

        Parameters
        ----------
        path : str or Path
            The file, named in errors.
        model : IOKR, KDE or OEL
            The estimator.
        notes : dict
            The notes.

        Returns
        -------
        TableModel
            The model.

        Raises
        ------
        ValueError
            If the notes are not those of a model of tables.

        See Also
        --------
        load : Load a model.

        Examples
        --------
        >>> from psilearn.app.tables import TableModel
        >>> TableModel.from_notes("model", *load_with_notes("model"))  # doctest: +SKIP
        """
        if notes.get("kind") != KIND:
            raise ValueError(f"{path} is not a model of tables: save one with psilearn fit or psilearn search.")
        try:
            parts = _Notes.model_validate(notes)
            shape = getattr(model.candidates_.outputs, "shape", ())
            if getattr(model, "n_features_in_", None) != parts.inputs.width or shape[1:] != (parts.outputs.width,):
                raise ValueError("its columns do not fit its estimator")
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            message = f"{path} is not a model of tables that can be used: {type(error).__name__}: {error}"
            raise ValueError(message) from error
        return cls(model, parts.inputs, parts.outputs, parts.candidates, parts.training)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a table file in hexadecimal digits."""
    require_regular_file(path, "a table")
    with convert_read_errors(path, "a table"), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
