"""The choice of parameters is that of separate fits, compared by their decoded losses."""

from dataclasses import replace

import numpy as np
import pytest

from chem_tests.chemistry import spectra_of
from psilearn.decoding import PerExampleCandidates
from psilearn.kernels import Aligned, Gaussian, uniform
from psilearn.metrics import kernel_loss
from psilearn.model_selection.path_search import PathSearch
from psilearn.utils import distinct
from psilearn_chem import ProbabilityProduct
from psilearn_chem.metabolites import MetaboliteIdentifier, parameter_choice
from psilearn_chem.metabolites.parameter_choice import (
    OUTPUT_KERNEL,
    Grid,
    Mixture,
    ParameterChoice,
    Setting,
    SpectrumSimilarity,
    list_mixtures,
)
from psilearn_chem.metabolites.queries import find_labeled
from psilearn_chem.metabolites.ranking import needs_formula

GRID = Grid([Mixture("uniform", None), Mixture("alignf", 0.5)], [1e-4, 1e-2], [0.1, 1.0], [5, 20], [0.5], 30)


@pytest.fixture(scope="module")
def labeled(library, spectra):
    found, problems = find_labeled(spectra, library)
    assert not problems
    return found


@pytest.fixture(scope="module")
def similarity(spectra):
    return SpectrumSimilarity.of(spectra)


@pytest.fixture
def choice(labeled, similarity):
    groups = distinct(labeled.bits).inverse
    return ParameterChoice(labeled, similarity, groups, 0, lambda _: None, GRID)


def test_a_mixture_of_matrices_equals_the_kernel_on_spectra(similarity, labeled, spectra):
    rows = np.arange(120)
    for mixture in (Mixture("uniform", None), Mixture("uniform", 0.7), Mixture("alignf", 0.7)):
        on_rows = similarity.on_rows(mixture, OUTPUT_KERNEL).fit(rows, labeled.bits)
        weights = similarity.weights(mixture, labeled.bits, OUTPUT_KERNEL)
        on_spectra = mixture.weight(similarity.kernels, weights)
        np.testing.assert_allclose(on_rows(rows), on_spectra(spectra), atol=1e-12)
    kernels = [ProbabilityProduct(of).normalized() for of in ("peaks", "losses")]
    mean = similarity.on_rows(Mixture("uniform", 0.3), OUTPUT_KERNEL)
    np.testing.assert_allclose(mean(rows), Gaussian(0.3, uniform(kernels))(spectra), atol=1e-12)
    aligned = Aligned(kernels, OUTPUT_KERNEL).fit(spectra, labeled.bits)
    np.testing.assert_allclose(similarity.weights(Mixture("alignf"), labeled.bits, OUTPUT_KERNEL), aligned.weights_)
    with pytest.raises(ValueError, match="combination must be one of uniform, alignf"):
        Mixture("mean")


@pytest.mark.parametrize("combination", ["uniform", "alignf"])
def test_kernels_on_formulas_are_parts_of_a_mixture_on_request(similarity, labeled, combination):
    rows, spectra = np.arange(120), labeled.spectra
    extended = SpectrumSimilarity.of(spectra, formulas=True)
    with_formulas, without = Mixture(combination, 0.5, formulas=True), Mixture(combination, 0.5)
    on_rows = extended.on_rows(with_formulas, OUTPUT_KERNEL).fit(rows, labeled.bits)
    weights = extended.weights(with_formulas, labeled.bits, OUTPUT_KERNEL)
    on_spectra = with_formulas.weight(extended.kernels, weights)
    np.testing.assert_allclose(on_rows(rows), on_spectra(spectra), atol=1e-12)
    assert needs_formula(on_spectra) == any(weights[2:]) and len(weights) == len(extended.kernels) > 2
    peaks = extended.on_rows(without, OUTPUT_KERNEL).fit(rows, labeled.bits)
    expected = similarity.on_rows(without, OUTPUT_KERNEL).fit(rows, labeled.bits)
    np.testing.assert_allclose(peaks(rows), expected(rows), atol=1e-12)
    weights = extended.weights(without, labeled.bits, OUTPUT_KERNEL)
    assert not any(weights[2:]) and not needs_formula(without.weight(extended.kernels, weights))


def test_mixtures_with_formulas_are_compared_next_to_those_without():
    assert [str(mixture) for mixture in list_mixtures((None, 0.5, 1.0), formulas=True)] == [
        *(f"{combination}, {gamma}" for combination in ("uniform", "alignf") for gamma in ("linear", "γ=0.5", "γ=1")),
        *("uniform with formulas, γ=0.5", "alignf with formulas, γ=0.5"),
    ]
    assert len(list_mixtures((None, 0.5, 1.0), formulas=False)) == 6


