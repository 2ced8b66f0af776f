"""A million outputs without inputs, and a million candidates: time and memory, each size in a new process.

Outputs have 200 bits and are noisy copies of 2000 prototypes, in a memory-mapped file; 5000 pairs, Tanimoto outputs,
1000 output landmarks, p = 100, float32. Searches: 500 input and 200 output landmarks; 3 widths, 7 λ, 3 c and the
default p on 3 splits with 80 % training rows.
"""

import tempfile
import warnings
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import ShuffleSplit

from psilearn import OEL, OELCV
from psilearn.kernels import Gaussian, Tanimoto
from psilearn_lab.benchmarks.measurement import Array, Figures, Run, growth_exponent, median_of_each, run_in_child

N_BITS, N_PROTOTYPES, N_FEATURES, FLIP_RATE, CHUNK_ROWS = 200, 2000, 30, 0.03, 50_000
N_QUERIES = 1000
MAX_GIB = 6
MAX_EXPONENT = 1.1
GAMMAS, SUPERVISIONS, N_SPLITS = (0.01, 0.02, 0.04), (0.0, 0.5, 1.0), 3
ALPHAS = np.geomspace(1e-7, 1e-1, 7).tolist()
TOLERANCE = 1e-6


def make_prototypes() -> tuple[npt.NDArray[np.bool_], Array]:
    """Return the prototypes of outputs and the centers of their inputs."""
    rng = np.random.default_rng(0)
    return rng.random((N_PROTOTYPES, N_BITS)) < 0.2, rng.standard_normal((N_PROTOTYPES, N_FEATURES))


