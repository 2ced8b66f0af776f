"""How the cost of fitting and decoding grows with n, m, p and the number of candidates; IOKR and OEL side by side.

    python benchmarks/growth.py

Each figure is the median of three runs, the methods taking turns. Problems are random with the sizes of USPS (128
numbers in, 128 out, Gaussian kernels); read the ratios and the exponents, not the seconds.
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

from psilearn import IOKR, OEL
from psilearn.kernels import Gaussian

RNG = np.random.default_rng(0)
X, Y = RNG.random((4000, 128)), RNG.random((8000, 128))
WIDTH = Gaussian(0.05)
console = Console()


def median_seconds(*steps: Callable[[], object]) -> list[float]:
    """Return the median time of each step over three turns."""
    times = []
    for _ in range(3):
        for step in steps:
            start = perf_counter()
            step()
            times.append(perf_counter() - start)
    return [float(np.median(times[i :: len(steps)])) for i in range(len(steps))]


def growth(title: str, sizes: list[int], measure: Callable[[int], list[float]]) -> None:
    """Print a row a size, and below each column the exponent between the smallest and the largest."""
    table = Table(title.split("|")[0], "IOKR", "OEL", "ratio", title=title.split("|")[1])
    rows = []
    for size in sizes:
        iokr, oel = measure(size)
        rows.append((iokr, oel))
        table.add_row(f"{size:,}", f"{iokr:.3f} s", f"{oel:.3f} s", f"{iokr / oel:.1f}")
    exponents = np.log(np.array(rows[-1]) / np.array(rows[0])) / np.log(sizes[-1] / sizes[0])
    table.add_row("exponent", *(f"{e:.2f}" for e in exponents), "")
    console.print(table)


def fit(n: int, m: int, p: int) -> list[float]:
    """Time both fits."""
    U = Y[n : n + m] if m else None
    return median_seconds(
        lambda: IOKR(WIDTH, WIDTH, 1e-4).fit(X[:n], Y[:n], unlabeled=U),
        lambda: OEL(WIDTH, WIDTH, 1e-4, p, 0.5 if m else 1.0).fit(X[:n], Y[:n], unlabeled=U),
    )


def decode(n: int, candidates: int, p: int) -> list[float]:
    """Time decoding of 500 queries against candidates that are embedded already."""
    models = [IOKR(WIDTH, WIDTH, 1e-4), OEL(WIDTH, WIDTH, 1e-4, p, 1.0)]
    for model in models:
        model.fit(X[:n], Y[:n], unlabeled=Y[n:candidates])
    return median_seconds(*(lambda model=model: model.predict(X[:500]) for model in models))


growth("n|fit, OEL₀ with p = 50", [500, 1000, 2000, 4000], lambda n: fit(n, 0, 50))
growth("m|fit, n = 500, OEL with p = 50", [500, 1000, 2000, 4000], lambda m: fit(500, m, 50))
growth("p|fit, n = 500, m = 2000", [10, 40, 160], lambda p: fit(500, 2000, p))
growth("candidates|decode 500 queries, n = 2000, p = 50", [2000, 4000, 8000], lambda c: decode(2000, c, 50))
growth("p|decode 500 queries, n = 2000, 8000 candidates", [10, 40, 160], lambda p: decode(2000, 8000, p))
