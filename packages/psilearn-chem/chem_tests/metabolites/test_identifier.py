"""Training of the identifier, its predictions, and saved models."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from chem_tests.chemistry import smiles_list, spectra_of
from psilearn import IOKR, KDE, OEL, computing
from psilearn.io import read_notes, save_model
from psilearn.io.saved_models import FORMAT
from psilearn_chem.metabolites import MetaboliteIdentifier, Query, Ranking
from psilearn_chem.metabolites.identifier import check_model
from psilearn_chem.metabolites.queries import find_labeled, polarities_of
from psilearn_chem.spectra import Problem
from tests.sealed_files import edit


def test_training_generalizes(identifier, library, spectra):
    """The true molecule of new spectra is ranked first far more often than by chance."""
    known = {s.smiles for s in spectra}
    new = spectra_of([s for s in smiles_list() if s not in known][:80], seed=5)
    hits, chance = [], []
    for spectrum, ranking in zip(new, identifier.rank(new, library, k=None), strict=True):
        truth = library.fingerprints([spectrum.smiles]).bits
        positions = np.flatnonzero((library.bits[ranking.rows] == truth).all(axis=1))
        hits.append(ranking.ranks[positions[0]] <= 1.5)
        chance.append(1 / ranking.n_candidates)
    assert np.mean(hits) > 2 * np.mean(chance)
    assert identifier.adducts_ == ("[M+H]+",)
    assert 100 <= identifier.training_["spectra"] + identifier.training_["calibration_spectra"] <= 120


def test_training_and_ranking_on_a_device_agree_with_numpy(identifier, library, spectra):
    pytest.importorskip("torch")
    expected = list(identifier.rank(spectra[:20], library))
    with computing("float64", "cpu"):
        on_device = MetaboliteIdentifier(n_unlabeled=100, calibration=0.25).fit(spectra, library)
        ranked = list(on_device.rank(spectra[:20], library))
    rounded = {"validation_loss": 0, "weights": []}
    assert {**on_device.training_, **rounded} == {**identifier.training_, **rounded}
    np.testing.assert_allclose(on_device.training_["weights"], identifier.training_["weights"], rtol=1e-9)
    assert on_device.training_["validation_loss"] == pytest.approx(identifier.training_["validation_loss"], rel=1e-5)
    np.testing.assert_allclose(on_device.model_.calibration_scores_, identifier.model_.calibration_scores_, rtol=1e-5)
    for a, b in zip(expected, ranked, strict=True):
        np.testing.assert_allclose(b.distances, a.distances, rtol=1e-6)


def test_rankings_use_the_fitted_kernel(identifier, library, spectra):
    changed = copy(identifier)
    changed.model_ = copy(identifier.model_).set_params(input_kernel=float)  # as in a damaged file
    expected, ranked = (list(given.rank(spectra[:3], library)) for given in (identifier, changed))
    for a, b in zip(expected, ranked, strict=True):
        np.testing.assert_array_equal(b.rows, a.rows)
    changed.model_.regression_ = None
    with pytest.raises(ValueError, match="has no kernel"):
        check_model(changed.model_, identifier.fingerprints_)


def test_a_saved_identifier_gives_the_same_rankings(identifier, library, spectra, tmp_path):
    identifier.save(tmp_path / "m")
    loaded = MetaboliteIdentifier.load(tmp_path / "m")
    assert (loaded.adducts_, loaded.fingerprints_, loaded.training_) == (
        identifier.adducts_,
        identifier.fingerprints_,
        identifier.training_,
    )
    for a, b in zip(identifier.rank(spectra, library), loaded.rank(spectra, library), strict=True):
        np.testing.assert_allclose(a.distances, b.distances, atol=1e-10)
        assert a.set_size == b.set_size


@pytest.mark.parametrize("method", ["iokr", "oel0"])
def test_other_methods_without_calibration(method, library, spectra):
    identifier = MetaboliteIdentifier(method=method, calibration=0.0).fit(spectra[:60], library)
    assert isinstance(identifier.model_, IOKR if method == "iokr" else OEL)
    assert not hasattr(identifier.model_, "calibration_scores_")
    ranking = next(iter(identifier.rank(spectra[:1], library)))
    assert ranking.set_size is None
    assert not ranking.in_set.any()


def test_molecules_outside_the_library_are_used_for_training(library, spectra):
    outside = spectra_of(["CCCCCCCCCCCCCCCC", "C1CCC2CCCCC2C1"])
    identifier = MetaboliteIdentifier(method="iokr", calibration=0.1).fit([*spectra[:40], *outside], library)
    assert identifier.training_["spectra"] + identifier.training_["calibration_spectra"] >= 40


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
        MetaboliteIdentifier().fit([*spectra[:30], bad], library)
    skipping = MetaboliteIdentifier(method="iokr", calibration=0.0, errors="skip").fit([*spectra[:30], bad], library)
    assert [p.source for p in skipping.problems_] == ["unusable"]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"method": "svm"}, "method must be"), ({"calibration": 1.0}, "below 1"), ({"n_unlabeled": 0}, "unlabeled")],
)
def test_invalid_training_is_rejected(library, spectra, options, message):
    with pytest.raises(ValueError, match=message):
        MetaboliteIdentifier(**options).fit(spectra, library)
    with pytest.raises(ValueError, match="too few to train on"):
        MetaboliteIdentifier().fit(spectra[:5], library)


def test_a_calibration_molecule_counts_once(library, spectra):
    replicates = [replace(s, name=f"{s.name}-{i}") for i in range(5) for s in spectra[:40]]
    identifier = MetaboliteIdentifier(method="iokr", calibration=0.3).fit(replicates, library)
    assert identifier.training_["calibration_spectra"] == len(identifier.model_.calibration_scores_) <= 13


def test_other_models_are_rejected(tmp_path, identifier):
    identifier.save(tmp_path / "m")
    known = read_notes(tmp_path / "m")
    for notes in ({}, {**known, "kind": "other"}, {**known, "fingerprints": ["x"]}, []):
        edit(FORMAT, tmp_path / "m", lambda content, _, notes=notes: {**content, "notes": notes})
        with pytest.raises(ValueError, match=r"not a model for metabolites|notes"):
            MetaboliteIdentifier.load(tmp_path / "m")


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprints": None},
        {"fingerprints": [["maccs"]]},
        {"fingerprints": ["maccs"]},
        {"adducts": None},
        {"training": 5},
        {"parameters": {"unknown": 1}},
        {"parameters": {"method": ["oel"]}},
        {"parameters": {"random_state": {}}},
        {"parameters": {"random_state": "x"}},
        {"parameters": {"calibration": 1e308}},
        {"parameters": 5},
        {"kind": None},
    ],
    ids=str,
)
def test_hostile_notes_of_a_model_are_rejected_by_name(tmp_path, identifier, change):
    identifier.save(tmp_path / "valid")
    notes = {**read_notes(tmp_path / "valid"), **change}
    save_model(identifier.model_, tmp_path / "m", notes=notes)
    with pytest.raises(ValueError, match=f"{tmp_path / 'm'} is not a model for metabolites"):
        MetaboliteIdentifier.load(tmp_path / "m")


def test_other_estimators_are_rejected(tmp_path, identifier):
    identifier.save(tmp_path / "valid")
    notes, rows = read_notes(tmp_path / "valid"), np.eye(6, 300)
    for name, model in {"KDE": KDE(n_components=2), r"shape \(6, 300\)": IOKR()}.items():
        save_model(model.fit(rows, rows), tmp_path / name[:3], notes=notes)
        with pytest.raises(ValueError, match=f"{tmp_path / name[:3]} is not a model for metabolites.*{name}"):
            MetaboliteIdentifier.load(tmp_path / name[:3])


def test_the_estimator_is_that_of_the_function(identifier, library, spectra):
    estimator = MetaboliteIdentifier(n_unlabeled=100, calibration=0.25)
    assert clone(estimator).get_params() == estimator.get_params()
    without_smiles = [replace(spectrum, smiles=None) for spectrum in spectra]
    estimator.fit(without_smiles, library, [spectrum.smiles for spectrum in spectra])
    assert estimator.training_ == identifier.training_
    assert estimator.problems_ == []
    np.testing.assert_allclose(estimator.model_.calibration_scores_, identifier.model_.calibration_scores_)


def test_unusable_spectra_are_skipped_on_request(library, spectra, capsys):
    bad = replace(spectra[0], name="unusable", smiles=None)
    estimator = MetaboliteIdentifier(method="iokr", calibration=0.0, errors="skip", verbose=1)
    estimator.fit([*spectra[:30], bad], library)
    assert [problem.source for problem in estimator.problems_] == ["unusable"]
    assert "IOKRCV on 4 splits of 30 spectra" in capsys.readouterr().err
    with pytest.raises(ValueError, match="No spectrum can be used"):
        estimator.fit([bad], library)
    with pytest.raises(ValueError, match="errors must be one of raise, skip"):
        MetaboliteIdentifier(errors="ignore").fit(spectra, library)


def test_predictions_are_the_first_molecules(identifier, library, spectra):
    rankings = list(identifier.rank(spectra[:20], library, k=1))
    expected = [library.get_smiles(ranking.rows)[0] for ranking in rankings]
    assert identifier.predict(spectra[:20], library) == expected
    assert np.mean([s.smiles == p for s, p in zip(spectra, expected, strict=False)]) > 0.5
    bad = replace(spectra[3], precursor_mz=None, name="bad")
    with pytest.raises(ValueError, match=r"bad: it has no precursor_mz.*Use rank"):
        identifier.predict([spectra[0], bad], library)


def test_an_unfitted_identifier_is_named(library, spectra, tmp_path):
    for call in (
        lambda: MetaboliteIdentifier().predict(spectra, library),
        lambda: MetaboliteIdentifier().rank(spectra, library),
        lambda: MetaboliteIdentifier().save(tmp_path / "m"),
    ):
        with pytest.raises(NotFittedError, match="MetaboliteIdentifier"):
            call()


def test_a_model_without_finite_distances_is_reported(tmp_path, identifier, library, spectra):
    identifier.save(tmp_path / "model")
    broken = MetaboliteIdentifier.load(tmp_path / "model")
    broken.model_.regression_.coefficients[:] = np.nan
    with pytest.raises(ValueError, match=r"finite"):
        broken.predict(spectra[:1], library)


def test_spectra_of_another_polarity_are_rejected_with_the_reason(identifier, library, spectra):
    assert polarities_of(identifier.adducts_) == ("positive",)
    negative = spectra_of([spectrum.smiles for spectrum in spectra[:2]], adduct="[M-H]-")
    unstated = [replace(negative[0], adduct=None), replace(negative[0], adduct=None, metadata={"ionmode": "negative"})]
    for problem in identifier.rank([*negative, *unstated], library):
        assert isinstance(problem, Problem)
        assert "on positive ions only" in problem.reason or "it is that of [M-H]-" in problem.reason
    accepted = list(identifier.rank(unstated, library, query=Query(by="formula")))
    assert all(isinstance(ranking, Ranking) for ranking in accepted)


def test_adducts_that_are_not_stated_are_found_in_training(library, spectra):
    mixed = [spectra[0], *spectra_of([spectra[1].smiles], adduct="[M-H]-"), *spectra_of([spectra[2].smiles])]
    unstated = [replace(spectrum, adduct=None, formula=None) for spectrum in mixed]
    labeled, problems = find_labeled([*unstated, replace(unstated[0], precursor_mz=1.0)], library)
    assert not problems
    assert [spectrum.adduct for spectrum in labeled.spectra] == ["[M+H]+", "[M-H]-", "[M+H]+", None]
    assert [spectrum.formula for spectrum in labeled.spectra[:3]] == [spectrum.formula for spectrum in mixed]
    assert labeled.adducts == ("[M+H]+", "[M-H]-")


def test_one_model_of_both_polarities_ranks_both(library, spectra):
    smiles = [spectrum.smiles for spectrum in spectra[:20]]
    both = [*spectra[:20], *spectra_of(smiles, seed=1, adduct="[M-H]-")]
    identifier = MetaboliteIdentifier(method="iokr", calibration=0).fit(both, library)
    assert polarities_of(identifier.adducts_) == ("positive", "negative")
    rankings = list(identifier.rank([both[0], both[20]], library))
    assert all(isinstance(ranking, Ranking) for ranking in rankings)
