"""Single cells that would change the kind of a column are errors that name their line."""

import warnings

import numpy as np
import pytest

from psilearn.app.tables.column_choice import ColumnOptions, fit_inputs, fit_outputs, read_training_table
from psilearn.app.tables.table_training import Fit, Method, SplitOptions, train
from tests.app.tables.example_tables import label_columns, make_problem, write_csv

LABELS = {"outputs": ["tag_*"]}


def fit_columns(path, **options):
    """Return the inputs and outputs that are learned from all rows."""
    chosen = ColumnOptions(**options)
    table, columns = read_training_table(path, chosen)
    return fit_inputs(table, columns, chosen), fit_outputs(table, columns, chosen)


@pytest.fixture
def columns():
    return label_columns(*make_problem())


@pytest.mark.parametrize("outputs", [["tag_b"], ["tag_*"]])
def test_one_other_number_among_labels_is_an_error(tmp_path, columns, outputs):
    columns["tag_b"][7] = 2
    path = write_csv(tmp_path / "t.csv", columns)
    with pytest.raises(
        ValueError, match=r"t.csv, line 9: the output 'tag_b' is 2, but 9\d.\d% of the outputs"
    ) as error:
        fit_columns(path, outputs=outputs)
    assert "--kind labels" in str(error.value) and "--kind numbers" in str(error.value)
    assert fit_columns(path, outputs=outputs, kind="numbers")[1].kind == "numbers"
    with pytest.raises(ValueError, match=r"line 9: the label 'tag_b' is '2'; labels are 0 or 1"):
        fit_columns(path, outputs=outputs, kind="labels")[1].encode(
            read_training_table(path, ColumnOptions(**LABELS))[0]
        )


def test_columns_with_more_other_numbers_are_numbers(tmp_path, columns):
    columns["tag_b"][:4] = [2, 3, 4, 5]  # 93 % of the column are 0 or 1
    assert fit_columns(write_csv(tmp_path / "t.csv", columns), **LABELS)[1].kind == "numbers"


@pytest.mark.parametrize("kind", [None, "labels", "numbers", "classes", "ranks"])
def test_a_missing_output_cannot_be_imputed(tmp_path, columns, kind):
    columns["tag_b"][7] = ""
    path = write_csv(tmp_path / "t.csv", columns)
    options = ColumnOptions(**LABELS, kind=kind, impute=True)
    learner = Fit(Method(), None, None, alpha=1e-3, components=None, supervision=None, candidates=None)
    with pytest.raises(ValueError, match=r"line 9: the .*'tag_b' is missing; fill it in or delete the row"):
        train(path, options, SplitOptions(), learner)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("abc", "line 6: 'abc' in column 'x2' is not a number; correct it, or use --categorical x2 or --drop x2."),
        ("1,5", "line 6: '1,5' in column 'x2' is not a number; write decimals with a point: 1.5."),
    ],
)
def test_a_text_among_numbers_is_an_error(tmp_path, columns, cell, message):
    columns["x2"][3:5] = ["", cell]
    path = write_csv(tmp_path / "t.csv", columns)
    with pytest.raises(ValueError) as error:
        fit_columns(path, **LABELS)
    assert str(error.value) == f"{path}, {message}"
    assert fit_columns(path, **LABELS, categorical=["x2"], impute=True)[0].text_names == ["x2"]


def test_a_column_of_decimal_commas_is_an_error(tmp_path, columns):
    columns["x2"] = [f"{value},5" for value in columns["x2"]]
    with pytest.raises(ValueError, match=r"line 2: .* in column 'x2' is not a number; write decimals with a point"):
        fit_columns(write_csv(tmp_path / "t.csv", columns), **LABELS)


def test_a_text_among_outputs_is_an_error(tmp_path, columns):
    columns["x1"][4] = "abc"
    path = write_csv(tmp_path / "t.csv", columns)
    with pytest.raises(ValueError, match=r"line 6: 'abc' in column 'x1' is not a number; .* use --kind classes"):
        fit_columns(path, outputs=["x1"])
    assert "abc" in fit_columns(path, outputs=["x1"], kind="classes")[1].classes[0]
    columns["tag_a"][4] = "x"
    path = write_csv(tmp_path / "t.csv", {name: columns[name] for name in ("x2", "tag_a")})
    with pytest.raises(ValueError, match=r"line 6: the label 'tag_a' is 'x'; labels are 0 or 1"):
        train(path, ColumnOptions(**LABELS, kind="labels"), SplitOptions(), lambda *_: None)


def test_nominal_attributes_of_arff_may_be_numbers_and_words(tmp_path):
    rows = "\n".join(f"{word},{i % 2}" for i, word in enumerate(["1", "2", "3", "many"] * 5))
    (tmp_path / "t.arff").write_text(f"@relation r\n@attribute a {{1,2,3,many}}\n@attribute y {{0,1}}\n@data\n{rows}\n")
    assert fit_columns(tmp_path / "t.arff", outputs=["y"])[0].text_names == ["a"]


def test_constant_inputs_are_noted(tmp_path, columns):
    path = write_csv(tmp_path / "t.csv", {"same": ["x"] * 60, **columns})
    with pytest.warns(UserWarning, match="the input column 'same' has the same value in all training rows"):
        fit_columns(path, **LABELS)
    path = write_csv(tmp_path / "t.csv", {"same": ["x"] * 60, "one": np.ones(60), **columns})
    with pytest.warns(UserWarning, match=r"2 input columns \('same', 'one'\) have the same value"):
        fit_columns(path, **LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_columns(path, **LABELS, drop=["same", "one"])


def test_a_calibration_without_known_tags_names_the_option(tmp_path):
    path = write_csv(tmp_path / "t.csv", {"x": range(8), "tags": [f"t{i}" for i in range(8)]})
    learner = Fit(Method(), None, None, alpha=1e-3, components=None, supervision=None, candidates=None)
    with pytest.raises(ValueError, match="--calibration: each of the 2 rows that were held out has tags"):
        train(path, ColumnOptions(label_column="tags"), SplitOptions(calibration=0.25), learner)
