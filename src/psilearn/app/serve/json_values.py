"""JSON values of requests as collections of inputs and outputs, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy import sparse

from psilearn.kernels import Graph
from psilearn.utils import Samples, to_json_value

MAX_DEPTH = 50  # lists inside each other
CollectionKind = Literal["rows", "sparse rows", "texts", "numbers", "graphs", "objects", "spectra", "table rows"]


def kind_of(collection: Samples) -> CollectionKind:
    """Return the kind of the objects of a collection, such as the training inputs of a model."""
    if sparse.issparse(collection):
        return "sparse rows"
    if hasattr(collection, "shape"):
        if len(collection.shape) == 2:
            return "rows"
        return "texts" if np.asarray(collection).dtype.kind in "US" else "numbers"
    return _kind_of_items(list(collection))


def _kind_of_items(items: list[Any]) -> CollectionKind:
    if items and all(isinstance(item, str) for item in items):
        return "texts"
    if items and all(isinstance(item, Graph) for item in items):
        return "graphs"
    if items and type(items[0]).__name__ == "Spectrum":
        return "spectra"
    is_number = [isinstance(item, int | float) and not isinstance(item, bool) for item in items]
    return "numbers" if items and all(is_number) else "objects"


def to_collection(values: Sequence[Any], like: Samples, name: str) -> Samples:
    """Return JSON values as a collection of the form of another one; raise a ValueError that names a wrong value."""
    kind = kind_of(like)
    if kind in ("rows", "sparse rows"):
        width = int(like.shape[1])
        if kind == "rows":
            return np.array([_to_dense(value, width, f"{name}[{i}]") for i, value in enumerate(values)])
        return _to_csr(values, width, name)
    if kind == "texts":
        return _check_all(values, str, "text", name)
    if kind == "graphs":
        return [_to_graph(value, f"{name}[{i}]") for i, value in enumerate(values)]
    if kind == "numbers":
        return _to_numbers(values, np.asarray(like).dtype, name)
    return [_to_object(value, like[0], f"{name}[{i}]") for i, value in enumerate(values)]


def to_json_items(collection: Samples) -> list[Any]:
    """Return the objects of a collection as JSON values: rows as lists, sparse rows as indices and values."""
    if sparse.issparse(collection):
        rows = collection.tocsr()
        return [_sparse_row(rows, i) for i in range(rows.shape[0])]
    return [_from_graph(item) if isinstance(item, Graph) else to_json_value(item) for item in collection]


def to_json_numbers(numbers: Any) -> list[float | None]:
    """Return numbers as JSON; None stands for ∞."""
    return [float(number) if math.isfinite(number) else None for number in numbers]


def _sparse_row(rows: Any, i: int) -> dict[str, list[Any]]:
    part = slice(rows.indptr[i], rows.indptr[i + 1])
    return {"indices": rows.indices[part].tolist(), "values": rows.data[part].tolist()}


def _to_dense(value: Any, width: int, name: str) -> Any:
    if not isinstance(value, list) or not all(_is_number(number) for number in value):
        raise ValueError(f"{name} must be a list of {width} numbers; got {describe(value)}.")
    if len(value) != width:
        raise ValueError(f"{name} has {len(value)} numbers; the model takes {width}.")
    return np.array(value, dtype=np.float64)


def _to_csr(values: Sequence[Any], width: int, name: str) -> Any:
    """Return rows, as lists of all numbers or as indices and values, as a CSR matrix."""
    parts = [_to_sparse(value, width, f"{name}[{i}]") for i, value in enumerate(values)]
    starts = np.cumsum([0, *(len(indices) for indices, _ in parts)])
    indices = np.concatenate([indices for indices, _ in parts]).astype(np.int32)
    data = np.concatenate([numbers for _, numbers in parts])
    return sparse.csr_matrix((data, indices, starts), shape=(len(parts), width))


def _to_sparse(value: Any, width: int, name: str) -> tuple[Any, Any]:
    """Return the columns and the values of a row in the order of the columns."""
    if not isinstance(value, dict):
        dense = _to_dense(value, width, name)
        columns = np.flatnonzero(dense)
        return columns, dense[columns]
    columns, numbers = np.array(value["indices"], dtype=np.int64), np.array(value["values"], dtype=np.float64)
    if len(columns) != len(numbers):
        raise ValueError(f"{name} has {len(columns)} indices and {len(numbers)} values; it needs one of each.")
    if len(columns) and (columns.min() < 0 or columns.max() >= width or len(np.unique(columns)) < len(columns)):
        raise ValueError(f"{name}.indices must be different numbers from 0 to {width - 1}.")
    order = np.argsort(columns)
    return columns[order], numbers[order]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _to_numbers(values: Sequence[Any], dtype: Any, name: str) -> Any:
    """Return numbers as an array of a type; integers, such as rows of a kernel matrix, must be integers."""
    numbers = _check_all(values, (int, float), "a number", name)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        for i, number in enumerate(numbers):
            if number != int(number) or not limits.min <= number <= limits.max:
                raise ValueError(f"{name}[{i}] must be an integer from {limits.min} to {limits.max}.")
    return np.array(numbers, dtype=dtype)


def _check_all(values: Sequence[Any], types: Any, noun: str, name: str) -> list[Any]:
    for i, value in enumerate(values):
        if not isinstance(value, types) or isinstance(value, bool):
            raise ValueError(f"{name}[{i}] must be {noun}; got {describe(value)}.")
    return list(values)


def _to_graph(value: Any, name: str) -> Graph:
    """Return a graph, given as the labels of its nodes and its edges."""
    if not isinstance(value, dict) or not {"node_labels", "edges"} >= value.keys() >= {"node_labels"}:
        raise ValueError(f'{name} must be an object with "node_labels" and "edges"; got {describe(value)}.')
    labels = _restore_tuples(value["node_labels"], [()], name)
    edges = _restore_tuples(value.get("edges", []), [((),)], name)
    try:
        return Graph(labels, edges)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from error


def _from_graph(graph: Graph) -> dict[str, Any]:
    return {"node_labels": to_json_value(graph.node_labels), "edges": to_json_value(graph.edges)}


def _to_object(value: Any, like: Any, name: str) -> Any:
    """Return a JSON value as an object such as that of the model; its kernel validates the rest."""
    if isinstance(like, list | tuple) and not isinstance(value, list):
        raise ValueError(f"{name} must be a list; got {describe(value)}.")
    return _restore_tuples(value, like, name)


def _restore_tuples(value: Any, like: Any, name: str, depth: int = 0) -> Any:
    """Return a JSON value with tuples and integers where an object of the model has them."""
    if not isinstance(value, list):
        is_whole = isinstance(like, int) and isinstance(value, float) and value.is_integer()
        return int(value) if is_whole else value  # the schema reads all numbers as floats
    if depth == MAX_DEPTH:
        raise ValueError(f"{name} has more than {MAX_DEPTH} lists inside each other.")
    inner = like[0] if isinstance(like, list | tuple) and like else None
    items = [_restore_tuples(item, inner, name, depth + 1) for item in value]
    return tuple(items) if isinstance(like, tuple) else items


def describe(value: Any) -> str:
    """Return the JSON type of a value; values of a request are neither logged nor repeated."""
    names = {list: "a list", dict: "an object", str: "text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
