"""The commands fit, search, predict and evaluate: the results of the library, in files, with clear errors."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from psilearn import IOKR, KDE, OEL, load_model
from psilearn.app.cli import app
from psilearn.app.tables import TableModel, read_table, table_formats
from psilearn.kernels import Dice, Gaussian, Tanimoto
from psilearn.metrics import f1_score
from tests.app.tables.example_tables import NAMES, TAGS, label_columns, make_problem, read_csv, tag_texts, write_csv

FIT = ("fit", "train.csv", "--outputs", "tag_*")
SEARCH = ("search", *FIT[1:])


def run(*arguments, status=0):
    """Run a command and return its result; check the exit status and that no traceback was printed."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def files(tmp_path):
    """Tables of training rows and of other rows, and the data in them."""
    X, Y = make_problem()
    X_new, Y_new = make_problem(1)
    write_csv(tmp_path / "train.csv", label_columns(X, Y))
    write_csv(tmp_path / "new.csv", {"id": range(len(X_new)), **label_columns(X_new, Y_new)})
    return tmp_path, X, Y, X_new, Y_new


@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        ((), OEL(None, Dice())),
        (
            ("--alpha", "0.01", "--components", "3", "--supervision", "1"),
            OEL(None, Dice(), alpha=0.01, n_components=3, supervision=1.0),
        ),
        (
            ("--method", "iokr", "--input-kernel", "gaussian:0.5", "--output-kernel", "tanimoto"),
            IOKR(Gaussian(0.5), Tanimoto()),
        ),
        (
            ("--method", "kde", "--landmarks", "30", "--components", "4"),
            KDE(None, Dice(), input_landmarks=30, n_components=4),
        ),
    ],
)
def test_the_commands_predict_as_the_library_does(files, options, estimator):
    folder, X, Y, X_new, _ = files
    run("fit", folder / "train.csv", "--outputs", "tag_*", "-o", folder / "model", *options)
    run("predict", folder / "model", folder / "new.csv", "-o", folder / "out.csv")
    scaler = StandardScaler().fit(X)
    expected = estimator.fit(scaler.transform(X), Y).predict(scaler.transform(X_new))
    header, rows = read_csv(folder / "out.csv")
    assert header == [f"tag_{tag}" for tag in TAGS]
    np.testing.assert_array_equal(np.array(rows, dtype=int), expected)
    assert type(load_model(folder / "model")) is type(estimator)


def write_all_formats(folder, X, Y, X_new):
    """Write one problem as CSV with label columns and with tags, as ARFF and as svmlight; return the options of fit."""
    inputs = {name: X[:, j] for j, name in enumerate(NAMES)}
    write_csv(folder / "labels.csv", label_columns(X, Y))
    write_csv(folder / "tags.csv", {**inputs, "t": tag_texts(Y, "0123", ",")})
    attributes = [*(f"{name} real" for name in NAMES), *(f"tag_{tag} {{0,1}}" for tag in TAGS)]
    rows = [",".join(f"{value:g}" for value in row) for row in np.hstack([X, Y])]
    header = ["@relation 't: -C -4'", *(f"@attribute {attribute}" for attribute in attributes), "@data"]
    (folder / "rows.arff").write_text("\n".join([*header, *rows]))
    pairs = [" ".join(f"{j + 1}:{value:g}" for j, value in enumerate(row) if value) for row in np.vstack([X, X_new])]
    labeled = [f"{tags} {row}" for tags, row in zip(tag_texts(Y, "0123", ","), pairs, strict=False)]
    (folder / "rows.svm").write_text("\n".join(labeled))
    (folder / "new.svm").write_text("\n".join(f" {row}" for row in pairs[len(X) :]))
    write_csv(folder / "inputs.csv", {name: X_new[:, j] for j, name in enumerate(NAMES)})
    return {
        "labels.csv": ("--outputs", "-4:"),
        "tags.csv": ("--label-column", "t", "--separator", ","),
        "rows.arff": (),
        "rows.svm": (),
    }


