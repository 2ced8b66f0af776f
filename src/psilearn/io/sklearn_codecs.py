"""Codecs of scikit-learn's preprocessing: parameters, fitted arrays, vocabularies and categories, without pickle.

One rule serves all classes: an estimator is encoded as its attributes and the version of scikit-learn. An attribute
that scikit-learn adds in a later version is kept; those of the table ``FITTED`` are required and checked, when a model
is saved as when it is loaded, because scikit-learn itself trusts them: an index beyond a matrix, a dtype of 1 GB per
number, n-grams of any length or a pipeline that contains itself 2^40 times must not get as far as ``transform``.

The module is imported when a model contains a class, or a file a kind, that the core does not know.
"""

from __future__ import annotations

import codecs
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from numbers import Real
from string import Formatter
from typing import Any

import numpy as np
import sklearn
from sklearn import preprocessing
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline

from psilearn.io.codecs import PLAIN, Codec, JSONObject
from psilearn.io.encoding import Decoder, Encoder, register

MAX_HASHES = 2**24  # columns of a HashingVectorizer: 128 MiB for a dense row
MAX_NGRAM = 32  # words or characters: the n-grams of a text are at most 32² / 2 times as large as the text
MAX_PATTERN = 1000  # characters of a token_pattern
MAX_PARTS = 10_000  # transformers within one, counted as often as they run
NOT_SAVED = {  # what concerns the machine, or only fit; the memory address of stop words that were checked
    *("n_jobs", "memory", "force_int_remainder_cols", "_metadata_request", "_stop_words_id", "_missing_indices"),
}
TYPES: dict[str, Any] = {np.dtype(code).name: np.dtype(code).type for code in "bhilBHILefd"} | {
    cls.__name__: cls for cls in (bool, int, float, object)
}
VECTORIZER = {"vocabulary_": dict, "fixed_vocabulary_": bool}
COLUMNS = {"sparse_output_": bool, "output_indices_": dict, "_transformer_to_input_indices": dict}
ENCODER = {"n_features_in_": int, "categories_": list, "_infrequent_enabled": bool}
FITTED: dict[type, dict[str, Any]] = {  # the type, or the shape: n inputs, p components; "?": None without a parameter
    preprocessing.StandardScaler: {"mean_": "n?with_mean", "var_": "n?with_std", "scale_": "n?with_std"},
    preprocessing.MinMaxScaler: dict.fromkeys(("min_", "scale_", "data_min_", "data_max_"), "n"),
    preprocessing.MaxAbsScaler: {"scale_": "n", "max_abs_": "n"},
    preprocessing.RobustScaler: {"center_": "n?with_centering", "scale_": "n?with_scaling"},
    preprocessing.Normalizer: {},
    preprocessing.FunctionTransformer: {},  # without a function: what "passthrough" becomes
    preprocessing.OneHotEncoder: {**ENCODER, "_n_features_outs": list, "_drop_idx_after_grouping": object},
    preprocessing.OrdinalEncoder: ENCODER,
    PCA: {"components_": "pn", "mean_": "n", "explained_variance_": "p"},
    TruncatedSVD: {"components_": "pn"},
    SimpleImputer: {"n_features_in_": int, "statistics_": np.ndarray, "_fit_dtype": np.dtype, "indicator_": object},
    MissingIndicator: {"features_": np.ndarray, "_n_features": int, "_precomputed": bool},
    TfidfTransformer: {},
    HashingVectorizer: {},
    CountVectorizer: VECTORIZER,
    TfidfVectorizer: {**VECTORIZER, "_tfidf": TfidfTransformer},
    ColumnTransformer: {"n_features_in_": int, "transformers_": list, "_columns": list, **COLUMNS},
    FeatureUnion: {},
    Pipeline: {},
}
if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8):
    FITTED[SimpleImputer]["_fill_dtype"] = np.dtype


class VersionWarning(InconsistentVersionWarning):  # type: ignore[misc]
    """Warns, as scikit-learn does when it unpickles, that an estimator was saved with another version."""

    def __str__(self) -> str:
        return (
            f"{self.estimator_name} was saved with scikit-learn {self.original_sklearn_version} and is loaded with "
            f"{self.current_sklearn_version}, which may transform differently: compare predictions and save the model "
            f"again, or install scikit-learn {self.original_sklearn_version}."
        )


