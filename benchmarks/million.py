"""A million outputs without inputs, and a million candidates: time and memory, each size in a fresh process.

Outputs are 200 bits, noisy copies of 2000 prototypes, in a file that is mapped; 5000 pairs, Tanimoto outputs, 1000
output landmarks, p = 100, float32.
"""

import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.child import child
from benchmarks.report import Run, median, slope
from psilearn import OEL
from psilearn.kernels import Gaussian, Tanimoto

BITS, PROTOTYPES, FEATURES, FLIPS, CHUNK = 200, 2000, 30, 0.03, 50_000


def outputs(prototypes: Any, which: Any, rng: np.random.Generator) -> Any:
    """Return copies of prototypes with some bits flipped."""
    return prototypes[which] ^ (rng.random((len(which), BITS), dtype=np.float32) < FLIPS)


def write(path: Path, rows: int) -> None:
    """Write the outputs without inputs, chunk by chunk."""
    prototypes, _ = world()
    rng = np.random.default_rng(1)
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(rows, BITS))
    for start in range(0, rows, CHUNK):
        stop = min(start + CHUNK, rows)
        file[start:stop] = outputs(prototypes, rng.integers(0, PROTOTYPES, stop - start), rng)
    file.flush()


def world() -> tuple[Any, Any]:
    """Return the prototypes and what their inputs look like."""
    rng = np.random.default_rng(0)
    return rng.random((PROTOTYPES, BITS)) < 0.2, rng.standard_normal((PROTOTYPES, FEATURES))


def pairs(n: int) -> tuple[Any, Any]:
    """Return n inputs and outputs."""
    rng = np.random.default_rng(2)
    prototypes, centres = world()
    which = rng.integers(0, PROTOTYPES, n)
    X = centres[which] + 0.3 * rng.standard_normal((n, FEATURES))
    return X, outputs(prototypes, which, rng).astype(np.uint8)


def model(landmarks: int, p: int, supervision: float) -> OEL:
    """Return the estimator of all runs."""
    kernels = Gaussian(0.02), Tanimoto()
    return OEL(*kernels, 1e-5, p, supervision, output_landmarks=landmarks, dtype="float32")


def grow_unlabeled(path: str, size: int, n: int, landmarks: int, p: int) -> dict[str, float]:
    """Fit with so many outputs without inputs."""
    X, Y = pairs(n)
    U = np.load(path, mmap_mode="r")[:size]
    start = perf_counter()
    model(landmarks, p, 0.5).fit(X, Y, unlabeled=U)
    return {"fit": perf_counter() - start}


def grow_candidates(path: str, size: int, n: int, landmarks: int, p: int) -> dict[str, float]:
    """Embed so many candidates and search them for 1000 inputs."""
    X, Y = pairs(n + 1000)
    fitted = model(landmarks, p, 1.0).fit(X[:n], Y[:n])
    C = np.load(path, mmap_mode="r")[:size]
    start = perf_counter()
    kept = fitted.candidate_set(C)
    embedded = perf_counter()
    fitted.predict(X[n:], candidates=kept)
    return {"embed": embedded - start, "search": perf_counter() - embedded}


def measure(run: Run) -> dict[str, Any]:
    """Print and return seconds, peaks and exponents."""
    sizes = run.size([125_000, 250_000, 500_000, 1_000_000], [1000, 2000, 4000])
    common = run.size({"n": 5000, "landmarks": 1000, "p": 100}, {"n": 300, "landmarks": 100, "p": 20})
    figures: dict[str, Any] = {"sizes": sizes, **common}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "outputs.npy")
        write(path, sizes[-1])
        for function, stages in (("grow_unlabeled", ["fit"]), ("grow_candidates", ["embed", "search"])):
            turns: dict[int, list[dict[str, float]]] = {size: [] for size in sizes}
            for _ in range(run.repeats):
                for size in sizes:
                    turns[size].append(child("benchmarks.million", function, path=str(path), size=size, **common))
            report(run, figures, function.removeprefix("grow_"), stages, turns)
    return figures


def report(run: Run, figures: dict[str, Any], what: str, stages: list[str], turns: dict[int, Any]) -> None:
    """Print the table and the claims of one kind of growth."""
    sizes = list(turns)
    medians = {size: median(rows) for size, rows in turns.items()}
    peaks = [max(row["peak_bytes"] for row in rows) / 2**30 for rows in turns.values()]
    exponents = {}
    for stage in stages:
        seconds = [medians[size][stage] for size in sizes]
        exponents[stage] = slope(sizes, seconds)
        run.curves.setdefault(f"million, {what}", {})[stage] = list(zip(sizes, seconds, strict=True))
    rows = [
        [f"{size:,}", *(medians[size][stage] for stage in stages), f"{peak:.2f}", f"{base:.2f}"]
        for size, peak, base in zip(
            sizes, peaks, [medians[size]["baseline_bytes"] / 2**30 for size in sizes], strict=True
        )
    ]
    rows.append(["exponent", *(f"{exponents[stage]:.2f}" for stage in stages), "", ""])
    run.table(what, [what, *(f"{stage} s" for stage in stages), "peak GiB", "after imports GiB"], rows)
    figures[what] = {
        **{stage: [medians[size][stage] for size in sizes] for stage in stages},
        "exponents": exponents,
        "peak_gib": peaks,
    }
    run.claim(f"{sizes[-1]:,} {what} in less than 6 GiB", max(peaks) < 6, f"{max(peaks):.2f} GiB at the most")
    linear = all(exponent <= 1.1 for exponent in exponents.values())
    run.claim(f"time grows linearly with {what}", linear, ", ".join(f"{k} {e:.2f}" for k, e in exponents.items()))
