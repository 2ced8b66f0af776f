"""The second stage: features by loops, probabilities, evidence of several spectra per molecule, saving."""

import csv
import io
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

import psilearn_chem
from chem_tests.chemistry import smiles_list, spectra_of
from psilearn.io import save_model
from psilearn.kernels import Tanimoto
from psilearn_chem import merge_spectra, spectrum_kernel
from psilearn_chem.metabolites import MetaboliteIdentifier, second_stage
from psilearn_chem.metabolites.candidate_model import FEATURES, FRAGMENT_FEATURES, MoleculePrior
from psilearn_chem.metabolites.identifier import notes_of
from psilearn_chem.metabolites.queries import find_labeled
from psilearn_chem.metabolites.rank_files import format_table
from psilearn_chem.metabolites.rank_report import find_support
from psilearn_chem.metabolites.reference_evidence import N_RELATIONS
from psilearn_chem.metabolites.second_stage import (
    MAX_FRAGMENTED,
    Candidates,
    SecondStage,
    explained_intensity,
    tanimoto,
)
from psilearn_chem.metabolites.second_stage_fit import MASSBANK_EVIDENCE, MASSBANK_WEIGHTS, Fit, Query, make_references
from psilearn_chem.molecules import Adduct, Formula
from psilearn_chem.spectra import Spectrum


@pytest.fixture(scope="module")
def several(library):
    """A model of molecules with two spectra each, measured separately, and a third spectrum of each."""
    chosen = [smiles_list()[i] for i in np.random.default_rng(1).permutation(len(smiles_list()))[:100]]
    first, second, third = (spectra_of(chosen, seed=seed) for seed in (0, 1, 2))
    identifier = MetaboliteIdentifier(method="iokr", calibration=0.25).fit([*first, *second], library)
    return identifier, third


def test_probabilities_are_a_softmax_of_the_features(identifier, library, spectra):
    stage, anchors = identifier.second_stage_, list(identifier.model_.regression_.anchors)
    outputs = stage.maker.references.bits
    for ranking in identifier.rank(spectra[:5], library, k=None):
        order = np.argsort(ranking.rows)
        bits = library.bits[np.sort(ranking.rows)]
        similarity = spectrum_kernel(gamma=None)([ranking.spectrum], anchors)[0]
        best = np.array(
            [max((similarity[j] for j, o in enumerate(outputs) if (o == row).all()), default=0) for row in bits]
        )
        has_reference = np.array([any((o == row).all() for o in outputs) for row in bits])
        near = np.argsort(-similarity, kind="stable")[:50]
        tanimoto = np.asarray(Tanimoto(packed=True)(bits, outputs[near]))
        products = np.where(tanimoto < 1, tanimoto, 0) * similarity[near]
        features = {
            "embedding": -0.5 * ranking.distances[order],
            "reference": has_reference,
            "evidence": has_reference * stage.maker.evidence(best),
            "pull": best,
            "prior": np.unpackbits(bits, axis=1) @ stage.maker.prior.weights,
            "neighbors": products[:, :10].sum(axis=1) / similarity[near][:10].sum(),
            "neighbor": products.max(axis=1),
        }
        assert ranking.n_candidates <= MAX_FRAGMENTED
        explained = explained_intensity(ranking.spectrum, library.get_smiles(np.sort(ranking.rows)))
        features["explained"], features["explained_cheaply"] = explained.T
        scores = sum(stage.model.weights[name] * values for name, values in features.items())
        expected = 0.7 * softmax(scores) + 0.3 * softmax(0.2 * scores)
        np.testing.assert_allclose(ranking.probabilities[order], expected, atol=1e-8)


def test_rankings_are_in_the_order_of_probabilities(identifier, library, spectra):
    for ranking in identifier.rank(spectra[:30], library, k=None):
        assert ranking.probabilities.sum() == pytest.approx(1)
        assert (np.diff(ranking.probabilities) <= 1e-12).all()
        assert (np.diff(ranking.ranks) >= 0).all()
        for is_kind in (ranking.trained_on, ~ranking.trained_on):  # a prefix of the candidates of each kind
            assert ranking.in_set[is_kind].tolist() == sorted(ranking.in_set[is_kind], reverse=True)
        assert ranking.set_size == ranking.in_set.sum()
        assert (ranking.in_set == (ranking.p_values > 0.1)).all()


