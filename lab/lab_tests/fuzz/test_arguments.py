"""Wrong arguments: every public name is attacked, a sample of attempts, and each kind of defect is found."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="networks need the extra psilearn[torch]")
pytest.importorskip("rdkit", reason="molecules need psilearn-chem")
pytest.importorskip("dask", reason="candidates in shards need the extra psilearn[dask]")

from psilearn_lab.fuzz.arguments import LAYERS, Arguments, Call, numbers_of, public_calls, public_names, try_argument
from psilearn_lab.fuzz.harness import run_attempts
from psilearn_lab.fuzz.values import Hostile

SHARE = 0.006  # of all attempts
WITHOUT_CALLS = {  # names that no example calls
    **dict.fromkeys(["Candidates", "Kernel", "RowKernel", "GraphKernel", "RankingKernel"], "abstract"),
    **dict.fromkeys(["RankedCandidates", "PredictionSets", "Choice", "Bound", "Suggestion"], "a record of results"),
    **dict.fromkeys(["FingerprintTable", "ClusterLostError", "ListableLabelSets"], "made by the library"),
    **dict.fromkeys(["GraKeLKernel", "EditGaussian", "edit_distance", "edit_similarity"], "needs another package"),
}


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("calls"))
        patch.setenv("MPLBACKEND", "Agg")
        yield public_calls()


def test_every_public_name_is_attacked_or_has_a_reason(calls):
    called = {part for call in calls for part in call.name.split(" ")[0].split(".")}
    names = {name.rpartition(".")[2] for name in public_names()}
    assert len(names) > 100
    assert names - called - LAYERS - set(WITHOUT_CALLS) == set() and set(WITHOUT_CALLS) <= names


def test_parameters_that_an_example_leaves_out_are_attacked_too(calls):
    (fit,) = (call for call in calls if call.name == "psilearn.OEL (parameters)")
    assert {"alpha", "n_components", "supervision", "dtype", "device"} <= set(fit.arguments)
    assert {hostile.label for name, hostile in fit.attempts() if name == "alpha"} > {"text", "nan", "-1", "1e308"}


def test_a_sample_of_attempts_is_the_same_in_each_run():
    results = [[r.reason for _, r in run_attempts(Arguments(0, SHARE, "metrics"), 20, time_limit=60)] for _ in range(2)]
    assert results[0] == results[1] == [""] * 20  # no defect


@pytest.mark.parametrize(
    ("function", "defect"),
    [
        (lambda x: 1 / 0, "another exception: ZeroDivisionError"),
        (lambda x: [].index(x), "does not name x"),
        (lambda x: float("nan"), "contains NaN"),
        (lambda x: x.append(1), "an argument was modified"),
    ],
    ids=["other error", "unclear message", "NaN", "modified"],
)
def test_defects_are_found(function, defect):
    result = try_argument(Call("f", function, {"x": [1]}), "x", Hostile("list", [2]), [])
    assert result.kind == "defect"
    assert defect in result.reason


class Subject:
    """An object with a public attribute."""

    def __init__(self):
        self.rows = [1]

    def change_and_fail(self, x):
        self.rows.append(x)
        raise ValueError("x is wrong")


def test_a_changed_object_is_found():
    call = Call("f", Subject.change_and_fail, {"x": 1}, Subject())
    assert "the state changed: ['rows']" in try_argument(call, "x", Hostile("number", 2), []).reason


def test_another_result_for_the_same_numbers_is_found():
    call = Call("f", lambda x: x, {"x": 1})
    assert "differs" in try_argument(call, "x", Hostile("other", 2, keeps_result=True), [np.array(1)]).reason
    assert [part.tolist() for part in numbers_of({"a": [1.5], "b": ("c", np.eye(1))})] == [1.5, "c", [[1.0]]]
