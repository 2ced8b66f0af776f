"""JSON values of requests as collections of inputs and outputs, and back. Values of a request are never repeated."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from scipy import sparse

from psilearn.app.serve.service_limits import Limits
from psilearn.app.tables import Table, TableModel
from psilearn.kernels import Graph
from psilearn.utils import Samples, to_json_value

MAX_DEPTH = 50  # lists inside each other
LARGE_BODY = 64 * 1024  # bytes; a larger body is parsed in a thread, while others are answered
CollectionKind = Literal["rows", "sparse rows", "texts", "numbers", "graphs", "objects", "spectra", "table rows"]


class ParsingRoute(APIRoute):
    """A route that does not delay the answers to other requests while it parses a large body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, whose request parses its body as ``_ParsingRequest`` does."""
        handle = super().get_route_handler()

        async def handle_parsed(request: Request) -> Response:
            return await handle(_ParsingRequest(request.scope, request.receive))

        return handle_parsed


class _ParsingRequest(Request):
    """A request whose large body is parsed in the one thread for this, so that few compete with the answers."""

    _thread = ThreadPoolExecutor(1, "psilearn-parse")

    async def json(self) -> Any:
        """Return the value of the body."""
        body = await self.body()
        if len(body) <= LARGE_BODY:
            return json.loads(body)
        return await asyncio.get_running_loop().run_in_executor(self._thread, _parse_in_turns, body)


def _parse_in_turns(body: bytes) -> Any:
    """Parse JSON; functions of Python let other threads take their turn, which one call of the parser does not."""
    return json.loads(body, parse_float=lambda text: float(text), parse_int=lambda text: int(text))


def check_size(size: int, limit: int, name: str) -> None:
    """Raise an error with status 413 if a request asks for more than the limit."""
    if size > limit:
        raise HTTPException(413, f"{name}: {size:,} is more than the limit of {limit:,}.")


def kind_of(collection: Samples) -> CollectionKind:
    """Return the kind of the objects of a collection, such as the training inputs of a model."""
    if sparse.issparse(collection):
        return "sparse rows"
    if hasattr(collection, "shape"):
        if len(collection.shape) == 2:
            return "rows"
        return "texts" if np.asarray(collection).dtype.kind in "US" else "numbers"
    items = list(collection)
    if items and all(isinstance(item, str) for item in items):
        return "texts"
    if items and all(isinstance(item, Graph) for item in items):
        return "graphs"
    if items and type(items[0]).__name__ == "Spectrum":
        return "spectra"
    is_number = [isinstance(item, int | float) and not isinstance(item, bool) for item in items]
    return "numbers" if items and all(is_number) else "objects"


def to_collection(values: Sequence[Any], like: Samples, name: str, limits: Limits) -> Samples:
    """Return JSON values as a collection of the form of another one; raise a ValueError that names a wrong value."""
    kind = kind_of(like)
    places = [f"{name}[{i}]" for i in range(len(values))]
    if kind == "rows":
        return np.array([_to_dense(*pair, like.shape[1]) for pair in zip(values, places, strict=True)])
    if kind == "sparse rows":
        return _to_csr(values, places, like.shape[1])
    if kind == "texts":
        return [_to_text(*pair, limits) for pair in zip(values, places, strict=True)]
    if kind == "graphs":
        return [_to_graph(*pair, limits) for pair in zip(values, places, strict=True)]
    if kind == "numbers":
        return _to_numbers(values, places, np.asarray(like).dtype)
    return [_to_object(*pair, like[0], limits) for pair in zip(values, places, strict=True)]


def to_json_items(collection: Samples) -> list[Any]:
    """Return the objects of a collection as JSON values: rows as lists, sparse rows as indices and values."""
    if sparse.issparse(collection):
        rows = collection.tocsr()
        parts = [slice(start, end) for start, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)]
        return [{"indices": rows.indices[part].tolist(), "values": rows.data[part].tolist()} for part in parts]
    if isinstance(collection, np.ndarray):
        return collection.tolist()
    graphs = [{"node_labels": g.node_labels, "edges": g.edges} if isinstance(g, Graph) else g for g in collection]
    return [to_json_value(item) for item in graphs]


def to_json_numbers(numbers: Any) -> list[float | None]:
    """Return numbers as JSON; None stands for ∞."""
    return [float(number) if math.isfinite(number) else None for number in numbers]


def table_of_rows(values: Sequence[Any], model: TableModel, name: str, limits: Limits) -> Table:
    """Return JSON objects with one value per input column, or per output column of candidates, as a table."""
    if name == "inputs":
        number_names, text_names = tuple(model.inputs.numbers.names), tuple(model.inputs.text_names)
    else:
        text_names = model.outputs.text_columns
        number_names = tuple(column for column in model.outputs.names if column not in text_names)
    names = (*number_names, *text_names)
    for i, value in enumerate(values):
        if not isinstance(value, dict):
            raise ValueError(f"{name}[{i}] must be an object with one value per column; got {_describe(value)}.")
        missing = [column for column in names if column not in value]
        if missing:
            raise ValueError(f"{name}[{i}] lacks the column {missing[0]!r}.")
    numbers = [
        [
            np.nan if value[c] is None else _to_number(value[c], f"{name}[{i}].{c}", "a number or null")
            for c in number_names
        ]
        for i, value in enumerate(values)
    ]
    texts = {
        column: [
            _to_text("" if value[column] is None else value[column], f"{name}[{i}].{column}", limits)
            for i, value in enumerate(values)
        ]
        for column in text_names
    }
    matrix = np.array(numbers, dtype=np.float64).reshape(len(values), len(number_names))
    return Table(Path(name), names, number_names, matrix, texts, np.arange(len(values)), "row")


def _to_number(value: Any, place: str, noun: str = "a number") -> float:
    """Return a JSON number as a finite float; integers may have any number of digits."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            if math.isfinite(value):
                return float(value)
        except OverflowError:
            pass
        raise ValueError(f"{place} must be a finite number of at most {np.finfo(float).max:.0e}.")
    raise ValueError(f"{place} must be {noun}; got {_describe(value)}.")


