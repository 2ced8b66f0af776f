"""Saved pipelines: scikit-learn's preprocessing transforms as before, bit for bit, and loading executes nothing."""

import json
import pickle
import subprocess
import sys
import warnings
from contextlib import suppress

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from psilearn import IOKR, KDE, OEL, OELCV, load_model, save_model
from psilearn.io import sklearn_codecs
from psilearn.io.encoding import Decoder, Encoder
from psilearn.kernels import Gaussian, Linear

RNG = np.random.default_rng(0)
N = 24
ROWS = RNG.standard_normal((N, 5)) * [1, 10, 100, 0.1, 0] + [0, 5, 0, 0, 3]
SPARSE = sparse.random_array((N, 6), density=0.5, format="csr", rng=RNG)
GAPS = np.where(RNG.random(ROWS.shape) < 0.2, np.nan, ROWS)
COUNTS = RNG.integers(0, 3, (N, 4))
TEXTS = [" ".join(RNG.choice(["Kernel", "méthodes", "of", "the", "x1", "output", "wordy"], 6)) for _ in range(N)]
COLORS = RNG.choice(["red", "green", "blue", "rare", "unique"], (N, 3), p=[0.4, 0.3, 0.2, 0.07, 0.03]).astype(object)
HOLES = COLORS.copy()
HOLES[::5, 0] = None
NAN_HOLES = COLORS.copy()
NAN_HOLES[::5, 1] = np.nan
MIXED = np.array([[i % 3, ("a", "b")[i % 2]] for i in range(N)], dtype=object)
OUTPUTS = RNG.random((N, 3))
UNKNOWN = {"handle_unknown": "use_encoded_value", "unknown_value": -1}

