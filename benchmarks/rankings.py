"""Decoding over all rankings: how each exact solver grows with the number of items, and against listing them all.

Weights are those of noisy orders, as a regression predicts them, and pure noise, the hardest case for components.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.report import Clock, Run, in_turns
from psilearn._linalg import Array
from psilearn.decoding.all_rankings import best_hamming, best_lehmer
from psilearn.decoding.kemeny import best_kemeny, order_by_integers
from psilearn.kernels import Hamming, Kemeny, Lehmer, RankingKernel
from psilearn.rankings import all_rankings, ranks_from_item_numbers

NOISE = 0.1  # of each weight, where the weights of an order have the length 1


def weights(kernel: RankingKernel, n_items: int, queries: int, kind: str) -> Array:
    """Return weights (q, D) of orders with noise, or of noise alone."""
    rng = np.random.default_rng(n_items)
    orders = np.array([rng.permutation(n_items) + 1 for _ in range(queries)])
    psi = kernel.features(orders)
    noise = rng.standard_normal(psi.shape)
    return noise if kind == "noise" else psi + NOISE * noise


def listed(W: Array, kernel: RankingKernel, n_items: int) -> Array:
    """Return the best ranking of each query by looking at all of them."""
    rankings = all_rankings(n_items)
    psi = kernel.features(rankings)
    scores = 2 * W @ psi.T - np.sum(psi**2, axis=1)
    return rankings[np.argmax(scores, axis=1)]


def by_integers(W: Array, n_items: int) -> Array:
    """Return the best ranking of each query by integer programming alone."""
    C = np.zeros((len(W), n_items, n_items))
    i, j = np.triu_indices(n_items, 1)
    C[:, i, j], C[:, j, i] = W, -W
    return ranks_from_item_numbers(np.stack([order_by_integers(one) for one in C]))


def timed(solve: Callable[[Array], Array], W: Array) -> Callable[[Clock], Array]:
    """Return one turn of a solver."""

    def turn(clock: Clock) -> Array:
        with clock("decode"):
            return solve(W)

    return turn


def measure(run: Run) -> dict[str, Any]:
    """Print seconds for 500 queries, check that the solvers agree, and return the figures."""
    queries = run.size(500, 20)
    figures: dict[str, Any] = {}
    rows = []
    for K in run.size([4, 7, 10, 13, 16], [4, 6]):
        for kind in ("orders", "noise"):
            few = queries if K < 14 or kind == "orders" else queries // 10
            W = weights(Kemeny(), K, few, kind)
            others = {"Hamming": (best_hamming, Hamming()), "Lehmer": (best_lehmer, Lehmer())}
            methods = {"Kemeny": timed(best_kemeny, W)}
            methods |= {name: timed(f, weights(k, K, few, kind)) for name, (f, k) in others.items()}
            if K <= 7:
                methods["Kemeny, listed"] = timed(lambda W, K=K: listed(W, Kemeny(), K), W)
            measured = in_turns(methods, run.repeats)
            seconds = {name: one.seconds["decode"] * queries / few for name, one in measured.items()}
            figures[f"K = {K}, {kind}"] = seconds
            rows.append([f"{K}, {kind}", *(seconds.get(name, "") for name in ("Kemeny", "Hamming", "Lehmer"))])
            rows[-1].append(seconds.get("Kemeny, listed", ""))
            if "Kemeny, listed" in measured:
                gained = [_value(W, measured[name].result) for name in ("Kemeny", "Kemeny, listed")]
                assert np.allclose(*gained), "the solver and the list of all rankings disagree"
    run.table(f"seconds for {queries} queries", ["items", "Kemeny", "Hamming", "Lehmer", "Kemeny, listed"], rows)

    K, few = run.size((20, 20), (6, 3))
    W = weights(Kemeny(), K, few, "orders")
    methods = {"components": timed(best_kemeny, W), "integers": timed(lambda W: by_integers(W, K), W)}
    measured = in_turns(methods, 1)
    assert np.allclose(*(_value(W, one.result) for one in measured.values())), "the two exact routes disagree"
    figures[f"K = {K}, {few} noisy orders"] = {name: one.seconds["decode"] for name, one in measured.items()}
    run.table(
        f"seconds for {few} noisy orders of {K} items",
        ["route", "seconds"],
        [[name, one.seconds["decode"]] for name, one in measured.items()],
    )
    if not run.quick:
        slowest = max(figures["K = 10, orders"]["Kemeny"], figures["K = 10, noise"]["Kemeny"])
        run.claim("Kemeny decoding of 500 queries over 10! rankings under a second", slowest < 1, f"{slowest:.3f} s")
    return figures


def _value(W: Array, ranks: Array) -> Array:
    return np.sum(W * Kemeny().features(ranks), axis=1)
