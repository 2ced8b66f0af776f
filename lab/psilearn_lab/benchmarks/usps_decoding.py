"""Decoding on USPS halves: IOKR against OEL₀ with p = 64, which compares 2007 tests with 7000 candidates.

1000 pairs and 6000 lower halves without upper halves, which are candidates; parameters as in the part ``usps``. The
time of decoding is that of a prediction without k_x(tests, training inputs), which is the same for both models. Before
every turn k_x is computed once more, so that the threads of BLAS are awake in all turns.
"""

from collections.abc import Callable
from functools import partial

from psilearn import IOKR, OEL
from psilearn._linalg import Array
from psilearn_lab.benchmarks import usps
from psilearn_lab.benchmarks.measurement import Clock, Figures, Run, Turn, time_in_turns, time_stage
from psilearn_lab.datasets import load_usps

NEEDS = usps.NEEDS
MIN_REPEATS = 15  # a prediction is short
MIN_RATIO = 9


def measure(run: Run) -> Figures:
    """Print and return the seconds of decoding and their ratio."""
    data = load_usps()
    n, m, n_tests, p = run.select((1000, 6000, 2007, 64), (150, 600, 200, 10))
    X, Y, U = data.X[data.train[:n]], data.Y[data.train[:n]], data.Y[data.train[-m:]]
    X_test = data.X[data.test[:n_tests]]
    models: dict[str, IOKR | OEL] = {
        "IOKR": IOKR(usps.INPUT, usps.OUTPUT, alpha=usps.ALPHA),
        "OEL₀": OEL(usps.INPUT, usps.OUTPUT, alpha=usps.ALPHA, n_components=p, supervision=1.0),
    }
    compute_kernel = partial(usps.INPUT, X_test, X)

    def run_turn(work: Callable[[], Array], clock: Clock) -> Array:
        compute_kernel()
        return time_stage(work, clock)

    turns: dict[str, Turn[Array]] = {"kernel": partial(run_turn, compute_kernel)}
    for name, model in models.items():
        turns[name] = partial(run_turn, partial(model.fit(X, Y, unlabeled=U).predict, X_test))
    timings = time_in_turns(turns, max(run.repeats, MIN_REPEATS))
    kernel = timings["kernel"].seconds["total"]
    seconds = {name: timings[name].seconds["total"] - kernel for name in models}
    ratio = seconds["IOKR"] / seconds["OEL₀"]
    run.show_table(
        f"decoding {n_tests:,} tests, {n + m:,} candidates; k_x takes {kernel:.3g} s in addition",
        ["method", "dimensions", "decode s"],
        [[name, models[name].n_components_, value] for name, value in seconds.items()],
    )
    claim = f"USPS: OEL₀ with p = {p} decodes at least {MIN_RATIO} times faster than IOKR"
    run.check_claim(claim, ratio >= MIN_RATIO, f"{ratio:.1f}×")
    return {"n": n, "m": m, "p": p, "kernel": kernel, **seconds, "ratio": ratio}
