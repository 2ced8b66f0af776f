"""Bookmarks at its true size: the share of the machine's speed that a fit reaches, and decoding by OEL₀ and by IOKR.

The real labels (60,000 pairs, 13,779 distinct outputs, 27,856 tests) with random sparse features of the real shape:
for timing only. Gaussian kernels, 15,000 input landmarks, p = 200, float32. Each model in a fresh process. On a
GPU also without output landmarks, in float64.
"""

from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.child import child
from benchmarks.device import synchronize
from benchmarks.report import Run, median
from psilearn import IOKR, OEL
from psilearn._backend import computing_blocks, precision, working_device
from psilearn._utils.samples import distinct
from psilearn.datasets import data_home
from psilearn.decoding import nearest
from psilearn.kernels import Gaussian

NEEDS = ("converted/bookmarks_labels_only.npz",)
FEATURES, ONES, ALPHA, DTYPE = 2150, 117, 1e-5, "float32"
FULL = {"n": 60000, "q": 15000, "r": 3000, "p": 200, "tests": 27856, "iokr_n": 20000, "iokr_tests": 2000}
QUICK = {"n": 2000, "q": 300, "r": 200, "p": 50, "tests": 500, "iokr_n": 2000, "iokr_tests": 200}


def load(n: int, tests: int) -> tuple[Any, Any, Any]:
    """Return random inputs of unit length, the outputs, and random tests."""
    with np.load(data_home() / NEEDS[0]) as file:
        Y = sparse.csr_matrix((file["Y_data"], file["Y_indices"], file["Y_indptr"]), tuple(file["Y_shape"]))[:n]
    rng = np.random.default_rng(0)
    columns = np.concatenate([rng.choice(FEATURES, ONES, replace=False) for _ in range(n + tests)])
    ends = np.arange(0, ONES * (n + tests) + 1, ONES)
    values = np.full(len(columns), 1 / np.sqrt(ONES), dtype=np.float32)
    X = sparse.csr_matrix((values, columns.astype(np.int32), ends), (n + tests, FEATURES))
    X.sort_indices()
    return X[:n], Y, X[n:]


def operations(n: int, q: int, r: int, d: int, p: int) -> dict[str, float]:
    """Return the flops of a fit with q input and r output landmarks, d distinct outputs and p components."""
    return {
        "kernel: 2 a pair of common ones": 2 * (n * q + q * q) * ONES**2 / FEATURES,
        "solution with the landmarks' triangle: n·q²": n * q**2,
        "Gram matrix, half of it: n·q²": n * q**2,
        "two Cholesky factors: 2·q³/3": 2 * q**3 / 3,
        "cross products: 2·n·q·r": 2 * n * q * r,
        "two solutions for r targets, one for p directions: q²·(2r + p)": q**2 * (2 * r + p),
        "output coordinates: r³/3 + d·r²": r**3 / 3 + d * r**2,
        "moment of the fitted values, two halves: 2·q·r²": 2 * q * r**2,
        "embedding: 2·(q + d)·r·p": 2 * (q + d) * r * p,
    }


def decode_seconds(model: Any, X_test: Any, X: Any, q: int, repeats: int) -> dict[str, float]:
    """Return the seconds of prediction, of k_x(test, landmarks) alone (any q inputs cost as landmarks do), of decoding.

    Decoding is what is left when z(x) is known: the nearest of the embedded candidates.
    """
    turns = []
    for _ in range(repeats):
        start = perf_counter()
        model.predict(X_test)
        predicted = perf_counter()
        with precision(DTYPE):
            for rows in computing_blocks(X_test.shape[0], 4 * q):
                model.input_kernel_(X_test[rows], X[:q])
        synchronize(working_device())
        evaluated = perf_counter()
        Z = model.embed(X_test)
        embedded = perf_counter()
        with precision(model.dtype):
            nearest(Z, model.candidates_, model.embedding_, 1)
        decoded = perf_counter() - embedded
        turns.append({"predict": predicted - start, "kernel": evaluated - predicted, "decode": decoded})
    return median(turns)


def oel(sizes: dict[str, int], repeats: int, exact: bool = False) -> dict[str, float]:
    """Fit OEL₀ on all pairs and decode all tests; with every distinct output spanned, in float64, where ``exact``."""
    X, Y, X_test = load(sizes["n"], sizes["tests"])
    landmarks = {"input_landmarks": sizes["q"], "output_landmarks": None if exact else sizes["r"]}
    dtype = "float64" if exact else DTYPE
    model = OEL(Gaussian(0.5), Gaussian(0.5), ALPHA, sizes["p"], supervision=1.0, dtype=dtype, **landmarks)
    start = perf_counter()
    model.fit(X, Y)
    fitted = perf_counter() - start
    return {"fit": fitted, "d": len(model.candidates_), **decode_seconds(model, X_test, X, sizes["q"], repeats)}