def _encode(value: Any, encoder: Encoder, where: str) -> JSONObject:
    names = [name for name in vars(value) if name not in NOT_SAVED]
    state = {name: _simplify(getattr(value, name), f"{where}: {type(value).__name__}.{name}") for name in names}
    state = {name: _encode_attribute(item, encoder, f"{where}.{name}") for name, item in state.items()}
    _check(value)
    return {"version": sklearn.__version__, "state": state}


def _simplify(value: Any, where: str) -> Any:
    """Return a value with lists instead of pandas.Index; reject functions."""
    if callable(value) and not isinstance(value, type):
        raise TypeError(
            f"{where} contains the function {getattr(value, '__name__', type(value).__name__)}, which cannot be saved "
            f"without pickle. Use joblib.dump(model, file), and load only files that you trust."
        )
    if isinstance(value, list | tuple):
        return type(value)([_simplify(item, where) for item in value])
    return value.tolist() if hasattr(value, "to_numpy") else value


def _encode_attribute(value: Any, encoder: Encoder, where: str) -> Any:
    """Encode an attribute; types and dtypes of objects here, the rest by the core."""
    if isinstance(value, np.dtype) and value.hasobject:
        return {"kind": "sklearn.objects"}
    if isinstance(value, type):
        return {"kind": "sklearn.type", "name": value.__name__ if value in TYPES.values() else np.dtype(value).name}
    return encoder.encode(value, where)


def _decode(cls: Any, data: JSONObject, decoder: Decoder) -> Any:
    version = f"{data['version']:.20}"
    if version != sklearn.__version__:
        versions = {"current_sklearn_version": sklearn.__version__, "original_sklearn_version": version}
        warnings.warn(VersionWarning(estimator_name=cls.__name__, **versions), stacklevel=2)
    state = {name: decoder.decode(item) for name, item in dict(data["state"]).items()}
    parameters = {name: state.pop(name) for name in cls._get_param_names() if name in state}
    for name in state:  # neither a method nor what Python or scikit-learn looks for in any object
        if not re.fullmatch(r"[a-zA-Z]\w*_|_[a-z]\w*", name) or hasattr(cls, name):
            raise ValueError(f"scikit-learn {sklearn.__version__} has no {name!r:.80} of {cls.__name__}")
    try:
        estimator = cls(**parameters)
        vars(estimator).update(state)
        _check(estimator)
        if cls is preprocessing.OrdinalEncoder and "categories_" in state:
            missing = [(i, len(known) - 1) for i, known in enumerate(estimator.categories_) if _ends_with_nan(known)]
            estimator._missing_indices = dict(missing)
    except (AttributeError, ArithmeticError, LookupError, RecursionError, TypeError, re.error) as error:
        raise ValueError(
            f"{cls.__name__}, saved with scikit-learn {version}, cannot be used with scikit-learn "
            f"{sklearn.__version__}: {error}"
        ) from error
    return estimator


def _check(value: Any) -> None:
    """Raise an error for a state that no fit of scikit-learn leaves; AttributeError for a missing attribute."""
    cls, attributes = type(value), vars(value)
    if cls is not FeatureUnion:  # which validates no parameters
        value._validate_params()
    for name, item in attributes.items():
        if not VALID.get(name, lambda _: True)(item) or (callable(item) and name != "dtype"):
            raise ValueError(f"{cls.__name__} with {name}={item!r:.80} cannot be saved or loaded")
    fitted = set(attributes) - set(cls._get_param_names()) - NOT_SAVED - {"_sklearn_output_config"}
    sizes = {"n": attributes.get("n_features_in_")}
    for name, kind in FITTED[cls].items() if fitted else ():
        if not _has_kind(getattr(value, name), kind, sizes, attributes):
            raise ValueError(f"{name} of {cls.__name__} is {getattr(value, name)!r:.80}")
    checks = [check for classes, check in CHECKS if isinstance(value, classes)]
    if "feature_names_in_" in attributes and len(value.feature_names_in_) != value.n_features_in_:
        raise ValueError(f"{cls.__name__} has {len(value.feature_names_in_)} names of {value.n_features_in_} inputs")
    if (fitted or cls in (FeatureUnion, Pipeline)) and not all(check(value) for check in checks):
        raise ValueError(f"the attributes of {cls.__name__} do not fit each other")
    if sum(1 for _ in islice(_walk(value), MAX_PARTS + 1)) > MAX_PARTS:
        raise ValueError(f"{cls.__name__} consists of more than {MAX_PARTS} transformers")


