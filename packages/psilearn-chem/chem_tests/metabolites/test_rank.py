"""Rankings of the molecules of a library."""

from dataclasses import replace

import numpy as np
import pytest

from chem_tests.chemistry import build_library, smiles_list, spectra_of
from psilearn import IOKR
from psilearn.decoding import PerExampleCandidates
from psilearn.kernels import GaussianTanimoto
from psilearn_chem import CandidateLibrary, Fingerprints, MoleculeList, spectrum_kernel
from psilearn_chem.metabolites import MetaboliteIdentifier
from psilearn_chem.spectra import Problem


def test_rankings_agree_with_the_estimator(identifier, library, spectra):
    """Without a second stage."""
    identifier = MetaboliteIdentifier.from_model(identifier.model_, identifier.fingerprints_, identifier.adducts_)
    ranked = list(identifier.rank(spectra[:20], library, k=5))
    for spectrum, ranking in zip(spectra, ranked, strict=False):
        rows = library.find_formula(spectrum.formula)
        top = identifier.model_.predict_topk([spectrum], 6, PerExampleCandidates([library.bits[rows]]))
        count = min(5, rows.stop - rows.start)
        np.testing.assert_allclose(ranking.distances, top.distances[0, :count], atol=1e-10)
        assert ranking.n_candidates == rows.stop - rows.start
        inside = identifier.model_.predict_set([spectrum], 0.9, PerExampleCandidates([library.bits[rows]]))
        assert ranking.set_size == inside.sizes[0]
        assert ranking.in_set.sum() == min(5, inside.sizes[0])
        gaps = np.append(np.diff(ranking.distances), ranking.margins[-1])
        np.testing.assert_allclose(ranking.margins, np.where(gaps < 1e-12, 0, gaps), atol=1e-10)


def test_an_embedded_library_gives_the_same_rankings(identifier, tmp_path):
    """The stored embeddings are float32. No query is a calibration spectrum, whose score would be the limit itself."""
    copy, queries = build_library(tmp_path / "lib"), spectra_of(smiles_list()[:60:2], seed=5)
    before = list(identifier.rank(queries, copy))
    assert copy.embedded(identifier.model_, build=True).g.dtype == np.float32
    for a, b in zip(before, identifier.rank(queries, copy), strict=True):
        np.testing.assert_allclose(a.distances, b.distances, atol=1e-6)
        np.testing.assert_allclose(a.ranks, b.ranks)
        assert a.set_size == b.set_size


def test_training_molecules_are_marked(identifier, library, spectra):
    outputs = {row.tobytes() for row in identifier.model_.candidates_.outputs}
    for ranking in identifier.rank(spectra[:10], library, k=None):
        assert ranking.trained_on.tolist() == [library.bits[row].tobytes() in outputs for row in ranking.rows]


def test_other_spectra_are_ranked_despite_a_problem(identifier, library, spectra):
    bad = replace(spectra[3], precursor_mz=None, name="bad")
    results = list(identifier.rank([spectra[0], bad, spectra[1]], library))
    assert [isinstance(result, Problem) for result in results] == [False, True, False]
    assert results[1].source == "bad"
    assert [ranking.spectrum.name for ranking in (results[0], results[2])] == [spectra[0].name, spectra[1].name]
    assert [type(result) for result in identifier.rank([bad], library)] == [Problem]
    assert list(identifier.rank([], library)) == []


def test_a_library_with_other_fingerprints_is_rejected(identifier, spectra, tmp_path):
    other = build_library(tmp_path / "other", kinds=("maccs",))
    with pytest.raises(ValueError, match="--fingerprints morgan,maccs"):
        next(identifier.rank(spectra, other))


def test_invalid_ranking_is_rejected(identifier, library, spectra):
    for options, message in (
        ({"ties": "lucky"}, "ties must be"),
        ({"k": 0}, "k must be"),
        ({"coverage": 2}, "coverage"),
    ):
        with pytest.raises(ValueError, match=message):
            list(identifier.rank(spectra[:1], library, **options))


@pytest.mark.parametrize("ties", ["expected", "optimistic", "pessimistic"])
def test_tied_molecules_share_their_rank(tmp_path, ties):
    """Molecules with the same MACCS keys cannot be distinguished."""
    branched = [f"{'C' * i}C(C)C{'C' * (9 - i)}" for i in range(1, 5)]
    molecules = MoleculeList([*branched, "CCCCCCCCCCCCC", "CC(C)(C)CCCCCCCCC"], [""] * 6)
    coarse = CandidateLibrary.build(molecules, tmp_path / "lib", Fingerprints(("maccs",)))
    measured = spectra_of(molecules.smiles)
    model = IOKR(spectrum_kernel(0.5), GaussianTanimoto(packed=True))
    model.fit(measured, coarse.fingerprints(molecules.smiles).bits)
    identifier, n_tied = MetaboliteIdentifier.from_model(model, coarse.fingerprints), 0
    for ranking in identifier.rank(measured, coarse, k=None, ties=ties):
        bits = [coarse.bits[row].tobytes() for row in ranking.rows]
        for key in set(bits):
            places = np.array([i for i, other in enumerate(bits) if other == key])
            positions = places + 1.0
            shared = {"expected": positions.mean(), "optimistic": positions[0], "pessimistic": positions[-1]}[ties]
            np.testing.assert_allclose(ranking.ranks[places], shared)
            assert not ranking.margins[places[:-1]].any()
            n_tied += len(places) > 1
    assert n_tied > 0


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_sets_consist_of_the_molecules_whose_p_value_is_large_enough(identifier, spectra, library, coverage):
    for ranking in identifier.rank(spectra[:20], library, k=None, coverage=coverage):
        assert np.array_equal(ranking.in_set, ranking.p_values > 1 - coverage + 1e-12)
        assert ranking.p_values[0] == 1
        for is_kind in (ranking.trained_on, ~ranking.trained_on):  # molecules with and without training spectra
            assert (np.diff(ranking.p_values[is_kind]) <= 0).all()
