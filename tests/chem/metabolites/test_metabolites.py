"""Training on spectra and ranking of molecules, on small molecules."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold

pytest.importorskip("rdkit", reason="molecules need the extra psilearn[chem]")
pytest.importorskip("pyarrow", reason="libraries need the extra psilearn[chem]")

from psilearn import IOKR, OEL, CandidateSets
from psilearn._backend import computing, find_device
from psilearn._utils.samples import match
from psilearn.chem import ProbabilityProduct
from psilearn.chem.metabolites import MetaboliteIdentifier, rank_spectra, train
from psilearn.chem.metabolites.parameter_choice import (
    Examples,
    Grid,
    labeled_landmarks,
    validate_embeddings,
    validate_iokr,
)
from psilearn.chem.metabolites.similarity import Mixture, SpectrumSimilarity
from psilearn.chem.spectra import Problem
from psilearn.kernels import Gaussian, GaussianTanimoto, uniform
from psilearn.metrics import kernel_loss
from tests.chem.chemistry import build_library, smiles_list, spectra_of

KERNEL = GaussianTanimoto(packed=True)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_library(tmp_path_factory.mktemp("library") / "lib")


@pytest.fixture(scope="module")
def spectra():
    chosen = np.random.default_rng(0).permutation(len(smiles_list()))[:120]
    return spectra_of([smiles_list()[i] for i in chosen])


@pytest.fixture(scope="module")
def examples(library, spectra):
    sets = [library.bits[library.find_formula(s.formula)] for s in spectra]
    bits = library.fingerprints([s.smiles for s in spectra]).bits
    truth = np.array([match(bits[i : i + 1], candidates)[0] for i, candidates in enumerate(sets)])
    return Examples(SpectrumSimilarity.of(spectra), bits, CandidateSets(sets), truth, KERNEL)


@pytest.fixture(scope="module")
def identifier(library, spectra):
    return train(spectra, library, unlabeled=100, calibration=0.25)


GRID = Grid([Mixture("uniform", None), Mixture("alignf", 0.5)], [1e-4, 1e-2], [0.1, 1.0], [5, 20], [0.5, 1.0], 30)


def test_a_mixture_of_matrices_equals_the_kernel_on_spectra(examples, spectra):
    similarity = examples.similarity
    for weights, gamma in (([0.5, 0.5], None), ([0.2, 0.8], 0.7)):
        on_indices = similarity.on_indices(np.array(weights), gamma)(np.arange(120))
        on_spectra = similarity.on_spectra(np.array(weights), gamma)(spectra)
        np.testing.assert_allclose(on_indices, on_spectra, atol=1e-12)
    mean = uniform([ProbabilityProduct(of).normalized() for of in ("peaks", "losses")])
    np.testing.assert_allclose(
        similarity.on_indices(np.array([0.5, 0.5]), 0.3)(np.arange(120)), Gaussian(0.3, mean)(spectra)
    )


def decoded_losses(model, examples, train_rows, held, unlabeled=None):
    """Return the losses that a user would compute: fit, predict among candidates, compare."""
    model.fit(train_rows, examples.outputs[train_rows], unlabeled=unlabeled)
    sets = CandidateSets([examples.sets.sets[i] for i in held])
    return kernel_loss(examples.outputs[held], model.predict(held, sets), KERNEL).values


def test_validation_losses_of_iokr_equal_those_of_separate_fits(examples):
    splits = list(KFold(3).split(np.arange(120)))
    validated = validate_iokr(examples, GRID, splits, lambda _: None)
    assert len(validated.settings) == 4
    for setting, losses in zip(validated.settings, validated.losses, strict=True):
        expected = []
        for fitting, held in splits:
            kernel = examples.mixed(setting.mixture, fitting)[0]
            expected.append(decoded_losses(IOKR(kernel, KERNEL, setting.alpha), examples, fitting, held))
        np.testing.assert_allclose(losses, np.concatenate(expected), atol=1e-6)
    assert validated.best(None) == validated.settings[np.argmin(validated.losses.mean(axis=1))]


def test_validation_losses_of_embeddings_equal_those_of_separate_fits(examples, library):
    splits = list(KFold(3).split(np.arange(120)))
    iokr = validate_iokr(examples, GRID, splits, lambda _: None).best(None)
    unlabeled = np.asarray(library.bits[:60])
    validated = validate_embeddings(examples, GRID, iokr, unlabeled, splits, lambda _: None)
    assert len(validated.settings) == 2 * 2 * 2
    for setting, losses in zip(validated.settings, validated.losses, strict=True):
        expected = []
        for fitting, held in splits:
            kernel = examples.mixed(setting.mixture, fitting)[0]
            model = OEL(kernel, KERNEL, setting.alpha, setting.n_components, setting.supervision)
            model.set_params(output_landmarks=labeled_landmarks(fitting, GRID.extra_landmarks))
            expected.append(decoded_losses(model, examples, fitting, held, iter([unlabeled])))
        difference = np.abs(losses - np.concatenate(expected))
        assert np.mean(difference > 1e-5) < 0.02  # single precision may swap two candidates that almost tie
    assert {s.supervision for s in validated.settings} == {0.5, 1.0}
    supervised = validate_embeddings(examples, GRID, iokr, None, splits, lambda _: None)
    assert {s.supervision for s in supervised.settings} == {1.0}
    rows = [i for i, s in enumerate(validated.settings) if s.supervision == 1]
    assert (
        np.mean(np.abs(supervised.losses - validated.losses[rows]) > 1e-5) < 0.02
    )  # the span of all labeled outputs is enough


def test_only_held_out_examples_are_counted(examples):
    rows = np.arange(60)
    splits = [(rows[20:], rows[:20]), (rows[:20], rows[20:])]
    validated = validate_iokr(examples, GRID, splits, lambda _: None)
    assert validated.losses.shape == (4, 60)


def test_thinned_sets_keep_the_truth(examples):
    thin = examples.thinned(3, seed=0)
    for i, candidates in enumerate(thin.sets.sets):
        assert len(candidates) == min(3, len(examples.sets.sets[i]))
        np.testing.assert_array_equal(candidates[thin.truth[i]], examples.outputs[i])
    absent = replace(examples, truth=np.full(120, -1)).thinned(3, seed=0)
    assert (absent.truth == -1).all()
    assert max(map(len, absent.sets.sets)) == 3


def test_training_generalizes(identifier, library, spectra):
    """The true molecule of new spectra is ranked first far more often than by chance."""
    known = {s.smiles for s in spectra}
    new = spectra_of([s for s in smiles_list() if s not in known][:80], seed=5)
    hits, chance = [], []
    for spectrum, ranking in zip(new, rank_spectra(identifier, new, library, k=None), strict=True):
        truth = library.fingerprints([spectrum.smiles]).bits
        positions = np.flatnonzero((library.bits[ranking.rows] == truth).all(axis=1))
        hits.append(ranking.ranks[positions[0]] <= 1.5)
        chance.append(1 / ranking.n_candidates)
    assert np.mean(hits) > 2 * np.mean(chance)
    assert identifier.adducts == ("[M+H]+",)
    assert 100 <= identifier.training["spectra"] + identifier.training["calibration_spectra"] <= 120


def test_training_and_ranking_on_a_device_agree_with_numpy(identifier, library, spectra):
    pytest.importorskip("torch")
    expected = list(rank_spectra(identifier, spectra[:20], library))
    with computing("float64", find_device("cpu")):
        on_device = train(spectra, library, unlabeled=100, calibration=0.25)
        ranked = list(rank_spectra(on_device, spectra[:20], library))
    assert {**on_device.training, "validation_loss": 0} == {**identifier.training, "validation_loss": 0}
    assert on_device.training["validation_loss"] == pytest.approx(identifier.training["validation_loss"], rel=1e-5)
    np.testing.assert_allclose(on_device.model.calibration_scores_, identifier.model.calibration_scores_, rtol=1e-5)
    for a, b in zip(expected, ranked, strict=True):
        np.testing.assert_allclose(b.distances, a.distances, rtol=1e-6)


def test_rankings_agree_with_the_estimator(identifier, library, spectra):
    ranked = list(rank_spectra(identifier, spectra[:20], library, k=5))
    for spectrum, ranking in zip(spectra, ranked, strict=False):
        rows = library.find_formula(spectrum.formula)
        top = identifier.model.predict_topk([spectrum], 6, CandidateSets([library.bits[rows]]))
        count = min(5, rows.stop - rows.start)
        np.testing.assert_allclose(ranking.distances, top.distances[0, :count], atol=1e-10)
        assert ranking.n_candidates == rows.stop - rows.start
        inside = identifier.model.predict_set([spectrum], 0.9, CandidateSets([library.bits[rows]]))
        assert ranking.set_size == inside.sizes[0]
        assert ranking.in_set.sum() == min(5, inside.sizes[0])
        gaps = np.append(np.diff(ranking.distances), ranking.margins[-1])
        np.testing.assert_allclose(ranking.margins, np.where(gaps < 1e-12, 0, gaps), atol=1e-10)


def test_an_embedded_library_gives_the_same_rankings(identifier, spectra, tmp_path):
    copy = build_library(tmp_path / "lib")
    before = list(rank_spectra(identifier, spectra[:30], copy))
    copy.embedded(identifier.model, build=True)
    for a, b in zip(before, rank_spectra(identifier, spectra[:30], copy), strict=True):
        np.testing.assert_allclose(a.distances, b.distances, atol=1e-10)
        np.testing.assert_allclose(a.ranks, b.ranks)
        assert a.set_size == b.set_size


def test_tied_molecules_share_their_rank(spectra):
    """Two regioisomers with the same fingerprint cannot be distinguished."""
    from psilearn.chem.metabolites.rank import _ranking

    D = np.array([0.5, 0.2, 0.5, 0.9, 0.5])
    expected = {"expected": [1, 3, 3, 3, 5], "optimistic": [1, 2, 2, 2, 5], "pessimistic": [1, 4, 4, 4, 5]}
    for ties, ranks in expected.items():
        limit = 4 * np.sqrt(0.3)  # the three tied molecules are at positions 2 to 4
        ranking = _ranking(spectra[0], slice(10, 15), "test", D, np.full(5, 1e-12), None, limit, ties)
        assert ranking.ranks.tolist() == ranks
        assert ranking.rows.tolist() == [11, 10, 12, 14, 13]
        np.testing.assert_allclose(ranking.margins, [0.3, 0, 0, 0.4, np.inf])
        assert ranking.in_set.tolist() == [True] * 4 + [False]
        assert ranking.set_size == 4


def test_a_saved_identifier_gives_the_same_rankings(identifier, library, spectra, tmp_path):
    identifier.save(tmp_path / "m")
    loaded = MetaboliteIdentifier.load(tmp_path / "m")
    assert (loaded.adducts, loaded.fingerprints, loaded.training) == (
        identifier.adducts,
        identifier.fingerprints,
        identifier.training,
    )
    for a, b in zip(rank_spectra(identifier, spectra, library), rank_spectra(loaded, spectra, library), strict=True):
        np.testing.assert_allclose(a.distances, b.distances, atol=1e-10)
        assert a.set_size == b.set_size


@pytest.mark.parametrize("method", ["iokr", "oel0"])
def test_other_methods_without_calibration(method, library, spectra):
    identifier = train(spectra[:60], library, method=method, calibration=0.0)
    assert isinstance(identifier.model, IOKR if method == "iokr" else OEL)
    assert not hasattr(identifier.model, "calibration_scores_")
    ranking = next(iter(rank_spectra(identifier, spectra[:1], library)))
    assert ranking.set_size is None
    assert not ranking.in_set.any()


def test_spectra_of_one_molecule_stay_together(library, spectra, monkeypatch):
    """A molecule that was measured twice is never both in training and in validation."""
    calls = []
    from psilearn.chem.metabolites import training

    def record_splits(examples, grid, splits, say):
        calls.extend((examples, split) for split in splits)
        return validate_iokr(examples, GRID, splits, say)

    monkeypatch.setattr(training, "validate_iokr", record_splits)
    twice = [*spectra[:40], *spectra_of([s.smiles for s in spectra[:40]], seed=8)]
    train(twice, library, method="iokr", calibration=0.2)
    for examples, (fitting, held) in calls:
        rows = {row.tobytes() for row in examples.outputs[fitting]}
        assert not any(row.tobytes() in rows for row in examples.outputs[held])


def test_molecules_outside_the_library_are_used_for_training(library, spectra):
    outside = spectra_of(["CCCCCCCCCCCCCCCC", "C1CCC2CCCCC2C1"])
    identifier = train([*spectra[:40], *outside], library, method="iokr", calibration=0.1)
    assert identifier.training["spectra"] + identifier.training["calibration_spectra"] >= 40


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"smiles": None}, "no SMILES"),
        ({"smiles": "C("}, "cannot be read"),
        ({"precursor_mz": None}, "no precursor_mz"),
        ({"adduct": "[M+?]+"}, "is not an adduct"),
        ({"formula": "C2H6O"}, "its formula is C2H6O, but its SMILES is of"),
        ({"precursor_mz": 999.0}, "the precursor is wrong"),
    ],
)
def test_unusable_training_spectra_are_reported(library, spectra, change, message):
    bad = replace(spectra[0], name="unusable", **change)
    with pytest.raises(ValueError, match=f"unusable: .*{message}"):
        train([*spectra[:30], bad], library)
    problems = []
    train([*spectra[:30], bad], library, method="iokr", calibration=0.0, on_problem=problems.append)
    assert [p.source for p in problems] == ["unusable"]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"method": "svm"}, "method must be"), ({"calibration": 1.0}, "below 1"), ({"unlabeled": 0}, "unlabeled")],
)
def test_invalid_training_is_rejected(library, spectra, options, message):
    with pytest.raises(ValueError, match=message):
        train(spectra, library, **options)
    with pytest.raises(ValueError, match="too few to train on"):
        train(spectra[:5], library)


def test_a_calibration_molecule_counts_once(library, spectra):
    replicates = [replace(s, name=f"{s.name}-{i}") for i in range(5) for s in spectra[:40]]
    identifier = train(replicates, library, method="iokr", calibration=0.3)
    assert identifier.training["calibration_spectra"] == len(identifier.model.calibration_scores_) <= 13


def test_training_molecules_are_marked(identifier, library, spectra):
    outputs = {row.tobytes() for row in identifier.model.candidates_.outputs}
    for ranking in rank_spectra(identifier, spectra[:10], library, k=None):
        assert ranking.trained_on.tolist() == [library.bits[row].tobytes() in outputs for row in ranking.rows]


def test_other_spectra_are_ranked_despite_a_problem(identifier, library, spectra):
    bad = replace(spectra[3], precursor_mz=None, name="bad")
    results = list(rank_spectra(identifier, [spectra[0], bad, spectra[1]], library))
    assert [isinstance(result, Problem) for result in results] == [False, True, False]
    assert results[1].source == "bad"
    assert [ranking.spectrum.name for ranking in (results[0], results[2])] == [spectra[0].name, spectra[1].name]
    assert [type(result) for result in rank_spectra(identifier, [bad], library)] == [Problem]
    assert list(rank_spectra(identifier, [], library)) == []


def test_a_library_with_other_fingerprints_is_rejected(identifier, spectra, tmp_path):
    other = build_library(tmp_path / "other", kinds=("maccs",))
    with pytest.raises(ValueError, match="--fingerprints morgan,maccs"):
        next(rank_spectra(identifier, spectra, other))


def test_invalid_ranking_is_rejected(identifier, library, spectra):
    for options, message in (
        ({"ties": "lucky"}, "ties must be"),
        ({"k": 0}, "k must be"),
        ({"coverage": 2}, "coverage"),
    ):
        with pytest.raises(ValueError, match=message):
            list(rank_spectra(identifier, spectra[:1], library, **options))


def test_other_models_are_rejected(tmp_path, identifier):
    identifier.save(tmp_path / "m")
    manifest = json.loads((tmp_path / "m" / "manifest.json").read_text())
    for notes in ({}, {**manifest["notes"], "kind": "other"}, {**manifest["notes"], "fingerprints": ["x"]}, []):
        (tmp_path / "m" / "manifest.json").write_text(json.dumps({**manifest, "notes": notes}))
        with pytest.raises(ValueError, match="no model"):
            MetaboliteIdentifier.load(tmp_path / "m")