def test_all_formats_give_the_same_predictions(files):
    folder, X, Y, X_new, _ = files
    X_new[:, 3] = 0  # a feature that does not occur in the new svmlight file
    predicted = {}
    for name, options in write_all_formats(folder, X, Y, X_new).items():
        run("fit", folder / name, *options, "--scale", "none", "-o", folder / f"model-{name}")
        new = folder / ("new.svm" if name == "rows.svm" else "inputs.csv")
        predicted[name] = run("predict", folder / f"model-{name}", new).stdout.splitlines()
    assert predicted["labels.csv"] == predicted["rows.arff"]
    assert predicted["tags.csv"][0] == "t" and predicted["rows.svm"][0] == "labels"
    assert predicted["tags.csv"][1:] == predicted["rows.svm"][1:]
    labels = np.array([line.split(",") for line in predicted["labels.csv"][1:]], dtype=int)
    assert [line.strip('"') for line in predicted["rows.svm"][1:]] == tag_texts(labels, "0123", ",")
    expected = OEL(None, Dice()).fit(sparse.csr_matrix(X), Y).predict(sparse.csr_matrix(X_new))
    np.testing.assert_array_equal(labels, expected)


def test_outputs_in_a_file_of_their_own_and_other_choices_of_columns(files):
    folder, X, Y, _, _ = files
    columns = label_columns(X, Y)
    write_csv(folder / "x.csv", {name: columns[name] for name in NAMES})
    write_csv(folder / "y.csv", {name: columns[name] for name in columns if name not in NAMES})
    choices = {
        "pattern": ("train.csv", "--outputs", "tag_*"),
        "names": ("train.csv", "--outputs", "tag_a,tag_b", "--outputs", "tag_c,tag_d"),
        "range": ("train.csv", "--outputs", "4:"),
        "file": ("x.csv", "--outputs", folder / "y.csv"),
    }
    for name, (table, *options) in choices.items():
        run("fit", folder / table, *options, "-o", folder / name)
    models = [TableModel.load(folder / name) for name in choices]
    assert len({(model.outputs, model.inputs) for model in models}) == 1
    assert all(model.predict(folder / "new.csv") == models[0].predict(folder / "new.csv") for model in models)


def test_predictions_as_lists_with_kept_columns(files, monkeypatch):
    folder, _, _, X_new, _ = files
    fit = ("fit", folder / "train.csv", "--outputs", "tag_*", "--calibration", "0.4", "-o", folder / "model")
    run(*fit)
    model = TableModel.load(folder / "model")
    X = model.inputs.transform(delimited_table(folder / "new.csv"))
    monkeypatch.setattr(table_formats, "CHUNK_CELLS", 100)  # several chunks
    run("predict", folder / "model", folder / "new.csv", "--top", 3, "--keep", "id", "-o", folder / "top.tsv")
    header, *lines = (line.split("\t") for line in (folder / "top.tsv").read_text().splitlines())
    assert header == ["row", "position", "id", *(f"tag_{tag}" for tag in TAGS), "distance"]
    top = model.model.predict_topk(X, 3)
    assert [line[:3] for line in lines[:4]] == [["1", "1", "0"], ["1", "2", "0"], ["1", "3", "0"], ["2", "1", "1"]]
    np.testing.assert_array_equal(np.array([line[3:7] for line in lines], dtype=int), np.concatenate(top.outputs))
    np.testing.assert_allclose([float(line[7]) for line in lines], top.distances.ravel(), rtol=1e-9, atol=1e-12)
    run("predict", folder / "model", folder / "new.csv", "--coverage", 0.8, "-o", folder / "sets.csv")
    rows = [int(row[0]) for row in read_csv(folder / "sets.csv")[1]]
    sizes = model.model.predict_set(X, 0.8).sizes
    np.testing.assert_array_equal(np.bincount(rows, minlength=len(X_new) + 1)[1:], sizes)
    run("predict", folder / "model", folder / "new.csv", "--distances", "--keep", "x1", "-o", folder / "out.csv")
    header, rows = read_csv(folder / "out.csv")
    nearest = [float(row[-1]) for row in rows]
    assert header[0] == "x1" and [float(row[0]) for row in rows] == X_new[:, 0].tolist()
    np.testing.assert_allclose(nearest, top.distances[:, 0], rtol=1e-9, atol=1e-12)


def delimited_table(path):
    return read_table(path)


