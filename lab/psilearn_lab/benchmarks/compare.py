"""Compare the speed of two versions of psilearn: fits, predictions and searches, side by side in one run.

    python -m psilearn_lab.benchmarks.compare --before OTHER/src [--repeats 5] [bibtex usps growth search label_sets]

``OTHER`` is a checkout of another version, such as ``git worktree add OTHER HEAD~1``. Each repetition runs both
versions, one after the other, each in a process of its own. Printed are the median seconds of each step and the ratio
before/after: above 1 this version is faster. Run nothing else on the machine at the same time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

THIS_SOURCE = Path(__file__).resolve().parents[3] / "src"
MIN_RATIO = 0.95

Timer = Callable[[str, Callable[[], Any]], Any]


def bibtex(timed: Timer) -> None:
    """Fit and decode Bibtex: 4880 documents, Dice kernel on tags, 2515 predictions."""
    from sklearn.preprocessing import normalize

    from psilearn import OEL
    from psilearn.kernels import Dice, Gaussian
    from psilearn_lab.datasets import load_bibtex

    data = load_bibtex()
    X, Y = normalize(data.X), data.Y
    model = OEL(Gaussian(0.5), Dice(), alpha=1e-5, n_components=200, supervision=1.0)
    timed("fit", lambda: model.fit(X[data.train], Y[data.train]))
    timed("predict", lambda: model.predict(X[data.test]))


def usps(timed: Timer) -> None:
    """Fit and decode USPS: 1000 pairs, 6000 unlabeled outputs, 2007 predictions."""
    from psilearn import OEL
    from psilearn.kernels import Gaussian
    from psilearn_lab.datasets import load_usps

    data = load_usps()
    model = OEL(Gaussian(0.04), Gaussian(0.05), alpha=1e-4, n_components=98, supervision=0.15)
    pairs, alone = data.train[:1000], data.train[-6000:]
    timed("fit", lambda: model.fit(data.X[pairs], data.Y[pairs], unlabeled=data.Y[alone]))
    timed("predict", lambda: model.predict(data.X[data.test]))


def growth(timed: Timer) -> None:
    """Fit exact and Nyström models of growing size, and search many candidates."""
    from psilearn import OEL
    from psilearn.kernels import Gaussian

    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40_000, 20)), rng.standard_normal((40_000, 10))
    options = {"alpha": 1e-4, "n_components": 30}
    for n in (1000, 2000):
        timed(f"exact fit, n={n}", lambda n=n: OEL(Gaussian(0.05), Gaussian(0.1), **options).fit(X[:n], Y[:n]))
    model = OEL(Gaussian(0.05), Gaussian(0.1), **options, input_landmarks=500, output_landmarks=300)
    for n in (10_000, 40_000):
        timed(f"Nyström fit, n={n}", lambda n=n: model.fit(X[:n], Y[:n]))
    timed("2000 inputs, 40,000 candidates", lambda: model.predict_topk(X[:2000], 10))
    small = OEL(Gaussian(0.05), Gaussian(0.1), **options).fit(X[:100], Y[:100])
    timed("100 predictions of one input", lambda: [small.predict(X[i : i + 1]) for i in range(100)])


def search(timed: Timer) -> None:
    """Search λ, p and c by the squared error and by a decoded metric."""
    from sklearn.datasets import make_multilabel_classification

    from psilearn import OELCV
    from psilearn.kernels import Dice, Gaussian

    X, Y = make_multilabel_classification(n_samples=500, n_features=30, n_classes=12, random_state=0)
    grid = {"input_kernels": [Gaussian(0.01), Gaussian(0.1)], "output_kernels": Dice(), "cv": 3}
    timed("search by the squared error", lambda: OELCV(**grid).fit(X, Y))
    timed("search by F1", lambda: OELCV(**grid, n_components=[5, 20], scoring="f1").fit(X, Y))


def label_sets(timed: Timer) -> None:
    """Search default grids of λ, c and p with five widths on label sets, by the squared error and by F1."""
    from psilearn import OELCV
    from psilearn.kernels import Gaussian
    from psilearn_lab.benchmarks.decoded_search import LARGE, N_FEATURES, make_label_sets

    X, Y = make_label_sets(350, N_FEATURES)
    grid = {"input_kernels": [Gaussian(0.005 * 2**i) for i in range(-2, 3)], "random_state": 0, "refit": False}
    for scoring in ("mse", "f1"):
        timed(f"350 examples by {scoring}", lambda scoring=scoring: OELCV(**grid, scoring=scoring).fit(X, Y))
    X, Y = make_label_sets(**LARGE)
    grid["input_kernels"] = [Gaussian(0.0005 * 2**i) for i in range(-2, 3)]
    timed(f"{len(X)} examples by mse", lambda: OELCV(**grid).fit(X, Y))


SCENARIOS = {scenario.__name__: scenario for scenario in (bibtex, usps, growth, search, label_sets)}


def run_child(names: list[str]) -> None:
    """Run scenarios with the psilearn on the path, and print the seconds of each step as JSON."""
    seconds: dict[str, float] = {}
    for name in names:

        def timed(step: str, action: Callable[[], Any], name: str = name) -> Any:
            start = perf_counter()
            result = action()
            seconds[f"{name}: {step}"] = perf_counter() - start
            return result

        SCENARIOS[name](timed)
    print(json.dumps(seconds))


def measure(source: Path, names: list[str]) -> dict[str, float]:
    """Return the seconds of each step with the psilearn of a source folder."""
    code = f"import psilearn_lab.benchmarks.compare as c; c.run_child({names!r})"
    environment = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{THIS_SOURCE.parent}"}
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def main() -> int:
    """Print the table; return 1 if a step is slower than before by more than 5 %."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scenarios", nargs="*", default=list(SCENARIOS), metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--before", type=Path, required=True, help="source folder of the other version")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    times: dict[str, dict[str, list[float]]] = {"before": defaultdict(list), "after": defaultdict(list)}
    for _ in range(options.repeats):
        for version, source in (("before", options.before.resolve()), ("after", THIS_SOURCE)):
            for step, value in measure(source, options.scenarios).items():
                times[version][step].append(value)
    slower = False
    for step, values in times["after"].items():
        before, after = median(times["before"][step]), median(values)
        slower |= before / after < MIN_RATIO
        print(f"{step:45s} before {before:8.3f} s   after {after:8.3f} s   ratio {before / after:5.2f}")
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