PLAIN_STEPS = [
    (StandardScaler(), ROWS),
    (StandardScaler(with_mean=False), SPARSE),
    (StandardScaler(with_std=False), ROWS.astype(np.float32)),
    (StandardScaler(with_mean=False, with_std=False), sparse.csr_matrix(SPARSE)),
    (MinMaxScaler(), ROWS),
    (MinMaxScaler((-2, 3), clip=True), ROWS),
    (MaxAbsScaler(), SPARSE),
    (MaxAbsScaler(), ROWS),
    (RobustScaler(), ROWS),
    (RobustScaler(with_centering=False, quantile_range=(10.0, 80.0), unit_variance=True), SPARSE),
    (RobustScaler(with_scaling=False), ROWS),
    (Normalizer("l1"), SPARSE),
    (Normalizer(), ROWS),
    (PCA(2), ROWS),
    (PCA(0.9, whiten=True, svd_solver="full"), ROWS),
    (PCA(3, svd_solver="randomized", random_state=np.random.RandomState(0)), ROWS.astype(np.float32)),
    (PCA(2, svd_solver="arpack", random_state=0), SPARSE),
    (TruncatedSVD(2, random_state=0), SPARSE),
    (TruncatedSVD(3, algorithm="arpack", random_state=0), ROWS),
    (SimpleImputer(), GAPS),
    (SimpleImputer(strategy="median", add_indicator=True), GAPS),
    (SimpleImputer(strategy="constant", fill_value=-1.5, keep_empty_features=True), GAPS),
    (SimpleImputer(missing_values=0, strategy="most_frequent", add_indicator=True), COUNTS),
    (SimpleImputer(missing_values=1), sparse.csr_matrix(COUNTS.astype(float))),
    (make_pipeline(SimpleImputer(missing_values=None, strategy="most_frequent"), OneHotEncoder()), HOLES),
    (
        make_pipeline(SimpleImputer(strategy="constant", fill_value="gap", add_indicator=True), OneHotEncoder()),
        NAN_HOLES,
    ),
    (OneHotEncoder(), COLORS),
    (OneHotEncoder(), MIXED),
    (OneHotEncoder(sparse_output=False, dtype=np.float32, drop="first"), HOLES),
    (OneHotEncoder(drop="if_binary"), np.column_stack([COUNTS, COUNTS[:, 0] > 0])),
    (OneHotEncoder(drop=[0, 1, 0, 2], dtype=np.int32), COUNTS),
    (OneHotEncoder(min_frequency=4, handle_unknown="infrequent_if_exist"), COLORS),
    (OneHotEncoder(max_categories=3, handle_unknown="ignore", drop="first"), NAN_HOLES),
    (OneHotEncoder(categories=[["red", "blue", "green", "rare", "unique", "other"]] * 3), COLORS),
    (OneHotEncoder(), np.array(COLORS, dtype="U6")),
    (OneHotEncoder(), np.array(COLORS, dtype="S6")),
    (OneHotEncoder(handle_unknown="ignore"), np.where(COUNTS == 2, np.nan, COUNTS)),
    (OrdinalEncoder(), COLORS),
    (OrdinalEncoder(**UNKNOWN, dtype=np.int16, encoded_missing_value=-2), NAN_HOLES),
    (OrdinalEncoder(min_frequency=0.2, encoded_missing_value=-1), NAN_HOLES),
    (OrdinalEncoder(max_categories=2, dtype="float32", **UNKNOWN), COUNTS),
    (TfidfTransformer(), COUNTS),
    (TfidfTransformer(use_idf=False, norm="l1", sublinear_tf=True), sparse.csr_matrix(COUNTS)),
    (CountVectorizer(), TEXTS),
    (CountVectorizer(ngram_range=(1, 3), min_df=2, max_features=20, dtype=np.float32), TEXTS),
    (CountVectorizer(analyzer="char_wb", ngram_range=(2, 4), strip_accents="unicode", binary=True), TEXTS),
    (CountVectorizer(vocabulary={"kernel": 1, "output": 0}, token_pattern=r"[a-z]+"), TEXTS),
    (CountVectorizer(vocabulary={"kernel", "output"}), TEXTS),
    (TfidfVectorizer(), TEXTS),
    (TfidfVectorizer(stop_words=["of", "the"], lowercase=True, sublinear_tf=True, dtype=np.float32), TEXTS),
    (TfidfVectorizer(stop_words="english", strip_accents="ascii", norm=None), TEXTS),
    (TfidfVectorizer(vocabulary=["output", "of", "x1"], use_idf=False), TEXTS),
    (
        TfidfVectorizer(encoding="latin-1", analyzer="char", ngram_range=(1, 2)),
        [text.encode("latin-1") for text in TEXTS],
    ),
    (HashingVectorizer(n_features=64), TEXTS),
    (HashingVectorizer(n_features=2**20, alternate_sign=False, norm="l1", analyzer="char", dtype=np.float32), TEXTS),
    (make_pipeline(TfidfVectorizer(), TruncatedSVD(2, random_state=0), Normalizer()), TEXTS),
    (make_pipeline("passthrough", StandardScaler(), "passthrough"), ROWS),
    (FeatureUnion([("a", StandardScaler()), ("b", "passthrough"), ("c", "drop"), ("d", PCA(2))]), ROWS),
    (
        FeatureUnion([("w", TfidfVectorizer()), ("c", HashingVectorizer(n_features=32))], transformer_weights={"w": 2}),
        TEXTS,
    ),
    (ColumnTransformer([("a", StandardScaler(), [0, 2]), ("b", "passthrough", [-1])]), ROWS),
    (ColumnTransformer([("a", StandardScaler(), slice(0, 2))], remainder="passthrough"), ROWS),
    (ColumnTransformer([("a", "drop", [True] + [False] * 4)], remainder=MinMaxScaler()), ROWS),
    (ColumnTransformer([("a", OneHotEncoder(), np.array([0])), ("b", "drop", [1])], sparse_threshold=1), COLORS),
]


def fitted(steps, inputs):
    return make_pipeline(steps, IOKR(Linear(), Linear(), alpha=1e-2)).fit(inputs, OUTPUTS)


