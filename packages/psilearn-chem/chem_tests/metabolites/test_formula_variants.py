"""Candidates of several formulas, each compared with the spectrum as its formula explains it."""

from dataclasses import replace

import numpy as np
import pytest

from psilearn import IOKR
from psilearn.decoding import PerExampleCandidates
from psilearn.kernels import Gaussian, GaussianTanimoto, Linear, uniform, weighted
from psilearn_chem import Fingerprints, MetaboliteIdentifier, ProbabilityProduct, SubformulaKernel
from psilearn_chem.metabolites import Query
from psilearn_chem.metabolites.ranking import iter_variants, needs_formula

PEAKS, FORMULAS = ProbabilityProduct().normalized(), SubformulaKernel("losses", floor=0.01).normalized()


@pytest.fixture(scope="module")
def explained(spectra):
    """Return an identifier whose kernel compares formulas, fitted and calibrated."""
    fingerprints = Fingerprints()
    bits = fingerprints([spectrum.smiles for spectrum in spectra]).bits
    model = IOKR(weighted([PEAKS, FORMULAS], [0.3, 0.7]), GaussianTanimoto(packed=True), alpha=1e-3)
    model.fit(spectra[:80], bits[:80]).calibrate(spectra[80:], bits[80:], PerExampleCandidates([bits] * 40))
    return MetaboliteIdentifier.from_model(model, fingerprints, ("[M+H]+",))


def distances_by_formula(model, spectrum, rows, library):
    """Return the distance of each candidate to the prediction for the spectrum with the candidate's own formula."""
    distances = []
    for row, formula in zip(range(rows.start, rows.stop), library.get_formulas(rows), strict=True):
        candidates = PerExampleCandidates([library.bits[row : row + 1]])
        (ranked,) = model.rank_candidates([replace(spectrum, formula=formula)], candidates)
        distances.append(float(ranked.distances[0]))
    return np.array(distances)


def test_candidates_by_mass_are_compared_by_their_own_formula(explained, library, spectra):
    query = Query(by="mass", ppm=10_000.0)
    unknown = [replace(spectrum, formula=None) for spectrum in spectra[:2]]
    for spectrum, ranking in zip(unknown, explained.rank(unknown, library, k=None, query=query), strict=True):
        rows, _ = query.find_candidates(spectrum, library)
        assert len(set(library.get_formulas(rows))) > 1
        expected = distances_by_formula(explained.model_, spectrum, rows, library)
        np.testing.assert_allclose(ranking.distances, np.sort(expected), rtol=1e-9)
        np.testing.assert_allclose(expected[ranking.rows - rows.start], ranking.distances, rtol=1e-9)
        assert ranking.n_candidates == len(expected) and ranking.set_size == ranking.in_set.sum()


def test_one_formula_gives_the_ranking_of_the_estimator(explained, library, spectra):
    rankings = list(explained.rank(spectra[:5], library, k=3, coverage=0.8))
    candidates = [library.bits[library.find_formula(spectrum.formula)] for spectrum in spectra[:5]]
    ranked = explained.model_.rank_candidates(spectra[:5], PerExampleCandidates(candidates), k=3, coverage=0.8)
    for ranking, expected in zip(rankings, ranked, strict=True):
        np.testing.assert_array_equal(ranking.distances, expected.distances)
        np.testing.assert_array_equal(ranking.in_set, expected.in_set)
        assert (ranking.set_size, ranking.n_candidates) == (expected.set_size, expected.n_candidates)


def test_variants_are_the_formulas_of_the_rows_with_the_adduct_that_fits(library, spectra):
    spectrum = replace(spectra[0], formula=None, adduct=None)
    rows = slice(0, len(library))
    variants = list(iter_variants(spectrum, rows, library, ("[M+H]+",)))
    assert [variant.formula for variant, _ in variants] == library.formulas
    assert all(part == library.find_formula(variant.formula) for variant, part in variants)
    adducts = {variant.formula: variant.adduct for variant, _ in variants}
    assert adducts[spectra[0].formula] == "[M+H]+" and None in adducts.values()


def test_kernels_on_formulas_are_found_in_mixtures():
    for kernel in (FORMULAS, Gaussian(0.5, base=uniform([PEAKS, FORMULAS])), weighted([PEAKS, FORMULAS], [0.5, 0.5])):
        assert needs_formula(kernel)
    assert not needs_formula(Gaussian(0.5, base=uniform([PEAKS, PEAKS]))) and not needs_formula(Linear())