def test_held_out_rows_are_evaluated_as_another_file_would_be(files):
    folder, _, _, _, _ = files
    result = run(
        "fit", folder / "train.csv", "--outputs", "tag_*", "--test-size", 0.25, "--seed", 3, "-o", folder / "model",
        "--html", folder / "fit.html",
    )  # fmt: skip
    assert "15 rows" in result.output and "model of 45 rows" in result.output
    result = run("evaluate", folder / "model", folder / "new.csv", "--html", folder / "report.html")
    model, new = TableModel.load(folder / "model"), delimited_table(folder / "new.csv")
    truth, predicted = model.outputs.encode(new), model.model.predict(model.inputs.transform(new))
    expected = f1_score(truth, predicted)
    assert f"{float(expected):.4f} ± {expected.standard_error:.4f}" in result.output
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f"{float(expected):.4f} ± {expected.standard_error:.4f}" in page
    assert page.count("<svg") == 2 and "<script" not in page and "src=" not in page
    assert re.search(r"<th>tag_a</th><td class=\"number\">\d+</td>", page)


def test_a_search_saves_the_best_model_and_its_curves(files):
    folder, _, _, _, _ = files
    result = run(
        "search", folder / "train.csv", "--outputs", "tag_*", "-o", folder / "model", "--folds", 3, "--test-size", 0.2,
        "--candidates", "known,near,all", "--alpha", "1e-4,1e-2", "--components", "2,4", "--supervision", "0,1",
        "--input-kernel", "gaussian,cosine", "--scoring", "f1", "--html", folder / "report.html",
    )  # fmt: skip
    assert "search: 48 settings, f1" in result.output and "candidates =" in result.output
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 5 and "48 settings were compared by f1" in page
    assert TableModel.load(folder / "model").candidates in ("known", "near", "all")


