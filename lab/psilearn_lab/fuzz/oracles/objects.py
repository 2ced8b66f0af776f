"""Random collections of inputs and outputs with a kernel for each kind of object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import sparse

from psilearn.kernels import (
    Dice,
    Gaussian,
    GaussianTanimoto,
    Hamming,
    Kemeny,
    Kernel,
    Laplacian,
    Lehmer,
    Linear,
    Pairwise,
    Polynomial,
    Precomputed,
    Product,
    Scaled,
    Sum,
    Tanimoto,
)

MAX_ITEMS = 5  # of rankings: all 120 of them are listed by brute force
MAX_LABELS = 7  # of label sets: all 128 of them are listed by brute force


@dataclass(frozen=True)
class Objects:
    """A kernel and collections of objects that it compares, with the name of their kind."""

    kind: str
    kernel: Kernel
    parts: list[Any]


def count_common_letters(a: str, b: str) -> float:
    """Return the number of places at which two texts of one length agree: a function that can be pickled."""
    return float(sum(x == y for x, y in zip(a, b, strict=True)))


def random_rows(rng: Generator, sizes: list[int]) -> Objects:
    """Return real rows: of full rank, of rank one, with a constant column, or at very different scales."""
    columns = int(rng.integers(1, 6))
    parts = [rng.standard_normal((size, columns)) for size in sizes]
    form = rng.choice(["plain", "constant column", "rank one", "rounded", "scaled", "tiny or huge"])
    direction, factor = rng.standard_normal(columns), rng.choice([1e-5, 1e5])
    for part in parts:
        if form == "constant column":
            part[:, 0] = 1.5
        elif form == "rank one":
            part[:] = part[:, :1] * direction
        elif form == "rounded":
            np.round(part, out=part)
        elif form == "scaled":
            part *= 10 ** rng.uniform(-2, 2, (len(part), 1))
        elif form == "tiny or huge":
            part *= factor
    return Objects("rows", _row_kernel(rng), parts)


def _row_kernel(rng: Generator) -> Kernel:
    kernels: list[Callable[[], Kernel]] = [
        Linear,
        lambda: Gaussian(float(10 ** rng.uniform(-2, 1))),
        Gaussian,
        lambda: Polynomial(int(rng.integers(1, 4)), 0.3, float(rng.integers(0, 2))),
        lambda: Laplacian(0.5),
        lambda: Linear().normalized(),
        lambda: Sum(Linear(), Scaled(Gaussian(0.3), 0.5)),
        lambda: Product(Polynomial(2, 0.2, 1.0), Gaussian(0.1)),
    ]
    return kernels[rng.integers(len(kernels))]()


def random_sets(rng: Generator, sizes: list[int]) -> Objects:
    """Return rows of zeros and ones, dense or CSR; some are empty, and with few columns many are equal."""
    columns, density = int(rng.integers(1, MAX_LABELS + 1)), rng.uniform(0.1, 0.7)
    parts: list[Any] = [(rng.random((size, columns)) < density).astype(float) for size in sizes]
    kernel = [Dice(), Tanimoto(), GaussianTanimoto(), Linear(), Gaussian(0.5)][rng.integers(5)]
    if rng.random() < 0.3:
        return Objects("sparse sets", kernel, [sparse.csr_matrix(part) for part in parts])
    return Objects("sets", kernel, parts)


def random_rankings(rng: Generator, sizes: list[int]) -> Objects:
    """Return ranks of 2 to 5 items."""
    n_items = int(rng.integers(2, MAX_ITEMS + 1))
    kernel = [Kemeny(), Hamming(), Lehmer(), Gaussian(0.7, base=Kemeny())][rng.integers(4)]
    return Objects(
        "rankings", kernel, [rng.permuted(np.tile(np.arange(1, n_items + 1), (s, 1)), axis=1) for s in sizes]
    )


def random_partial_rankings(rng: Generator, sizes: list[int]) -> Objects:
    """Return ranks of 3 to 5 items, some of them tied or unknown."""
    n_items = int(rng.integers(3, MAX_ITEMS + 1))
    parts = []
    for size in sizes:
        ranks = rng.permuted(np.tile(np.arange(1.0, n_items + 1), (size, 1)), axis=1)
        last = rng.integers(2, n_items + 1, (size, 1))  # items after this rank are tied, or unknown
        ranks = np.where(ranks > last, np.where(rng.random((size, 1)) < 0.5, last + 1, np.nan), ranks)
        parts.append(ranks)
    return Objects("partial rankings", [Kemeny(True), Hamming(True)][rng.integers(2)], parts)


def random_orders(rng: Generator, sizes: list[int]) -> Objects:
    """Return orders of items as texts."""
    items = list("abcd")[: rng.integers(2, 5)]
    parts: list[Any] = [[">".join(rng.permutation(items)) for _ in range(size)] for size in sizes]
    return Objects("orders", [Kemeny(), Hamming(), Lehmer()][rng.integers(3)], parts)


def random_packed_sets(rng: Generator, sizes: list[int]) -> Objects:
    """Return packed rows of zeros and ones."""
    columns = int(rng.integers(1, 20))
    parts: list[Any] = [np.packbits(rng.random((size, columns)) < 0.4, axis=1) for size in sizes]
    return Objects("packed sets", [Dice(packed=True), Tanimoto(packed=True)][rng.integers(2)], parts)


def random_numbers(rng: Generator, sizes: list[int]) -> Objects:
    """Return single numbers, integers or reals."""
    kernel = [Gaussian(0.3), Gaussian(), Linear(), Laplacian(0.5)][rng.integers(4)]
    if rng.random() < 0.5:
        return Objects("numbers", kernel, [rng.integers(0, 6, size) for size in sizes])
    return Objects("numbers", kernel, [rng.standard_normal(size) for size in sizes])


def random_texts(rng: Generator, sizes: list[int]) -> Objects:
    """Return texts of three letters with a function as kernel."""
    parts: list[Any] = [["".join(rng.choice(list("abc"), 3)) for _ in range(size)] for size in sizes]
    return Objects("texts", Pairwise(count_common_letters), parts)


def random_indices(rng: Generator, sizes: list[int]) -> Objects:
    """Return row numbers of a known matrix, which may have a low rank."""
    F = rng.standard_normal((30, int(rng.integers(1, 31))))
    return Objects("indices", Precomputed(F @ F.T), [rng.integers(0, 30, size) for size in sizes])


Maker = Callable[[Generator, list[int]], Objects]

INPUT_MAKERS: dict[Maker, float] = {  # with their probabilities
    random_rows: 0.5,
    random_sets: 0.15,
    random_rankings: 0.1,
    random_texts: 0.05,
    random_indices: 0.1,
    random_packed_sets: 0.05,
    random_partial_rankings: 0.05,
}
OUTPUT_MAKERS: dict[Maker, float] = {
    random_rows: 0.25,
    random_sets: 0.25,
    random_rankings: 0.15,
    random_texts: 0.05,
    random_indices: 0.1,
    random_packed_sets: 0.05,
    random_partial_rankings: 0.05,
    random_orders: 0.05,
    random_numbers: 0.05,
}


def make_objects(rng: Generator, makers: dict[Maker, float], sizes: list[int]) -> Objects:
    """Return random objects of a random kind."""
    return list(makers)[rng.choice(len(makers), p=list(makers.values()))](rng, sizes)


def repeat_some(rng: Generator, part: Any) -> Any:
    """Return a collection of the same size in which objects repeat: a random choice of some of its objects."""
    size = part.shape[0] if hasattr(part, "shape") else len(part)
    chosen = rng.integers(0, max(1, size // int(rng.integers(1, 5))), size)
    return select(part, chosen)


def select(part: Any, indices: Any) -> Any:
    """Return the objects with these indices, in the form of the collection."""
    return [part[i] for i in indices] if isinstance(part, list) else part[indices]


def concatenate(first: Any, second: Any) -> Any:
    """Return two collections as one, in the form of the first."""
    if isinstance(first, list):
        return first + second
    return sparse.vstack([first, second]).tocsr() if sparse.issparse(first) else np.concatenate([first, second])
