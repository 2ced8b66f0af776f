"""Kernels on formulas of fragments and losses, compared with double loops over explained peaks."""

import gc
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from chem_tests.chemistry import different_smiles, spectra_of
from psilearn import IOKR, load_model, save_model
from psilearn.kernels import Gaussian, Linear, Tanimoto
from psilearn_chem import Spectrum, SubformulaFeatures, SubformulaKernel, spectrum_kernels, subformula_kernels
from psilearn_chem.molecules import Adduct, Formula
from psilearn_chem.molecules.subformulas import annotate_peaks, formula_text

ADDUCTS = ("[M+H]+", "[M-H]-", "[M+Na]+")


def fragment_spectra(n, seed=0, adducts=ADDUCTS):
    """Return spectra whose peaks are parts of random formulas with errors of mass, and some peaks of noise."""
    rng = np.random.default_rng(seed)
    spectra = []
    for i in range(n):
        c, h, o, s = rng.integers([3, 4, 0, 0], [7, 9, 4, 2])
        formula, adduct = Formula.parse(f"C{c}H{h}O{o}S{s}"), Adduct.parse(adducts[i % len(adducts)])
        parts = rng.integers(0, [c + 1, h + 1, o + 1, s + 1], (8, 4)) + np.array([1, 0, 0, 0])
        mz = parts @ [Formula.parse(symbol).mass for symbol in "CHOS"]
        mz = np.append(mz * (1 + rng.normal(0, 4e-6, 8)), rng.uniform(20, 90, 3))
        intensity = np.append(rng.random(10), 0.0)
        spectra.append(Spectrum(mz, intensity, adduct.mz(formula.mass), adduct.text, str(formula), name=f"s{i}"))
    return spectra


def weights(spectrum, of, power, ppm=10.0, floor=0.002):
    """Return the sum of intensities per formula, to a power, as a dictionary."""
    annotation = annotate_peaks(spectrum.mz, spectrum.formula, spectrum.adduct, ppm=ppm, floor=floor)
    totals = {}
    for peak, fragment in zip(annotation.peaks, annotation.fragments, strict=True):
        text = formula_text(annotation.symbols, fragment if of == "fragments" else annotation.ion - fragment)
        if spectrum.intensity[peak] > 0:
            totals[text] = totals.get(text, 0) + spectrum.intensity[peak]
    return {text: total**power for text, total in totals.items()}


@pytest.mark.parametrize("of", ["fragments", "losses"])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_the_kernel_is_the_double_loop_over_formulas(of, power):
    A, B = fragment_spectra(20), fragment_spectra(15, seed=1)
    kernel = SubformulaKernel(of, power, ppm=20.0, floor=0.001)
    rows, columns = ([weights(s, of, power, 20.0, 0.001) for s in spectra] for spectra in (A, B))
    expected = [[sum(w * b.get(f, 0) for f, w in a.items()) for b in columns] for a in rows]
    np.testing.assert_allclose(kernel(A, B), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diag(A), [sum(w * w for w in a.values()) for a in rows], rtol=1e-12)
    assert np.count_nonzero(expected) > 20


