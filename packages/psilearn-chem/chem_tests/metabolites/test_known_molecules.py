"""The model of known molecules: probabilities, interactions, and what it learns."""

import numpy as np
import pytest

from psilearn_chem.metabolites.candidate_model import (
    INPUTS,
    NEW_FEATURES,
    OWN_INPUTS,
    CandidateModel,
    KnownMolecules,
    known_inputs,
    mixture_log_probabilities,
)
from psilearn_chem.metabolites.notes import from_notes, to_notes
from psilearn_chem.metabolites.second_stage_fit import SEPARATE, Query, fit_evidence, list_fits


def draw_features(rng, n):
    return {name: rng.normal(size=n) for name in (*OWN_INPUTS, "reference")}


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(4000, len(INPUTS)))
    odds = inputs[:, 0] * inputs[:, 1] - 0.5 + inputs[:, 2]  # an interaction, which no linear model finds
    return KnownMolecules.fit(inputs, rng.random(4000) < 1 / (1 + np.exp(-odds))), inputs, odds


def test_interactions_are_learned(model):
    fitted, inputs, odds = model
    assert np.corrcoef(fitted(inputs), odds)[0, 1] > 0.97


def test_odds_of_known_candidates_and_probabilities_of_new_ones_are_combined(model):
    fitted, rng = model[0], np.random.default_rng(1)
    features, scores = draw_features(rng, 7), rng.normal(size=7)
    is_known = np.array([False, True, False, True, False, False, False])
    odds = np.exp(fitted(known_inputs(features, scores, is_known)))
    new = np.exp(mixture_log_probabilities(scores[~is_known], np.array([5])))
    p = np.exp(fitted.log_probabilities(features, scores, is_known))
    np.testing.assert_allclose(p[is_known], odds / (1 + odds.sum()))
    np.testing.assert_allclose(p[~is_known], new / (1 + odds.sum()))
    assert p.sum() == pytest.approx(1)
    expected = mixture_log_probabilities(scores, np.array([7]))
    np.testing.assert_allclose(fitted.log_probabilities(features, scores, np.zeros(7, dtype=bool)), expected)


def test_evidence_counts_where_all_candidates_are_known_and_neighbors_do_not(model):
    features = draw_features(np.random.default_rng(1), 7)
    features = {**{name: np.random.default_rng(2).random(7) for name in NEW_FEATURES}, **features}
    features["reference"] = np.ones(7)
    weights = dict.fromkeys(NEW_FEATURES, 2.0)
    found = CandidateModel(weights, model[0]).log_probabilities(features)
    scores = sum(2.0 * features[name] for name in NEW_FEATURES if not name.startswith("neighbor"))
    np.testing.assert_allclose(found, mixture_log_probabilities(scores + features["records"], np.array([7])))
    others = CandidateModel({**weights, "neighbor": 9.0}, model[0])
    np.testing.assert_array_equal(others.log_probabilities(features), found)


def test_leads_compare_with_new_candidates():
    rng = np.random.default_rng(2)
    features, scores = draw_features(rng, 5), rng.normal(size=5)
    is_known = np.array([True, False, False, True, False])
    inputs = dict(zip(INPUTS, known_inputs(features, scores, is_known).T, strict=True))
    np.testing.assert_array_equal(inputs["pull"], features["pull"][is_known])
    np.testing.assert_allclose(inputs["lead"], scores[is_known] - scores[~is_known].max())
    np.testing.assert_allclose(inputs["lead_over_all"], scores[is_known] - np.log(np.exp(scores[~is_known]).sum()))
    np.testing.assert_allclose(inputs["candidates"], np.log(5))


def test_models_are_saved(model):
    fitted, inputs, _ = model
    saved = to_notes(CandidateModel({"embedding": 2.0, "prior": -1.0}, fitted))
    loaded = from_notes(CandidateModel, saved)
    np.testing.assert_array_equal(loaded.known(inputs), fitted(inputs))
    assert loaded.weights == {"embedding": 2.0, "prior": -1.0}
    for change in ({"means": [1.0]}, {"limits": [[0.0], [1.0]]}):
        with pytest.raises(ValueError, match="known molecules"):
            from_notes(CandidateModel, {**saved, "known": {**saved["known"], **change}})


def test_inputs_beyond_those_of_the_fit_count_as_the_most_extreme_ones(model):
    fitted, inputs, _ = model
    beyond = np.tile(np.median(inputs, axis=0), (2, 1))
    beyond[0, 3], beyond[1, 3] = inputs[:, 3].min(), -1000.0
    odds = fitted(beyond)
    assert odds[0] == pytest.approx(odds[1])


def query_of(references, truth, split, pull=0.5):
    reference = np.array(references, dtype=float)
    features = {"reference": reference, "pull": np.full(len(reference), pull)}
    return Query(None, features, truth, split, bool(reference[truth]))


@pytest.mark.parametrize(
    ("references", "suffices"),
    [
        ([([1, 0], 0), ([1, 0], 1)], True),  # a known truth, and a new one with a wrong known candidate
        ([([1, 1], 0), ([0, 0], 1)], False),  # no query has candidates of both kinds
        ([([1, 0], 0), ([1, 0], 0)], False),  # no truth is new
        ([([0, 0], 0), ([1, 0], 1)], False),  # no truth is known
    ],
)
def test_known_molecules_have_a_model_only_if_all_splits_suffice_for_it(references, suffices):
    queries = [query_of(*query, split) for split in range(3) for query in references]
    assert (SEPARATE in list_fits(queries, True)) == suffices
    assert len(list_fits(queries, True)) == (2 if suffices else 1)


def test_without_isomers_no_evidence_is_learned():
    assert fit_evidence([query_of([1], 0, 0) for _ in range(60)]) is None
