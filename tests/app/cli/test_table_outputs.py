"""Files that the commands for tables write: no table is lost, and no file is replaced without --overwrite."""

import os

import pytest

from tests.app.cli.test_table_commands import run
from tests.app.tables.example_tables import label_columns, make_problem, write_csv

FIT = ("fit", "train.csv", "--outputs", "tag_*", "-o", "model")
TEST = ("--test-size", "0.2")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a table of training rows, a table of other rows, and a model."""
    monkeypatch.chdir(tmp_path)
    write_csv("train.csv", label_columns(*make_problem()))
    write_csv("new.csv", label_columns(*make_problem(1)))
    run(*FIT)
    (tmp_path / "link.csv").symlink_to("new.csv")
    os.link("new.csv", "hard.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("predict", "model", "new.csv", "-o", "new.csv"), "--output"),
        (("predict", "model", "new.csv", "-o", "model/../new.csv"), "--output"),
        (("predict", "model", "new.csv", "-o", "link.csv"), "--output"),
        (("predict", "model", "new.csv", "-o", "hard.csv"), "--output"),
        (("evaluate", "model", "new.csv", "--html", "new.csv"), "--html"),
        ((*FIT, *TEST, "--html", "train.csv"), "--html"),
        ((*FIT, *TEST, "--unlabeled", "new.csv", "--html", "new.csv"), "--html"),
    ],
)
def test_a_table_that_is_read_is_never_replaced(folder, arguments, option):
    before = {name: (folder / name).read_bytes() for name in ("train.csv", "new.csv")}
    output = run(*arguments, "--overwrite", status=2).output
    assert output == f"Error: {option} is the table that is read; name another file.\n"
    assert before == {name: (folder / name).read_bytes() for name in before}


def test_the_model_is_never_replaced(folder):
    before = (folder / "model").read_bytes()
    (folder / "link").symlink_to(folder / "model")
    for path in ("model", "link"):
        output = run("predict", "model", "new.csv", "-o", path, "--overwrite", status=2).output
        assert f"--output {path} is the model; name another file." in output
    assert (folder / "model").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("predict", "model", "new.csv", "-o", "result.csv"), "--output"),
        (("evaluate", "model", "new.csv", "--html", "result.csv"), "--html"),
        (("fit", "train.csv", "--outputs", "tag_*", "-o", "other", *TEST, "--html", "result.csv"), "--html"),
    ],
)
def test_a_file_is_replaced_with_overwrite_only(folder, arguments, option):
    (folder / "result.csv").write_text("previous")
    output = run(*arguments, status=2).output
    assert (
        output == f"Error: {option}: result.csv already exists: use --overwrite to replace it, or name another file.\n"
    )
    assert (folder / "result.csv").read_text() == "previous" and not (folder / "other").exists()
    run(*arguments, "--overwrite")
    assert (folder / "result.csv").read_text(encoding="utf-8") != "previous"


def test_the_evaluation_on_the_training_file_is_noted(folder):
    (folder / "copy.csv").write_bytes((folder / "train.csv").read_bytes())
    for name in ("train.csv", "copy.csv"):
        assert "these rows were used for training" in run("evaluate", "model", name).output
    assert "used for training" not in run("evaluate", "model", "new.csv").output


def test_a_report_on_numbers_does_not_mention_correct_or_frequent_outputs(folder):
    fit = ("fit", "train.csv", *TEST, "-o", "numbers", "--html", "numbers.html", "--kind", "numbers")
    run(*fit, "--outputs", "x1,x2")
    page = (folder / "numbers.html").read_text(encoding="utf-8")
    assert "R² of each output" in page and "known output" not in page
    assert "correct" not in page and "most frequent" not in page
    run("evaluate", "model", "new.csv", "--html", "labels.html")
    page = (folder / "labels.html").read_text(encoding="utf-8")
    assert "known output" in page and "exactly correct" in page and "most frequent" in page


def test_one_row_is_counted_in_the_singular(folder):
    lines = (folder / "new.csv").read_text().splitlines()
    (folder / "one.csv").write_text("\n".join(lines[:2]))
    assert "one.csv: 1 row\n" in run("evaluate", "model", "one.csv", "--html", "one.html").output
    assert "<p>1 row. Outputs" in (folder / "one.html").read_text(encoding="utf-8")
    assert "out.csv: 1 row predicted" in run("predict", "model", "one.csv", "-o", "out.csv").output
