"""Cost and energy on a device: seconds, peak memory, flops, share of the highest rates, watts and joules.

Rows: the fit of Bookmarks' shape in float32 (``bookmarks``), fit and search of packed fingerprints (``fingerprints``,
with fewer candidates), the exact fit and the grid on USPS (``costs``, ``usps_grid``) and kernel ridge regression with a
path of λ (``ridge_path``). Short work is repeated for a few seconds, and the mean is taken. The search also grows with
the number of candidates; ``growth`` has the other sizes. Flops of the grid are not counted.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import Any

from sklearn.model_selection import KFold

from psilearn_lab.benchmarks import bookmarks, costs, falkon, fingerprints, ridge_path, usps, usps_grid
from psilearn_lab.benchmarks.cost_table import Cost, show_costs
from psilearn_lab.benchmarks.device import synchronize
from psilearn_lab.benchmarks.measurement import Figures, Run, growth_exponent
from psilearn_lab.benchmarks.power import PowerMeter

NEEDS = (*bookmarks.NEEDS, *usps.NEEDS)
MIN_SECONDS = 3.0  # for which short work is repeated
SETTLING_SECONDS = 1.0  # nvidia-smi reports the mean power of the last second
CANDIDATES = (400_000, 800_000, 1_600_000)
RIDGE_ROWS, RIDGE_TARGETS, RIDGE_INPUTS = 10_000, 1000, falkon.N_FEATURES
EIGH_FLOPS = 14 / 3  # times n³: reduction, divide and conquer, transformation of the vectors


def measure(run: Run) -> Figures:
    """Print and return the table and the growth of the search."""
    if run.device is None:
        run.log("device_costs: needs --device cpu or --device cuda")
        return {}
    with PowerMeter() as meter:
        measured = list(iter_costs(run, meter))
    figures: Figures = {"costs": show_costs(run, f"cost and energy on {run.device}", measured)}
    searches = [cost for cost in measured if "search" in cost.name]
    sizes = run.select(CANDIDATES, (100, 200, 400))
    figures["search exponent"] = growth_exponent(sizes, [cost.seconds for cost in searches])
    run.log(f"the search grows as the number of candidates to the power {figures['search exponent']:.2f}")
    return figures


def iter_costs(run: Run, meter: PowerMeter) -> Iterator[Cost]:
    """Measure one row after the other."""
    yield measure_bookmarks(run, meter)
    yield from measure_fingerprints(run, meter)
    yield measure_usps_fit(run, meter)
    yield measure_usps_grid(run, meter)
    yield measure_ridge_path(run, meter)


def measure_work(
    meter: PowerMeter,
    name: str,
    work: Callable[[], object],
    operations: Mapping[str, float],
    growth: str = "",
    warm: bool = True,
) -> Cost:
    """Repeat work for some seconds, once before that if ``warm``; return the mean seconds and the mean power."""
    if warm:
        work()
    reset_peak_bytes()
    turns, start = 0, perf_counter()
    while not turns or perf_counter() - start < MIN_SECONDS:
        work()
        synchronize()
        turns += 1
    end = perf_counter()
    settled = min(start + SETTLING_SECONDS, (start + end) / 2)
    return Cost(name, (end - start) / turns, operations, peak_bytes(), growth, meter.mean_watts(settled, end))


def measure_bookmarks(run: Run, meter: PowerMeter) -> Cost:
    """Return the cost of a fit of Bookmarks' shape."""
    sizes = run.select(bookmarks.FULL, bookmarks.QUICK)
    X, Y, _ = bookmarks.load(sizes["n"], 1)
    model = bookmarks.make_oel(sizes, exact=False)
    d = len(model.fit(X, Y).candidates_)
    operations: dict[str, float] = defaultdict(float)
    for part in bookmarks.count_operations(sizes["n"], sizes["q"], sizes["r"], d, sizes["p"], dense=True):
        operations[part.rate] += part.flops
    name = "Bookmarks' shape: fit, float32"
    return measure_work(meter, name, lambda: model.fit(X, Y), operations, "2 nq² + 2 nqr", warm=False)