def _has_kind(value: Any, kind: Any, sizes: dict[str, Any], parameters: dict[str, Any]) -> bool:
    """Return whether a value has a type, or is an array of numbers of a shape; the sizes of letters are remembered."""
    if not isinstance(kind, str):
        return isinstance(value, kind)
    shape, _, parameter = kind.partition("?")
    if value is None:
        return not parameters.get(parameter, True)
    is_array = isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.ndim == len(shape)
    return is_array and all(sizes.setdefault(*pair) == pair[1] for pair in zip(shape, value.shape, strict=True))


def _is_plain(value: Any) -> bool:
    """Return whether all cells of an array or list are texts, None or numbers, but not large ones of equal hashes."""
    is_typed = isinstance(value, np.ndarray) and not value.dtype.hasobject
    return is_typed or all(
        isinstance(item, (*PLAIN, np.generic)) and not (isinstance(item, int) and abs(item) >= 2**60) for item in value
    )


def _are_texts(value: Any) -> bool:
    return all(isinstance(item, str) for item in value)


def _are_indices(value: Any, least: int, most: int) -> bool:
    """Return whether all items of a list or vector are whole numbers from least to most."""
    return all(isinstance(i, int | np.integer) and not isinstance(i, bool) and least <= i <= most for i in value)


def _is_dtype(value: Any) -> bool:
    """Return whether a value is a dtype of numbers or objects: a text could be of any size."""
    is_dtype = isinstance(value, type | np.dtype) or (isinstance(value, str) and len(value) <= 10)
    return is_dtype and np.dtype(value).kind in "biufO" and np.dtype(value).subdtype is None


def _is_pattern(value: Any) -> bool:
    return value is not None and len(value) <= MAX_PATTERN and bool(re.compile(value))


def _is_name_format(value: Any) -> bool:
    """Return whether a format of column names inserts names as they are, without attributes and widths."""
    parts = [] if isinstance(value, bool) else Formatter().parse(value)
    return all(
        field in (None, "feature_name", "transformer_name") and not (spec or how) for _, field, spec, how in parts
    )


VALID: dict[str, Callable[[Any], bool]] = {  # what scikit-learn does not validate, or leaves without a bound
    "input": lambda value: value == "content",  # a loaded model reads no files
    "encoding": lambda value: bool(codecs.lookup(value)),
    "ngram_range": lambda value: len(value) == 2 and _are_indices(value, 1, MAX_NGRAM),
    "token_pattern": _is_pattern,
    "stop_words": lambda value: value in (None, "english") or _are_texts(value),
    "n_features": lambda value: value <= MAX_HASHES,
    "dtype": _is_dtype,
    "_fit_dtype": _is_dtype,
    "_fill_dtype": _is_dtype,
    "feature_range": lambda value: len(value) == 2 and all(isinstance(limit, Real) for limit in value),
    "transformer_weights": lambda value: value is None or all(isinstance(w, Real) for w in value.values()),
    "verbose_feature_names_out": _is_name_format,
    "feature_names_in_": lambda value: isinstance(value, np.ndarray) and value.ndim == 1 and _are_texts(value),
    "n_features_in_": lambda value: _are_indices([value], 0, sys.maxsize),
    "_sklearn_output_config": lambda value: value.get("transform") in ("default", "pandas", "polars"),
}


def _check_words(value: Any) -> bool:
    """Check that words have the numbers of the columns: they become indices of a matrix, which SciPy trusts."""
    words, n = value.vocabulary_, len(value.vocabulary_)
    return _are_texts(words) and _are_indices(words.values(), 0, n - 1) and len(set(words.values())) == n


