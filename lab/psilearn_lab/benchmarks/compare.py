"""Compare two versions of psilearn side by side: fits, predictions and searches, imports and the command's help.

    python -m psilearn_lab.benchmarks.compare --before OTHER/src [--repeats 5] [bibtex usps growth start]

``OTHER`` is a checkout of another version, such as ``git worktree add OTHER HEAD~1``; its modules may be laid out in
another way, because only the public names of the library are used, and this version reads the data. Each repetition
runs both versions, one after the other, each in a process of its own. Printed are the median seconds of each step and
the ratio before/after: above 1 this version is faster. Run nothing else on the machine at the same time, or compare CPU
seconds of one thread with ``--cpu-time``.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy import sparse

THIS_SOURCE = Path(__file__).resolve().parents[3] / "src"
MIN_RATIO = 0.97
HELP = """
import importlib, sys
try:
    cli = importlib.import_module("psilearn.app.cli")
except ImportError:  # a version before the application was a package of its own
    cli = importlib.import_module("psilearn.cli")
cli.app(["--help"])
"""
STARTS = {"import psilearn": "import psilearn", "from psilearn import OEL": "from psilearn import OEL", "help": HELP}
Timer = Callable[[str, Callable[[], Any]], Any]


def write_data(folder: Path, names: list[str], quick: bool) -> None:
    """Write the inputs and outputs of the data sets as files that any version can read."""
    from sklearn.preprocessing import normalize

    from psilearn_lab.datasets import load

    for name in {"bibtex", "usps"} & set(names):
        data = load(name)
        X, Y = (normalize(data.X) if name == "bibtex" else data.X), data.Y
        train, test = (rows[: 300 if quick else None] for rows in (data.train, data.test))
        alone = data.train[-600 if quick else -6000 :]
        parts = {"X": X[train], "Y": Y[train], "X_test": X[test], "alone": Y[alone]}
        for part, rows in parts.items():
            sparse.save_npz(folder / f"{name}-{part}.npz", sparse.csr_matrix(rows), compressed=False)


def _read(folder: Path, name: str) -> dict[str, Any]:
    parts = {part: sparse.load_npz(folder / f"{name}-{part}.npz") for part in ("X", "Y", "X_test", "alone")}
    return parts if name == "bibtex" else {part: rows.toarray() for part, rows in parts.items()}


def bibtex(timed: Timer, folder: Path) -> None:
    """Fit, decode and search Bibtex: 4880 documents, Dice kernel on tags, 2515 predictions."""
    from psilearn import OEL, OELCV
    from psilearn.kernels import Dice, Gaussian

    data = _read(folder, "bibtex")
    model = OEL(Gaussian(0.5), Dice(), alpha=1e-5, n_components=min(200, data["X"].shape[0]), supervision=1.0)
    timed("fit", lambda: model.fit(data["X"], data["Y"]))
    timed("predict", lambda: model.predict(data["X_test"]))
    grid: dict[str, Any] = {
        "alphas": [1e-6, 1e-5, 1e-4],
        "n_components": [20, 100],
        "supervisions": [0.5, 1.0],
        "cv": 3,
    }
    some = slice(0, 1500)
    search = OELCV([Gaussian(0.25), Gaussian(0.5)], Dice(), scoring="f1", refit=False, **grid)
    timed("search by F1", lambda: search.fit(data["X"][some], data["Y"][some]))


def usps(timed: Timer, folder: Path) -> None:
    """Fit, decode and search USPS: 1000 pairs, 6000 outputs without inputs, 2007 predictions."""
    from psilearn import OEL, OELCV
    from psilearn.kernels import Gaussian

    data = _read(folder, "usps")
    X, Y = data["X"][:1000], data["Y"][:1000]
    fitted = inspect.signature(OEL.fit).parameters
    alone = {name: data["alone"] for name in ("unlabeled", "extra_outputs") if name in fitted}
    model = OEL(Gaussian(0.04), Gaussian(0.05), alpha=1e-4, n_components=98, supervision=0.15)
    timed("fit", lambda: model.fit(X, Y, **alone))
    timed("predict", lambda: model.predict(data["X_test"]))
    grid: dict[str, Any] = {
        "alphas": [1e-5, 1e-4, 1e-3],
        "n_components": [20, 60],
        "supervisions": [0.15, 1.0],
        "cv": 3,
    }
    search = OELCV([Gaussian(0.02), Gaussian(0.04)], Gaussian(0.05), scoring="mse", refit=False, **grid)
    timed("search by the squared error", lambda: search.fit(X, Y, **alone))


def growth(timed: Timer, folder: Path) -> None:
    """Fit exact and Nyström models, and search many candidates."""
    from psilearn import OEL
    from psilearn.kernels import Gaussian

    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((20_000, 20)), rng.standard_normal((20_000, 10))
    options: dict[str, Any] = {"alpha": 1e-4, "n_components": 30}
    exact = OEL(Gaussian(0.05), Gaussian(0.1), **options)
    timed("exact fit, n=2000", lambda: exact.fit(X[:2000], Y[:2000]))
    model = OEL(Gaussian(0.05), Gaussian(0.1), **options, input_landmarks=500, output_landmarks=300)
    timed("Nyström fit, n=20,000", lambda: model.fit(X, Y))
    timed("2000 inputs, 20,000 candidates", lambda: model.predict_topk(X[:2000], 10))
    timed("100 predictions of one input", lambda: [exact.predict(X[i : i + 1]) for i in range(100)])


SCENARIOS = {scenario.__name__: scenario for scenario in (bibtex, usps, growth)}


def run_child(folder: Path, names: list[str], timer: Callable[[], float]) -> dict[str, float]:
    """Run scenarios with the psilearn on the path, and return the seconds of each step."""
    seconds: dict[str, float] = {}
    for name in names:

        def timed(step: str, action: Callable[[], Any], name: str = name) -> Any:
            start = timer()
            result = action()
            seconds[f"{name}: {step}"] = timer() - start
            return result

        SCENARIOS[name](timed, folder)
    return seconds


def measure(source: Path, folder: Path, names: list[str], cpu_time: bool) -> dict[str, float]:
    """Return the seconds of each step with the psilearn of a source folder."""
    others = [source.parent / "packages" / "psilearn-chem" / "src", source.parent / "lab"]
    paths = os.pathsep.join(map(str, [source, *(path for path in others if path.exists())]))
    environment = os.environ | {"PYTHONPATH": paths} | ({"OMP_NUM_THREADS": "1"} if cpu_time else {})
    seconds: dict[str, float] = {}

    def run(*arguments: object) -> str:
        command = [sys.executable, "-W", "ignore", *map(str, arguments)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=folder).stdout

    if fits := [name for name in names if name in SCENARIOS]:
        options = ["--cpu-time"] if cpu_time else []
        seconds = json.loads(run(Path(__file__), "--child", folder, *options, *fits).splitlines()[-1])
    for name, code in STARTS.items() if "start" in names else ():
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
        run("-c", code)
        after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter() - start
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        seconds[f"start: {name}"] = cpu if cpu_time else wall
    return seconds


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return 1 if a step is slower than before by more than 3 %."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [*SCENARIOS, "start"]
    parser.add_argument("scenarios", nargs="*", default=names, metavar="SCENARIO", help=", ".join(names))
    parser.add_argument("--before", type=Path, help="source folder of the other version")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cpu-time", action="store_true", help="CPU seconds of one thread instead of wall time")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)  # the folder of the data
    options = parser.parse_args(arguments)
    if options.child is not None:
        warnings.simplefilter("ignore")
        print(
            json.dumps(run_child(options.child, options.scenarios, process_time if options.cpu_time else perf_counter))
        )
        return 0
    if options.before is None or not (options.before / "psilearn" / "__init__.py").exists():
        parser.error("--before must be the source folder of another version, such as OTHER/src")
    times: dict[str, dict[str, list[float]]] = {"before": defaultdict(list), "after": defaultdict(list)}
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), options.scenarios, options.quick)
        for _ in range(options.repeats):
            for version, source in (("before", options.before.resolve()), ("after", THIS_SOURCE)):
                found = measure(source, Path(folder), options.scenarios, options.cpu_time)
                for step, value in found.items():
                    times[version][step].append(value)
    slower = False
    for step, values in times["after"].items():
        before, after = median(times["before"][step]), median(values)
        slower |= before / after < MIN_RATIO
        print(f"{step:45s} before {before:8.3f} s   after {after:8.3f} s   ratio {before / after:5.2f}")
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
