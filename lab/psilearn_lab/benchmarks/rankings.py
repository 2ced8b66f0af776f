"""Decoding over all rankings: how each exact solver grows with the number of items, and next to listing them all.

Weights are those of noisy orders, similar to the predictions of a regression, and pure noise, the hardest case for the
decomposition into components.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from psilearn._linalg import Array
from psilearn.decoding.all_rankings import best_hamming, best_lehmer
from psilearn.decoding.kemeny import best_kemeny, order_by_integers
from psilearn.kernels import Hamming, Kemeny, Lehmer, RankingKernel
from psilearn.rankings import all_rankings, ranks_from_item_numbers
from psilearn_lab.benchmarks.measurement import Clock, Figures, Run, Timing, Turn, time_in_turns

Rankings = npt.NDArray[np.integer[Any]]

NOISE = 0.1  # of each weight; the weights of an order have length 1
MAX_LISTED_ITEMS = 7
SOLVERS = ("Kemeny", "Hamming", "Lehmer", "Kemeny, listed")


def make_weights(kernel: RankingKernel, n_items: int, n_queries: int, kind: str) -> Array:
    """Return weights (q, D) of noisy orders, or pure noise."""
    rng = np.random.default_rng(n_items)
    orders = np.array([rng.permutation(n_items) + 1 for _ in range(n_queries)])
    psi = kernel.features(orders)
    noise = rng.standard_normal(psi.shape)
    return noise if kind == "noise" else psi + NOISE * noise


def best_by_listing(W: Array, kernel: RankingKernel, n_items: int) -> Rankings:
    """Return the best ranking of each query by scoring all rankings."""
    rankings = all_rankings(n_items)
    psi = kernel.features(rankings)
    scores = 2 * W @ psi.T - np.sum(psi**2, axis=1)
    best: Rankings = rankings[np.argmax(scores, axis=1)]
    return best


def best_by_integers(W: Array, n_items: int) -> Rankings:
    """Return the best ranking of each query by integer programming without components."""
    C = np.zeros((len(W), n_items, n_items))
    i, j = np.triu_indices(n_items, 1)
    C[:, i, j], C[:, j, i] = W, -W
    return ranks_from_item_numbers(np.stack([order_by_integers(costs) for costs in C]))


def make_turn(solve: Callable[[Array], Rankings], W: Array) -> Turn[Rankings]:
    """Return a function that decodes once."""

    def run_turn(clock: Clock) -> Rankings:
        with clock("decode"):
            return solve(W)

    return run_turn


def measure(run: Run) -> Figures:
    """Print seconds for 500 queries, check that the solvers agree, and return the figures."""
    n_queries = run.select(500, 20)
    figures: Figures = {}
    rows = []
    for n_items in run.select([4, 7, 10, 13, 16], [4, 6]):
        for kind in ("orders", "noise"):
            seconds = _measure_solvers(run, n_items, kind, n_queries)
            figures[f"K = {n_items}, {kind}"] = seconds
            rows.append([f"{n_items}, {kind}", *(seconds.get(name, "") for name in SOLVERS)])
    run.show_table(f"seconds for {n_queries} queries", ["items", *SOLVERS], rows)
    figures |= _measure_integers(run)
    if not run.quick:
        slowest = max(figures["K = 10, orders"]["Kemeny"], figures["K = 10, noise"]["Kemeny"])
        claim = "Kemeny decoding of 500 queries over 10! rankings takes under a second"
        run.check_claim(claim, slowest < 1, f"{slowest:.3f} s")
    return figures


def _measure_solvers(run: Run, n_items: int, kind: str, n_queries: int) -> dict[str, float]:
    """Return the seconds of each solver, scaled to all queries."""
    n_timed = n_queries if n_items < 14 or kind == "orders" else n_queries // 10
    W = make_weights(Kemeny(), n_items, n_timed, kind)
    methods = {
        "Kemeny": make_turn(best_kemeny, W),
        "Hamming": make_turn(best_hamming, make_weights(Hamming(), n_items, n_timed, kind)),
        "Lehmer": make_turn(best_lehmer, make_weights(Lehmer(), n_items, n_timed, kind)),
    }
    if n_items <= MAX_LISTED_ITEMS:
        methods["Kemeny, listed"] = make_turn(partial(best_by_listing, kernel=Kemeny(), n_items=n_items), W)
    timings = time_in_turns(methods, run.repeats)
    if "Kemeny, listed" in timings:
        _check_agreement(W, timings["Kemeny"], timings["Kemeny, listed"])
    return {name: timing.seconds["decode"] * n_queries / n_timed for name, timing in timings.items()}


def _measure_integers(run: Run) -> Figures:
    """Compare the decomposition into components with integer programming alone."""
    n_items, n_queries = run.select((20, 20), (6, 3))
    W = make_weights(Kemeny(), n_items, n_queries, "orders")
    methods = {
        "components": make_turn(best_kemeny, W),
        "integers": make_turn(partial(best_by_integers, n_items=n_items), W),
    }
    timings = time_in_turns(methods, 1)
    _check_agreement(W, *timings.values())
    seconds = {name: timing.seconds["decode"] for name, timing in timings.items()}
    title = f"seconds for {n_queries} noisy orders of {n_items} items"
    run.show_table(title, ["route", "seconds"], [[name, s] for name, s in seconds.items()])
    return {f"K = {n_items}, {n_queries} noisy orders": seconds}


def _check_agreement(W: Array, first: Timing[Rankings], second: Timing[Rankings]) -> None:
    """Check that two solvers reach the same score."""
    scores = (np.sum(W * Kemeny().features(timing.result), axis=1) for timing in (first, second))
    assert np.allclose(*scores), "the two exact routes disagree"
