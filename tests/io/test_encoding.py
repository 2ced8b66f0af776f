"""Values as plain data and arrays, and back; only registered classes are constructed."""

import dataclasses
import json
import math
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from psilearn.io import Codec, codecs
from psilearn.io.codecs import ENTRY_POINTS, Registry
from psilearn.io.encoding import REGISTRY, Decoder, Encoder

RNG = np.random.default_rng(0)


class Scaler(BaseEstimator):
    def __init__(self, scale=1.0, base=None):
        self.scale = scale
        self.base = base


@dataclasses.dataclass(frozen=True)
class Pair:
    left: object
    right: object = None
    notes: object = "default"


class Word:
    def __init__(self, text):
        self.text = text


class LongWord(Word):
    pass


def new_registry(group=None):
    return Registry(REGISTRY._by_kind.values(), group)


@pytest.fixture
def registry():
    registry = new_registry()
    registry.register_class("tests.Scaler", Scaler)
    registry.register_class("tests.Pair", Pair, leave_out=["notes"])
    encode, decode = lambda words, *_: {"words": [w.text for w in words]}, lambda data, _: [*map(Word, data["words"])]
    registry.register(Codec("tests.words", (Word,), encode, decode, lists=True))
    return registry


def round_trip(value, registry=REGISTRY):
    encoder = Encoder(registry)
    text = json.dumps(encoder.encode(value, "value"), allow_nan=False)
    return Decoder(encoder.arrays, 10_000, registry).decode(json.loads(text))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(2**70),
        "text \udcff ∞",
        0.1,
        1e-320,
        math.inf,
        -math.inf,
        [],
        [1, [2.5, ()], (None, "a")],
        {"a": {"kind": "list", "id": 3}, "": []},
        np.float32,
        np.float64,
        float,
        np.dtype(np.float32),
        np.dtype(">i2"),
    ],
)
def test_plain_values(value):
    result = round_trip(value)
    assert result == value and type(result) is type(value)


def test_numbers_of_numpy_are_numbers():
    assert math.isnan(round_trip(np.float32("nan")))
    for value in (np.int8(3), np.bool_(True), np.float64(0.1), np.str_("a")):
        assert round_trip(value) == value and type(round_trip(value)) is type(value.item())


@pytest.mark.parametrize(
    "array",
    [
        RNG.standard_normal((3, 4)),
        np.zeros((0, 3)),
        np.array(1.5),
        RNG.standard_normal((3, 4)).T,
        RNG.standard_normal((2, 3, 4)).transpose(2, 1, 0),
        RNG.standard_normal((6, 4))[::2],
        np.array([1 + 2j, 3]),
        np.array([b"ab", b"c"]),
        np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
        np.array([True, False]),
        np.array([1.5, -2], dtype=np.float16),
        np.array(["a", "bc"]),
        np.array([["", "é\udcff"], ["∞", "abc"]]),
        np.array([""]),
        np.zeros((0, 2), dtype="<U3"),
        np.array(["a", "bc"], dtype=object),
        np.array([[None, 1], ["x", 2.5]], dtype=object),
        np.array([], dtype=object),
    ],
)
def test_arrays(array):
    result = round_trip(array)
    np.testing.assert_array_equal(result, array)
    assert result.dtype == array.dtype and result.shape == array.shape


def test_lists_in_arrays_of_objects_stay_lists():
    array = np.empty(2, dtype=object)
    array[0], array[1] = [1, 2], [3, 4]
    assert round_trip(array).tolist() == [[1, 2], [3, 4]] and round_trip(array).shape == (2,)


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array, sparse.coo_matrix, sparse.csc_array])
def test_sparse_matrices_are_csr(container):
    matrix = container(RNG.random((4, 5)) < 0.4)
    result = round_trip(matrix)
    assert result.format == "csr" and isinstance(result, sparse.sparray) == isinstance(matrix, sparse.sparray)
    assert result.dtype == matrix.dtype and (result != matrix).nnz == 0


@pytest.mark.parametrize(
    ("part", "values"), [("indices", [0, 9]), ("indices", [-1, 0]), ("indptr", [0, 2, 1]), ("indptr", [0, 1, 90])]
)
def test_sparse_indices_out_of_range_are_rejected(part, values):
    encoder = Encoder()
    data = encoder.encode(sparse.csr_matrix(np.eye(2)), "value")
    encoder.arrays[data[part]] = np.array(values, dtype=np.int32)
    with pytest.raises(ValueError):
        Decoder(encoder.arrays, 10_000).decode(data)


def test_tensors_become_arrays():
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(round_trip([torch.arange(3)])[0], np.arange(3))


def test_random_generators_are_left_out():
    assert round_trip([np.random.default_rng(0), np.random.RandomState(0)]) == [None, None]


def test_estimators_and_dataclasses(registry):
    base = Scaler(2)
    base.mean_ = np.arange(3)
    base._cache = base.__dict__.get
    result = round_trip(Pair(Scaler(math.inf, base), [base], notes=object()), registry)
    assert type(result) is Pair and result.notes == "default"
    assert result.left.scale == math.inf and result.left.base.scale == 2
    np.testing.assert_array_equal(result.left.base.mean_, np.arange(3))
    assert set(vars(result.left.base)) == {"scale", "base", "mean_"}


def test_an_object_that_occurs_twice_is_encoded_once(registry):
    array, words, scaler = np.arange(3), ["a", "b"], Scaler()
    value = [Pair(array, words), Pair(words, array), scaler, Scaler(base=scaler), (), (), Pair(3)]
    encoder = Encoder(registry)
    encoder.encode(value, "value")
    assert list(encoder.arrays) == ["array000"]
    first, second, one, other, *_ = round_trip(value, registry)
    assert first.left is second.right and first.right is second.left and other.base is one
    assert one is not round_trip(value, registry)[2]
    first, second, alike = round_trip([array, array, array.copy()])
    assert first is second and alike is not first


