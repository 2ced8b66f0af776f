import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from psilearn import IOKR, OEL
from psilearn.kernels import Dice, Gaussian
from psilearn.utils import observe_steps, stage
from psilearn_lab.benchmarks import bookmarks, compare, costs, measurement, scale
from psilearn_lab.benchmarks.__main__ import PARTS, main
from psilearn_lab.benchmarks.bibtex import NaiveIOKR, NaiveOEL0, dice, gaussian
from psilearn_lab.benchmarks.measurement import StepProfile, run_in_child

ROOT = Path(__file__).parents[2]


def run_new_process(*arguments, data=None):
    """Run the command in a new process."""
    command = [sys.executable, "-m", "psilearn_lab.benchmarks", *map(str, arguments)]
    environment = {
        "PATH": "",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "200",
        **({"PSILEARN_DATA": str(data)} if data else {}),
    }
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that runs the command in this process, which has imported its modules."""

    def run(*arguments, data=None):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.delenv("PSILEARN_DATA", raising=False)
        if data:
            monkeypatch.setenv("PSILEARN_DATA", str(data))
        try:
            status = main()
        except SystemExit as error:
            status = error.code
        printed = capsys.readouterr()
        return SimpleNamespace(returncode=status, stdout=printed.out, stderr=printed.err)

    return run


@pytest.fixture
def bits():
    rng = np.random.default_rng(0)
    Y = (rng.random((80, 6)) < 0.4).astype(float)
    Y[:, 0] = 1  # no empty set
    return rng.standard_normal((80, 4)), Y


def test_a_run_prints_tables_and_appends_to_the_history(tmp_path, run):
    for run_command in (run_new_process, run):
        done = run_command("bibtex", "--quick", "--output", tmp_path, "--repeats", 1, data=tmp_path)
        assert done.returncode == 0, done.stderr
    assert "float32" in done.stdout and "bibtex: skipped, not in the data home" in done.stdout
    first, second = json.loads((tmp_path / "history.json").read_text())
    assert first["quick"] and second["figures"]["machine"]["float64"]["best_gflops"] > 0
    assert "bibtex" not in second["figures"]


def test_parts_run_on_a_device(tmp_path, run):
    pytest.importorskip("torch")
    done = run("fingerprints", "--quick", "--device", "cpu", "--output", tmp_path, "--repeats", 1)
    assert done.returncode == 0, done.stderr + done.stdout
    record = json.loads((tmp_path / "history.json").read_text())[0]
    assert record["device"] == "cpu" and record["figures"]["machine"]["tf32"]["best_gflops"] > 0
    assert 0 < record["figures"]["fingerprints"]["distance"] < 2


def test_an_unknown_device_is_reported_in_one_line(run):
    done = run("fingerprints", "--quick", "--device", "gpu")
    assert done.returncode == 2 and "device must be None, 'cpu' or 'cuda'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.data("mulan/bibtex/bibtex-train.arff", "mulan/bibtex/bibtex-test.arff", "mulan/bibtex/bibtex.xml")
def test_bibtex_at_quick_sizes(tmp_path, run):
    from psilearn_lab.datasets import data_home

    done = run("bibtex", "--quick", "--output", tmp_path, "--repeats", 1, data=data_home())
    assert done.returncode == 0, done.stderr
    assert "not checked at quick sizes" in done.stdout
    figures = json.loads((tmp_path / "history.json").read_text())[0]["figures"]["bibtex"]
    for name in ("IOKR", "OEL₀"):
        assert figures[name]["f1"] == pytest.approx(figures[f"naive {name}"]["f1"], abs=1e-3)


def test_unknown_parts_are_rejected(tmp_path, run):
    done = run("nonsense", "--output", tmp_path)
    assert done.returncode == 2 and "nonsense" in done.stderr and not list(tmp_path.iterdir())


def test_naive_code_predicts_the_same(bits):
    X, Y = bits
    np.testing.assert_allclose(gaussian(X, X[:9], 0.3), Gaussian(0.3)(X, X[:9]), atol=1e-12)
    np.testing.assert_allclose(dice(Y, Y[:9]), Dice()(Y, Y[:9]))
    for naive, ours in (
        (NaiveIOKR(0.3, 1e-3), IOKR(Gaussian(0.3), Dice(), alpha=1e-3)),
        (NaiveOEL0(0.3, 1e-3, 5), OEL(Gaussian(0.3), Dice(), alpha=1e-3, n_components=5, supervision=1.0)),
    ):
        np.testing.assert_array_equal(
            naive.fit(X[:60], Y[:60]).predict(X[60:]), ours.fit(X[:60], Y[:60]).predict(X[60:])
        )


def test_dense_algorithm_1_predicts_the_same():
    from psilearn_lab.benchmarks import usps

    rng = np.random.default_rng(0)
    X, Y, U, X_test = rng.random((30, 8)), rng.random((30, 5)), rng.random((40, 5)), rng.random((10, 8))
    model = OEL(usps.INPUT, usps.OUTPUT, alpha=usps.ALPHA, n_components=6, supervision=usps.SUPERVISION)
    ours = model.fit(X, Y, unlabeled=U).predict(X_test)
    np.testing.assert_array_equal(usps.run_dense_algorithm_1(measurement.Clock(), X, Y, U, X_test, 6), ours)


def test_a_child_process_reports_its_memory():
    result = run_in_child("lab_tests.test_benchmarks", "allocate", mebibytes=200)
    assert result["answer"] == 200
    assert 150 * 2**20 < result["peak_bytes"] - result["baseline_bytes"] < 400 * 2**20
    with pytest.raises(RuntimeError, match=r"allocate.*ValueError: negative"):
        run_in_child("lab_tests.test_benchmarks", "allocate", mebibytes=-1)


def allocate(mebibytes):
    return {"answer": int(np.ones((mebibytes, 2**17)).shape[0])}


def test_methods_alternate_and_medians_are_per_stage():
    order = []

    def method(name):
        def turn(clock):
            with clock("fit"):
                order.append(name)
            return name

        return turn

    timings = measurement.time_in_turns({"a": method("a"), "b": method("b")}, 2)
    assert order == ["a", "b", "a", "b"]
    assert timings["b"].result == "b" and set(timings["a"].seconds) == {"fit", "total"}
    assert measurement.growth_exponent([1, 2, 4], [3.0, 12.0, 48.0]) == pytest.approx(2)


def test_growth_is_drawn(tmp_path):
    assert measurement.draw_growth({"n": {"fit": [(10, 0.1), (100, 1.0)]}}, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_flops_of_bookmarks_are_dominated_by_the_landmarks():
    sizes = bookmarks.FULL
    for dense in (False, True):
        operations = bookmarks.count_operations(sizes["n"], sizes["q"], sizes["r"], 13779, sizes["p"], dense)
        flops = sum(part.flops for part in operations)
        assert 2 * sizes["n"] * sizes["q"] ** 2 < flops < 4 * sizes["n"] * sizes["q"] ** 2


def test_a_profile_counts_each_second_once(monkeypatch):
    times = iter([0.0, 1.0, 4.0, 6.0])  # both steps start, then both end
    monkeypatch.setattr("psilearn_lab.benchmarks.measurement.perf_counter", lambda: next(times))
    profile = StepProfile()
    with observe_steps(profile), stage("3,000 leading directions of 7,000"), stage("inner"):
        pass
    assert profile.with_rest(10.0) == {"leading directions": 3.0, "inner": 3.0, "everything else": 4.0}


@pytest.mark.parametrize("part", ["growth", "label_sets", "ridge_path", "serve"])
def test_parts_without_data_run_at_quick_sizes(tmp_path, run, part):
    done = run(part, "--quick", "--output", tmp_path, "--repeats", 1)
    assert done.returncode == 0, done.stderr + done.stdout
    figures = json.loads((tmp_path / "history.json").read_text())[0]["figures"]
    assert figures[part]["seconds"] > 0 and part in PARTS


@pytest.mark.data("usps/usps.h5", "mulan/bibtex/bibtex-train.arff", "mulan/bibtex/bibtex-test.arff")
@pytest.mark.parametrize("part", ["usps", "usps_decoding", "costs"])
def test_parts_with_data_run_at_quick_sizes(tmp_path, run, part):
    from psilearn_lab.datasets import data_home

    done = run(part, "--quick", "--output", tmp_path, "--repeats", 1, data=data_home())
    assert done.returncode == 0, done.stderr + done.stdout
    assert part in json.loads((tmp_path / "history.json").read_text())[0]["figures"]


def test_parts_in_child_processes_run_at_tiny_sizes(tmp_path):
    assert measurement.run_in_child("scale", "search_rows", n=200, q=30, r=15)["difference"] < 1e-6
    scale.write_outputs(tmp_path / "outputs.npy", 300)
    arguments = {"path": str(tmp_path / "outputs.npy"), "size": 300, "n": 100, "landmarks": 30, "p": 5}
    for function in ("grow_unlabeled", "grow_candidates"):
        assert measurement.run_in_child("scale", function, **arguments)["peak_bytes"] > 0


def test_outputs_of_scale_are_near_their_prototypes(tmp_path):
    scale.write_outputs(tmp_path / "outputs.npy", 300)
    rows = np.load(tmp_path / "outputs.npy", mmap_mode="r")
    assert rows.shape == (300, scale.N_BITS) and set(np.unique(rows)) == {0, 1}
    X, Y = scale.make_pairs(50)
    prototypes = sparse.csr_matrix(scale.make_prototypes()[0].astype(np.uint8))
    distances = Dice().squared_distances(sparse.csr_matrix(rows), prototypes)
    assert np.all(distances.min(axis=1) < 0.6) and len(X) == len(Y) == 50


def test_costs_are_shares_of_the_highest_rates():
    run = measurement.Run(device="cpu", gemm={"float64": 1e9}, copy=1e9)
    table = [costs.Cost("work", 0.02, {"float64": 1e6, "copy": 1e6}, 8e9), costs.Cost("uncounted", 0.02, {}, None)]
    figures = costs.show_costs(run, "costs", table)
    assert figures["work"]["percent_of_ceiling"] == pytest.approx(10)
    assert figures["work"]["gflop"] == 1e-3 and figures["uncounted"]["gflop"] is None


def test_versions_are_compared_in_turns(capsys, monkeypatch):
    monkeypatch.setattr(compare, "MIN_RATIO", 0)
    source = str(compare.THIS_SOURCE)
    assert compare.main(["--before", source, "--repeats", "1", "start"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["start"] * 3
    assert all("ratio" in line for line in lines)
    with pytest.raises(SystemExit):
        compare.main(["--before", "no-such-folder"])


@pytest.mark.data("usps/usps.h5", "mulan/bibtex/bibtex-train.arff", "mulan/bibtex/bibtex-test.arff")
def test_data_of_a_comparison_need_no_loader(tmp_path):
    compare.write_data(tmp_path, ["usps", "bibtex"], quick=True)
    seconds = compare.run_child(tmp_path, ["usps", "bibtex"], lambda: 0.0)
    steps = ("usps: fit", "usps: predict", "bibtex: fit", "bibtex: predict", "bibtex: search by F1")
    assert set(steps) <= set(seconds)