def _check_word_weights(value: Any) -> bool:
    weights, n = value._tfidf, len(value.vocabulary_)
    return getattr(weights, "n_features_in_", n) == n and len(getattr(weights, "idf_", value.vocabulary_)) == n


def _check_weights(value: Any) -> bool:
    sizes = {"n": value.n_features_in_} if hasattr(value, "n_features_in_") else {}
    is_weighted = value.use_idf or hasattr(value, "idf_")  # scikit-learn uses them if they exist
    return not is_weighted or _has_kind(value.idf_, "n", sizes, {"": True})


def _check_imputer(value: Any) -> bool:
    n, mask = value.n_features_in_, value.indicator_
    has_mask = isinstance(mask, MissingIndicator) and mask._n_features == n and mask._precomputed
    return value.statistics_.shape == (n,) and _is_plain(value.statistics_) and (has_mask or not value.add_indicator)


def _check_indicator(value: Any) -> bool:
    return value.features_.dtype.kind == "i" and _are_indices(value.features_, 0, value._n_features - 1)


def _are_categories(value: Any) -> bool:
    """Return whether categories are different and, where scikit-learn searches them by bisection, sorted."""
    is_vector = isinstance(value, np.ndarray) and value.ndim == 1 and len(value) and value.dtype.kind in "biufOUS"
    if not is_vector or not _is_plain(value):
        return False
    if value.dtype.kind in "OU":
        return len(set(value.tolist())) == len(value)
    known = value[:-1] if _ends_with_nan(value) else value
    return bool((known[1:] > known[:-1]).all())


def _ends_with_nan(categories: Any) -> bool:
    return bool(categories[-1] != categories[-1])


def _check_encoder(value: Any) -> bool:
    """Check the categories, and that infrequent ones have one number, which follows those of the others."""
    categories = value.categories_
    if len(categories) != value.n_features_in_ or not all(map(_are_categories, categories)):
        return False
    for known, group, mapping in zip(categories, *_groups(value), strict=True):
        if group is None and mapping is None:
            continue
        n = len(known) - (isinstance(value, preprocessing.OrdinalEncoder) and _ends_with_nan(known))
        frequent = np.setdiff1d(np.arange(n), group)
        expected = np.full(n, len(frequent))
        expected[frequent] = np.arange(len(frequent))
        is_group = len(group) == n - len(frequent) > 0 and _are_indices(group, 0, n - 1)
        if not (is_group and mapping.dtype.kind == "i" and np.array_equal(mapping, expected)):
            return False
    return True


def _groups(value: Any) -> tuple[Any, Any]:
    """Return the infrequent categories of each column, and the new numbers of all categories."""
    if value._infrequent_enabled:
        return value._infrequent_indices, value._default_to_infrequent_mappings
    return ([None] * len(value.categories_),) * 2


def _check_one_hot(value: Any) -> bool:
    """Check that categories that are left out exist, and that the numbers of columns are what remains."""
    groups, _ = _groups(value)
    counts = [len(c) - (0 if g is None else len(g) - 1) for c, g in zip(value.categories_, groups, strict=True)]
    dropped = value._drop_idx_after_grouping
    dropped = [None] * len(counts) if dropped is None else list(dropped)
    left = [n - (drop is not None) for n, drop in zip(counts, dropped, strict=True)]
    are_known = all(drop is None or _are_indices([drop], 0, n - 1) for n, drop in zip(counts, dropped, strict=True))
    return are_known and value._n_features_outs == left


def _check_ordinal(value: Any) -> bool:
    """Check that the numbers for unknown and missing categories exist in the dtype."""
    numbers = [n for n in (value.unknown_value, value.encoded_missing_value) if n is not None and n == n]
    is_known = value.handle_unknown == "error" or value.unknown_value is not None
    return is_known and len(np.array(numbers, value.dtype)) == len(numbers)


def _is_transformer(value: Any) -> bool:
    if isinstance(value, Pipeline):
        return _is_step(value.steps[-1][1])
    return type(value) in FITTED or (isinstance(value, str) and value in ("passthrough", "drop"))


def _is_step(value: Any) -> bool:
    return value is None or (_is_transformer(value) and value != "drop")