def test_lists_of_objects_have_a_codec_of_their_own(registry):
    words = [Word("a"), Word("b")]
    assert [word.text for word in round_trip(words, registry)] == ["a", "b"]
    in_array = round_trip(np.array(words, dtype=object), registry)
    assert in_array.dtype == object and in_array[1].text == "b"
    assert [word.text for word in round_trip({"x": (words[0],)}, registry)["x"]] == ["a"]
    for value in ([*words, "c"], [*words, LongWord("c")], words[0]):
        with pytest.raises(TypeError, match="Word"):
            round_trip(value, registry)


@pytest.mark.parametrize(
    "value", [object(), {1}, b"x", 1j, {1: 2}, int, BaseEstimator, print, Scaler(), [Pair(1)], np.datetime64("2020")]
)
def test_other_objects_cannot_be_encoded(value):
    with pytest.raises(TypeError, match=r"^model\.a .*cannot be saved without pickle"):
        Encoder(new_registry()).encode({"a": value}, "model")


def test_an_error_says_where_the_object_is(registry):
    with pytest.raises(TypeError, match=r"^model\.left\.base contains an object of type function"):
        Encoder(registry).encode(Pair(Scaler(base=lambda: 0)), "model")


@pytest.mark.parametrize(
    "data",
    [
        [1, 2],
        {},
        {"kind": 7},
        {"kind": ["list"]},
        {"kind": "list"},
        {"kind": "list", "items": 7},
        {"kind": "dict", "items": []},
        {"kind": "array", "rows": "absent"},
        {"kind": "array", "shape": [3], "items": {"kind": "list", "items": [1]}},
        {"kind": "csr", "container": "coo_matrix", "shape": [1, 1], "data": "", "indices": "", "indptr": ""},
        {"kind": "type", "name": "object"},
        {"kind": "float", "value": "__import__('os')"},
        {"kind": "reference", "id": 0},
        {"kind": "os.system", "command": "true"},
        {"kind": "tests.Scaler", "state": {"scale": 1}},
        {"kind": "tests.Scaler", "state": {"scale": 1, "base": None, "fit": 1}},
        {"kind": "tests.Scaler", "state": {"scale": 1, "base": None, "__class__": 1}},
        {"kind": "tests.Scaler", "state": []},
        {"kind": "tests.Pair", "state": {"middle": 1}},
        {"kind": "tests.Pair"},
    ],
)
def test_damaged_data_is_rejected(registry, data):
    with pytest.raises((ValueError, TypeError, LookupError, AttributeError)):
        Decoder({}, 10_000, registry).decode(data)


def test_names_are_registered_once(registry):
    with pytest.raises(ValueError, match=r"'tests\.Scaler': a codec is already registered"):
        registry.register_class("tests.Scaler", type("Other", (BaseEstimator,), {}))
    with pytest.raises(ValueError, match="Scaler: a codec is already"):
        registry.register_class("tests.Other", Scaler)
    with pytest.raises(TypeError, match="Word is neither an estimator nor a dataclass"):
        registry.register_class("tests.Word", Word)


class Plugin:
    """Stands for a module that registers codecs when it is imported."""

    def __init__(self, monkeypatch, registry, error=None):
        self.registry, self.error, self.n_imports = registry, error, 0
        entry_point = EntryPoint("tests", "tests.plugin", ENTRY_POINTS)
        groups = {ENTRY_POINTS: [entry_point]}
        monkeypatch.setattr(codecs, "entry_points", lambda group: groups[group])
        monkeypatch.setattr(EntryPoint, "load", lambda _: self.load())

    def load(self):
        self.n_imports += 1
        if self.error:
            raise self.error
        self.registry.register_class("tests.Scaler", Scaler)


def test_entry_points_are_imported_for_unknown_classes_and_kinds_only(monkeypatch, registry):
    encoder = Encoder(registry)
    data = encoder.encode([Scaler(3)], "value")
    registry = new_registry(ENTRY_POINTS)
    plugin = Plugin(monkeypatch, registry)
    round_trip([1, "a", {"b": (np.arange(3), [], np.float32(1))}], registry)
    assert plugin.n_imports == 0
    assert Decoder({}, 10_000, registry).decode(data)[0].scale == 3
    assert plugin.n_imports == 1
    registry = new_registry(ENTRY_POINTS)
    plugin = Plugin(monkeypatch, registry)
    assert round_trip([Scaler(3)], registry)[0].scale == 3
    with pytest.raises(TypeError, match="object"):
        round_trip(object(), registry)
    assert plugin.n_imports == 1


def test_without_entry_points_an_error_says_what_to_import(monkeypatch):
    monkeypatch.setattr(codecs, "entry_points", lambda group: [])
    registry = new_registry(ENTRY_POINTS)
    data = {"kind": "some.package.Scaler", "state": {}}
    with pytest.raises(ValueError, match=r"provides some\.package, or import some\.package\.codecs"):
        Decoder({}, 10_000, registry).decode(data)


def test_an_entry_point_that_cannot_be_imported_is_reported(monkeypatch):
    registry = new_registry(ENTRY_POINTS)
    Plugin(monkeypatch, registry, ImportError("No module named 'rdkit'"))
    message = r"tests\.plugin could not be imported: No module named 'rdkit'"
    with pytest.raises(ValueError, match=message):
        Decoder({}, 10_000, registry).decode({"kind": "tests.Scaler", "state": {}})
    with pytest.raises(TypeError, match=message):
        round_trip(Scaler(), registry)