def test_names_of_columns_are_escaped_in_the_report(tmp_path):
    X, Y = make_problem()
    write_csv(tmp_path / "t.csv", {"x": X[:, 0], "<script>alert(1)</script>": Y[:, 0], "$\\frac$": Y[:, 1]})
    run(
        "fit",
        tmp_path / "t.csv",
        "--outputs",
        "1:",
        "-o",
        tmp_path / "m",
        "--test-size",
        "0.3",
        "--html",
        tmp_path / "r.html",
    )
    assert "<script" not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_missing_values_and_unknown_values(tmp_path):
    X, Y = make_problem()
    columns = {
        "x": [f"{v:g}" for v in X[:, 0]],
        "color": np.where(X[:, 1] > 2, "red", "blue").tolist(),
        "tags": tag_texts(Y),
    }
    columns["x"][5] = columns["color"][7] = ""
    write_csv(tmp_path / "t.csv", columns)
    fit = ("fit", tmp_path / "t.csv", "--label-column", "tags", "-o", tmp_path / "m")
    assert (
        "t.csv, line 7: the value of 'x' is missing; fill it in, or train with --impute." in run(*fit, status=2).output
    )
    assert not (tmp_path / "m").exists()
    run(*fit, "--impute")
    model = TableModel.load(tmp_path / "m")
    assert model.inputs.numbers.fills == (np.median(np.delete(X[:, 0], 5)),)
    assert model.inputs.categories[0].categories == ("", "blue", "red")
    write_csv(tmp_path / "new.csv", {"color": ["", "green"], "x": ["", "3"], "tags": ["a;new", "b"]})
    result = run("predict", tmp_path / "m", tmp_path / "new.csv")
    assert "1 cell has a category that the training rows did not have" in result.output
    assert "F1 of label sets" in run("evaluate", tmp_path / "m", tmp_path / "new.csv").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "train.csv"), "name the outputs with --outputs or --label-column; the columns are x1, x2"),
        (("fit", "train.csv", "--outputs", "tag_e"), "there is no column 'tag_e' (--outputs); the columns are x1"),
        ((*FIT, "--drop", "nothing"), "no column 'nothing' (--drop)"),
        ((*FIT, "--drop", "tag_a"), "'tag_a' is named by --outputs and by --drop"),
        ((*FIT, "--label-column", "x1"), "--outputs and --label-column"),
        (("fit", "train.csv", "--outputs", ":"), "all columns are outputs or left out"),
        ((*FIT, "--kind", "sets"), "--kind must be one of labels, tags"),
        (
            ("fit", "train.csv", "--outputs", "x1", "--kind", "labels"),
            "line 2: the label 'x1' is '6'; labels are 0 or 1",
        ),
        (("fit", "train.csv", "--outputs", "x1,x2", "--kind", "ranks"), "line 2: the ranking"),
        (("fit", "train.csv", "--outputs", "x1", "--kind", "orders"), "line 2: the order 'x1'"),
        (("fit", "train.csv", "--outputs", "x1,x2", "--kind", "tags"), "tags are one column; --outputs names 2"),
        ((*FIT, "--scale", "max"), "--scale must be one of auto"),
        ((*FIT, "--method", "svm"), "--method must be one of oel, kde, iokr"),
        ((*FIT, "--method", "iokr", "--components", "2"), "--components has no effect"),
        ((*FIT, "--input-kernel", "rbf"), "--input-kernel: there is no kernel 'rbf'"),
        ((*FIT, "--input-kernel", "gaussian:x"), "γ in 'gaussian:x' must be a number"),
        ((*FIT, "--candidates", "best"), "--candidates must be known, near, all"),
        ((*FIT, "--candidates", "known,all"), "one name; psilearn search compares"),
        ((*FIT, "--test-size", "1"), "--test-size must be a share of the rows"),
        ((*FIT, "--test-size", "0.999"), "--test-size 0.999 leaves 1 of 60 rows for training; at least 2 are required"),
        ((*FIT, "--calibration", "0.99"), "--calibration 0.99 leaves 1 of 60 rows for training"),
        (
            (*FIT, "--test-size", "0.5", "--calibration", "0.99"),
            "--test-size 0.5 and --calibration 0.99 leave 1 of 60 rows for training",
        ),
        (("fit", "y.csv", "--outputs", "tag_z"), "y.csv: all columns are outputs"),
        (("fit", "one.csv", "--outputs", "y"), "The training table has 1 row; at least 2 are required."),
        ((*FIT, "--html", "r.html"), "give --test-size 0.2"),
        ((*FIT, "--alpha", "-1"), "Error: --alpha must be a finite number > 0; got -1.0."),
        ((*FIT, "--supervision", "3"), "Error: --supervision must be a number in [0, 1]; got 3.0."),
        ((*FIT, "--device", "tpu"), "Error: --device must be 'cpu' or 'cuda' (or 'cuda:1', …); got 'tpu'."),
        (("fit", "missing.csv", "--outputs", "tag_*"), "missing.csv cannot be read"),
        (("fit", "ids.csv", "--outputs", "y"), "the column 'name' has 60 different texts, such as 'n0'"),
        (("fit", "train.csv", "--outputs", "y.csv"), "train.csv has 60 rows, but y.csv has 1"),
        (("search", "train.csv", "--outputs", "tag_*", "--alpha", "1,x"), "--alpha must be numbers with commas"),
        (
            ("search", "train.csv", "--outputs", "tag_*", "--scoring", "nothing"),
            'Error: --scoring must be one of "mse", "loss"',
        ),
        (
            (*SEARCH, "--scoring", "kendall_tau"),
            "--scoring kendall_tau is not defined for labels; use one of f1, jaccard",
        ),
        (
            (*SEARCH, "--kind", "numbers", "--scoring", "f1"),
            "--scoring f1 is not defined for numbers; use one of subset_",
        ),
        ((*SEARCH, "--folds", "61"), "Error: --folds must be at most the number of training rows, 60; got 61."),
        ((*SEARCH, "--alpha", "-1"), "Error: each value of --alpha must be a finite number > 0; got -1.0."),
        ((*SEARCH, "--components", "0"), "Error: each value of --components must be an integer ≥ 1; got 0."),
        ((*SEARCH, "--supervision", "2"), "Error: each value of --supervision must be a number in [0, 1]; got 2.0."),
        ((*SEARCH, "--jobs", "0"), "Error: --jobs must be an integer other than 0"),
        (
            (*SEARCH, "--output-kernel", "dice,tanimoto", "--scoring", "mse"),
            "Error: --scoring mse is measured in the space of the output kernel",
        ),
    ],
)
def test_bad_arguments_are_one_line_and_leave_nothing(files, monkeypatch, arguments, message):
    folder, *_ = files
    monkeypatch.chdir(folder)
    write_csv(folder / "ids.csv", {"name": [f"n{i}" for i in range(60)], "y": [i % 2 for i in range(60)]})
    write_csv(folder / "y.csv", {"tag_z": [1]})
    write_csv(folder / "one.csv", {"x": [1], "y": [1]})
    result = run(*arguments, "-o", "model", status=2)
    assert message in result.output
    assert len(result.output.splitlines()) == 1
    assert not (folder / "model").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "model", "short.csv"), "short.csv: there is no column 'x2', 'x3', 'x4'; the columns are x1"),
        (("predict", "model", "words.csv"), "words.csv, line 2: 'many' in column 'x4' is not a number."),
        (("predict", "model", "new.csv", "--coverage", "0.9"), "train it with --calibration"),
        (("predict", "model", "new.csv", "--coverage", "2"), "--coverage must be between 0 and 1"),
        (("predict", "model", "new.csv", "--top", "2", "--coverage", "0.9"), "cannot be combined"),
        (("predict", "model", "new.csv", "--keep", "tag_a"), "'tag_a' is a column of the predictions"),
        (("predict", "model", "new.csv", "--keep", "no"), "there is no column 'no' (--keep)"),
        (("predict", "model", "new.csv", "-o", "no/out.csv"), "--output: the folder"),
        (("predict", "model", "new.csv", "-o", "out.parquet"), "--output out.parquet does not end in .csv or .tsv"),
        (("predict", "model", "new.csv", "-o", "out.csv.gz"), "--output out.csv.gz does not end in .csv or .tsv"),
        (("predict", "model", "new.csv", "-o", "-"), "without --output, predictions go to the standard output"),
        (("predict", "nothing", "new.csv"), "The model nothing does not exist; check the path."),
        (("evaluate", "model", "short.csv"), "short.csv: there is no column 'tag_a'"),
        (("evaluate", "model", "new.csv", "--html", "no/r.html"), "--html: the folder"),
        ((*FIT, "-o", "model"), "use --overwrite to replace it"),
    ],
)
def test_bad_tables_and_models(files, monkeypatch, arguments, message):
    folder, *_ = files
    monkeypatch.chdir(folder)
    run("fit", "train.csv", "--outputs", "tag_*", "-o", "model")
    write_csv(folder / "short.csv", {"x1": [1]})
    write_csv(folder / "words.csv", {"x1": [1], "x2": [1], "x3": [1], "x4": ["many"]})
    assert message in run(*arguments, status=2).output


