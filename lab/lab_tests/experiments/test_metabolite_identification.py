"""The metabolite experiment on small molecules with artificial spectra."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils import Bunch

from chem_tests.chemistry import different_smiles, spectra_of
from psilearn import IOKR
from psilearn.decoding import PerExampleCandidates
from psilearn.kernels import Gaussian, GaussianTanimoto, Linear
from psilearn.metrics import kernel_loss, top_k_accuracy
from psilearn_chem.metabolites.parameter_choice import Mixture
from psilearn_chem.molecules import MoleculeList
from psilearn_lab import datasets, experiments
from psilearn_lab.baselines import LR
from psilearn_lab.experiments import metabolite_data, metabolites
from psilearn_lab.experiments.experiment import Context

CONFIG = {
    **metabolites.CONFIG,
    "folds": [0, 1],
    "inner": 3,
    "gammas": [None, 0.5],
    "alphas": [1e-4, 1e-2],
    "sizes": [5, 20],
    "supervisions": [0.5, 1.0],
    "select_unlabeled": 30,
    "select_candidates": 8,
    "unlabeled": [20, None],
    "extra_landmarks": 10,
    "networks": {"inputs": 20, "competitors": {}},
}
SPEN = {"hidden": [[8]], "energy_hidden": [3, 4], "epochs": [4], "energy_epochs": [2], "steps": [4]}


@pytest.fixture
def small(monkeypatch, tmp_path):
    monkeypatch.setenv("PSILEARN_CACHE", str(tmp_path / "cache"))
    everything = different_smiles()
    order = np.random.default_rng(0).permutation(len(everything))
    chosen, alone, candidates = order[:100], order[200:], order
    bunch = Bunch(
        spectra=spectra_of([everything[i] for i in chosen]),
        inchikeys=np.array([f"k{i}" for i in chosen]),
        fold=np.arange(100) % 5,
        noncommercial=np.arange(100) < 7,
        candidates=MoleculeList([everything[i] for i in candidates], [f"k{i}" for i in candidates]),
        unlabeled=MoleculeList([everything[i] for i in alone] + ["broken("], [""] * (len(alone) + 1)),
    )
    monkeypatch.setattr(datasets, "load", lambda name: bunch)
    return bunch


def run(scratch=None, **change):
    return metabolites.run(Context({**CONFIG, **change}, seed=0, n_jobs=1, log=lambda _: None, scratch=scratch))


def load_task():
    return metabolite_data.load_task(Context(CONFIG, seed=0, n_jobs=1, log=lambda _: None))


def test_every_method_is_measured(small):
    outcome = run()
    values = {(row.dataset, row.method, row.metric.name): row.value for row in outcome.rows if not row.quoted}
    methods = {"IOKR", "OEL₀", "OEL, 20 unlabeled", "OEL, all unlabeled", "spectrum-blind", "chance"}
    assert {key[1] for key in values} == methods
    assert {key[2] for key in values} == {"Gaussian-Tanimoto loss", "top-1, %", "top-5, %", "top-10, %"}
    top = {method: values["all spectra", method, "top-1, %"] for method in methods}
    assert top["IOKR"] > 1.5 * top["chance"]
    assert abs(top["spectrum-blind"] - top["chance"]) < 15
    quoted = [row for row in outcome.rows if row.quoted]
    assert [row.paper for row in quoted] == [0.537, 25.9, 54.1, 64.3]
    assert not any(row.comparable for row in outcome.rows)
    notes = " ".join(outcome.notes)
    for words in (
        "minus IOKR, paired over 40 spectra",
        "single candidate",
        "expected position",
        "90% requested",
        "2 of 5 folds",
    ):
        assert words in notes
    assert "100 of the spectra" not in notes and "7 of the spectra are licensed" in notes


def test_results_agree_with_the_public_interface(small):
    """Fit IOKR with the reported parameters and rank every molecule of the formula."""
    outcome = run(folds=[0])
    rows = {(row.method, row.metric.name): row for row in outcome.rows if row.dataset == "all spectra"}
    task = load_task()
    setting = rows["IOKR", "Gaussian-Tanimoto loss"].parameters["fold 0"]
    combination, kind = setting.split(", ")[0].split(" ")[0], re.search(r"γ=([\d.]+)|linear", setting)
    mixture = Mixture(combination, float(kind[1]) if kind[1] else None)
    train, test = np.flatnonzero(small.fold != 0), np.flatnonzero(small.fold == 0)
    kernel = task.make_kernel(mixture)
    alpha = float(re.search(r"λ=([\d.e-]+)", setting)[1])
    model = IOKR(kernel, GaussianTanimoto(packed=True), alpha=alpha)
    model.fit(train, task.outputs[train])
    sets = PerExampleCandidates([task.labeled.sets[i] for i in test])
    truth = task.outputs[test]
    loss = kernel_loss(truth, model.predict(test, sets), GaussianTanimoto(packed=True))
    assert rows["IOKR", "Gaussian-Tanimoto loss"].value == pytest.approx(float(loss), abs=1e-4)
    assert rows["IOKR", "Gaussian-Tanimoto loss"].error == pytest.approx(loss.standard_error, abs=1e-4)
    positions = model.truth_positions(test, truth, sets)  # all these molecules have different fingerprints
    for k in (1, 5, 10):
        assert rows["IOKR", f"top-{k}, %"].value == pytest.approx(100 * float(top_k_accuracy(positions, k)), abs=1e-6)


def test_networks_are_among_the_methods(small):
    pytest.importorskip("torch")
    outcome = run(folds=[0], networks={"inputs": 20, "competitors": {"SPEN": SPEN}})
    rows = {(row.method, row.metric.name): row for row in outcome.rows if row.dataset == "all spectra"}
    assert not any(row.quoted for row in outcome.rows)
    loss = rows["SPEN", "Gaussian-Tanimoto loss"]
    assert loss.paper == 0.537 and not loss.comparable
    assert "energy_hidden=" in loss.parameters["fold 0"]
    assert set(loss.seconds) == {"fit"}
    assert any("SPEN minus IOKR" in note for note in outcome.notes)
    methods = [row.method for row in outcome.rows if row.metric.name == "top-1, %" and row.dataset == "all spectra"]
    assert methods[-3:] == ["SPEN", "spectrum-blind", "chance"]
    without = run(folds=[0])
    for row in without.rows:
        if row.dataset == "all spectra" and not row.quoted:
            assert rows[row.method, row.metric.name].value == row.value


def test_networks_rank_molecules_by_their_costs(small):
    task = load_task()
    train, test = np.flatnonzero(small.fold != 0), np.flatnonzero(small.fold == 0)
    kernel = task.make_kernel(Mixture("uniform", None))
    X, X_test = metabolites.principal_components(kernel, train, test, 20)
    bits = np.unpackbits(task.outputs, axis=1)
    model = LR(C=1.0).fit(X, bits[train])
    nearest, positions = metabolites.rank_by_costs(model, X_test, task, test)
    sets = PerExampleCandidates([np.unpackbits(task.labeled.sets[i], axis=1) for i in test])
    assert np.array_equal(np.unpackbits(nearest, axis=1), model.predict(X_test, sets))
    public = model.truth_positions(X_test, bits[test], sets)  # all these molecules have different fingerprints
    assert np.array_equal(positions.nearer, public.nearer)
    assert np.array_equal(positions.tied, public.tied)
    K = kernel(train)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    whole = metabolites.principal_components(kernel, train, test, 1000)[0]
    assert np.allclose(whole @ whole.T, centred, atol=1e-6)
    assert np.allclose(np.abs(whole[:, :20]), np.abs(X), atol=1e-6)


def test_molecules_with_equal_fingerprints_tie():
    """Three of the four candidates of the first spectrum have the same fingerprint, one of them is the true one."""
    sets = PerExampleCandidates([np.array([[0.0], [1.0], [1.0], [1.0]]), np.array([[3.0], [0.0]])])
    X = np.array([[0.0], [1.0]])
    model = IOKR(Gaussian(1.0), Linear(), alpha=1e-6).fit(X, X)
    top = model.predict_topk(X, sets.max_size, sets)
    positions = metabolites.truth_positions(top, np.array([2, 1]))
    assert positions.nearer.tolist() == [1, 0] and positions.tied.tolist() == [3, 1]


def test_few_candidates_contain_the_true_one(small):
    task = load_task()
    thinned = task.few_candidates_of(np.arange(100), 3, seed=0)
    assert thinned.max_size == 3
    assert np.all(thinned.match(task.outputs) >= 0)
    for i, everything in enumerate(task.labeled.sets):
        candidates = thinned.outputs_of(i)
        assert len(candidates) == min(3, len(everything))
        assert len(np.unique(candidates, axis=0)) == len(candidates)  # all molecules have different fingerprints


def test_the_test_fold_chooses_nothing(small):
    before = run(folds=[0])
    rng = np.random.default_rng(3)
    for i in np.flatnonzero(small.fold == 0):  # the peaks of another spectrum
        other = small.spectra[rng.integers(100)]
        small.spectra[i] = replace(small.spectra[i], mz=other.mz + 0.3, intensity=other.intensity)
    after = run(folds=[0])
    for old, new in zip(before.rows, after.rows, strict=True):
        assert old.parameters == new.parameters
    changed = [a.value != b.value for a, b in zip(before.rows, after.rows, strict=True) if a.method == "IOKR"]
    assert any(changed)


def test_finished_folds_are_not_computed_again(small, tmp_path, monkeypatch):
    whole = run()
    computed = []
    run_fold = metabolites.run_fold

    def spy(task, fold, context):
        computed.append(fold)
        if len(computed) == 2:
            raise KeyboardInterrupt
        return run_fold(task, fold, context)

    monkeypatch.setattr(metabolites, "run_fold", spy)
    with pytest.raises(KeyboardInterrupt):
        run(scratch=tmp_path / "scratch")
    again = run(scratch=tmp_path / "scratch")
    assert computed == [0, 1, 1]
    assert [row.value for row in again.rows] == [row.value for row in whole.rows]


def test_a_finished_part_leaves_no_scratch_files(small, tmp_path):
    part = metabolites.EXPERIMENT.parts[0]
    quick = experiments.Part(part.name, part.title, part.run, CONFIG, {"folds": [0]}, trial=False)
    experiment = experiments.Experiment("metabolites", "t", "s", "p", (quick,))
    (record,) = experiments.run(experiment, tmp_path, log=lambda _: None, quick=True, n_jobs=1)
    assert isinstance(record, experiments.Record), record
    assert not record.trial
    assert [file.name for file in Path(tmp_path, "quick", "metabolites").iterdir() if file.name.startswith(".")] == []


@pytest.mark.data("metabolites/spectra.parquet", "metabolites/candidates.parquet", "metabolites/unlabelled.parquet")
def test_the_data_is_as_described():
    bunch = datasets.load("metabolites")
    assert np.bincount(bunch.fold).tolist() == [788, 789, 788, 789, 788] or len(bunch.fold) == 3942
    assert len(set(bunch.inchikeys)) == 3942
    assert {s.adduct for s in bunch.spectra} == {"[M+H]+"}
    assert len(bunch.unlabeled.smiles) == 92_121
    assert set(bunch.inchikeys) <= set(bunch.candidates.names)
    accessions = bunch.spectra[0].metadata["accessions"].split(";")
    assert accessions[0].startswith("MSBNK-")