def _check_steps(value: Any) -> bool:
    """Check the steps, of which the last one may also be a model, which ``load_model`` checks."""
    names, steps = zip(*value.steps, strict=True)
    return _are_texts(names) and all(map(_is_step, steps[:-1]))


def _check_union(value: Any) -> bool:
    names, transformers = zip(*value.transformer_list, strict=True)
    return _are_texts(names) and all(map(_is_transformer, transformers))


def _check_columns(value: Any) -> bool:
    """Check that transformers are those of the parameters, and that their columns exist."""
    n, indices = value.n_features_in_, value._transformer_to_input_indices
    names = {"remainder", *(name for name, _, _ in value.transformers)}
    for name, part, columns in value.transformers_:
        is_selected = _are_columns(columns, n) and (len(indices[name]) == 1 or not isinstance(columns, str))
        if name not in names or part == "passthrough" or not (_is_transformer(part) and is_selected):
            return False  # a fit replaces "passthrough"
    are_lists = len(value._columns) == len(value.transformers) and all(
        isinstance(numbers, list | np.ndarray) for numbers in indices.values()
    )
    return are_lists and all(_are_indices(numbers, 0, n - 1) for numbers in indices.values())


def _are_columns(value: Any, n: int) -> bool:
    """Return whether a value selects columns: one or several names or numbers, a mask or a slice."""
    if isinstance(value, slice):
        return _is_plain([value.start, value.stop]) and value.step in (None, 1)
    columns = [value] if isinstance(value, PLAIN) else value
    is_mask = len(columns) == n and all(isinstance(column, bool | np.bool_) for column in columns)
    return is_mask or _are_texts(columns) or _are_indices(columns, -n, n - 1)


def _walk(value: Any) -> Iterator[Any]:
    """Yield a transformer and all within it, as often as they occur."""
    yield value
    lists = [getattr(value, name, ()) for name in ("steps", "transformer_list", "transformers", "transformers_")]
    parts = [getattr(value, name, None) for name in ("remainder", "indicator_", "_tfidf")]
    for part in [*(item[1] for items in lists for item in items), *parts]:
        if type(part) in FITTED:
            yield from _walk(part)


CHECKS: list[tuple[type | tuple[type, ...], Callable[[Any], bool]]] = [
    (CountVectorizer, _check_words),
    (TfidfVectorizer, _check_word_weights),
    (TfidfTransformer, _check_weights),
    (SimpleImputer, _check_imputer),
    (MissingIndicator, _check_indicator),
    ((preprocessing.OneHotEncoder, preprocessing.OrdinalEncoder), _check_encoder),
    (preprocessing.OneHotEncoder, _check_one_hot),
    (preprocessing.OrdinalEncoder, _check_ordinal),
    (ColumnTransformer, _check_columns),
    (FeatureUnion, _check_union),
    (Pipeline, _check_steps),
]


def _decode_set(data: JSONObject, decoder: Decoder) -> set[str]:
    items = decoder.decode(data["items"])
    if not _are_texts(items):  # whole numbers could have the same hash
        raise ValueError(f"a set contains {items!r:.80}")
    return set(items)


def _encode_items(value: Any, encoder: Encoder, where: str) -> JSONObject:
    if isinstance(value, slice):
        return {"items": encoder.encode([value.start, value.stop, value.step], where)}
    if not _are_texts(value):
        raise TypeError(f"{where} contains a set of other things than texts, which cannot be saved without pickle.")
    return {"items": encoder.encode(sorted(value), where)}


register(Codec("set", (set, frozenset), _encode_items, _decode_set))
register(Codec("slice", (slice,), _encode_items, lambda data, decoder: slice(*decoder.decode(data["items"]))))
register(Codec("sklearn.type", (), _encode_attribute, lambda data, _: TYPES[data["name"]]))
register(Codec("sklearn.objects", (), _encode_attribute, lambda *_: np.dtype(object)))
for _cls in FITTED:
    _package = ".".join(part for part in _cls.__module__.split(".") if not part.startswith("_"))
    register(Codec(f"{_package}.{_cls.__name__}", (_cls,), _encode, partial(_decode, _cls)))
