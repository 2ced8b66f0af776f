"""Encode values as plain JSON data and arrays, and decode them, without pickle.

A finite number, a text, a bool or None is its own encoding. Any other value is encoded by a registered codec as a JSON
object that names the codec in ``kind``. Arrays are collected separately. Decoding constructs only registered classes
and does not import or call other names in the data.

An object that occurs several times is encoded once, and referred to by its number. The decoder limits how much
references may repeat and nest, so that later work on the value (a repr, a hash, a validation) is bounded as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from psilearn._backend import tensor_to_numpy
from psilearn._utils.array_files import NAMES, check_shape, pack_texts, unpack_texts
from psilearn._utils.samples import make_csr
from psilearn.io.codecs import ENTRY_POINTS, PLAIN, Codec, JSONObject, Registry

NOT_SHARED = (*PLAIN, tuple, dict, type, np.dtype)  # values without an identity that must be kept
FLOAT_TYPES = {cls.__name__: cls for cls in (float, np.float32, np.float64)}
MAX_DEPTH = 100  # of nested values
MAX_EXPANSION = 16  # values and bytes of arrays, counted as often as they occur, per byte of the file
MAX_COLUMNS = 2**31 - 1  # of CSR matrices, whose columns take no space
STORED_AS_BYTES = "cSmM"  # complex numbers, bytes and dates have no tensors
MAX_WIDENING = 64  # bytes of an array of texts of one width per byte of the texts and their ends


class Encoder:
    """Encodes values. An object that occurs several times is encoded once and decoded as one object."""

    def __init__(self, registry: Registry | None = None) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._registry = REGISTRY if registry is None else registry
        self._encoded: dict[int, JSONObject] = {}
        self._alive: list[Any] = []  # so that no two objects share an id
        self._n_shared = 0
        self._depth = 0

    def encode(self, value: Any, where: str) -> Any:
        """Return plain data from which :class:`Decoder` restores the value."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, PLAIN) and not (isinstance(value, float) and not math.isfinite(value)):
            return value
        if id(value) in self._encoded:
            return self._refer(self._encoded[id(value)])
        if self._depth == MAX_DEPTH:
            raise TypeError(f"{where:.200} is nested more than {MAX_DEPTH} levels deep, which cannot be saved.")
        self._depth += 1
        data = self._encode(tensor_to_numpy(value), where)
        self._depth -= 1
        if not isinstance(value, NOT_SHARED):
            self._encoded[id(value)] = data
            self._alive.append(value)
        return data

    def put(self, array: NDArray[Any]) -> str:
        """Add an array of numbers to those of the file, and return its name; :meth:`encode` takes any array."""
        if array.dtype.newbyteorder("<") not in NAMES:
            raise TypeError(f"An array of dtype {array.dtype} is not one of numbers: use Encoder.encode.")
        name = f"array{len(self.arrays):03d}"
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
    """Decodes what :class:`Encoder` encoded, from the arrays of a file of ``n_bytes`` bytes."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], n_bytes: int, registry: Registry | None = None) -> None:
        self.n_bytes = n_bytes
        self._arrays = dict(arrays)
        self._registry = REGISTRY if registry is None else registry
        self._shared: dict[int, tuple[Any, int, int]] = {}  # by number: a value, its size and its height
        self._size = 0  # of all values so far, repeated ones counted as often as they occur
        self._depth = 0  # of the value that is being decoded
        self._deepest = 0  # depth that was reached within it

    def array(self, name: str) -> NDArray[Any]:
        """Return an array of the file, which is used only once, so that memory is bounded by the size of the file."""
        if name not in self._arrays:
            raise ValueError(f"{name!r:.80} is not an array of the file, or is used twice")
        array = self._arrays.pop(name)
        self._count(array.nbytes)
        return array

    def decode(self, data: Any) -> Any:
        """Return the value; raise a ValueError, TypeError or LookupError for data that does not describe one."""
        self._count(1)
        if isinstance(data, PLAIN):
            return data
        if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
            raise ValueError(f"{data!r:.80} does not name the kind of a value")
        if data["kind"] == "reference":
            value, size, height = self._shared[data["id"]]
            self._count(size)
            self._reach(self._depth + height)
            return value
        before, deepest = self._size, self._deepest
        self._depth += 1
        self._deepest = 0
        self._reach(self._depth)
        value = self._registry.get(data["kind"]).decode(data, self)
        self._depth -= 1
        if "id" in data:
            self._shared[data["id"]] = value, self._size - before, self._deepest - self._depth
        self._deepest = max(deepest, self._deepest)
        return value

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > MAX_EXPANSION * self.n_bytes:
            raise ValueError(f"its references repeat its values to more than {MAX_EXPANSION} times its size")

    def _reach(self, depth: int) -> None:
        self._deepest = max(self._deepest, depth)
        if depth > MAX_DEPTH:
            raise ValueError(f"its values are nested more than {MAX_DEPTH} levels deep")


def _encode_array(value: NDArray[Any], encoder: Encoder, where: str) -> JSONObject:
    if value.dtype.kind == "U":
        content, ends = pack_texts(value.ravel().tolist())
        if value.nbytes <= MAX_WIDENING * (content.nbytes + ends.nbytes):
            stored = {"texts": encoder.put(content), "ends": encoder.put(ends)}
            return {**stored, "width": value.itemsize // 4, "shape": list(value.shape)}
        value = value.astype(object)  # one text is much longer than the others
    if value.dtype.hasobject:
        return {"shape": list(value.shape), "items": encoder.encode(value.ravel().tolist(), where)}
    if value.dtype.kind in STORED_AS_BYTES:
        rows = np.ascontiguousarray(value).reshape(-1).view(np.uint8).reshape(*value.shape, value.itemsize)
        return {"bytes": encoder.put(rows), "dtype": value.dtype.str}
    is_transposed = value.flags.f_contiguous and not value.flags.c_contiguous
    return {"columns": encoder.put(value.T)} if is_transposed else {"rows": encoder.put(value)}


def _decode_array(data: JSONObject, decoder: Decoder) -> NDArray[Any]:
    if "rows" in data:
        return decoder.array(data["rows"])
    if "columns" in data:
        return decoder.array(data["columns"]).T
    if "bytes" in data:
        return _decode_bytes(decoder.array(data["bytes"]), np.dtype(str(data["dtype"])))
    shape = check_shape(data["shape"], decoder.n_bytes)
    if "texts" in data:
        texts, ends = decoder.array(data["texts"]), decoder.array(data["ends"])
        return _decode_texts(texts, ends, data["width"]).reshape(shape)
    items = decoder.decode(data["items"])
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):  # assigning all at once would turn lists into rows
        array[i] = item
    return array.reshape(shape)


def _decode_bytes(rows: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    is_stored = dtype.kind in STORED_AS_BYTES and dtype.itemsize > 0
    if not is_stored or rows.dtype != np.uint8 or rows.shape[-1:] != (dtype.itemsize,):
        raise ValueError(f"bytes of shape {rows.shape} are not values of dtype {dtype}")
    return np.ascontiguousarray(rows).view(dtype)[..., 0]


def _decode_texts(content: NDArray[Any], ends: NDArray[Any], width: Any) -> NDArray[Any]:
    """Return texts as an array of this width, which must be proportional to their bytes."""
    texts = unpack_texts(content, ends)
    longest = max(map(len, texts), default=1)
    if type(width) is not int or width < max(1, longest):
        raise ValueError(f"texts of {longest} characters have the width {width!r:.30}")
    if 4 * width * len(texts) > MAX_WIDENING * (content.nbytes + ends.nbytes):
        raise ValueError(f"{len(texts)} texts of the width {width} need more than {MAX_WIDENING} times their bytes")
    return np.array(texts, dtype=f"<U{width}")


def _encode_csr(value: Any, encoder: Encoder, where: str) -> JSONObject:
    value = value.tocsr()
    parts = {name: encoder.put(getattr(value, name)) for name in ("data", "indices", "indptr")}
    return {"container": type(value).__name__, "shape": list(value.shape), **parts}


def _decode_csr(data: JSONObject, decoder: Decoder) -> Any:
    container = {"csr_array": sparse.csr_array, "csr_matrix": sparse.csr_matrix}[data["container"]]
    parts = tuple(decoder.array(data[name]) for name in ("data", "indices", "indptr"))
    if max(data["shape"]) > MAX_COLUMNS:
        raise ValueError(f"a CSR matrix has the shape {data['shape']!r:.80}")
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


def _decode_dtype(data: JSONObject, _: Decoder) -> np.dtype[Any]:
    dtype = np.dtype(str(data["name"]))
    if dtype.kind not in "biufc":
        raise ValueError(f"{dtype} is not a dtype of numbers")
    return dtype


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
            _decode_dtype,
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
