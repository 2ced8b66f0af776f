import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from lab_tests.experiments.toys import F1, LOSS
from psilearn.metrics import Mean
from psilearn_lab.experiments import Metric, Record, Row
from psilearn_lab.experiments.results import describe_environment, write_csv


def record(**changes):
    rows = [
        Row('Ä, "B"\n<c>', "OEL₀", LOSS, 0.5, None, 0.4, parameters={"alpha": 0.1}, seconds={"fit": 1.5}),
        Row("D", "SPEN", F1, paper=3.0, source="Table 2"),
    ]
    example = Record(
        experiment="toys",
        part="toy",
        title="Toy",
        seed=3,
        quick=False,
        config={"alphas": [0.1, 1.0]},
        key="abc",
        rows=rows,
        notes=["λ at the edge"],
        figures={"toy-mse.png": "Errors"},
        seconds=2.0,
        finished="2026-01-01 12:00",
        environment=describe_environment(),
    )
    return replace(example, **changes)


@pytest.mark.parametrize(
    ("metric", "value", "verdict"),
    [
        (LOSS, 0.7, "pass"),
        (LOSS, 0.699, "pass"),
        (LOSS, 0.7001, "falls short"),
        (LOSS, 0.1 + 0.6 + 1e-16, "pass"),
        (F1, 0.7, "pass"),
        (F1, 0.7001, "pass"),
        (F1, 0.6999, "falls short"),
        (LOSS, None, "quoted"),
    ],
)
def test_verdict_at_the_boundary(metric, value, verdict):
    assert Row("d", "m", metric, value, paper=0.7).verdict == verdict


def test_rounding_errors_are_not_a_difference():
    row = Row("d", "m", LOSS, 0.1 + 0.2, paper=0.3)
    assert row.difference == 0 and row.verdict == "pass"


def test_no_verdict_without_a_comparable_value_of_the_paper():
    assert Row("d", "m", LOSS, 0.5).verdict == ""
    assert Row("d", "m", LOSS, 0.5, paper=0.1, comparable=False).verdict == "not comparable"


def test_json_round_trip(tmp_path):
    saved = record()
    saved.save(tmp_path)
    assert Record.load(tmp_path / "toy.json") == saved
    assert [path.name for path in tmp_path.iterdir()] == ["toy.json"]


def test_parameters_of_any_type_become_strict_json(tmp_path):
    chosen = {"p": np.int64(3), "rank": float("inf"), "grid": np.array([1.0, np.nan]), "kernel": Metric, 5: (1, True)}
    value = Mean([0.25, 0.75])
    record(rows=[Row("D", "OEL", LOSS, value, parameters=chosen)]).save(tmp_path)
    text = (tmp_path / "toy.json").read_text(encoding="utf-8")
    json.loads(text, parse_constant=lambda name: pytest.fail(name))
    row = Record.load(tmp_path / "toy.json").rows[0]
    assert row.value == 0.5
    assert row.parameters == {"p": 3, "rank": "inf", "grid": [1.0, "nan"], "kernel": repr(Metric), "5": [1, True]}


@pytest.mark.parametrize("name", ["value", "error", "paper"])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), "0.5", True, [1]])
def test_a_value_is_a_finite_number_or_none(name, number):
    with pytest.raises(ValueError, match=name):
        Row("d", "m", LOSS, **{name: number})


@pytest.mark.parametrize("bad", [("loss", "smaller"), ("loss", "lower", 99), ("loss", "lower", 2.0)])
def test_metric_is_validated(bad):
    with pytest.raises(ValueError, match="must be"):
        Metric(*bad)


def _with(**changes):
    content = json.loads(json.dumps(record().__dict__ | {"rows": []}))
    return json.dumps(content | changes)


ROW = {"dataset": "d", "method": "m", "metric": {"name": "l", "better": "lower"}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"rows": []}',
        '{"rows": 3}',
        _with()[:-20],
        "[" * 100_000,
        "\ud800".encode("utf-16", "surrogatepass").decode("latin-1"),
        _with(more=1),
        _with(title=None),
        _with(seed="0"),
        _with(quick="no"),
        _with(notes="a note"),
        _with(notes=[1]),
        _with(seconds="long"),
        _with(environment={"python": 3}),
        _with(figures={"../../secret.png": ""}),
        _with(figures={"/etc/secret.png": ""}),
        _with(figures={"..\\secret.png": ""}),
        _with(figures={"page.svg": ""}),
        _with(rows=[{}]),
        _with(rows=["row"]),
        _with(rows=[ROW | {"value": "0.1"}]),
        _with(rows=[ROW | {"value": float("nan")}]),
        _with(rows=[ROW]).replace('"method"', '"value": 1e999, "method"'),
        _with(rows=[ROW | {"parameters": [1]}]),
        _with(rows=[ROW | {"seconds": {"fit": "long"}}]),
        _with(rows=[ROW | {"metric": {"name": "l", "better": "lower", "digits": 10**9}}]),
        _with(rows=[ROW | {"metric": "loss"}]),
    ],
)
def test_a_file_that_is_not_a_record_is_named(tmp_path, text):
    path = tmp_path / "toy.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ValueError, match=r"toy\.json is not the record of an experiment"):
        Record.load(path)


def test_a_folder_is_not_a_record(tmp_path):
    with pytest.raises(ValueError, match="is not the record"):
        Record.load(tmp_path)


def test_csv_round_trip(tmp_path):
    hostile = Row("D", "OEL", LOSS, 1.0, parameters={"method": "mine", "seed": 9})
    write_csv([record(), record(part="other", rows=[hostile])], tmp_path / "results.csv")
    with (tmp_path / "results.csv").open(newline="", encoding="utf-8") as file:
        first, quoted, other = csv.DictReader(file)
    assert first["dataset"] == 'Ä, "B"\n<c>' and float(first["value"]) == 0.5 and first["error"] == ""
    assert float(first["param_alpha"]) == 0.1 and float(first["fit_seconds"]) == 1.5 and first["seed"] == "3"
    assert first["verdict"] == "falls short" and float(first["difference"]) == pytest.approx(0.1)
    assert quoted["value"] == quoted["difference"] == quoted["param_alpha"] == "" and quoted["source"] == "Table 2"
    assert (other["method"], other["param_method"], other["seed"]) == ("OEL", "mine", "3")


def test_csv_without_records_is_empty(tmp_path):
    write_csv([], tmp_path / "results.csv")
    assert (tmp_path / "results.csv").read_text(encoding="utf-8").strip() == ""