def _to_text(value: Any, place: str, limits: Limits) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{place} must be text; got {_describe(value)}.")
    check_size(len(value), limits.text, f"characters of {place}")
    return value


def _to_dense(value: Any, place: str, width: int) -> Any:
    if not isinstance(value, list):
        raise ValueError(f"{place} must be a list of {width} numbers; got {_describe(value)}.")
    if len(value) != width:
        raise ValueError(f"{place} has {len(value)} numbers; the model takes {width}.")
    return np.array([_to_number(number, place, f"a list of {width} numbers") for number in value], dtype=np.float64)


def _to_csr(values: Sequence[Any], places: Sequence[str], width: int) -> Any:
    """Return rows, as lists of all numbers or as indices and values, as a CSR matrix."""
    parts = [_to_sparse(*pair, width) for pair in zip(values, places, strict=True)]
    starts = np.cumsum([0, *(len(indices) for indices, _ in parts)])
    indices = np.concatenate([indices for indices, _ in parts]).astype(np.int32)
    return sparse.csr_matrix((np.concatenate([data for _, data in parts]), indices, starts), (len(parts), width))


def _to_sparse(value: Any, place: str, width: int) -> tuple[Any, Any]:
    """Return the columns and the values of a row in the order of the columns."""
    if not isinstance(value, dict):
        dense = _to_dense(value, place, width)
        columns = np.flatnonzero(dense)
        return columns, dense[columns]
    listed, numbers = value.get("indices"), value.get("values")
    if value.keys() != {"indices", "values"} or not isinstance(listed, list) or not isinstance(numbers, list):
        raise ValueError(f'{place} must be a list of {width} numbers, or an object with "indices" and "values".')
    if len(listed) != len(numbers):
        raise ValueError(f"{place} has {len(listed)} indices and {len(numbers)} values; it needs one of each.")
    is_valid = all(type(column) is int and 0 <= column < width for column in listed)
    if not is_valid or len(set(listed)) < len(listed):
        raise ValueError(f"{place}.indices must be different numbers from 0 to {width - 1}.")
    columns = np.array(listed, dtype=np.int64)
    order = np.argsort(columns)
    return columns[order], np.array([_to_number(number, f"{place}.values") for number in numbers])[order]


def _to_numbers(values: Sequence[Any], places: Sequence[str], dtype: Any) -> Any:
    """Return numbers as an array of a type; integers, such as rows of a kernel matrix, must be integers."""
    numbers = [_to_number(*pair) for pair in zip(values, places, strict=True)]
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        for number, place in zip(numbers, places, strict=True):
            if not number.is_integer() or not limits.min <= number < limits.max:
                raise ValueError(f"{place} must be an integer from {limits.min} to {limits.max}.")
    return np.array(numbers, dtype=dtype)


def _to_graph(value: Any, place: str, limits: Limits) -> Graph:
    """Return a graph, given as the labels of its nodes and its edges."""
    if not isinstance(value, dict) or not {"node_labels", "edges"} >= value.keys() >= {"node_labels"}:
        raise ValueError(f'{place} must be an object with "node_labels" and "edges"; got {_describe(value)}.')
    nodes, edges = value["node_labels"], value.get("edges", [])
    if not isinstance(nodes, list) or not isinstance(edges, list):
        raise ValueError(f'{place}: "node_labels" and "edges" must be lists.')
    check_size(len(nodes), limits.nodes, f"nodes of {place}")
    try:
        return Graph(_restore(nodes, [()], place, limits), _restore(edges, [((),)], place, limits))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from error


def _to_object(value: Any, place: str, like: Any, limits: Limits) -> Any:
    """Return a JSON value as an object such as that of the model; its kernel validates the rest."""
    if isinstance(like, list | tuple) and not isinstance(value, list):
        raise ValueError(f"{place} must be a list; got {_describe(value)}.")
    return _restore(value, like, place, limits)


def _restore(value: Any, like: Any, place: str, limits: Limits, depth: int = 0) -> Any:
    """Return a JSON value with tuples and integers where an object of the model has them."""
    if isinstance(value, str):
        return _to_text(value, place, limits)
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = _to_number(value, place)
        return int(number) if isinstance(like, int) and number.is_integer() else value
    if not isinstance(value, list):
        return value
    if depth == MAX_DEPTH:
        raise ValueError(f"{place} has more than {MAX_DEPTH} lists inside each other.")
    inner = like[0] if isinstance(like, list | tuple) and like else None
    items = [_restore(item, inner, place, limits, depth + 1) for item in value]
    return tuple(items) if isinstance(like, tuple) else items


def _describe(value: Any) -> str:
    """Return the JSON type of a value."""
    names = {list: "a list", dict: "an object", str: "text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