def test_a_failed_prediction_keeps_the_previous_file(files, monkeypatch):
    folder, *_ = files
    run("fit", folder / "train.csv", "--outputs", "tag_*", "-o", folder / "model")
    (folder / "out.csv").write_text("previous")
    monkeypatch.setattr(table_formats, "CHUNK_CELLS", 20)
    with (folder / "new.csv").open("a") as file:
        file.write("1,2\n")
    result = run("predict", folder / "model", folder / "new.csv", "-o", folder / "out.csv", "--overwrite", status=2)
    assert "line 62: 2 cells for 9 columns" in result.output
    assert (folder / "out.csv").read_text() == "previous"
    assert not list(folder.glob(".out.csv*"))


def test_a_model_is_replaced_only_when_the_new_one_is_complete(files):
    folder, *_ = files
    fit = ("fit", folder / "train.csv", "--outputs", "tag_*", "-o", folder / "model")
    run(*fit)
    before = TableModel.load(folder / "model")
    run(*fit, "--overwrite", "--kind", "tags", status=2)
    assert TableModel.load(folder / "model").outputs == before.outputs
    run(*fit, "--overwrite", "--method", "iokr")
    assert isinstance(TableModel.load(folder / "model").model, IOKR)


def test_a_hint_is_printed_for_classes_that_are_coded_by_numbers(tmp_path):
    X, _ = make_problem()
    write_csv(tmp_path / "t.csv", {"x": X[:, 0], "code": (X[:, 0] // 2).astype(int)})
    fit = ("fit", tmp_path / "t.csv", "--outputs", "code", "-o")
    assert "'code' has 4 different whole numbers" in run(*fit, tmp_path / "numbers").output
    assert "whole numbers" not in run(*fit, tmp_path / "classes", "--kind", "classes").output
    assert TableModel.load(tmp_path / "classes").outputs.classes == (("0", "1", "2", "3"),)


def test_too_little_memory_names_the_options(files, monkeypatch):
    folder, *_ = files

    def train(*_):
        raise MemoryError("Set input_landmarks=500 and lower output_landmarks to 200: 1,000 bytes.")

    monkeypatch.setattr("psilearn.app.tables.table_training.train", train)
    result = run("fit", folder / "train.csv", "--outputs", "tag_*", "-o", folder / "model", status=2)
    assert result.output == "Error: Set --landmarks 500 and lower --output-landmarks to 200: 1,000 bytes.\n"
    assert not (folder / "model").exists()