@pytest.mark.parametrize("of", ["fragments", "losses"])
def test_matrices_are_positive_semidefinite_and_independent_of_the_blocks(of):
    A = fragment_spectra(30)
    kernel = SubformulaKernel(of).normalized()
    K = kernel.gram(A)
    assert np.linalg.eigvalsh(K).min() > -1e-12
    for rows in (slice(0, 7), slice(7, 30), slice(29, 30)):
        np.testing.assert_allclose(kernel(A[rows], A[5:]), K[rows, 5:], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(kernel.paired(A, A[::-1]), np.diagonal(K[:, ::-1]), rtol=1e-12, atol=1e-15)


def test_annotations_are_kept_as_long_as_their_spectra(monkeypatch):
    calls = []
    annotate = subformula_kernels.annotate_peaks
    monkeypatch.setattr(subformula_kernels, "annotate_peaks", lambda *a, **k: calls.append(1) or annotate(*a, **k))
    A = fragment_spectra(5)
    before = len(spectrum_kernels._values)
    K = SubformulaKernel()(A)
    assert len(calls) == 5
    assert np.array_equal(SubformulaKernel()(A), K) and SubformulaKernel("losses")(A).shape == (5, 5)
    assert len(calls) == 5
    SubformulaKernel(ppm=3.0)(A)
    assert len(calls) == 10 and len(spectrum_kernels._values) == before + 5
    del A
    gc.collect()
    assert len(spectrum_kernels._values) == before


def test_a_spectrum_without_explained_peaks_is_similar_to_nothing():
    A = [*fragment_spectra(3), Spectrum([33.3, 44.4], [1.0, 1.0], 47.0491, "[M+H]+", "C2H6O")]
    K = SubformulaKernel().normalized()(A)
    assert not K[3].any() and K[0, 0] == pytest.approx(1)
    assert SubformulaKernel()(A[3:], A[3:]).tolist() == [[0.0]]


@pytest.mark.parametrize("power", [0.0, 0.5])
def test_features_are_the_vectors_of_the_kernel(power):
    A, B = fragment_spectra(12), fragment_spectra(8, seed=1)
    features = SubformulaFeatures("losses", power).fit([*A, *B])
    rows, others = features.transform(A), features.transform(B)
    assert sparse.isspmatrix_csr(rows) and rows.shape == (12, len(features.get_feature_names_out()))
    np.testing.assert_allclose(Linear()(rows, others), SubformulaKernel("losses", power)(A, B), rtol=1e-12)
    row = {f: rows[3, j] for j, f in enumerate(features.formulas_) if rows[3, j]}
    assert row == pytest.approx(weights(A[3], "losses", power))
    assert SubformulaFeatures("losses", power).fit(A[:1]).transform(B).shape[1] < rows.shape[1]
    if power == 0:
        shared = (rows @ others.T).toarray()
        sizes = rows.sum(axis=1) + others.sum(axis=1).T
        np.testing.assert_allclose(Tanimoto()(rows, others), shared / np.asarray(sizes - shared))


def test_features_can_be_pickled_and_need_a_fit():
    A = fragment_spectra(4)
    features = pickle.loads(pickle.dumps(SubformulaFeatures().fit(A)))
    assert (features.transform(A) != SubformulaFeatures().fit_transform(A)).nnz == 0
    with pytest.raises(ValueError, match="not fitted"):
        SubformulaFeatures().transform(A)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"formula": None}, r"SubformulaKernel needs the molecular formula .* A\[1\] \('s1'\)"),
        ({"formula": "water"}, r"A\[1\] \('s1'\) cannot be explained: 'water' is not a molecular formula"),
        ({"adduct": "[M+"}, r"A\[1\] \('s1'\) cannot be explained: .* is not an adduct"),
    ],
)
def test_spectra_without_a_usable_formula_are_rejected(change, message):
    first, second = fragment_spectra(2)
    with pytest.raises(ValueError, match=message):
        SubformulaKernel()([first, replace(second, **change)])


@pytest.mark.parametrize("change", [{"of": "peaks"}, {"power": -1.0}, {"ppm": 0.0}, {"floor": -1.0}])
def test_invalid_parameters_are_named(change):
    for name, call in (
        ("SubformulaKernel", lambda: SubformulaKernel(**change)(fragment_spectra(2))),
        ("SubformulaFeatures", lambda: SubformulaFeatures(**change).fit(fragment_spectra(2))),
    ):
        with pytest.raises(ValueError, match=f"{next(iter(change))} of {name}"):
            call()


def test_a_model_with_the_kernel_is_saved_and_loaded(tmp_path):
    A = fragment_spectra(9)
    Y = np.random.default_rng(0).normal(size=(9, 2))
    model = IOKR(Gaussian(0.5, base=SubformulaKernel("losses").normalized()), Linear(), alpha=1e-2).fit(A, Y)
    save_model(model, tmp_path / "model")
    assert np.array_equal(load_model(tmp_path / "model").predict(A), model.predict(A))


def test_spectra_of_known_molecules_without_an_adduct_are_protonated():
    spectra = spectra_of(different_smiles()[:6])
    bare = [replace(spectrum, adduct=None) for spectrum in spectra]
    assert np.array_equal(SubformulaKernel(floor=0.05)(bare), SubformulaKernel(floor=0.05)(spectra))
