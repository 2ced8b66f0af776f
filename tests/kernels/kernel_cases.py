"""Every kernel with a strategy for collections it works on: the one list that all properties are tested over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from psilearn.kernels import (
    Dice,
    Gaussian,
    GaussianTanimoto,
    Hamming,
    Hellinger,
    HierarchicalDice,
    Hierarchy,
    Kemeny,
    Kernel,
    Laplacian,
    Lehmer,
    Linear,
    Normalized,
    Pairwise,
    Polynomial,
    Precomputed,
    Product,
    Scaled,
    Substrings,
    Sum,
    Tanimoto,
    WeisfeilerLehman,
)
from tests.kernels.graph.graph_cases import graphs

PROPERTY = settings(max_examples=12, deadline=None, derandomize=True)


def shared_letters(a: str, b: str) -> float:
    """Inner product of letter counts: zero for the empty word."""
    return float(sum(a.count(letter) * b.count(letter) for letter in set(a)))


@st.composite
def repeated(draw: st.DrawFn, elements: st.SearchStrategy[Any], min_width: int = 1) -> np.ndarray:
    """2 to 9 rows, drawn with replacement from fewer: duplicates are frequent, and so are rows of zeros."""
    width = draw(st.integers(min_width, 5))
    pool = draw(hnp.arrays(np.float64, (draw(st.integers(1, 5)), width), elements=elements, fill=st.just(0.0)))
    return pool[draw(st.lists(st.integers(0, len(pool) - 1), min_size=2, max_size=9))]


rows = repeated(st.floats(-3, 3).map(lambda value: round(value, 2)))
grid_rows = repeated(st.integers(-12, 12).map(lambda value: value / 4))  # inner products without rounding
sets = repeated(st.sampled_from([0.0, 1.0]))


label_sets = hnp.arrays(np.float64, st.tuples(st.integers(2, 9), st.just(4)), elements=st.sampled_from([0.0, 1.0]))


def _preferring_something(ranks: np.ndarray) -> np.ndarray:
    ranks = np.maximum(ranks, 1)
    ranks[ranks.min(axis=1) == ranks.max(axis=1), 0] = 6
    return ranks


rankings = repeated(st.integers(1, 5).map(float), min_width=2).map(_preferring_something)  # with ties
places_of_items = repeated(st.sampled_from([1.0, 2.0]), min_width=2).map(lambda A: np.maximum(A, 1))  # with ties
permutations = st.integers(2, 5).flatmap(
    lambda k: st.lists(st.permutations(range(1, k + 1)), min_size=2, max_size=9).map(np.array)
)
packed_sets = sets.map(lambda A: np.packbits(A.astype(bool), axis=1))
words = st.lists(st.text("abc", max_size=4), min_size=2, max_size=9)
strings = st.lists(st.text("abc", min_size=1, max_size=4), min_size=2, max_size=9)
labeled_graphs = st.lists(graphs(max_nodes=3), min_size=2, max_size=7)
places = st.lists(st.integers(0, 6), min_size=2, max_size=9).map(np.array)

_features = np.random.default_rng(0).normal(size=(7, 3))
_features[2] = 0
MATRIX = _features @ _features.T


@dataclass(frozen=True)
class Case:
    name: str
    kernel: Kernel
    collections: st.SearchStrategy[Any]
    sparse: bool = False  # whether CSR rows are accepted

    def __str__(self) -> str:
        return self.name


CASES = [
    Case("linear", Linear(), rows, sparse=True),
    Case("polynomial", Polynomial(degree=3, gamma=0.5, coef0=1.0), rows, sparse=True),
    Case("polynomial without constant", Polynomial(degree=2, coef0=0.0), rows, sparse=True),
    Case("gaussian", Gaussian(gamma=0.3), rows, sparse=True),
    Case("gaussian median", Gaussian(), grid_rows, sparse=True),
    Case("gaussian over polynomial", Gaussian(gamma=0.01, base=Polynomial(degree=2)), rows, sparse=True),
    Case("gaussian over words", Gaussian(gamma=0.1, base=Pairwise(shared_letters)), words),
    Case("laplacian", Laplacian(gamma=0.4), rows, sparse=True),
    Case("laplacian median", Laplacian(), grid_rows, sparse=True),
    Case("tanimoto", Tanimoto(), sets, sparse=True),
    Case("dice", Dice(), sets, sparse=True),
    Case("gaussian tanimoto", GaussianTanimoto(), sets, sparse=True),
    Case("gaussian tanimoto median", GaussianTanimoto("median"), sets, sparse=True),
    Case("hierarchical dice", HierarchicalDice(Hierarchy([-1, 0, [0], [1, 2]])), label_sets, sparse=True),
    Case("hellinger", Hellinger(), sets.map(lambda A: A + 1), sparse=True),
    Case("tanimoto packed", Tanimoto(packed=True), packed_sets),
    Case("dice packed", Dice(packed=True), packed_sets),
    Case("gaussian tanimoto packed", GaussianTanimoto(packed=True), packed_sets),
    Case("kemeny", Kemeny(), permutations),
    Case("kemeny partial", Kemeny(partial=True), rankings),
    Case("hamming", Hamming(), permutations),
    Case("hamming partial", Hamming(partial=True), places_of_items),
    Case("lehmer", Lehmer(), permutations),
    Case("lehmer partial", Lehmer(partial=True), rankings),
    Case("precomputed", Precomputed(MATRIX), places),
    Case("pairwise", Pairwise(shared_letters), words),
    Case("rare substrings", Substrings(2, idf=True, base=Gaussian()), strings),
    Case("gaussian over subtrees", WeisfeilerLehman(1, n_features=256, base=Gaussian(0.5)), labeled_graphs),
    Case("sum", Sum(Linear(), Gaussian(gamma=0.2)), rows, sparse=True),
    Case("product", Product(Kemeny(partial=True), Gaussian(gamma=0.2)), rankings),
    Case("scaled", Scaled(Tanimoto(), 2.5), sets, sparse=True),
    Case("normalized linear", Normalized(Linear()), rows, sparse=True),
    Case("normalized words", Pairwise(shared_letters).normalized(), words),
    Case("normalized precomputed", Precomputed(MATRIX).normalized(), places),
    Case("nested on rows", (0.5 * Linear() + Polynomial(degree=2)).normalized() * Laplacian(gamma=0.3), rows, True),
    Case("nested on sets", Gaussian(gamma=0.7, base=Dice() * Tanimoto()) + 3 * Dice().normalized(), sets, True),
    Case("nested with a median", 2 * (Gaussian() + Laplacian()) * Linear(), grid_rows, sparse=True),
]
SPARSE_CASES = [case for case in CASES if case.sparse]


class Stored(Kernel):
    """A user's kernel that returns the array it keeps."""

    def __init__(self, block):
        self.block = block

    def _block(self, A, B, compute):
        return self.block

    def _diag(self, A):
        return np.diagonal(self.block).astype(float)