def measure_fingerprints(run: Run, meter: PowerMeter) -> Iterator[Cost]:
    """Yield the costs of a fit, whose flops are not counted, and of searches with more and more candidates."""
    sizes: dict[str, Any] = run.select(fingerprints.FULL, fingerprints.QUICK)
    counts, n = run.select(CANDIDATES, (100, 200, 400)), sizes["n"]
    prototypes, X, Y = fingerprints.make_pairs(sizes)
    model = fingerprints.make_model(sizes)
    unlabeled = fingerprints.make_fingerprints(sizes["m"], prototypes, 2)

    def fit() -> None:
        model.fit(X[:n], Y[:n], unlabeled=unlabeled)

    yield measure_work(meter, "fingerprints: fit", fit, {}, warm=False)
    candidates = fingerprints.make_fingerprints(counts[-1], prototypes, 3)
    for count in counts:
        operations: dict[str, float] = defaultdict(float)
        for rate, amount in fingerprints.count_operations({**sizes, "candidates": count}).values():
            operations[rate] += amount

        def search(count: int = count) -> None:
            model.predict_topk(X[n:], 10, candidates=candidates[:count])

        yield measure_work(meter, f"fingerprints: search of {count:,}", search, operations, "c·r·(bits + p) + q·c·p")


def measure_usps_fit(run: Run, meter: PowerMeter) -> Cost:
    """Return the cost of the exact fit on USPS."""
    problem = costs.load_usps_problem(run)
    model, X, Y, U = (problem[name] for name in ("model", "X", "Y", "U"))
    operations = {"float64": problem["sizes"].gram_fit_flops()}
    return measure_work(meter, "USPS: exact fit", lambda: model.fit(X, Y, unlabeled=U), operations, "22 d²p")


def measure_usps_grid(run: Run, meter: PowerMeter) -> Cost:
    """Return the cost of the paper's grid on USPS."""
    halves = usps_grid.load_halves(run)
    return measure_work(meter, "USPS: grid", lambda: usps_grid.fit_search(run, *halves), {}, warm=False)


def measure_ridge_path(run: Run, meter: PowerMeter) -> Cost:
    """Return the cost of kernel ridge regression with a path of λ."""
    n, r = run.select((RIDGE_ROWS, RIDGE_TARGETS), (200, 20))
    X, V, _, _ = falkon.make_problem(n, r)
    cv = KFold(ridge_path.N_SPLITS)

    def search() -> None:
        ridge_path.search_with_psilearn(X, V, cv)

    name = f"ridge path: {len(ridge_path.ALPHAS)} values of λ, {r:,} targets"
    return measure_work(
        meter, name, search, {"float64": ridge_path_flops(n, r)}, "23 n'³ + 10 n'²(r + n/5)", warm=False
    )


def ridge_path_flops(n: int, r: int) -> float:
    """Return the flops of the path on all splits, and of the fit on all rows with the chosen λ."""
    kept = ridge_path.training_rows(n)
    tests = n - kept
    decomposition = kept**2 * RIDGE_INPUTS + EIGH_FLOPS * kept**3
    products = 2 * kept**2 * r + 2 * tests * kept**2 + len(ridge_path.ALPHAS) * 2 * tests * kept * r
    last_fit = n**2 * RIDGE_INPUTS + n**3 / 3 + 2 * n**2 * r
    return ridge_path.N_SPLITS * (decomposition + products) + last_fit


def reset_peak_bytes() -> None:
    """Start a new maximum of the memory on the GPU, if one is used."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()


def peak_bytes() -> float | None:
    """Return the largest number of bytes that torch has held on the GPU; None without a GPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    return float(torch.cuda.max_memory_allocated())