def test_candidates_are_fragmented_in_the_order_of_the_training(identifier, library, spectra, monkeypatch):
    """The weights without fragments choose candidates, not the final ones, also in a loaded model."""
    stage = identifier.second_stage_
    assert set(stage.cheap) == set(stage.model.weights) - set(FRAGMENT_FEATURES)
    notes = stage.to_notes(np.arange(len(stage.maker.references.bits)))
    references = stage.maker.references
    loaded = SecondStage.from_notes(notes, references.bits, references.spectra)
    assert loaded.cheap == stage.cheap
    worst_first = replace(loaded, cheap={"embedding": -1.0})
    chosen = []
    monkeypatch.setattr(second_stage, "MAX_FRAGMENTED", 2)
    monkeypatch.setattr(Candidates, "explain", lambda self, rows: chosen.append(rows) or np.zeros((len(rows), 2)))
    for ranking in replace_stage(identifier, worst_first).rank(spectra[:5], library, k=None):
        if ranking.n_candidates > 2:
            order = np.argsort(ranking.rows)
            farthest = np.argsort(-ranking.distances[order], kind="stable")[:2]
            np.testing.assert_array_equal(chosen[-1], farthest)
    assert max(map(len, chosen)) == 2


@pytest.mark.parametrize("adduct", ["[M+H]+", "[M-H]-", "[M+Na]+"])
def test_a_spectrum_without_adduct_is_fragmented_as_the_ion_of_its_precursor(identifier, library, adduct):
    formula, smiles = library.get_formulas(slice(0, 1))[0], library.get_smiles([0])[0]
    precursor = Adduct.parse(adduct).mz(Formula.parse(formula).mass)
    stated = Spectrum(np.linspace(30.0, precursor, 40), np.ones(40), precursor_mz=precursor, adduct=adduct)
    queries = [replace(stated, formula=formula, adduct=given) for given in (adduct, None)]
    expected, found = identifier.rank(queries, library, query=psilearn_chem.Query())
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.probabilities, expected.probabilities)
    np.testing.assert_array_equal(
        find_support(replace(stated, adduct=None), smiles, formula), find_support(stated, smiles, formula)
    )


def replace_stage(identifier, stage):
    """Return the identifier with another second stage."""
    changed = copy(identifier)
    changed.second_stage_ = stage
    return changed


def test_confidence_depends_on_candidates_that_are_not_listed(identifier, library, spectra):
    """Known and new molecules have separate p-values, so that the largest one may be far down the ranking."""
    stage = identifier.second_stage_
    known_only = replace(stage.sets, known=np.full(100, 2.0))  # every known candidate has the p-value 1
    changed = replace_stage(identifier, replace(stage, sets=known_only))
    n_unlisted = 0
    for model in (identifier, changed, replace_stage(identifier, None)):
        whole = model.rank(spectra[:40], library, k=None)
        short, shorter = (model.rank(spectra[:40], library, k=k) for k in (2, 1))
        for complete, *others in zip(whole, short, shorter, strict=True):
            if complete.n_candidates == 1:
                assert complete.confidence == 1
                continue
            assert complete.confidence == pytest.approx(1 - complete.p_values[1:].max())
            assert [ranking.confidence for ranking in others] == pytest.approx([complete.confidence] * 2)
            assert [len(ranking.rows) for ranking in others] == [2, 1]
            n_unlisted += complete.p_values[1:].max() > complete.p_values[1]
    assert n_unlisted


def read_table(ranking, library):
    return list(csv.DictReader(io.StringIO(format_table([ranking], library))))