def flip_bits(outputs: npt.NDArray[np.bool_], rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Return the outputs with some random bits flipped."""
    return outputs ^ (rng.random(outputs.shape, dtype=np.float32) < FLIP_RATE)


def write_outputs(path: Path, rows: int) -> None:
    """Write the outputs without inputs in chunks."""
    prototypes, _ = make_prototypes()
    rng = np.random.default_rng(1)
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(rows, N_BITS))
    for start in range(0, rows, CHUNK_ROWS):
        stop = min(start + CHUNK_ROWS, rows)
        file[start:stop] = flip_bits(prototypes[rng.integers(0, N_PROTOTYPES, stop - start)], rng)
    file.flush()


def make_pairs(n: int) -> tuple[Array, npt.NDArray[np.uint8]]:
    """Return n inputs and outputs."""
    rng = np.random.default_rng(2)
    prototypes, centers = make_prototypes()
    classes = rng.integers(0, N_PROTOTYPES, n)
    X = centers[classes] + 0.3 * rng.standard_normal((n, N_FEATURES))
    return X, flip_bits(prototypes[classes], rng).astype(np.uint8)


def make_model(landmarks: int, p: int, supervision: float) -> OEL:
    """Return the unfitted model."""
    return OEL(
        Gaussian(0.02),
        Tanimoto(),
        alpha=1e-5,
        n_components=p,
        supervision=supervision,
        output_landmarks=landmarks,
        dtype="float32",
    )


def grow_unlabeled(path: str, size: int, n: int, landmarks: int, p: int) -> dict[str, float]:
    """Fit with ``size`` outputs without inputs."""
    X, Y = make_pairs(n)
    unlabeled = np.load(path, mmap_mode="r")[:size]
    start = perf_counter()
    make_model(landmarks, p, 0.5).fit(X, Y, unlabeled=unlabeled)
    return {"fit": perf_counter() - start}


def grow_candidates(path: str, size: int, n: int, landmarks: int, p: int) -> dict[str, float]:
    """Embed ``size`` candidates and search them for 1000 inputs."""
    X, Y = make_pairs(n + N_QUERIES)
    model = make_model(landmarks, p, 1.0).fit(X[:n], Y[:n])
    outputs = np.load(path, mmap_mode="r")[:size]
    start = perf_counter()
    candidates = model.candidate_set(outputs)
    embedded = perf_counter()
    model.predict(X[n:], candidates=candidates)
    return {"embed": embedded - start, "search": perf_counter() - embedded}


def measure(run: Run) -> Figures:
    """Print and return seconds, peaks and exponents."""
    sizes = run.select([125_000, 250_000, 500_000, 1_000_000], [1000, 2000, 4000])
    common = run.select({"n": 5000, "landmarks": 1000, "p": 100}, {"n": 300, "landmarks": 100, "p": 20})
    figures: Figures = {"sizes": sizes, **common}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "outputs.npy")
        write_outputs(path, sizes[-1])
        for function, stages in (("grow_unlabeled", ["fit"]), ("grow_candidates", ["embed", "search"])):
            turns: dict[int, list[Figures]] = {size: [] for size in sizes}
            for _ in range(run.repeats):
                for size in sizes:
                    arguments = {"path": str(path), "size": size, **common}
                    turns[size].append(run_in_child("scale", function, device=run.device, **arguments))
            quantity = function.removeprefix("grow_")
            figures[quantity] = _report(run, quantity, stages, turns)
    return figures


def _report(run: Run, quantity: str, stages: list[str], turns: dict[int, list[Figures]]) -> Figures:
    """Print the table and check the claims about one quantity that grows; return its figures."""
    sizes = list(turns)
    medians = {size: median_of_each(results) for size, results in turns.items()}
    peaks = [max(result["peak_bytes"] for result in results) / 2**30 for results in turns.values()]
    seconds = {stage: [medians[size][stage] for size in sizes] for stage in stages}
    exponents = {stage: growth_exponent(sizes, values) for stage, values in seconds.items()}
    for stage, values in seconds.items():
        run.curves.setdefault(f"million, {quantity}", {})[stage] = list(zip(sizes, values, strict=True))
    rows: list[list[object]] = []
    for size, peak in zip(sizes, peaks, strict=True):
        baseline = medians[size]["baseline_bytes"] / 2**30
        rows.append([f"{size:,}", *(medians[size][stage] for stage in stages), f"{peak:.2f}", f"{baseline:.2f}"])
    rows.append(["exponent", *(f"{exponent:.2f}" for exponent in exponents.values()), "", ""])
    run.show_table(quantity, [quantity, *(f"{stage} s" for stage in stages), "peak GiB", "after imports GiB"], rows)
    noun = "unlabeled outputs" if quantity == "unlabeled" else quantity
    claim = f"{sizes[-1]:,} {noun} take less than {MAX_GIB} GiB"
    run.check_claim(claim, max(peaks) < MAX_GIB, f"at most {max(peaks):.2f} GiB")
    linear = all(exponent <= MAX_EXPONENT for exponent in exponents.values())
    found = ", ".join(f"{stage} {exponent:.2f}" for stage, exponent in exponents.items())
    run.check_claim(f"time grows linearly with the number of {noun}", linear, found)
    return {**seconds, "exponents": exponents, "peak_gib": peaks}


def search_rows(n: int, q: int, r: int) -> Figures:
    """Search on n rows; return seconds, and how much the best score differs from that of fits with its setting."""
    X, Y = make_pairs(n)
    splits = ShuffleSplit(N_SPLITS, test_size=0.2, random_state=0)
    landmarks: dict[str, Any] = {"input_landmarks": q, "output_landmarks": r}
    search = OELCV(
        [Gaussian(gamma) for gamma in GAMMAS],
        Tanimoto(),
        alphas=ALPHAS,
        supervisions=SUPERVISIONS,
        cv=splits,
        refit=False,
        **landmarks,
    )
    start, cpu = perf_counter(), process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, Y)
    seconds, cpu = perf_counter() - start, process_time() - cpu
    train, held = next(splits.split(X))
    model = OEL(**search.best_params_, **landmarks).fit(X[train], Y[train])
    Z, g = model.embed(X[held]), model.transform_outputs(Y[held])
    error = float(np.mean((Z**2 - 2 * Z * g).sum(axis=1) + model.output_kernel_.diag(Y[held])))
    score = float(search.cv_results_["split0_test_score"][search.best_index_])
    best = {name: value for name, value in search.best_params_.items() if isinstance(value, float | int)}
    n_settings = len(search.cv_results_["params"])
    return {
        "n": n,
        "seconds": seconds,
        "cpu": cpu,
        "settings": n_settings,
        "score": search.best_score_,
        "best": best,
        "difference": abs(score + error),
    }


def measure_search(run: Run) -> Figures:
    """Print seconds and memory for growing n, and return the figures."""
    q, r = run.select((500, 200), (40, 20))
    results = [
        run_in_child("scale", "search_rows", n=n, q=q, r=r)
        for n in run.select([5000, 10_000, 20_000, 40_000], [300, 600])
    ]
    rows = [
        [f"{found['n']:,}", found["seconds"], found["cpu"], found["peak_bytes"] / 2**30, found["score"]]
        for found in results
    ]
    title = f"{results[0]['settings']} settings on {N_SPLITS} splits, {q} and {r} landmarks"
    run.show_table(title, ["n", "seconds", "CPU seconds", "peak GiB", "best score"], rows)
    exponent = growth_exponent([found["n"] for found in results], [found["cpu"] for found in results])
    run.check_claim("the time grows at most linearly", exponent <= MAX_EXPONENT, f"power {exponent:.2f}")
    difference = max(found["difference"] for found in results)
    run.check_claim("the best score is that of a fit", difference <= TOLERANCE, f"largest difference {difference:.1e}")
    return {"sizes": results, "exponent": exponent}
