"""Hostile arguments give a valid result or an error that names the argument: a sample of ``fuzz.arguments``."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="networks need the extra psilearn[torch]")
pytest.importorskip("rdkit", reason="molecules need the extra psilearn[chem]")
pytest.importorskip("pyarrow", reason="tables need the extra psilearn[chem]")
pytest.importorskip("dask", reason="candidates in shards need the extra psilearn[dask]")
pytest.importorskip("faiss", reason="approximate search needs the extra psilearn[ann]")

from psilearn_lab.fuzz.arguments.__main__ import run, selected_attempts
from psilearn_lab.fuzz.arguments.attempts import Call, attempt
from psilearn_lab.fuzz.arguments.hostile_values import Hostile
from psilearn_lab.fuzz.arguments.registry import LEFT_OUT, public_names, registered_names

SHARE = 0.006  # of all attempts


def test_every_public_name_has_a_call_or_a_reason():
    names, registered = set(public_names()), registered_names()
    assert sorted(names - registered - set(LEFT_OUT)) == []
    assert sorted(set(LEFT_OUT) - names) == []
    assert sorted(registered & set(LEFT_OUT)) == []


def test_a_sample_of_hostile_arguments_has_no_defects(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some calls write to relative paths
    monkeypatch.setenv("MPLBACKEND", "Agg")
    outcomes = list(run(selected_attempts(seed=0, share=SHARE)))
    assert len(outcomes) > 300
    assert [outcome for outcome in outcomes if outcome.verdict == "defect"] == []


@pytest.mark.parametrize(
    ("function", "defect"),
    [
        (lambda x: 1 / 0, "raises ZeroDivisionError"),
        (lambda x: [].index(x), "does not name x"),
        (lambda x: float("nan"), "contains NaN"),
        (lambda x: x.append(1), "an argument was modified"),
    ],
    ids=["other error", "unclear message", "NaN", "modified"],
)
def test_defects_are_found(function, defect):
    outcome = attempt(Call("f", function, {"x": [1]}), "x", Hostile("list", [2]), [])
    assert outcome.verdict == "defect"
    assert defect in outcome.detail


def test_a_changed_object_is_found():
    def change_and_fail(subject, x):
        subject.append(x)
        raise ValueError("x is wrong")

    call = Call("f", change_and_fail, {"x": 1}, make_subject=list)
    assert "the state changed" in attempt(call, "x", Hostile("number", 2), []).detail


def test_another_result_for_the_same_numbers_is_found():
    call = Call("f", lambda x: x, {"x": 1})
    assert "differs" in attempt(call, "x", Hostile("other", 2, keeps_result=True), [np.array(1)]).detail