def test_tables_and_pages_show_probabilities(identifier, library, spectra, tmp_path):
    rankings = list(identifier.rank(spectra[:8], library, k=3))
    for ranking in rankings:
        rows = read_table(ranking, library)
        assert [float(row["probability"]) for row in rows] == pytest.approx(ranking.probabilities, abs=1e-6)
        assert [row["evidence"] != "" for row in rows] == ranking.trained_on.tolist()
    plain = read_table(replace(rankings[0], probabilities=None, evidence=None), library)
    assert {(row["probability"], row["evidence"]) for row in plain} == {("", "")}


def test_evidence_is_learned_from_several_spectra_per_molecule(several, library):
    identifier, third = several
    stage = identifier.second_stage_
    assert stage.maker.evidence != MASSBANK_EVIDENCE
    assert stage.maker.evidence([0.95])[0] > 0 > stage.maker.evidence([0.05])[0]
    trained = {row.tobytes() for row in stage.maker.references.bits}
    hits = []
    for spectrum, ranking in zip(third, identifier.rank(third, library, k=None), strict=True):
        true = library.fingerprints([spectrum.smiles]).bits[0].tobytes()
        assert (np.isfinite(ranking.evidence) == ranking.trained_on).all()
        if true in trained:
            hits.append(library.bits[ranking.rows[0]].tobytes() == true)
    assert len(hits) > 50
    assert np.mean(hits) > 0.9


def test_one_spectrum_per_molecule_uses_the_evidence_of_massbank(identifier):
    assert identifier.second_stage_.maker.evidence == MASSBANK_EVIDENCE
    assert identifier.second_stage_.maker.records is None
    assert identifier.second_stage_.model.known is None


def test_evidence_adds_up_over_the_spectra_of_query_and_candidate(several, library, tmp_path):
    """A merged query is compared with each reference spectrum by each of its parts, also by a loaded model."""
    identifier, third = several
    stage, anchors = identifier.second_stage_, list(identifier.model_.regression_.anchors)
    identifier.save(tmp_path / "model")
    fourth = spectra_of([spectrum.smiles for spectrum in third], seed=3)
    merged = [merge_spectra(pair) for pair in zip(third, fourth, strict=True)][:12]
    outputs, kernel, n_checked = stage.maker.references.bits, spectrum_kernel(gamma=None), 0
    for model in (identifier, MetaboliteIdentifier.load(tmp_path / "model")):
        for query, ranking in zip(merged, model.rank(merged, library, k=None), strict=True):
            for row, evidence in zip(ranking.rows, ranking.evidence, strict=True):
                references = [a for a, o in zip(anchors, outputs, strict=True) if (o == library.bits[row]).all()]
                if not references:
                    assert np.isnan(evidence)
                    continue
                values = np.asarray(kernel(list(query.parts), references))
                ratios = stage.maker.records.ratios[N_RELATIONS - 1](values.ravel())  # instruments are not stated
                assert evidence == pytest.approx(ratios.sum() / np.sqrt(ratios.size))
                n_checked += values.shape == (2, 2)
    assert n_checked > 20


def test_training_on_merged_spectra_compares_merged_queries(library):
    chosen = [smiles_list()[i] for i in np.random.default_rng(1).permutation(len(smiles_list()))[:8]]
    parts = zip(*(spectra_of(chosen, seed=seed) for seed in (0, 1)), strict=True)
    merged = [merge_spectra(pair) for pair in parts]
    references = make_references(find_labeled(merged, library)[0])
    assert references.is_merged
    candidates = Candidates(merged[0], references.bits[:1], None, np.linspace(0, 1, len(references.bits)), None)
    pairs = candidates.pairs_with(references, [3, 5])
    np.testing.assert_array_equal(pairs.similarity, candidates.similarity[None, [3, 5]])


