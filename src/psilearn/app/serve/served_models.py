"""Models of the service: what they take and return, and their predictions as JSON values."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psilearn import computing
from psilearn.app.serve import json_values
from psilearn.app.serve.service_limits import Limits
from psilearn.app.tables import TableModel
from psilearn.io import load_with_notes
from psilearn.utils import Samples, n_samples

TABLE_KIND = "psilearn.app.tables"  # in the notes of table models
MAX_NAME = 100  # characters
MAX_NEAR = 100  # label sets near a candidate that are compared in its place, at most
OBJECT_WORK, LETTERS = 20, 10  # cost of a comparison of objects, and letters that cost as much as one of rows


@dataclass(frozen=True)
class ServedModel:
    """A fitted model with the name by which requests choose it.

    Parameters
    ----------
    name : str
        The name.
    model : IOKR, KDE or OEL
        The fitted model.
    notes : dict, default={}
        Its notes, as :func:`psilearn.io.read_notes` returns them. With ``{"image_width": w}``, the page shows inputs
        and outputs as parts of an image with w pixels per line.
    table : TableModel, default=None
        The table model to which the model belongs: its inputs and outputs are then rows by the names of columns.

    See Also
    --------
    create_app : Make a service of models.
    psilearn.load_model : Load a saved model.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import IOKR
    >>> from psilearn.app.serve import ServedModel
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> ServedModel("line", IOKR().fit(X, X)).input_kind
    'rows'
    """

    name: str
    model: Any
    notes: dict[str, Any] = field(default_factory=dict)
    table: TableModel | None = None

    @classmethod
    def load(cls, path: str | Path, device: str | None = None) -> ServedModel:
        """Load a saved model, named as its file without the suffix.

        Parameters
        ----------
        path : str or Path
            The file.
        device : {"cpu", "cuda"} or None, default=None
            The torch device that computes. None keeps the device of the saved model.

        Returns
        -------
        ServedModel
            The model.

        Raises
        ------
        ValueError
            If there is no such device, or the model is a pipeline.

        See Also
        --------
        psilearn.save_model : Save a fitted model.

        Examples
        --------
        >>> from psilearn.app.serve import ServedModel
        >>> ServedModel.load("model")  # doctest: +SKIP
        """
        check_device(device)
        model, notes = load_with_notes(path)
        if hasattr(model, "steps"):
            raise ValueError(f"{path} is a pipeline: serve its last step, or a model of a table, from psilearn fit.")
        table = TableModel.from_notes(path, model, notes) if notes.get("kind") == TABLE_KIND else None
        if device is not None:
            model.set_params(device=device)
        return cls(Path(path).stem[:MAX_NAME], model, notes, table)

    @property
    def inputs(self) -> Samples:
        """The training inputs or landmarks that the model keeps."""
        return self.model.regression_.anchors

    @property
    def input_kind(self) -> json_values.CollectionKind:
        """The kind of its inputs."""
        return json_values.kind_of(self.inputs) if self.table is None else "table rows"

    @property
    def output_kind(self) -> json_values.CollectionKind:
        """The kind of its outputs."""
        return json_values.kind_of(self.model.candidates_.outputs) if self.table is None else "table rows"

    @property
    def is_calibrated(self) -> bool:
        """Whether it predicts conformal sets."""
        return hasattr(self.model, "calibration_scores_")

    def describe(self) -> dict[str, Any]:
        """Return what a client has to know to use the model, as JSON data.

        Returns
        -------
        dict
            The name, the estimator, the kinds and sizes of inputs and outputs, and the notes.

        See Also
        --------
        psilearn.io.read_notes : The notes of a saved model.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKR
        >>> from psilearn.app.serve import ServedModel
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> ServedModel("line", IOKR().fit(X, X)).describe()["n_candidates"]
        20
        """
        outputs = self.model.candidates_.outputs
        return {
            "name": self.name,
            "estimator": type(self.model).__name__,
            "input_kind": self.input_kind,
            "input_width": _width_of(self.inputs),
            "output_kind": self.output_kind,
            "output_width": _width_of(outputs),
            "n_candidates": n_samples(outputs),
            "n_components": int(self.model.n_components_),
            "calibrated": self.is_calibrated,
            "image_width": _image_width(self.notes),
            "columns": None if self.table is None else list(self.table.inputs.names),
            "text_columns": None if self.table is None else list(self.table.inputs.text_names),
        }


@dataclass(frozen=True)
class Operation:
    """One kind of prediction with its parameters. Requests with equal operations can be computed together."""

    served: ServedModel = field(compare=False)
    limits: Limits = field(compare=False)
    name: str  # of the operation: predict, topk, sets or embed
    model_name: str
    number: float = 0  # k, or the coverage
    limit: int = 0  # members of a set that are returned
    candidates: str | None = None
    listed: tuple[Any, ...] | None = field(default=None, compare=False)  # candidates of this request only
    request: int = 0  # differs for requests with listed candidates

    def __call__(self, values: Sequence[Any]) -> list[bytes]:
        """Return one JSON text per input."""
        model, table = self.served.model, self.served.table
        if table is None:
            X = json_values.to_collection(values, self.served.inputs, "inputs", self.limits)
        else:
            X = table.inputs.transform(json_values.table_of_rows(values, table, "inputs", self.limits))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the size of a set says the same
            results = self._predict(model, X)
        texts, n_bytes = [], 0
        for result in results:
            texts.append(json.dumps(result, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode())
            n_bytes += len(texts[-1])
            json_values.check_size(n_bytes, self.limits.answer_bytes, "bytes of the answer")
        return texts

    def count_work(self, inputs: Sequence[Any]) -> tuple[int, int]:
        """Return the number of comparisons per input, and that of listed candidates with the known outputs."""
        outputs = self.served.model.candidates_.outputs
        n_known, width = n_samples(outputs), _width_of(outputs) or 1
        n_candidates = n_known if self.listed is None else len(self.listed)
        per_candidate = width if self.name == "sets" else 1
        per_candidate *= min(width, MAX_NEAR) if self.candidates in ("near", "all") else 1
        per_input = n_candidates * per_candidate + n_samples(self.served.inputs) * _weigh(inputs, self.served.inputs)
        return per_input, 0 if self.listed is None else n_known * len(self.listed) * _weigh(self.listed, outputs)

    def _predict(self, model: Any, X: Samples) -> Iterator[Any]:
        """Yield one JSON value per input; outputs become JSON one input after the other."""
        if self.name == "embed":
            yield from (json_values.to_json_numbers(row) for row in model.embed(X))
        elif self.name == "predict":
            yield from self._encode(model.predict(X, self._get_candidates()))
        elif self.name == "topk":
            top = model.predict_topk(X, int(self.number), self._get_candidates())
            for outputs, distances in zip(top.outputs, top.distances, strict=True):
                kept = json_values.to_json_numbers(distances[: n_samples(outputs)])
                yield {"outputs": self._encode(outputs), "distances": kept}
        else:
            sets = model.predict_set(X, float(self.number), self._get_candidates())
            for size, outputs, distances in zip(sets.sizes, sets.outputs, sets.distances, strict=True):
                kept = json_values.to_json_numbers(distances[: self.limit])
                yield {"size": int(size), "outputs": self._encode(outputs[: self.limit]), "distances": kept}

    def _get_candidates(self) -> Any:
        """Return the candidates as the library takes them."""
        model, table = self.served.model, self.served.table
        if self.listed is None:
            return table.candidates if self.candidates is None and table is not None else self.candidates
        if table is None:
            return json_values.to_collection(self.listed, model.candidates_.outputs, "candidates", self.limits)
        return table.outputs.encode(json_values.table_of_rows(self.listed, table, "candidates", self.limits))

    def _encode(self, outputs: Samples) -> list[Any]:
        """Return outputs as JSON values: those of table models as rows, in the form of the training table."""
        if self.served.table is None:
            return json_values.to_json_items(outputs)
        columns = self.served.table.outputs.decode(outputs)
        return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def check_device(device: str | None) -> None:
    """Raise an error if there is no such device, before a model is loaded."""
    with computing(device=device):
        pass


def _weigh(values: Sequence[Any], like: Samples) -> int:
    """Return what a comparison with a value costs relative to one of numbers or rows."""
    if hasattr(like, "shape") and like.dtype.kind in "biuf":
        return 1
    return OBJECT_WORK + sum(len(value) for value in values if isinstance(value, str)) // (LETTERS * len(values))


def _width_of(collection: Samples) -> int | None:
    shape: tuple[int, ...] = getattr(collection, "shape", ())
    return int(shape[1]) if len(shape) == 2 else None


def _image_width(notes: dict[str, Any]) -> int | None:
    width = notes.get("image_width")
    return width if isinstance(width, int) and 0 < width <= 64 else None
