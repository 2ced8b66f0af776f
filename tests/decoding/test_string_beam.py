"""Beam search over strings: equal to brute force where the beam is wide, and never worse than the landmarks."""

from itertools import product

import numpy as np
import pytest

from psilearn import IOKR, IOKRCV, OEL
from psilearn.decoding import SharedCandidates, StringBeam
from psilearn.embedding import Embedding
from psilearn.kernels import Gaussian, Linear, Substrings

LANDMARKS = ["abab", "bca", "cc", "aab", "cba"]
KERNELS = {
    "spectrum": Substrings(2, normalize=False),
    "normalized": Substrings(2),
    "blended": Substrings(3, min_length=1),
    "exact columns": Substrings(2, alphabet="abc", normalize=False),
    "collisions": Substrings(2, min_length=1, n_features=3, normalize=False),
    "normalized collisions": Substrings(2, min_length=1, n_features=3),
    "idf": Substrings(2, min_length=1, idf=True),
    "linear base": Substrings(1, base=Linear()),
}


def embedding_of(kernel, landmarks, rng, p=3):
    """Return an embedding with GG* = I in random directions of the span of landmarks."""
    kernel.fit(landmarks)
    values, vectors = np.linalg.eigh(kernel.gram(landmarks))
    kept = values > 1e-9
    directions = np.linalg.qr(rng.standard_normal((int(kept.sum()), min(p, int(kept.sum())))))[0]
    return Embedding(kernel, landmarks, vectors[:, kept] / np.sqrt(values[kept]) @ directions)


def all_strings(alphabet, shortest, longest):
    return ["".join(s) for n in range(shortest, longest + 1) for s in product(alphabet, repeat=n)]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("lengths", [(1, 4), (3, 4)])
def test_a_wide_beam_is_brute_force(name, lengths):
    rng = np.random.default_rng(0)
    embedding = embedding_of(KERNELS[name], LANDMARKS, rng)
    Z = rng.standard_normal((6, embedding.n_components)) * rng.uniform(0.3, 2, (6, 1))
    beam = StringBeam(width=27, min_length=lengths[0], max_length=lengths[1], embedding=embedding)
    listed = SharedCandidates(all_strings("abc", *lengths), embedding)
    found, expected = beam.nearest(Z, 3), listed.nearest(Z, 3)
    assert beam.max_size == listed.max_size
    np.testing.assert_allclose(found.distances, expected.distances, atol=1e-9)
    for strings, distances, z in zip(found.outputs, found.distances, Z, strict=True):
        attained = SharedCandidates(strings, embedding).nearest(z[None], 3)
        np.testing.assert_allclose(attained.distances[0], distances, atol=1e-9)
        assert all(lengths[0] <= len(string) <= lengths[1] for string in strings)


def test_a_narrow_beam_is_never_farther_than_the_landmarks():
    rng = np.random.default_rng(1)
    embedding = embedding_of(Substrings(2), LANDMARKS, rng)
    Z = rng.standard_normal((20, embedding.n_components))
    found = StringBeam(width=1, embedding=embedding).nearest(Z, 1).distances
    assert (found <= SharedCandidates(LANDMARKS, embedding).nearest(Z, 1).distances + 1e-12).all()


def test_few_strings_are_listed():
    rng = np.random.default_rng(2)
    embedding = embedding_of(Substrings(2), LANDMARKS, rng)
    beam = StringBeam(max_length=3, embedding=embedding)
    assert list(beam.listed.outputs) == all_strings("abc", 1, 3)
    Z = rng.standard_normal((4, embedding.n_components))
    truth = ["a", "bb", "cab", "abc"]
    assert np.array_equal(beam.truth_positions(Z, truth).nearer, beam.listed.truth_positions(Z, truth).nearer)
    with pytest.raises(ValueError, match="too many to list"):
        StringBeam(max_length=30, embedding=embedding).listed  # noqa: B018


def reversal_problem(n=60):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcd"), 6)) for _ in range(n)]
    return [word[::-1] for word in words], words


def test_a_model_predicts_strings_that_it_has_not_seen():
    X, Y = reversal_problem(160)
    kernel = Substrings(3, min_length=1)
    model = IOKR(kernel, kernel, alpha=1e-6).fit(X[:150], Y[:150])
    known = model.predict(X[150:])
    found = model.predict(X[150:], candidates=StringBeam(width=30, min_length=6))
    assert sum(a == b for a, b in zip(known, Y[150:], strict=True)) == 0
    assert sum(a == b for a, b in zip(found, Y[150:], strict=True)) >= 5


@pytest.mark.parametrize(
    "form", [lambda words: [list(w) for w in words], lambda words: [tuple(w) for w in words], np.array, list]
)
def test_strings_have_the_form_of_the_outputs(form):
    X, Y = reversal_problem(20)
    model = OEL(Substrings(2), Substrings(2), alpha=1e-6, n_components=15).fit(X, form(Y))
    found = model.predict(X[:3], candidates=StringBeam(width=5))
    assert type(found) is type(form(Y))
    assert type(found[0]) is type(form(Y)[0])


def test_a_search_decodes_by_beam():
    X, Y = reversal_problem(24)
    search = IOKRCV(Substrings(2), Substrings(2), alphas=[1e-6, 1.0], cv=2, scoring="loss")
    search.fit(X, Y, candidates=StringBeam(width=3))
    assert search.best_params_["alpha"] == 1e-6


@pytest.mark.parametrize(
    ("kernel", "beam", "message"),
    [
        (Gaussian(base=Substrings()), StringBeam(), "needs the output kernel Substrings without base; got Gaussian"),
        (Substrings(base=Gaussian(1.0)), StringBeam(), "needs the output kernel Substrings without base"),
        (Substrings(), StringBeam(width=0), "width"),
        (Substrings(), StringBeam(max_length=2, min_length=3), "min_length=3 of StringBeam must not exceed"),
        (Substrings(), StringBeam(alphabet="aa"), "alphabet must be"),
    ],
)
def test_bad_arguments_are_named(kernel, beam, message):
    X, Y = reversal_problem(9)
    model = IOKR(Substrings(), kernel).fit(X, Y)
    with pytest.raises((TypeError, ValueError), match=message):
        model.predict(X[:1], candidates=beam)
