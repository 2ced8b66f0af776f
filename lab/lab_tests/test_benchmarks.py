import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from time import perf_counter, sleep
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from psilearn import IOKR, OEL
from psilearn._utils.progress import observe_steps, stage, step
from psilearn.kernels import Dice, Gaussian
from psilearn_lab.benchmarks import bookmarks, device_costs, measurement, million
from psilearn_lab.benchmarks.__main__ import main
from psilearn_lab.benchmarks.child_process import run_in_child
from psilearn_lab.benchmarks.cost_table import show_costs
from psilearn_lab.benchmarks.naive import NaiveIOKR, NaiveOEL0, dice, gaussian
from psilearn_lab.benchmarks.power import PowerMeter
from psilearn_lab.benchmarks.step_profile import StepProfile

ROOT = Path(__file__).parents[2]


def run_new_process(*arguments, data=None):
    """Run the command in a new process."""
    command = [sys.executable, "-m", "psilearn_lab.benchmarks", *map(str, arguments)]
    environment = {
        "PATH": "",
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
    assert done.returncode == 2 and "--device must be None, 'cpu' or 'cuda'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.data("usps/usps.h5", "mulan/bibtex/bibtex-train.arff", "mulan/bibtex/bibtex-test.arff")
def test_predictions_of_a_device_are_compared(tmp_path, run):
    pytest.importorskip("torch")
    from psilearn_lab.datasets import data_home

    parts = ("devices", "usps_grid")
    done = run(*parts, "--quick", "--device", "cpu", "--output", tmp_path, "--repeats", 1, data=data_home())
    assert done.returncode == 0, done.stderr + done.stdout
    figures = json.loads((tmp_path / "history.json").read_text())[0]["figures"]
    compared = [figures["devices"][name] for name in figures["devices"] if name.startswith(("USPS", "Bibtex"))]
    assert compared and all(comparison["identical"] == 1 for comparison in compared)
    assert figures["usps_grid"]["difference"] < 1e-9


@pytest.mark.data("mulan/bibtex/bibtex-train.arff", "mulan/bibtex/bibtex-test.arff", "mulan/bibtex/bibtex.xml")
def test_bibtex_at_quick_sizes(tmp_path, run):
    from psilearn_lab.datasets import data_home

    done = run("bibtex", "--quick", "--output", tmp_path, "--repeats", 1, data=data_home())
    assert done.returncode == 0, done.stderr
    assert "not checked at quick sizes" in done.stdout
    figures = json.loads((tmp_path / "history.json").read_text())[0]["figures"]["bibtex"]
    for name in ("IOKR", "OEL₀"):
        assert figures[name]["f1"] == pytest.approx(figures[f"naive {name}"]["f1"], abs=1e-3)


@pytest.mark.data("mulan/bibtex/bibtex-train.arff", "mulan/bibtex/bibtex-test.arff", "mulan/bibtex/bibtex.xml")
def test_baselines_at_quick_sizes(tmp_path, run):
    from psilearn_lab.datasets import data_home

    done = run("baselines", "--quick", "--output", tmp_path, "--repeats", 1, data=data_home())
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "history.json").read_text())[0]["figures"]["baselines"]
    assert {"LR", "PRLR", "KRR", "OEL₀, Dice"} <= set(figures["methods"])
    for series in figures["methods"].values():
        assert len(series["fit"]) == len(figures["sizes"]) == 2 and min(series["fit"]) > 0


def test_rankings_at_quick_sizes(tmp_path, run):
    done = run("rankings", "--quick", "--output", tmp_path, "--repeats", 1)
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "history.json").read_text())[0]["figures"]["rankings"]
    assert all(seconds > 0 for seconds in figures["K = 4, noise"].values()) and "components" in done.stdout


def test_label_sets_at_quick_sizes(tmp_path, run):
    done = run("label_sets", "--quick", "--output", tmp_path, "--repeats", 1)
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "history.json").read_text())[0]["figures"]["label_sets"]
    assert {"Dice", "Linear", "Tanimoto"} <= set(figures) and min(figures["Dice"].values()) > 0