def test_candidates_with_references_do_not_change_weights_where_all_molecules_are_new():
    """They are never the truth there: without them, the other weights stay those of the remaining candidates."""
    rng = np.random.default_rng(0)

    def draw(n_references):
        features = {name: rng.normal(size=6) for name in FEATURES}
        features["reference"] = np.append(np.zeros(6 - n_references), np.ones(n_references))
        candidates = Candidates(None, np.zeros((6, 1), dtype=np.uint8), None, None, None)
        return Query(candidates, features, int(rng.integers(4)), 0, False)

    queries = [draw(2) for _ in range(50)]
    shorter = []
    for query in queries:
        features = {name: values[:4] for name, values in query.features.items()}
        shorter.append(replace(query, candidates=replace(query.candidates, bits=np.zeros((4, 1))), features=features))
    fit = Fit(("embedding", "prior"), MASSBANK_WEIGHTS)
    assert fit.model(queries).weights == pytest.approx(fit.model(shorter).weights)
    assert {name: fit.model(queries).weights[name] for name in MASSBANK_WEIGHTS} == MASSBANK_WEIGHTS
    assert Fit(fit.names).model(queries).weights != pytest.approx(Fit(fit.names).model(shorter).weights)


def test_the_second_stage_is_saved(identifier, library, spectra, tmp_path):
    identifier.save(tmp_path / "model")
    loaded = MetaboliteIdentifier.load(tmp_path / "model")
    for a, b in zip(*(model.rank(spectra[:10], library) for model in (identifier, loaded)), strict=True):
        np.testing.assert_array_equal(a.rows, b.rows)
        np.testing.assert_allclose(a.probabilities, b.probabilities)
        np.testing.assert_allclose(a.evidence, b.evidence)
        np.testing.assert_array_equal(a.in_set, b.in_set)


def test_a_model_of_an_older_version_is_loaded(identifier, library, spectra, tmp_path):
    """The notes and the parameters of version 0.1.0 do not mention a second stage."""
    notes = notes_of(identifier)
    del notes["second_stage"], notes["parameters"]["second_stage"]
    save_model(identifier.model_, tmp_path / "model", notes=notes)
    loaded = MetaboliteIdentifier.load(tmp_path / "model")
    assert loaded.second_stage_ is None
    ranking = next(loaded.rank(spectra[:1], library))
    assert ranking.probabilities is None
    assert (np.diff(ranking.distances) >= 0).all()


def test_the_second_stage_can_be_left_out(library, spectra):
    plain = MetaboliteIdentifier(method="iokr", second_stage=False, calibration=0).fit(spectra[:60], library)
    assert plain.second_stage_ is None
    with pytest.raises((TypeError, ValueError), match="second_stage"):
        MetaboliteIdentifier(second_stage="yes").fit(spectra, library)


def test_there_is_no_second_stage_without_a_training_molecule_in_the_library(library):
    outside = spectra_of([f"Br{smiles}" for smiles in smiles_list() if smiles.startswith("CC")][:30])
    fitted = MetaboliteIdentifier(method="iokr", calibration=0.0).fit(outside, library)
    assert fitted.second_stage_ is None


def test_a_damaged_second_stage_is_rejected(identifier, tmp_path):
    notes = notes_of(identifier)
    sets = {**notes["second_stage"]["sets"], "levels": {"new": [[0.0]], "known": [[0.0]]}}
    changes = (
        ({"outputs": [0, 1, 2]}, "3 references"),
        ({"prior": {"weights": [1.0]}}, "prior"),
        ({"sets": sets}, "quantiles"),
    )
    for change, message in changes:
        damaged = {**notes, "second_stage": {**notes["second_stage"], **change}}
        save_model(identifier.model_, tmp_path / message.split()[-1], notes=damaged)
        with pytest.raises(ValueError, match=message):
            MetaboliteIdentifier.load(tmp_path / message.split()[-1])


def test_priors_and_similarities_of_packed_fingerprints_are_those_of_their_bits():
    rng = np.random.default_rng(0)
    A, B = (rng.integers(0, 256, (n, 5), dtype=np.uint8) for n in (7, 4))
    A[0] = B[0] = 0
    np.testing.assert_array_equal(tanimoto(A, B), Tanimoto(packed=True)(A, B))
    weights = rng.normal(size=40)
    np.testing.assert_allclose(MoleculePrior(weights)(A), np.unpackbits(A, axis=1) @ weights, atol=1e-12)
