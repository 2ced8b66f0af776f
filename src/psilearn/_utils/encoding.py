"""Encode values as plain JSON data and arrays, and decode them, without pickle.

A finite number, a text, a bool or None is its own encoding. Any other value is encoded by a registered codec
(:mod:`psilearn._utils.codec_registry`) as a JSON object that names the codec in ``kind``. Arrays are collected
separately and written to files. Decoding constructs only registered classes and does not import or call other names
in the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from psilearn._backend import tensor_to_numpy
from psilearn._utils.codec_registry import ENTRY_POINTS, PLAIN, Codec, JSONObject, Registry
from psilearn._utils.csr_parts import make_csr

NOT_SHARED = (*PLAIN, tuple, dict, type, np.dtype)  # values without an identity that must be kept
FLOAT_TYPES = {cls.__name__: cls for cls in (float, np.float32, np.float64)}


class Encoder:
    """Encodes values. An object that occurs several times is encoded once and decoded as one object."""

    def __init__(self, registry: Registry | None = None) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}  # by the name of their file
        self._registry = REGISTRY if registry is None else registry
        self._encoded: dict[int, JSONObject] = {}
        self._alive: list[Any] = []  # so that no two objects share an id
        self._n_shared = 0

    def encode(self, value: Any, where: str) -> Any:
        """Return plain data from which :class:`Decoder` restores the value."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, PLAIN) and not (isinstance(value, float) and not math.isfinite(value)):
            return value
        if id(value) in self._encoded:
            return self._refer(self._encoded[id(value)])
        data = self._encode(tensor_to_numpy(value), where)
        if not isinstance(value, NOT_SHARED):
            self._encoded[id(value)] = data
            self._alive.append(value)
        return data

    def put(self, array: NDArray[Any]) -> str:
        """Add an array to those that are written to files, and return the name of its file."""
        name = f"array{len(self.arrays):03d}.npy"
        self.arrays[name] = array
        return name

    def _encode(self, value: Any, where: str) -> JSONObject:
        codec = self._find_list_codec(value) or self._registry.find(type(value))
        if codec is None:
            raise TypeError(
                f"{where} contains an object of type {type(value).__name__}, which cannot be saved without pickle. "
                f"Numbers, texts, arrays, CSR matrices, lists, tuples and dicts of these, kernels of psilearn.kernels "
                f"without functions, scikit-learn's preprocessing, and classes that an installed package registers as "
                f"{ENTRY_POINTS} can be saved.{self._registry.import_errors} "
                f"For anything else, use joblib.dump(model, file), and load only files that you trust."
            )
        return {"kind": codec.kind, **codec.encode(value, self, where)}

    def _find_list_codec(self, value: Any) -> Codec | None:
        """Return a codec for a list whose items all have the same class."""
        if not isinstance(value, list | tuple) or not value:
            return None
        cls = type(value[0])
        codec = self._registry.find(cls, lists=True)
        return codec if codec is not None and all(type(item) is cls for item in value) else None

    def _refer(self, data: JSONObject) -> JSONObject:
        if "id" not in data:
            data["id"] = self._n_shared
            self._n_shared += 1
        return {"kind": "reference", "id": data["id"]}


class Decoder:
    """Decodes what :class:`Encoder` encoded; ``load_array`` returns the array of a file by its name."""

    def __init__(self, load_array: Callable[[str], NDArray[Any]], registry: Registry | None = None) -> None:
        self._load_array = load_array
        self._loaded: set[str] = set()
        self._registry = REGISTRY if registry is None else registry
        self._shared: dict[int, Any] = {}

    def array(self, name: str) -> NDArray[Any]:
        """Return the array of a file, which is loaded only once, so that memory is bounded by the size of the files."""
        if name in self._loaded:
            raise ValueError(f"{name!r:.80} is the file of two arrays")
        self._loaded.add(name)
        return self._load_array(name)

    def decode(self, data: Any) -> Any:
        """Return the value; raise a ValueError, TypeError or LookupError for data that does not describe one."""
        if isinstance(data, PLAIN):
            return data
        if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
            raise ValueError(f"{data!r:.80} does not name the kind of a value")
        if data["kind"] == "reference":
            return self._shared[data["id"]]
        value = self._registry.get(data["kind"]).decode(data, self)
        if "id" in data:
            self._shared[data["id"]] = value
        return value