@pytest.mark.data("metabolites/spectra.parquet", "metabolites/candidates.parquet", "metabolites/unlabelled.parquet")
def test_metabolites_at_quick_sizes(tmp_path, run):
    pytest.importorskip("rdkit", reason="molecules need the extra psilearn[chem]")
    from psilearn_lab.datasets import data_home

    done = run("metabolites", "--quick", "--output", tmp_path, "--repeats", 1, data=data_home())
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((tmp_path / "history.json").read_text())[0]["figures"]["metabolites"]
    assert figures["kernel"]["seconds"]["double loop"] > 0
    assert figures["library"]["rank by embeddings, ms per spectrum"] > 0


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


def test_falkon_converges_to_the_solution():
    from psilearn_lab.benchmarks import falkon

    X, V, X_new, _ = falkon.make_problem(300, 3)
    S = X[:40]
    K, K_s = falkon.gaussian(X, S), falkon.gaussian(S, S)
    exact = np.linalg.solve(K.T @ K + 300 * 1e-4 * K_s, K.T @ V)
    found = falkon.falkon(X, V, S, 1e-4, 60)
    K_new = falkon.gaussian(X_new, S)
    np.testing.assert_allclose(K_new @ found, K_new @ exact, atol=1e-6)


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


def test_outputs_of_million_are_near_their_prototypes(tmp_path):
    million.write_outputs(tmp_path / "outputs.npy", 300)
    rows = np.load(tmp_path / "outputs.npy", mmap_mode="r")
    assert rows.shape == (300, million.N_BITS) and set(np.unique(rows)) == {0, 1}
    X, Y = million.make_pairs(50)
    distances = Dice().squared_distances(
        sparse.csr_matrix(rows), sparse.csr_matrix(million.make_prototypes()[0].astype(np.uint8))
    )
    assert np.all(distances.min(axis=1) < 0.6) and len(X) == len(Y) == 50


def test_a_profile_counts_each_second_once(monkeypatch):
    times = iter([0.0, 1.0, 4.0, 6.0])  # both steps start, then both end
    monkeypatch.setattr("psilearn_lab.benchmarks.step_profile.perf_counter", lambda: next(times))
    profile = StepProfile()
    with observe_steps(profile), stage("3,000 leading directions of 7,000"), step("inner"):
        pass
    assert profile.with_rest(10.0) == {"leading directions": 3.0, "inner": 3.0, "everything else": 4.0}


def test_power_is_the_mean_of_the_samples_in_an_interval():
    lines = "import time\nfor watts in ('100', '[N/A]', '300'):\n print(watts, flush=True)\ntime.sleep(60)"
    start = perf_counter()
    with PowerMeter([sys.executable, "-c", lines]) as meter:
        while meter.mean_watts(start, perf_counter()) != 200 and perf_counter() - start < 30:
            sleep(0.01)
    assert meter.mean_watts(start, perf_counter()) == 200
    assert meter.mean_watts(perf_counter(), perf_counter() + 1) is None


def test_without_the_command_no_power_is_known():
    with PowerMeter(["no-such-command"]) as meter:
        pass
    assert meter.mean_watts(0, perf_counter()) is None


def test_energy_is_the_mean_power_times_the_mean_seconds(monkeypatch):
    monkeypatch.setattr(device_costs, "MIN_SECONDS", 0.05)
    meter = SimpleNamespace(mean_watts=lambda start, end: 250.0)
    cost = device_costs.measure_work(meter, "work", partial(sleep, 0.02), {"float64": 1e6, "copy": 1e6})
    assert 0.02 <= cost.seconds < 0.05 and cost.watts == 250
    run = measurement.Run(device="cpu", gemm={"float64": 1e9}, copy=1e9)
    uncounted = device_costs.measure_work(meter, "uncounted", partial(sleep, 0.02), {})
    figures = show_costs(run, "costs", [cost, uncounted])
    assert figures["work"]["joules"] == pytest.approx(250 * cost.seconds)
    assert figures["work"]["percent_of_ceiling"] == pytest.approx(0.2 / cost.seconds)
    assert figures["work"]["gflop"] == 1e-3 and figures["uncounted"]["gflop"] is None


def test_flops_of_a_ridge_path_are_dominated_by_the_decompositions():
    assert device_costs.ridge_path_flops(10_000, 1) == pytest.approx(5 * 14 / 3 * 8000**3, rel=0.2)
