"""Models of tables: columns become what scikit-learn and the library make of them, and are saved without pickle."""

import numpy as np
import pytest
from pydantic import TypeAdapter
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from psilearn import OEL
from psilearn.app.tables import TableModel, read_table
from psilearn.app.tables.column_choice import ColumnOptions, fit_inputs, fit_outputs, read_training_table
from psilearn.app.tables.input_columns import InputColumns
from psilearn.app.tables.output_forms import OutputForm
from psilearn.app.tables.table_training import Fit, Method, Search, SplitOptions, train
from psilearn.kernels import Dice
from tests.app.tables.example_tables import TAGS, label_columns, make_problem, tag_texts, write_csv

COLORS = ["red", "blue", "green"]
WORDS = ["tea", "cup", "dog", "cat", "sun"]


def fit_toy(path, options, **parameters):
    """Return a model of a file with λ = 0.001."""
    defaults = {"alpha": 1e-3, "components": None, "supervision": None, "candidates": None}
    learner = Fit(Method(), None, None, **{**defaults, **parameters})
    return train(path, options, SplitOptions(), learner)[0]


@pytest.fixture
def mixed(tmp_path):
    """A table with numbers, a category, a text and tags."""
    rng = np.random.default_rng(0)
    colors, texts = rng.choice(COLORS, 40), [" ".join(rng.choice(WORDS, 5)) for _ in range(40)]
    X, Y = rng.normal(3, 2, (40, 2)), (rng.random((40, 4)) < 0.4).astype(int)
    columns = {"x": X[:, 0], "color": colors, "y": X[:, 1], "text": texts, "tags": tag_texts(Y)}
    return write_csv(tmp_path / "mixed.csv", columns), X, colors, texts, Y


def test_inputs_are_those_of_scikit_learn(mixed):
    path, X, colors, texts, _ = mixed
    options = ColumnOptions(label_column="tags", text=["text"])
    table, columns = read_training_table(path, options)
    train_rows, new_rows = table.take(range(30)), table.take(range(30, 40))
    inputs = InputColumns.model_validate_json(fit_inputs(train_rows, columns, options).model_dump_json())
    scaler = StandardScaler().fit(X[:30])
    one_hot = OneHotEncoder(handle_unknown="ignore").fit(colors[:30, None])
    words = TfidfVectorizer().fit(texts[:30])
    expected = [scaler.transform(X[30:]), one_hot.transform(colors[30:, None]), words.transform(texts[30:])]
    transformed = inputs.transform(new_rows)
    np.testing.assert_allclose(transformed.toarray(), sparse.hstack(expected).toarray(), rtol=1e-12)
    assert inputs.width == transformed.shape[1] and inputs.names == ["x", "y", "color", "text"]


def test_a_model_predicts_as_the_library_does_and_survives_saving(mixed, tmp_path):
    path, X, colors, texts, Y = mixed
    model = fit_toy(path, ColumnOptions(label_column="tags", text=["text"]))
    words = TfidfVectorizer().fit_transform(texts)
    blocks = [StandardScaler().fit_transform(X), OneHotEncoder().fit_transform(colors[:, None]), words]
    inputs = sparse.hstack(blocks, "csr")
    expected = OEL(None, Dice(), alpha=1e-3).fit(inputs, Y).predict(inputs)
    assert model.predict(path) == {"tags": tag_texts(expected)}
    model.save(tmp_path / "model")
    loaded = TableModel.load(tmp_path / "model")
    assert loaded.predict(path) == model.predict(read_table(path))
    assert (loaded.inputs, loaded.outputs, loaded.training) == (model.inputs, model.outputs, model.training)
    with pytest.raises(FileExistsError, match="already contains"):
        model.save(tmp_path / "model")
    assert not [file for file in (tmp_path / "model").rglob("*") if file.suffix in (".pkl", ".joblib")]