def mean_loss(choice, setting, unlabeled=None):
    """Return the validation loss that a user would compute: fit, predict among candidates, compare."""
    labeled, losses = choice.labeled, []
    n_training = max(len(train) for train, _ in choice.splits())
    for fitting, held in choice.splits():
        kernel = choice.similarity.on_rows(setting.mixture, OUTPUT_KERNEL)
        model = setting.make_model(kernel, n_training, GRID)
        model.fit(fitting, labeled.bits[fitting], unlabeled=None if unlabeled is None else iter([unlabeled]))
        predicted = model.predict(held, PerExampleCandidates([labeled.sets[i] for i in held]))
        losses.append(float(kernel_loss(labeled.bits[held], predicted, OUTPUT_KERNEL)))
    return np.mean(losses)


def test_iokr_with_the_smallest_loss_of_separate_fits_is_chosen(choice):
    setting = choice.choose("iokr", None)
    losses = {(m, a): mean_loss(choice, Setting(m, a, 0.0)) for m in GRID.mixtures for a in GRID.alphas}
    assert setting.validation_loss == pytest.approx(min(losses.values()), abs=1e-9)
    assert losses[setting.mixture, setting.alpha] == pytest.approx(setting.validation_loss, abs=1e-9)
    assert setting.supervision is None and setting.n_components is None


@pytest.mark.parametrize("method", ["oel", "oel0"])
def test_the_embedding_with_the_smallest_loss_of_separate_fits_is_chosen(choice, library, method):
    unlabeled = np.asarray(library.bits[:60])
    iokr, setting = choice.choose("iokr", None), choice.choose(method, unlabeled)
    supervisions = GRID.supervisions if method == "oel" else [1.0]
    losses = {
        (a, c, p): mean_loss(choice, Setting(iokr.mixture, a, 0.0, c, p), unlabeled if method == "oel" else None)
        for a in (0.1 * iokr.alpha, iokr.alpha)
        for c in supervisions
        for p in GRID.sizes
    }
    assert setting.mixture == iokr.mixture
    assert setting.validation_loss == pytest.approx(min(losses.values()), abs=1e-9)
    chosen = losses[setting.alpha, setting.supervision, setting.n_components]
    assert chosen == pytest.approx(setting.validation_loss, abs=1e-9)


def test_few_molecules_limit_the_number_of_components(choice):
    setting = replace(choice, grid=replace(GRID, sizes=[1000])).choose("oel0", None)
    assert setting.n_components == min(len(np.unique(choice.groups[train])) for train, _ in choice.splits())


def test_thinned_sets_keep_the_truth(labeled):
    thinned = labeled.thin(3, seed=0)
    for candidates, full, bits in zip(thinned, labeled.sets, labeled.bits, strict=True):
        assert len(candidates) == min(3, len(full))
        assert (candidates == bits).all(axis=1).any()
        assert {row.tobytes() for row in candidates} <= {row.tobytes() for row in full}


def test_spectra_of_one_molecule_stay_together(library, spectra, monkeypatch):
    """A molecule that was measured twice is never both in training and in validation."""
    calls = []
    fit = PathSearch.fit

    def record(search, X, y, *data):
        calls.append((search.cv, y))
        return fit(search, X, y, *data)

    monkeypatch.setattr(PathSearch, "fit", record)
    monkeypatch.setattr(parameter_choice, "GRID", GRID)
    twice = [*spectra[:40], *spectra_of([s.smiles for s in spectra[:40]], seed=8)]
    MetaboliteIdentifier(method="iokr", calibration=0.2).fit(twice, library)
    assert len(calls) == 1
    for splits, outputs in calls:
        for fitting, held in splits:
            rows = {row.tobytes() for row in outputs[fitting]}
            assert not any(row.tobytes() in rows for row in outputs[held])


def test_mixtures_are_compared_on_as_many_splits_as_hold_out_enough(monkeypatch):
    choice = ParameterChoice(None, None, np.repeat(np.arange(20), 2), 0, print)  # 40 spectra in 4 splits of 10
    sizes = {}
    for enough in (1, 10, 11, 25, 40, 1500):
        monkeypatch.setattr(parameter_choice, "MIN_MIXTURE_HELD_OUT", enough)
        sizes[enough] = len(choice.mixture_splits())
    assert sizes == {1: 1, 10: 1, 11: 2, 25: 3, 40: 4, 1500: 4}
