"""Bibtex: IOKR and OEL₀ against research-style code and against scikit-learn's KernelRidge on the label matrix.

4880 pairs, 2515 tests, L2-normalised rows, Gaussian inputs with γ = 0.5, Dice outputs, λ = 1e-5, p = 200; candidates
are the training outputs. KernelRidge regresses the 0/1 rows and takes the nearest one.
"""

from collections.abc import Callable
from typing import Any

from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import pairwise_distances_argmin
from sklearn.preprocessing import normalize

from benchmarks.naive import NaiveIOKR, NaiveOEL0
from benchmarks.report import Clock, Run, in_turns
from psilearn import IOKR, OEL
from psilearn.datasets import load_bibtex
from psilearn.kernels import Dice, Gaussian
from psilearn.metrics import f1_score

NEEDS = tuple(f"mulan/bibtex/bibtex{ending}" for ending in ("-train.arff", "-test.arff", ".xml"))
GAMMA, ALPHA = 0.5, 1e-5
PAIRS = {"naive IOKR": "IOKR", "naive OEL₀": "OEL₀", "KernelRidge": "IOKR"}  # whom each is compared with


def measure(run: Run) -> dict[str, Any]:
    """Print and return seconds, ratios and F1."""
    bibtex = load_bibtex()
    train, test = bibtex.train[: run.size(None, 400)], bibtex.test[: run.size(None, 200)]
    p = run.size(200, 50)
    X, Y = normalize(bibtex.X), bibtex.Y
    X_train, Y_train, X_test, Y_test = X[train], Y[train], X[test], Y[test]
    dense_X, dense_Y, dense_test = X_train.toarray(), Y_train.toarray().astype(float), X_test.toarray()

    def method(make: Callable[[], Any], X: Any, Y: Any, tests: Any) -> Callable[[Clock], Any]:
        def turn(clock: Clock) -> Any:
            with clock("fit"):
                model = make().fit(X, Y)
            with clock("decode"):
                return model.predict(tests)

        return turn

    def kernel_ridge(clock: Clock) -> Any:
        with clock("fit"):
            model = KernelRidge(alpha=len(train) * ALPHA, kernel="rbf", gamma=GAMMA).fit(X_train, dense_Y)
        with clock("decode"):
            return dense_Y[pairwise_distances_argmin(model.predict(X_test), dense_Y)]

    kernels = Gaussian(GAMMA), Dice(), ALPHA
    methods = {
        "IOKR": method(lambda: IOKR(*kernels), X_train, Y_train, X_test),
        "OEL₀": method(lambda: OEL(*kernels, p, supervision=1.0), X_train, Y_train, X_test),
        "naive IOKR": method(lambda: NaiveIOKR(GAMMA, ALPHA), dense_X, dense_Y, dense_test),
        "naive OEL₀": method(lambda: NaiveOEL0(GAMMA, ALPHA, p), dense_X, dense_Y, dense_test),
        "KernelRidge": kernel_ridge,
    }
    measured = in_turns(methods, run.repeats)

    figures: dict[str, Any] = {"n": len(train), "p": p}
    rows = []
    for name, m in measured.items():
        f1 = f1_score(Y_test, m.result)
        ratio = m.seconds["total"] / measured[PAIRS.get(name, name)].seconds["total"]
        figures[name] = {**m.seconds, "ratio": ratio, "f1": 100 * f1}
        seconds = [m.seconds[stage] for stage in ("fit", "decode", "total")]
        rows.append([name, *seconds, f"{ratio:.1f}×", f"{100 * f1:.2f} ± {100 * f1.standard_error:.2f}"])
    run.table(
        f"Bibtex, n = {len(train)}, p = {p}",
        ["method", "fit s", "decode s", "total s", "ratio to ours", "F1"],
        rows,
    )
    for name, factor in (("IOKR", 3), ("OEL₀", 5)):
        other, ours = figures[f"naive {name}"], figures[name]
        same = abs(other["f1"] - ours["f1"]) < 0.05
        run.claim(
            f"Bibtex {name} at least {factor}× faster than research-style code at the same F1",
            other["ratio"] >= factor and same,
            f"{other['ratio']:.1f}×, F1 {ours['f1']:.2f} and {other['f1']:.2f}",
        )
    return figures