def make_form_cases():
    X, Y = make_problem()
    words = np.where(Y, "Yes", "No")
    ranks = np.argsort(np.argsort(-X - np.arange(4) / 10, axis=1), axis=1) + 1
    items = np.array(list("pqrs"))
    orders = [">".join(items[np.argsort(row)]) for row in ranks]
    classes = np.array(COLORS)[np.minimum(X[:, 0].astype(int) // 2, 2)]
    columns = {f"tag_{tag}": Y[:, j] for j, tag in enumerate(TAGS)}
    return {
        "labels": (columns, ["tag_*"], {}),
        "labels in words": ({name: words[:, j] for j, name in enumerate(columns)}, ["tag_*"], {"kind": "labels"}),
        "tags": ({"t": tag_texts(Y, separator="|")}, ["t"], {"separator": "|"}),
        "ranks": ({item: ranks[:, j] for j, item in enumerate(items)}, ["p,q,r,s"], {}),
        "orders": ({"order": orders}, ["order"], {}),
        "classes": ({"color": classes, "size": np.where(X[:, 1] > 2, "big", "small")}, ["color,size"], {}),
        "numbers": ({"u": X[:, 0] * 1000, "v": X[:, 1] / 10}, ["u,v"], {}),
    }


@pytest.mark.parametrize("name", make_form_cases())
def test_outputs_are_decoded_in_the_form_of_the_table(name, tmp_path):
    X, _ = make_problem()
    columns, outputs, extra = make_form_cases()[name]
    path = write_csv(tmp_path / "t.csv", {"x": X[:, 0], **columns})
    options = ColumnOptions(outputs=outputs, **extra)
    table, chosen = read_training_table(path, options)
    form = fit_outputs(table, chosen, options)
    assert form.kind == name.split()[0] and form.names == tuple(columns)
    restored = TypeAdapter(OutputForm).validate_json(form.model_dump_json())
    Y = restored.encode(table)
    assert restored == form and Y.shape == (len(table), form.width)
    cells = {column: [f"{v:.12g}" if isinstance(v, float) else str(v) for v in v_] for column, v_ in columns.items()}
    assert restored.decode(Y) == cells


@pytest.mark.parametrize("name", make_form_cases())
def test_every_form_is_learned(name, tmp_path):
    X, _ = make_problem()
    columns, outputs, extra = make_form_cases()[name]
    inputs = {f"x{j}": X[:, j] + 0.001 * np.arange(len(X)) for j in range(4)}
    path = write_csv(tmp_path / "t.csv", {**inputs, **columns})
    options = ColumnOptions(outputs=outputs, scale="none", **extra)
    model = fit_toy(path, options, alpha=1e-9)
    predicted = list(zip(*model.predict(path).values(), strict=True))
    truth = list(zip(*(model.outputs.decode(model.outputs.encode(read_table(path))).values()), strict=True))
    assert np.mean([a == b for a, b in zip(predicted, truth, strict=True)]) > 0.95


def test_everything_is_learned_from_the_training_rows_only(tmp_path):
    X, Y = make_problem()
    columns = label_columns(X, Y)
    path = write_csv(tmp_path / "t.csv", columns)
    defaults = {"alpha": 1e-3, "components": None, "supervision": None, "candidates": None}
    splits, options = SplitOptions(test_size=0.3, calibration=0.2, seed=1), ColumnOptions(outputs=["tag_*"])
    model, test = train(path, options, splits, Fit(Method(), None, None, **defaults))
    split = splits.split(len(X))
    parts = [set(split.train.tolist()), set(split.calibration.tolist()), set(split.test.tolist())]
    assert set.union(*parts) == set(range(len(X))) and sum(map(len, parts)) == len(X)
    np.testing.assert_array_equal(test.numbers, np.hstack([X, Y])[split.test])
    np.testing.assert_allclose(model.inputs.numbers.centers, X[split.train].mean(axis=0))
    assert len(model.model.calibration_scores_) == len(split.calibration)


def test_unlabeled_outputs_may_have_further_tags(tmp_path):
    X, Y = make_problem()
    path = write_csv(tmp_path / "t.csv", {"x": X[:, 0], "tags": tag_texts(Y)})
    others = write_csv(tmp_path / "u.csv", {"tags": ["zebra", "a;zebra", "b"]})
    defaults = {"alpha": 1e-3, "components": None, "supervision": None, "candidates": None}
    learner = Fit(Method(), None, None, **defaults)
    model, _ = train(path, ColumnOptions(label_column="tags"), SplitOptions(), learner, others)
    assert model.outputs.tags == ("a", "b", "c", "d", "zebra")
    assert model.training["unlabeled_rows"] == 3 and model.model.candidates_.outputs.shape[1] == 5


@pytest.mark.filterwarnings("ignore:The best:UserWarning")
def test_a_search_is_that_of_the_library(tmp_path):
    from psilearn import OELCV

    X, Y = make_problem()
    path = write_csv(tmp_path / "t.csv", label_columns(X, Y))
    grids = {"alphas": [1e-4, 1e-2], "components": [2, 4], "supervisions": [0.0, 1.0]}
    learner = Search(
        Method(seed=3), None, None, **grids, candidates=["known", "all"], scoring="f1", folds=3, n_jobs=None
    )
    model, _ = train(path, ColumnOptions(outputs=["tag_*"]), SplitOptions(), learner)
    grids["n_components"] = grids.pop("components")
    search = OELCV(None, Dice(), **grids, cv=3, scoring="f1", candidates=["known", "all"], random_state=3)
    search.fit(StandardScaler().fit_transform(X), Y)
    record = model.training["search"]
    assert record["score"] == pytest.approx(search.best_score_)
    assert model.candidates == search.best_params_["candidates"]
    assert model.training["parameters"]["alpha"] == search.best_params_["alpha"]
    assert [point[0] for point in record["curves"]["λ"]] == [1e-4, 1e-2]
    assert max(point[1] for point in record["curves"]["p"]) == pytest.approx(search.best_score_)
    assert model.predict(path) == model.outputs.decode(search.predict(StandardScaler().fit_transform(X)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda notes: notes.update(kind="other"), "is not a model of tables"),
        (lambda notes: notes.pop("inputs"), "inputs\n.*Field required"),
        (lambda notes: notes["inputs"]["numbers"]["names"].pop(), "the scales of the columns of numbers"),
        (lambda notes: notes["inputs"]["numbers"].update(scales=[0.0] * 4), "numbers.scales.0\n.*greater than 0"),
        (
            lambda notes: notes["inputs"]["numbers"].update(names=[1, 2, 3, 4]),
            "numbers.names.0\n.*should be a valid string",
        ),
        (lambda notes: notes["inputs"].update(texts=[{}]), "texts.0.name\n.*Field required"),
        (lambda notes: notes["inputs"].update(other=1), "other\n.*Extra inputs are not permitted"),
        (lambda notes: notes["outputs"].update(kind="nothing"), "'nothing' found using 'kind'"),
        (lambda notes: notes["outputs"].update(kind=[]), "kind"),
        (lambda notes: notes["outputs"]["names"].append("e"), "each label needs a word"),
        (lambda notes: notes.update(candidates="best"), "candidates\n.*should be 'known', 'near' or 'all'"),
        (lambda notes: notes.update(training=[]), "training\n.*valid dictionary"),
        (
            lambda notes: notes["inputs"].update(categories=[{"name": "c", "categories": ["x"], "has_missing": False}]),
            "its columns do not fit its estimator",
        ),
    ],
)
def test_damaged_descriptions_are_rejected(tmp_path, change, message):
    from psilearn.io import read_notes, save_model

    path = write_csv(tmp_path / "t.csv", label_columns(*make_problem()))
    model = fit_toy(path, ColumnOptions(outputs=["tag_*"]))
    model.save(tmp_path / "model")
    notes = read_notes(tmp_path / "model")
    change(notes)
    save_model(model.model, tmp_path / "model", notes=notes, overwrite=True)
    with pytest.raises(ValueError, match=message) as error:
        TableModel.load(tmp_path / "model")
    assert "model" in str(error.value)
