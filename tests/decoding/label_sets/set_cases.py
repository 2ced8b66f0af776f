"""Random predictions over label sets, and brute force over all sets."""

from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from psilearn.embedding import Embedding
from psilearn.kernels import Dice, Linear, Normalized

COSINE = Normalized(Linear())
SIZE_KERNELS = [
    Dice(), Linear(), COSINE, 0.5 * Dice() + Linear(), Normalized(Dice() + Linear()),
    COSINE + COSINE, Normalized(Linear() + Linear()),  # sums without weights for the empty set
]  # fmt: skip

cases = st.tuples(st.integers(1, 9), st.integers(0, 14), st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 10.0]))


def all_sets(L):
    """All 2^L sets, by size and then in the order of their labels."""
    sets = np.zeros((2**L, L), dtype=np.int64)
    for i, labels in enumerate(labels for size in range(L + 1) for labels in combinations(range(L), size)):
        sets[i, list(labels)] = 1
    return sets


def draw_sets(rng, n, L):
    """Sets of different sizes; the empty set and repetitions occur."""
    return (rng.random((n, L)) < rng.random((n, 1))).astype(np.int64)


def draw_case(kernel, L, r, seed, scale, q=5):
    """An embedding whose landmarks and basis are random, as large as rounding allows, and queries of both signs.

    The basis is B = S(SᵀK S)^(−1/2) for random S (r, p), so that G is a projection and |G*z| = |z|.
    """
    rng = np.random.default_rng(seed)
    landmarks = draw_sets(rng, r, L)
    if not r:
        return Embedding(kernel, landmarks, np.zeros((0, 1))), np.zeros((q, 1))
    values, vectors = np.linalg.eigh(kernel(landmarks))
    kept = values > 1e-6 * max(1.0, values[-1])
    basis = vectors[:, kept] / np.sqrt(values[kept])
    rotation = (
        np.linalg.qr(rng.standard_normal((basis.shape[1], basis.shape[1])))[0] if kept.any() else np.zeros((0, 0))
    )
    basis = (basis @ rotation)[:, : max(1, basis.shape[1] - 1)]
    return Embedding(kernel, landmarks, basis), scale * rng.standard_normal((q, basis.shape[1]))


def distances(embedding, Z, sets):
    """|G*z − ψ(y)|² of each query and set, from kernel values alone."""
    beta = Z @ embedding.basis.T
    products = beta @ embedding.kernel(sets, embedding.landmarks).T if len(embedding.landmarks) else 0.0
    return np.maximum(np.sum(Z**2, axis=1)[:, None] - 2 * products + embedding.kernel.diag(sets), 0)