def iokr(sizes: dict[str, int], repeats: int) -> dict[str, float]:
    """Decode some tests with IOKR, every distinct output kept; seconds for all of them.

    Decoding does not depend on n, so the model is fitted on fewer pairs, which hold all distinct outputs.
    """
    X, Y, X_test = load(sizes["n"], sizes["tests"])
    first = distinct(Y).first
    others = np.setdiff1d(np.arange(sizes["n"]), first)
    rows = np.concatenate([first, others])[: max(sizes["iokr_n"], len(first))]
    model = IOKR(Gaussian(0.5), Gaussian(0.5), ALPHA, input_landmarks=sizes["q"], dtype=DTYPE).fit(X[rows], Y[rows])
    some = X_test[: sizes["iokr_tests"]]
    scale = sizes["tests"] / some.shape[0]
    seconds = decode_seconds(model, some, X, sizes["q"], repeats)
    return {"d": len(model.candidates_), "r": model.n_components_, **{k: scale * s for k, s in seconds.items()}}


def measure(run: Run) -> dict[str, Any]:
    """Print and return seconds, operations and ratios."""
    sizes = run.size(FULL, QUICK)
    fits = [child("benchmarks.bookmarks", "oel", sizes=sizes, repeats=run.repeats) for _ in range(run.repeats)]
    ours = median(fits)
    flops = operations(sizes["n"], sizes["q"], sizes["r"], int(ours["d"]), sizes["p"])
    run.table("operations of the fit", ["step", "flops"], [[k, f"{v:.2e}"] for k, v in flops.items()])
    total = sum(flops.values())
    share = total / ours["fit"] / run.gemm[DTYPE]
    run.say(
        f"fit: {total:.3g} flops in {ours['fit']:.0f} s = {total / ours['fit'] / 1e9:.0f} GFLOP/s, {100 * share:.0f} % "
        f"of the {DTYPE} matrix product; {ours['d']:,.0f} distinct outputs; peak {ours['peak_bytes'] / 2**30:.2f} GiB"
    )
    other = child("benchmarks.bookmarks", "iokr", sizes=sizes, repeats=run.repeats)
    rows, ratios = [], {}
    for name, m in (("OEL₀", ours), ("IOKR", other)):
        rows.append([name, m["predict"], m["kernel"], m["predict"] - m["kernel"], m["peak_bytes"] / 2**30])
    for j, what in ((1, "with the kernel"), (3, "without the kernel")):
        ratios[what] = rows[1][j] / rows[0][j]
    rows.append(["ratio", f"{ratios['with the kernel']:.1f}×", "", f"{ratios['without the kernel']:.1f}×", ""])
    run.table(
        f"decoding {sizes['tests']:,} tests; IOKR (rank {other['r']}) measured on {sizes['iokr_tests']:,} and scaled",
        ["method", "predict s", "k_x(test, landmarks) s", "the rest s", "peak GiB"],
        rows,
    )
    if run.device is None:
        run.claim(f"Bookmarks fit at 50 % of the {DTYPE} matrix product or more", share >= 0.5, f"{100 * share:.0f} %")
    if run.device == "cuda":
        ours = {"landmarks": ours, "exact": _on_gpu(run, sizes, ours)}
    found = ", ".join(f"{ratio:.1f}× {what}" for what, ratio in ratios.items())
    run.claim("Bookmarks: OEL₀ decodes at least 10× faster than IOKR", min(ratios.values()) >= 10, found)
    return {"sizes": sizes, "oel": ours, "iokr": other, "flops": total, "share": share, "ratios": ratios}


def _on_gpu(run: Run, sizes: dict[str, int], approximate: dict[str, float]) -> dict[str, float]:
    """Measure the fit without output landmarks too, and judge the seconds of both."""
    options = {"sizes": sizes, "repeats": run.repeats, "exact": True}
    exact = median([child("benchmarks.bookmarks", "oel", **options) for _ in range(run.repeats)])
    for name, one in ((f"{sizes['r']} output landmarks, {DTYPE}", approximate), ("exact outputs, float64", exact)):
        found = f"fit {one['fit']:.2f} s, decode {one['decode']:.3f} s; predict {one['predict']:.2f} s in all"
        met = one["fit"] < 6 and one["decode"] < 0.5
        run.claim(f"Bookmarks on a GPU, {name}: fit under 6 s, decode under 0.5 s", met, found)
    return exact
