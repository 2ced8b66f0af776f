"""The experiment on reference evidence, on small molecules with artificial spectra."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sklearn.utils import Bunch

from chem_tests.chemistry import different_smiles, spectra_of
from psilearn import IOKR
from psilearn.decoding import PerExampleCandidates
from psilearn.kernels import Gaussian, GaussianTanimoto, Precomputed, uniform
from psilearn_chem import spectrum_kernel
from psilearn_chem.metabolites.parameter_choice import SpectrumSimilarity
from psilearn_chem.metabolites.second_stage_fit import hit
from psilearn_chem.molecules import MoleculeList
from psilearn_lab import datasets
from psilearn_lab.experiments import metabolite_data
from psilearn_lab.experiments.experiment import Context
from psilearn_lab.experiments.metabolite_rankings import inner_splits, mixed_split, new_split, scaffold_folds
from psilearn_lab.experiments.metabolite_second_stage import (
    EVIDENCE_CONFIG,
    EvidenceFolds,
    EvidenceResults,
    choose_first_stage,
    run_evidence,
)


@pytest.fixture
def context(monkeypatch, tmp_path):
    monkeypatch.setenv("PSILEARN_CACHE", str(tmp_path / "cache"))
    everything = different_smiles()
    order = np.random.default_rng(0).permutation(len(everything))
    chosen = order[:150]
    keys = np.array([f"k{i}" for i in chosen])
    smiles = [everything[i] for i in chosen]
    data = Bunch(
        spectra=spectra_of(smiles),
        inchikeys=keys,
        fold=np.arange(150) % 5,
        candidates=MoleculeList([everything[i] for i in order], [f"k{i}" for i in order]),
    )
    records, names = [], []
    for seed, instrument, n_records in ((1, "A", 120), (2, "B", 120), (3, "B", 60)):
        for spectrum, key in zip(spectra_of(smiles, seed=seed)[:n_records], keys, strict=False):
            records.append(replace(spectrum, metadata={"instrument": instrument}))
            names.append(key)
    other = Bunch(spectra=records, inchikeys=np.array(names))
    monkeypatch.setattr(datasets, "load", {"metabolites": data, "metabolite_records": other}.__getitem__)
    config = {**EVIDENCE_CONFIG, "folds": [0]}
    return Context(config, seed=0, n_jobs=1, log=lambda _: None, scratch=tmp_path)


def test_splits_keep_new_molecules_out_of_the_training(context):
    task = EvidenceFolds(context).task
    assert task.has_reference.sum() == 120
    inner = list(inner_splits(task, task.fold, 0))
    assert sorted(np.concatenate([split.new for split in inner])) == np.flatnonzero(task.fold != 0).tolist()
    tests = [new_split(task.fold, 0), mixed_split(task, task.fold, 0)]
    for split in (*inner, *tests, *(test.with_single_records(task) for test in tests)):
        assert not set(split.new) & set(split.train)
        assert set(split.known) <= set(split.train)
        assert not set(split.query_spectra(task)) & set(split.training_spectra(task))
        assert len(split.molecules) == len(split.is_known) == len(split.query_spectra(task))
    assert not any(set(split.molecules) & set(np.flatnonzero(task.fold == 0)) for split in inner)


def test_molecules_with_several_records_are_asked_for_with_one_of_them(context):
    folds = EvidenceFolds(context)
    task, (new, mixed) = folds.task, folds.splits[0][-2:]
    for split in (new, mixed):
        full = {molecule: task.query[molecule] if molecule in split.known else molecule for molecule in split.molecules}
        n_records = {molecule: len(task.records.of_spectrum[spectrum]) for molecule, spectrum in full.items()}
        assert set(split.single) == {molecule for molecule, count in n_records.items() if count > 1}
        assert split.is_single.sum() == len(split.single) > 0
        queries = {q.molecule: q for q in folds.queries[split.name] if q.is_single_record}
        assert set(queries) == set(split.single)
        for molecule, query in queries.items():
            (record,) = task.records.of_spectrum[query.candidates.number]
            assert record in task.records.of_spectrum[full[molecule]]
            assert query.is_known == (molecule in split.known)
            if query.is_known:  # one record, compared with those of the other instrument
                n_references = len(task.records.of_spectrum[task.reference[molecule]])
                assert query.pairs[query.truth].similarity.shape == (1, n_references)


def test_merged_and_single_records_are_compared_for_the_same_molecules(context):
    results = EvidenceResults.join([EvidenceFolds(context).run(0)])
    subsets = results.subsets()
    for kind in ("all new", "mixed, known"):
        merged, single = (
            subsets[f"{kind}, molecules with several records, {name}"] for name in ("merged", "one of them")
        )
        molecules = [np.sort(results.values[protocol]["molecule"][mask]) for protocol, mask in (merged, single)]
        np.testing.assert_array_equal(*molecules)
        hits = [results._hits(*subset, "IOKR", 1) for subset in (merged, single)]
        gain = f"top-1 {100 * np.mean(hits[0] - hits[1]):+.2f}"
        assert any(
            f"{kind}, " in note and "minus one of them, IOKR" in note and gain in note for note in results.notes([0])
        )


def test_folds_of_scaffolds_share_no_scaffold(context):
    task = EvidenceFolds(context).task
    fold = scaffold_folds(task, 0)
    for name in set(task.scaffold) - {""}:
        assert len(set(fold[task.scaffold == name])) == 1
    assert metabolite_data.find_scaffold("CCOc1ccccc1") == "c1ccccc1"
    assert metabolite_data.find_scaffold("CCO") == ""


def test_the_first_stage_is_input_output_kernel_regression(context):
    folds = EvidenceFolds(context)
    task, split = folds.task, folds.splits[0][-2]
    matrices = SpectrumSimilarity.of(task.spectra, formulas=True).matrices
    kernel = Gaussian(gamma=0.5, base=uniform([Precomputed(matrix) for matrix in matrices]))
    model = IOKR(kernel, GaussianTanimoto(packed=True), alpha=1e-4).fit(split.train, task.bits[split.train])
    for query in [query for query in folds.queries[split.name] if not query.is_single_record][:5]:
        candidates = PerExampleCandidates([task.candidate_bits(query.molecule)])
        ranked = next(model.rank_candidates(np.array([query.molecule]), candidates))
        distances = -2 * query.embeddings[0.5, 1e-4][ranked.indices]
        np.testing.assert_allclose(distances - distances[0], ranked.distances - ranked.distances[0], atol=1e-4)


def test_all_methods_and_protocols_have_rows(context):
    outcome = run_evidence(context)
    values = {(row.dataset, row.method, row.metric.name): row.value for row in outcome.rows}
    labels = {key[0] for key in values}
    assert {"all molecules new", "mixed, 80% known molecules", "mixed, the known molecules"} <= labels
    top = {key[1]: value for key, value in values.items() if (key[0], key[2]) == ("all molecules new", "top-1, %")}
    assert {"second stage", "IOKR", "weighted library search", "nearest spectrum", "chance", "molecule prior"} <= set(
        top
    )
    assert top["second stage"] > 1.5 * top["chance"]
    known = values["mixed, the known molecules", "second stage", "top-1, %"]
    assert known >= values["mixed, the known molecules", "IOKR, never a training molecule", "top-1, %"]
    assert any("Conformal sets, all molecules new" in note for note in outcome.notes)
    again = run_evidence(replace(context, log=pytest.fail))  # finished folds are read from the scratch folder
    assert [row.value for row in again.rows] == [row.value for row in outcome.rows]


def test_pairs_are_those_of_the_records_of_query_and_reference(context):
    """The records of one instrument of a known molecule are the query, those of the other one its reference."""
    folds = EvidenceFolds(context)
    task, split = folds.task, folds.splits[0][-1]
    for query in folds.queries[split.name]:
        if query.is_known and query.molecule >= 60:  # one record of each instrument
            spectra = [task.spectra[i] for i in (task.query[query.molecule], task.reference[query.molecule])]
            expected = spectrum_kernel(gamma=None)(spectra[:1], spectra[1:])
            assert np.abs(query.pairs[query.truth].similarity - expected).min() < 0.01  # merging moves peaks a little
        elif not query.is_known:  # without records, merged spectra are compared
            assert {pairs.relation.max() for pairs in query.pairs.values()} <= {7}


def test_parameters_of_the_first_stage_are_chosen_on_inner_splits(context):
    folds = EvidenceFolds(context)
    inner = [query for split in folds.splits[0] if not split.is_test for query in folds.queries[split.name]]
    chosen = choose_first_stage(inner)
    found = {
        stage: sum(hit(query.embeddings[stage], query.truth) for query in inner if not query.is_known)
        for stage in product(EVIDENCE_CONFIG["gammas"], EVIDENCE_CONFIG["alphas"])
    }
    assert found[chosen] == max(found.values())
    inner[0].choose(chosen)
    np.testing.assert_array_equal(inner[0].features["embedding"], inner[0].embeddings[chosen])


def test_other_ions_have_the_same_tables(context, monkeypatch):
    """Records of another adduct are merged; the rest of the experiment is the same."""
    merged, records = datasets.load("metabolites"), datasets.load("metabolite_records")
    monkeypatch.setattr(metabolite_data, "load_merged_records", lambda adduct: merged)
    negative = [replace(spectrum, adduct="[M-H]-") for spectrum in records.spectra]
    other = Bunch(spectra=[*records.spectra, *negative[:60]], inchikeys=[*records.inchikeys, *records.inchikeys[:60]])
    monkeypatch.setattr(datasets, "load", {"metabolite_records": other}.__getitem__)
    task = EvidenceFolds(replace(context, config={**context.config, "adduct": "[M-H]-"})).task
    assert len(task.records.place) == 60
    assert not task.has_reference.any()