def stored(model, path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_model(model, path)
        return load_model(path)


def assert_equal(first, second):
    assert type(first) is type(second)
    if hasattr(first, "columns"):
        assert first.equals(second)
        assert list(first.columns) == list(second.columns)
        return
    assert first.dtype == second.dtype
    assert first.shape == second.shape
    parts = ("data", "indices", "indptr") if sparse.issparse(first) else ()
    for one, other in [(getattr(first, name), getattr(second, name)) for name in parts] or [(first, second)]:
        assert one.tolist() == other.tolist() if one.dtype == object else one.tobytes() == other.tobytes()


@pytest.mark.parametrize(("steps", "inputs"), PLAIN_STEPS, ids=lambda value: type(value).__name__)
def test_a_loaded_pipeline_gives_the_same_bits(tmp_path, steps, inputs):
    model = fitted(steps, inputs)
    loaded = stored(model, tmp_path / "m")
    assert_equal(model[:-1].transform(inputs), loaded[:-1].transform(inputs))
    assert_equal(model.predict(inputs), loaded.predict(inputs))
    assert repr(loaded).replace("'float32'", "") == repr(model).replace("'float32'", "") or "Random" in repr(model)
    if hasattr(model[:-1], "get_feature_names_out") and not isinstance(steps, HashingVectorizer | FeatureUnion):
        assert list(model[:-1].get_feature_names_out()) == list(loaded[:-1].get_feature_names_out())


def table():
    pandas = pytest.importorskip("pandas")
    columns = {"age": ROWS[:, 0], "size": GAPS[:, 1], "color": COLORS[:, 0], "hole": NAN_HOLES[:, 1], "text": TEXTS}
    return pandas.DataFrame(columns, index=np.arange(N)[::-1])


def table_steps(names=("age", "size")):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    one_hot = OneHotEncoder(min_frequency=3, handle_unknown="infrequent_if_exist", sparse_output=False)
    return ColumnTransformer([("numbers", numbers, list(names)), ("colors", one_hot, ["color", "hole"])])


TABLE_STEPS = [
    lambda data: table_steps(),
    lambda data: table_steps(data.columns[:2]).set_output(transform="pandas"),
    lambda data: table_steps().set_params(verbose_feature_names_out="{feature_name}.{transformer_name}"),
    lambda data: ColumnTransformer(
        [
            ("text", TfidfVectorizer(), "text"),
            ("rest", OrdinalEncoder(encoded_missing_value=-1), ["color", "hole"]),
            ("none", "drop", ["size"]),
        ],
        remainder="passthrough",
        transformer_weights={"text": 0.5},
    ),
    lambda data: ColumnTransformer(
        [("nested", FeatureUnion([("a", OneHotEncoder(sparse_output=False)), ("b", OrdinalEncoder())]), ["color"])],
        verbose_feature_names_out=False,
    ).set_output(transform="pandas"),
    lambda data: make_pipeline(
        ColumnTransformer([("a", "passthrough", ["age", "size"])]).set_output(transform="pandas"),
        SimpleImputer(add_indicator=True).set_output(transform="pandas"),
        MinMaxScaler(),
    ),
]


@pytest.mark.parametrize("steps", TABLE_STEPS)
def test_a_loaded_pipeline_reads_tables(tmp_path, steps):
    data = table()
    model = fitted(steps(data), data)
    loaded = stored(model, tmp_path / "m")
    shuffled = data[data.columns[::-1]][:7] if isinstance(model[0], ColumnTransformer) else data[:7]
    for rows in (data, shuffled):
        assert_equal(model[:-1].transform(rows), loaded[:-1].transform(rows))
        assert_equal(model.predict(rows), loaded.predict(rows))
    assert list(model[:-1].get_feature_names_out()) == list(loaded[:-1].get_feature_names_out())
    with pytest.raises(ValueError, match="columns are missing"):
        loaded.predict(data.drop(columns=["age", "color"]))


@pytest.mark.parametrize("unknown", ["error", "ignore", "warn", "infrequent_if_exist"])
@pytest.mark.filterwarnings("ignore:Found unknown categories")
def test_unknown_categories_are_treated_alike(tmp_path, unknown):
    model = fitted(OneHotEncoder(handle_unknown=unknown, min_frequency=3, drop="first"), COLORS)
    loaded = stored(model, tmp_path / "m")
    new = np.array([["red", "pink", "blue"]], dtype=object)
    if unknown == "error":
        with pytest.raises(ValueError, match="unknown categories"):
            loaded.predict(new)
    else:
        assert_equal(model[0].transform(new), loaded[0].transform(new))
        assert_equal(
            model[0].inverse_transform(new_row := model[0].transform(new)), loaded[0].inverse_transform(new_row)
        )


@pytest.mark.parametrize("last", [IOKR(Linear(), Linear()), KDE(n_components=2), OEL(n_components=2)])
def test_all_estimators_end_pipelines(tmp_path, last):
    model = make_pipeline(TfidfVectorizer(), make_pipeline(StandardScaler(with_mean=False), last)).fit(TEXTS, OUTPUTS)
    model[-1][-1].calibrate(model[-1][:-1].transform(model[:-1].transform(TEXTS)), OUTPUTS)
    loaded = stored(model, tmp_path / "m")
    inputs = model[-1][:-1].transform(model[:-1].transform(TEXTS))
    assert_equal(model.predict(TEXTS), loaded.predict(TEXTS))
    best, second = (pipeline[-1][-1].predict_topk(inputs, 3) for pipeline in (model, loaded))
    assert_equal(best.indices, second.indices)
    assert_equal(model[-1][-1].predict_set(inputs).sizes, loaded[-1][-1].predict_set(inputs).sizes)
    save_model(loaded, tmp_path / "again")
    assert_equal(loaded.predict(TEXTS), load_model(tmp_path / "again").predict(TEXTS))


@pytest.mark.filterwarnings("ignore:The best")
def test_searches_are_saved_as_their_best_pipeline(tmp_path):
    inner = OELCV(Gaussian(0.3), Linear(), alphas=[1e-3, 1e-2], cv=2, random_state=0)
    model = make_pipeline(StandardScaler(), inner).fit(ROWS, OUTPUTS)
    loaded = stored(model, tmp_path / "inner")
    assert type(loaded[-1]) is OEL
    assert_equal(model.predict(ROWS), loaded.predict(ROWS))
    pipeline = make_pipeline(PCA(), IOKR(Linear(), Linear()))
    outer = GridSearchCV(pipeline, {"pca__n_components": [1, 2]}, cv=2).fit(ROWS, OUTPUTS)
    assert_equal(outer.predict(ROWS), stored(outer, tmp_path / "outer").predict(ROWS))


class Mine(StandardScaler):
    pass


FUNCTIONS = [
    (FunctionTransformer(np.log1p), COUNTS, r"FunctionTransformer\.func contains the function log1p"),
    (FunctionTransformer(inverse_func=abs), COUNTS, r"inverse_func contains the function abs"),
    (CountVectorizer(tokenizer=str.split, token_pattern=None), TEXTS, "tokenizer contains the function split"),
    (TfidfVectorizer(preprocessor=str.lower), TEXTS, "preprocessor contains the function lower"),
    (HashingVectorizer(analyzer=str.split), TEXTS, "analyzer contains the function split"),
    (ColumnTransformer([("a", StandardScaler(), lambda X: [0])]), ROWS, r"transformers contains the function <lambda>"),
    (FeatureUnion([("a", FunctionTransformer(abs))]), ROWS, "the function"),
    (SimpleImputer(strategy=np.max), GAPS, "strategy contains the function max"),
    (PowerTransformer(), ROWS, "an object of type PowerTransformer"),
    (Mine(), ROWS, "an object of type Mine"),
    (make_pipeline(StandardScaler(), PowerTransformer()), ROWS, "PowerTransformer"),
]


@pytest.mark.parametrize(("steps", "inputs", "message"), FUNCTIONS)
def test_functions_and_unknown_classes_are_refused(tmp_path, steps, inputs, message):
    with pytest.raises(TypeError, match=rf"(?s){message}.*joblib\.dump\(model, file\)"):
        save_model(fitted(steps, inputs), tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_selectors_are_refused(tmp_path):
    data = table()
    steps = ColumnTransformer([("a", StandardScaler(), make_column_selector(pattern="age"))])
    with pytest.raises(TypeError, match=r"the function make_column_selector.*joblib\.dump"):
        save_model(fitted(steps, data), tmp_path / "m")


@pytest.mark.parametrize("model", [make_pipeline(StandardScaler(), Normalizer()), Pipeline([("a", StandardScaler())])])
def test_pipelines_of_others_are_refused(tmp_path, model):
    with pytest.raises(TypeError, match=r"pipelines that end with one of them.*joblib\.dump"):
        save_model(model.fit(ROWS), tmp_path / "m")
    with pytest.raises(ValueError, match="not fitted"):
        save_model(make_pipeline(StandardScaler(), OEL()), tmp_path / "m")


REFUSED = [
    (CountVectorizer(input="file"), TEXTS, "input='file'"),
    (HashingVectorizer(n_features=2**30), TEXTS, f"n_features={2**30}"),
    (CountVectorizer(analyzer="char", ngram_range=(1, 100)), TEXTS, r"ngram_range=\(1, 100\)"),
    (CountVectorizer(dtype="U9"), TEXTS, "dtype='U9'"),
]


@pytest.mark.parametrize(("step", "inputs", "message"), REFUSED)
def test_parameters_beyond_what_a_file_may_ask_for_are_refused(tmp_path, step, inputs, message):
    model = fitted(CountVectorizer(), inputs)
    model.steps[0] = ("step", step)
    with pytest.raises(ValueError, match=message):
        save_model(model, tmp_path / "m")


def test_what_concerns_the_machine_is_not_saved(tmp_path):
    model = make_pipeline(
        ColumnTransformer([("a", StandardScaler(), [0])], n_jobs=1), IOKR(), memory=str(tmp_path / "cache")
    ).fit(ROWS, OUTPUTS)
    loaded = stored(model, tmp_path / "m")
    assert (loaded.memory, loaded[0].n_jobs) == (None, None)
    assert_equal(model.predict(ROWS), loaded.predict(ROWS))


def test_nothing_is_pickled(tmp_path, monkeypatch):
    model = make_pipeline(FeatureUnion([("a", TfidfVectorizer()), ("b", CountVectorizer())]), IOKR()).fit(
        TEXTS, OUTPUTS
    )
    expected = model.predict(TEXTS)

    def fail(*_):
        raise AssertionError("pickled")

    with monkeypatch.context() as patch:
        for name in ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"):
            for cls in (BaseEstimator, CountVectorizer, FeatureUnion, Pipeline, IOKR):
                patch.setattr(cls, name, fail, raising=False)
        for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
            patch.setattr(pickle, name, fail)
        save_model(model, tmp_path / "m")
        loaded = load_model(tmp_path / "m")
    assert_equal(expected, loaded.predict(TEXTS))


def test_another_version_of_scikit_learn_is_announced(tmp_path, monkeypatch):
    model = fitted(StandardScaler(), ROWS)
    other = fitted(StandardScaler(), ROWS)
    del other[0].mean_
    with monkeypatch.context() as patch:
        patch.setattr(sklearn, "__version__", "1.6.0")
        patch.setattr(sklearn_codecs, "_check", lambda _: None)
        save_model(model, tmp_path / "m")
        save_model(other, tmp_path / "other")
    message = f"StandardScaler was saved with scikit-learn 1.6.0 and is loaded with {sklearn.__version__}"
    with pytest.warns(InconsistentVersionWarning, match=message):
        loaded = load_model(tmp_path / "m")
    assert_equal(model.predict(ROWS), loaded.predict(ROWS))
    message = "other.*StandardScaler, saved with scikit-learn 1.6.0, cannot be used with .*'mean_'"
    with pytest.warns(InconsistentVersionWarning), pytest.raises(ValueError, match=message):
        load_model(tmp_path / "other")


def attributes(step, **values):
    return lambda model: vars(model[0] if step is None else step(model[0])).update(values)


def many(model):
    union = FeatureUnion([("a", Normalizer()), ("b", Normalizer())])
    for _ in range(20):
        union = FeatureUnion([(name, union) for name in "abcd"])
    model.steps[0] = ("a", union)


def first(union):
    return union.transformer_list[0][1]


WORDS = make_pipeline(TfidfVectorizer(), IOKR())
HOSTILE = {
    "indices of words beyond the matrix": (WORDS, TEXTS, lambda m: m[0].vocabulary_.update(kernel=10**9)),
    "negative indices of words": (WORDS, TEXTS, lambda m: m[0].vocabulary_.update(kernel=-1)),
    "two words with one index": (WORDS, TEXTS, lambda m: m[0].vocabulary_.update(kernel=m[0].vocabulary_["output"])),
    "fewer weights than words": (WORDS, TEXTS, lambda m: vars(m[0]._tfidf).update(idf_=np.ones(2))),
    "weights of other inputs": (WORDS, TEXTS, lambda m: vars(m[0]._tfidf).update(n_features_in_=2)),
    "no weights": (WORDS, TEXTS, lambda m: vars(m[0]._tfidf).pop("idf_")),
    "files as texts": (WORDS, TEXTS, attributes(None, input="filename")),
    "a pattern that is none": (WORDS, TEXTS, attributes(None, token_pattern="(")),
    "a pattern without end": (WORDS, TEXTS, attributes(None, token_pattern="(" * 5000)),
    "an unknown encoding": (WORDS, TEXTS, attributes(None, encoding="../x")),
    "a class as a function": (WORDS, TEXTS, attributes(None, tokenizer=float)),
    "long n-grams": (WORDS, TEXTS, attributes(None, ngram_range=(1, 10**9))),
    "a large dtype": (WORDS, TEXTS, attributes(None, dtype="U1000000000")),
    "a dtype of many": (WORDS, TEXTS, attributes(None, dtype="9999999f8")),
    "a method": (WORDS, TEXTS, attributes(None, transform=1)),
    "a special name": (WORDS, TEXTS, attributes(None, __array__=1)),
    "a name of another kind": (WORDS, TEXTS, attributes(None, fit_resample=1)),
    "many hashes": (make_pipeline(HashingVectorizer(), IOKR()), TEXTS, attributes(None, n_features=2**40)),
    "many hashes that scikit-learn accepts": (
        make_pipeline(HashingVectorizer(), IOKR()),
        TEXTS,
        attributes(None, n_features=2**31 - 1),
    ),
    "a dict as the mean": (make_pipeline(StandardScaler(), IOKR()), ROWS, attributes(None, mean_={"a": 1})),
    "a mean of other inputs": (make_pipeline(StandardScaler(), IOKR()), ROWS, attributes(None, mean_=np.ones(4))),
    "a mean of texts": (make_pipeline(StandardScaler(), IOKR()), ROWS, attributes(None, mean_=np.array(["a"] * 5))),
    "no mean": (make_pipeline(StandardScaler(), IOKR()), ROWS, lambda m: vars(m[0]).pop("mean_")),
    "no number of inputs": (make_pipeline(PCA(2), IOKR()), ROWS, lambda m: vars(m[0]).pop("n_features_in_")),
    "components of other inputs": (make_pipeline(PCA(2), IOKR()), ROWS, attributes(None, components_=np.ones((2, 9)))),
    "names of other inputs": (
        make_pipeline(StandardScaler(), IOKR()),
        ROWS,
        attributes(None, feature_names_in_=np.array(["a"], dtype=object)),
    ),
    "an output format": (
        make_pipeline(StandardScaler(), IOKR()),
        ROWS,
        attributes(None, _sklearn_output_config={"transform": []}),
    ),
    "a large dtype of statistics": (
        make_pipeline(SimpleImputer(), IOKR()),
        GAPS,
        attributes(None, _fit_dtype=np.dtype("U90000000")),
    ),
    "features of a mask beyond it": (
        make_pipeline(SimpleImputer(add_indicator=True), IOKR()),
        GAPS,
        attributes(lambda imputer: imputer.indicator_, features_=np.array([10**9])),
    ),
    "more columns than categories": (
        make_pipeline(OneHotEncoder(), IOKR()),
        COLORS,
        attributes(None, _n_features_outs=[1, 1, 10**12]),
    ),
    "unsorted categories": (
        make_pipeline(OneHotEncoder(), IOKR()),
        COUNTS,
        lambda m: m[0].categories_.__setitem__(0, np.array([2, 1, 0])),
    ),
    "lists as categories": (
        make_pipeline(OneHotEncoder(), IOKR()),
        COLORS,
        lambda m: m[0].categories_[0].__setitem__(0, [1]),
    ),
    "categories of equal hashes": (
        make_pipeline(OneHotEncoder(), IOKR()),
        COLORS,
        lambda m: m[0].categories_[0].__setitem__(0, 2**61 - 1),
    ),
    "a group beyond the categories": (
        make_pipeline(OneHotEncoder(min_frequency=6), IOKR()),
        COLORS,
        lambda m: m[0]._default_to_infrequent_mappings[0].__setitem__(0, 10**9),
    ),
    "infrequent categories beyond the categories": (
        make_pipeline(OneHotEncoder(min_frequency=6), IOKR()),
        COLORS,
        lambda m: m[0]._infrequent_indices[0].__setitem__(0, 10**9),
    ),
    "a dropped category beyond the others": (
        make_pipeline(OneHotEncoder(drop="first"), IOKR()),
        COLORS,
        lambda m: m[0]._drop_idx_after_grouping.__setitem__(0, 99),
    ),
    "a number that the dtype does not have": (
        make_pipeline(OrdinalEncoder(**UNKNOWN, dtype=np.int8), IOKR()),
        COLORS,
        attributes(None, unknown_value=10**20),
    ),
    "columns beyond the table": (
        make_pipeline(ColumnTransformer([("a", StandardScaler(), [0])]), IOKR()),
        ROWS,
        lambda m: m[0].transformers_.__setitem__(0, ("a", m[0].transformers_[0][1], [99])),
    ),
    "columns without indices": (
        make_pipeline(ColumnTransformer([("a", StandardScaler(), [0])]), IOKR()),
        ROWS,
        lambda m: m[0]._transformer_to_input_indices.clear(),
    ),
    "a format that reads attributes": (
        make_pipeline(ColumnTransformer([("a", StandardScaler(), [0])]), IOKR()),
        ROWS,
        attributes(None, verbose_feature_names_out="{feature_name.__class__}"),
    ),
    "a wide format": (
        make_pipeline(ColumnTransformer([("a", StandardScaler(), [0])]), IOKR()),
        ROWS,
        attributes(None, verbose_feature_names_out="{feature_name:>1000000000}"),
    ),
    "a weight that is not a number": (
        make_pipeline(FeatureUnion([("a", StandardScaler())], transformer_weights={"a": 1}), IOKR()),
        ROWS,
        attributes(None, transformer_weights={"a": [1] * 5}),
    ),
    "a model within a union": (
        make_pipeline(FeatureUnion([("a", StandardScaler())]), IOKR()),
        ROWS,
        lambda m: m[0].transformer_list.append(("b", m[-1])),
    ),
    "a pipeline without steps": (
        make_pipeline(Pipeline([("a", StandardScaler())]), IOKR()),
        ROWS,
        attributes(None, steps=[]),
    ),
    "steps without names": (make_pipeline(StandardScaler(), IOKR()), ROWS, lambda m: m.steps.__setitem__(0, (1, m[0]))),
    "a step that is a text": (
        make_pipeline(StandardScaler(), IOKR()),
        ROWS,
        lambda m: m.steps.__setitem__(0, ("a", "b")),
    ),
    "2^20 transformers": (make_pipeline(Normalizer(), IOKR()), ROWS, many),
}


@pytest.mark.parametrize(("model", "inputs", "change"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_states_are_rejected(tmp_path, monkeypatch, model, inputs, change):
    model = clone(model).fit(inputs, OUTPUTS)
    change(model)
    with monkeypatch.context() as patch:
        patch.setattr(sklearn_codecs, "_check", lambda _: None)
        save_model(model, tmp_path / "m")
    with pytest.raises(ValueError, match=str(tmp_path / "m")):
        load_model(tmp_path / "m")


JUNK = [
    None,
    True,
    -1,
    7,
    10**30,
    0.5,
    float("nan"),
    "x",
    "",
    [],
    [[1]],
    ["a"],
    {},
    {"a": 1},
    {"a"},
    (1, 2),
    slice(3),
    float,
]
JUNK += [
    np.array([]),
    np.array([np.nan]),
    np.array([["a"]]),
    np.array([None, {}], dtype=object),
    np.arange(3),
    Normalizer(),
]
ATTACKED = [
    step for i, step in enumerate(PLAIN_STEPS) if type(step[0]) not in [type(other[0]) for other in PLAIN_STEPS[:i]]
] + [(OneHotEncoder(min_frequency=4, drop="first"), COLORS), (SimpleImputer(add_indicator=True), GAPS)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("step", "inputs"), ATTACKED, ids=lambda value: type(value).__name__)
def test_any_other_attribute_is_rejected_or_ends_in_a_value_error(monkeypatch, step, inputs):
    step = step.fit(inputs)
    names = sorted(set(vars(step)) - sklearn_codecs.NOT_SAVED)
    for name, junk in [(name, junk) for name in names for junk in [*JUNK, None]]:
        other = object.__new__(type(step))
        vars(other).update(vars(step))
        vars(other)[name] = junk
        if junk is None:
            del vars(other)[name]
        with monkeypatch.context() as patch:
            patch.setattr(sklearn_codecs, "_check", lambda _: None)
            encoder = Encoder()
            data = json.loads(json.dumps(encoder.encode(other, "it")))
        with suppress(ValueError), np.errstate(all="ignore"):
            Decoder(encoder.arrays, 0).decode(data).transform(inputs)


def test_scikit_learn_is_loaded_only_for_pipelines():
    code = (
        "import sys; from psilearn import OEL, save_model, load_model; "
        "names = ['feature_extraction', 'compose', 'pipeline', 'decomposition', 'impute']; "
        "print([name for name in names if 'sklearn.' + name in sys.modules], 'sklearn_codecs' in str(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] False"