def _encode_array(value: NDArray[Any], encoder: Encoder, where: str) -> JSONObject:
    if not value.dtype.hasobject:
        return {"file": encoder.put(value)}
    return {"shape": list(value.shape), "items": encoder.encode(value.ravel().tolist(), where)}


def _decode_array(data: JSONObject, decoder: Decoder) -> NDArray[Any]:
    if "file" in data:
        return decoder.array(data["file"])
    items = decoder.decode(data["items"])
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):  # assigning all at once would turn lists into rows
        array[i] = item
    return array.reshape(data["shape"])


def _encode_csr(value: Any, encoder: Encoder, where: str) -> JSONObject:
    value = value.tocsr()
    parts = {name: encoder.put(getattr(value, name)) for name in ("data", "indices", "indptr")}
    return {"container": type(value).__name__, "shape": list(value.shape), **parts}


def _decode_csr(data: JSONObject, decoder: Decoder) -> Any:
    container = {"csr_array": sparse.csr_array, "csr_matrix": sparse.csr_matrix}[data["container"]]
    parts = tuple(decoder.array(data[name]) for name in ("data", "indices", "indptr"))
    return make_csr(container, parts, data["shape"])


def _encode_items(value: Any, encoder: Encoder, where: str) -> JSONObject:
    return {"items": [encoder.encode(item, where) for item in value]}


def _decode_items(data: JSONObject, decoder: Decoder) -> list[Any]:
    return [decoder.decode(item) for item in data["items"]]


def _encode_dict(value: dict[str, Any], encoder: Encoder, where: str) -> JSONObject:
    if not all(isinstance(key, str) for key in value):
        raise TypeError(f"{where} contains a dict whose keys are not texts, which cannot be saved without pickle.")
    return {"items": {key: encoder.encode(item, f"{where}.{key}") for key, item in value.items()}}


def _encode_type(value: type, encoder: Encoder, where: str) -> JSONObject:
    if FLOAT_TYPES.get(value.__name__) is not value:
        raise TypeError(f"{where} contains the class {value.__name__}, which cannot be saved without pickle.")
    return {"name": value.__name__}


REGISTRY = Registry(
    [
        Codec("float", (float,), lambda value, *_: {"value": repr(value)}, lambda data, _: float(data["value"])),
        Codec("array", (np.ndarray,), _encode_array, _decode_array, subclasses=True),
        Codec("csr", (sparse.spmatrix, sparse.sparray), _encode_csr, _decode_csr, subclasses=True),
        Codec("list", (list,), _encode_items, _decode_items, subclasses=True),
        Codec("tuple", (tuple,), _encode_items, lambda *args: tuple(_decode_items(*args)), subclasses=True),
        Codec(
            "dict",
            (dict,),
            _encode_dict,
            lambda data, decoder: {key: decoder.decode(item) for key, item in data["items"].items()},
            subclasses=True,
        ),
        Codec("type", (type,), _encode_type, lambda data, _: FLOAT_TYPES[data["name"]]),
        Codec(
            "dtype",
            (np.dtype,),
            lambda value, *_: {"name": value.str},
            lambda data, _: np.dtype(str(data["name"])),
            subclasses=True,
        ),
        Codec(  # random choices were made by fit
            "random state", (np.random.RandomState, np.random.Generator), lambda *_: {}, lambda *_: None
        ),
    ],
    group=ENTRY_POINTS,
)
register = REGISTRY.register
register_class = REGISTRY.register_class
