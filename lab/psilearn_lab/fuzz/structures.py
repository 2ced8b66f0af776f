"""Random changes of JSON values and of .npy arrays that keep the file readable, so that later checks are reached."""

from __future__ import annotations

import io
import json
import re
from random import Random
from tokenize import TokenError
from typing import Any

import numpy as np

from psilearn.utils import read_array

VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        3,
        7,
        0.5,
        -0.5,
        1e308,
        2**31,
        2**53,
        -(2**63),
        10**30,
        "",
        "a",
        "float",
        "\0",
        [],
        {},
    ),
    *(
        [0],
        [1, 2],
        [-1, -1],
        [2**62, 2],
        [[]],
        {"kind": "list", "items": []},
        {"kind": "reference", "id": 0},
        "array000.npy",
    ),
    *({"kind": "float", "value": "nan"}, {"kind": "float", "value": "inf"}, "1e309", "median", "../x", ["x"] * 3),
    *({"kind": "type", "name": "float"}, {"kind": "dtype", "name": "O"}, {"kind": "dtype", "name": "<f4"}),
    *(
        {"kind": "array", "file": "array000.npy"},
        {"kind": "array", "shape": [1], "items": {"kind": "list", "items": [1]}},
    ),
)
DTYPES = ("<f8", "<f4", ">f8", "<i8", "<i4", "|u1", "|b1", "|i1", "<c16", "<U3", "|S2", "<M8[s]", "|V8", "|O", "<f2")
_SHAPE = re.compile(rb"'shape': \([^)]*\)")
_DTYPE = re.compile(rb"'descr': '[^']*'")


def mutate_json(content: bytes, rng: Random) -> bytes:
    """Replace, remove or exchange nodes of a JSON value; return the content if it is not JSON."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return content
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        places = list(_iter_places(value))
        if not places:
            break
        _change_place(rng, places)
    return json.dumps(value).encode()


def _iter_places(value: Any) -> Any:
    """Yield each container with each of its keys."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _iter_places(value[key])


def _change_place(rng: Random, places: list[tuple[Any, Any]]) -> None:
    (container, key), (other, other_key) = rng.choice(places), rng.choice(places)
    action = rng.randrange(6)
    if action == 0:
        del container[key]
    elif action == 1:
        container[key] = json.loads(json.dumps(other[other_key]))
    elif action == 2 and isinstance(container, list):
        container.append(json.loads(json.dumps(container[key])))
    elif action == 3 and isinstance(container[key], int | float) and not isinstance(container[key], bool):
        container[key] = rng.choice((-container[key], container[key] + 1, container[key] - 1, container[key] * 1000))
    else:
        container[key] = json.loads(json.dumps(rng.choice(VALUES)))


def mutate_array(content: bytes, rng: Random) -> bytes:
    """Change the values, the shape or the dtype of an .npy file; return the content if it is not one."""
    action = rng.randrange(5)
    if action == 0:
        shape = ", ".join(
            str(rng.choice((0, 1, 2, 3, 7, 30, 2**20, 2**40, 2**62, -1))) for _ in range(rng.randrange(4))
        )
        return _SHAPE.sub(f"'shape': ({shape},)".replace("(,)", "()").encode(), content, count=1)
    if action == 1:
        return _DTYPE.sub(f"'descr': '{rng.choice(DTYPES)}'".encode(), content, count=1)
    try:
        return write_array(_change_array(read_array(content), rng, action))
    except (ValueError, EOFError, TypeError, OverflowError, SyntaxError, TokenError):
        return content  # a previous change has damaged it, or its values have no other dtype


def _change_array(array: Any, rng: Random, action: int) -> Any:
    """Return an array with some other values, another dtype or another shape."""
    if action == 2 and array.size:
        array = array.copy()
        for _ in range(rng.choice((1, 1, 3))):
            value: Any = rng.choice((0, 1, -1, 2, 2**31 - 1, 2**40, -(2**62), np.nan, np.inf, 1e300, 1e-300, 255))
            with np.errstate(all="ignore"):
                array.flat[rng.randrange(array.size)] = np.asarray(value).astype(array.dtype)
        return array
    if action == 3:
        with np.errstate(all="ignore"):
            return array.astype(rng.choice(("<f8", "<f4", ">f8", "<i8", "<i4", "|u1", "|b1", "<U3")))
    return (
        rng.choice((array[:-1], array[::-1], array.T, array.ravel(), array[None], array[:0]))
        if array.ndim
        else array[None]
    )


def write_array(array: Any) -> bytes:
    """Return an array as the content of an .npy file."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)
    return stream.getvalue()
