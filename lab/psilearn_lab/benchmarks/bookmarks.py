"""Bookmarks at its full size: the share of the machine's speed that a fit reaches, and decoding by OEL₀ and by IOKR.

The real labels (60,000 pairs, 13,779 distinct outputs, 27,856 tests) with random sparse features of the real shape:
for timing only. Gaussian kernels, 15,000 input landmarks, p = 200, float32. Each model runs in a new process. On a
GPU also without output landmarks, in float64.
"""

from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

from psilearn import IOKR, OEL, computing
from psilearn.kernels import Gaussian
from psilearn.metrics import f1_score
from psilearn.utils import distinct, observe_steps
from psilearn_lab.benchmarks.measurement import (
    Figures,
    Run,
    StepProfile,
    compute_on,
    median_of_each,
    run_in_child,
    show_profile,
    synchronize,
)
from psilearn_lab.datasets import data_home

NEEDS = ("converted/bookmarks_labels_only.npz",)
N_FEATURES, N_ONES, ALPHA, DTYPE = 2150, 117, 1e-5, "float32"
FULL = {"n": 60000, "q": 15000, "r": 3000, "p": 200, "tests": 27856, "iokr_n": 20000, "iokr_tests": 2000}
QUICK = {"n": 2000, "q": 300, "r": 200, "p": 50, "tests": 500, "iokr_n": 2000, "iokr_tests": 200}
MAX_BLOCK_BYTES = 2**28  # of kernel values
TOP = "leading directions"


def load_labels() -> sparse.csr_matrix:
    """Return all labels of the dataset."""
    with np.load(data_home() / NEEDS[0]) as file:
        return sparse.csr_matrix((file["Y_data"], file["Y_indices"], file["Y_indptr"]), tuple(file["Y_shape"]))


def load(n: int, n_tests: int) -> tuple[sparse.csr_matrix, sparse.csr_matrix, sparse.csr_matrix]:
    """Return random inputs of unit length, the outputs, and random test inputs."""
    Y = load_labels()[:n]
    rng = np.random.default_rng(0)
    columns = np.concatenate([rng.choice(N_FEATURES, N_ONES, replace=False) for _ in range(n + n_tests)])
    ends = np.arange(0, N_ONES * (n + n_tests) + 1, N_ONES)
    values = np.full(len(columns), 1 / np.sqrt(N_ONES), dtype=np.float32)
    X = sparse.csr_matrix((values, columns.astype(np.int32), ends), (n + n_tests, N_FEATURES))
    X.sort_indices()
    return X[:n], Y, X[n:]


class Operations(NamedTuple):
    """What a step of the fit computes, and the name of the rate that bounds it on a GPU."""

    formula: str
    flops: float
    rate: str
    step: str  # as psilearn reports it


def count_operations(n: int, q: int, r: int, d: int, p: int, dense: bool) -> list[Operations]:
    """Return the operations of a fit with q input and r output landmarks, d distinct outputs and p components.

    On a GPU rows are ``dense`` in the products of kernel values.
    """
    pairs = n * q + q * q / 2
    kernel = (
        Operations("kernel: 2 per pair and column", 2 * pairs * N_FEATURES, "split", "kernel values with landmarks")
        if dense
        else Operations(
            "kernel: 2 per pair of common ones",
            2 * pairs * N_ONES**2 / N_FEATURES,
            "float32",
            "kernel values with landmarks",
        )
    )
    return [
        kernel,
        Operations("choice of landmarks: d·r²", d * r**2, "float32", "choice of landmarks"),
        Operations(
            "triangular solutions: n·q² + (n + d)·r²",
            n * q**2 + (n + d) * r**2,
            "split",
            "solution with the landmarks' triangle",
        ),
        Operations("Gram matrix, half of it: n·q²", n * q**2, "split", "Gram matrix of the features"),
        Operations("Cholesky factor: q³/3", q**3 / 3, "float64", "Cholesky factor of input landmarks"),
        Operations("cross products: 2·n·q·r", 2 * n * q * r, "split", "cross products with the targets"),
        Operations("factor, 2 solutions: q³/3 + 2·q²·r", q**3 / 3 + 2 * q**2 * r, "float64", "ridge system"),
        Operations("moment, two halves, and eigenvectors: 2·q·r² + 6·r³", 2 * q * r**2 + 6 * r**3, "float64", TOP),
        Operations("embedding: q²·p + 2·(q + d)·r·p", q**2 * p + 2 * (q + d) * r * p, "float64", "embedding"),
    ]


def decode_seconds(
    model: IOKR | OEL, X_test: sparse.csr_matrix, X: sparse.csr_matrix, q: int, repeats: int, device_name: str | None
) -> dict[str, float]:
    """Return the seconds of a prediction, of k_x(test, landmarks) alone, and of decoding.

    Any q inputs cost as much as the landmarks. Decoding is the search of the nearest embedded candidate, given z(x).
    """
    turns = []
    batch = max(1, MAX_BLOCK_BYTES // (4 * q))
    for _ in range(repeats):
        start = perf_counter()
        model.predict(X_test)
        predicted = perf_counter()
        with computing(DTYPE, device_name) as compute:
            anchors = model.input_kernel.to_device(X[:q], compute)
            for rows in gen_batches(X_test.shape[0], batch):
                model.input_kernel(X_test[rows], anchors, compute=compute)
        synchronize()
        evaluated = perf_counter()
        Z = model.embed(X_test)
        embedded = perf_counter()
        with compute_on(device_name, str(model.dtype)):
            model.candidates_.nearest(Z, 1)
        decoded = perf_counter() - embedded
        turns.append({"predict": predicted - start, "kernel": evaluated - predicted, "decode": decoded})
    return median_of_each(turns)


def make_oel(sizes: dict[str, int], exact: bool) -> OEL:
    """Return OEL₀; if ``exact``, without output landmarks and in float64."""
    return OEL(
        Gaussian(0.5),
        Gaussian(0.5),
        alpha=ALPHA,
        n_components=sizes["p"],
        supervision=1.0,
        input_landmarks=sizes["q"],
        output_landmarks=None if exact else sizes["r"],
        dtype="float64" if exact else DTYPE,
    )


def _fit_seconds(model: OEL, X: sparse.csr_matrix, Y: sparse.csr_matrix) -> float:
    start = perf_counter()
    model.fit(X, Y)
    return perf_counter() - start


def measure_oel(sizes: dict[str, int], repeats: int, device_name: str | None, exact: bool = False) -> dict[str, float]:
    """Fit OEL₀ on all pairs and decode all tests; if ``exact``, without output landmarks and in float64.

    On a GPU the first fit, which loads the code of the GPU, is not counted.
    """
    X, Y, X_test = load(sizes["n"], sizes["tests"])
    model = make_oel(sizes, exact)
    turns = [_fit_seconds(model, X, Y) for _ in range(1 if device_name is None else 1 + repeats)]
    seconds = {"first fit": turns[0], "fit": median(turns[1:] or turns)}
    seconds |= decode_seconds(model, X_test, X, sizes["q"], repeats, device_name)
    return {**seconds, "d": len(model.candidates_)}


def profile_oel(sizes: dict[str, int], repeats: int, device_name: str | None) -> dict[str, float]:
    """Return the seconds of each step of a fit, after ``repeats`` other fits."""
    X, Y, _ = load(sizes["n"], 1)
    model = make_oel(sizes, exact=False)
    for _ in range(repeats):
        model.fit(X, Y)
    profile = StepProfile()
    start = perf_counter()
    with observe_steps(profile):
        model.fit(X, Y)
    return profile.with_rest(perf_counter() - start)


def measure_iokr(sizes: dict[str, int], repeats: int, device_name: str | None) -> dict[str, float]:
    """Decode some tests with IOKR, without output landmarks; return seconds that are scaled to all tests.

    Decoding does not depend on n, so the model is fitted on fewer pairs, which contain all distinct outputs.
    """
    X, Y, X_test = load(sizes["n"], sizes["tests"])
    first = distinct(Y).first
    others = np.setdiff1d(np.arange(sizes["n"]), first)
    rows = np.concatenate([first, others])[: max(sizes["iokr_n"], len(first))]
    model = IOKR(Gaussian(0.5), Gaussian(0.5), alpha=ALPHA, input_landmarks=sizes["q"], dtype=DTYPE)
    model.fit(X[rows], Y[rows])
    X_some = X_test[: sizes["iokr_tests"]]
    scale = sizes["tests"] / X_some.shape[0]
    seconds = decode_seconds(model, X_some, X, sizes["q"], repeats, device_name)
    return {"d": len(model.candidates_), "r": model.n_components_, **{k: scale * s for k, s in seconds.items()}}


def compare_precisions(sizes: dict[str, int], repeats: int, device_name: str | None) -> dict[str, float]:
    """Return the share of tests with the same prediction in float32 and float64, and the F1 of both."""
    X, Y, X_test = load(sizes["n"], sizes["tests"])
    truth = load_labels()[sizes["n"] : sizes["n"] + sizes["tests"]]
    models = [make_oel(sizes, exact=False).set_params(dtype=dtype) for dtype in (DTYPE, "float64")]
    predicted = [model.fit(X, Y).predict(X_test) for model in models]
    differ = np.asarray(abs(predicted[0] - predicted[1]).sum(axis=1)).ravel() > 0
    scores = [100 * float(f1_score(truth, part)) for part in predicted]
    n_predicted = len(distinct(predicted[1]).first)
    return {
        "identical": float(1 - differ.mean()),
        "distinct": n_predicted,
        "F1": scores[0],
        "F1 in float64": scores[1],
    }


def _run_child(run: Run, function: str, sizes: dict[str, int], **options: Any) -> Figures:
    arguments = {"sizes": sizes, "repeats": run.repeats, "device_name": run.device, **options}
    return run_in_child("bookmarks", function, device=run.device, **arguments)


def measure(run: Run) -> Figures:
    """Print and return seconds, operations and ratios."""
    sizes = run.select(FULL, QUICK)
    oel: Figures = median_of_each([_run_child(run, "measure_oel", sizes) for _ in range(run.repeats)])
    flops, share = _report_fit(run, sizes, oel)
    iokr = _run_child(run, "measure_iokr", sizes)
    ratios = _report_decoding(run, sizes, oel, iokr)
    if run.device == "cuda":
        oel = {"landmarks": oel, "exact": _measure_exact(run, sizes, oel), "precision": _compare_precisions(run, sizes)}
    found = ", ".join(f"{ratio:.1f}× {kind}" for kind, ratio in ratios.items())
    run.check_claim("Bookmarks: OEL₀ decodes at least 10× faster than IOKR", min(ratios.values()) >= 10, found)
    return {"sizes": sizes, "oel": oel, "iokr": iokr, "flops": flops, "share": share, "ratios": ratios}


def _report_fit(run: Run, sizes: dict[str, int], oel: Figures) -> tuple[float, float]:
    """Print the operations of the fit; return their number and the share of the machine's speed."""
    operations = count_operations(sizes["n"], sizes["q"], sizes["r"], int(oel["d"]), sizes["p"], run.device == "cuda")
    floors = least_seconds(run, operations)
    on_gpu = run.device == "cuda"
    rows = [[part.formula, f"{part.flops:.2e}", 1e3 * seconds] for part, seconds in floors.items()]
    run.show_table("operations of the fit", ["step", "flops", "ms at the highest rate of the units"], rows)
    flops, floor = sum(part.flops for part in operations), sum(floors.values())
    share = floor / oel["fit"]
    run.log(
        f"fit: {flops:.3g} flops in {oel['fit']:.2f} s = {flops / oel['fit'] / 1e9:.0f} GFLOP/s; at the highest rates "
        f"of the units {floor:.2f} s, {100 * share:.0f} %; first fit {oel['first fit']:.2f} s; "
        f"{oel['d']:,.0f} distinct outputs; peak {oel['peak_bytes'] / 2**30:.2f} GiB"
    )
    claim = f"Bookmarks: the fit reaches at least {55 if on_gpu else 50} % of the rate of the units"
    run.check_claim(claim, share >= (0.55 if on_gpu else 0.5), f"{100 * share:.0f} %")
    if on_gpu:
        lasting = sum(part.flops / run.sustained[part.rate] for part in operations) / oel["fit"]
        claim = "Bookmarks: the fit reaches at least 55 % of the rate that the units sustain over half a second"
        run.check_claim(claim, lasting >= 0.55, f"{100 * lasting:.0f} %")
    if run.profile:
        steps = _run_child(run, "profile_oel", sizes)
        steps = {name: seconds for name, seconds in steps.items() if not name.endswith("_bytes")}
        show_profile(run, "the fit by step", steps, {part.step: seconds for part, seconds in floors.items()})
    return flops, share


def least_seconds(run: Run, operations: list[Operations]) -> dict[Operations, float]:
    """Return the seconds of each step at the highest rate of the units that compute it."""
    return {part: part.flops / run.gemm[part.rate if run.device == "cuda" else DTYPE] for part in operations}


def _report_decoding(run: Run, sizes: dict[str, int], oel: Figures, iokr: Figures) -> dict[str, float]:
    """Print the seconds of predictions; return the ratios of IOKR to OEL₀ of whole predictions and of decoding."""
    rows: list[list[Any]] = []
    for name, seconds in (("OEL₀", oel), ("IOKR", iokr)):
        rows.append([name, *(seconds[part] for part in ("predict", "kernel", "decode")), seconds["peak_bytes"] / 2**30])
    ratios = {"of predictions": rows[1][1] / rows[0][1], "of decoding": rows[1][3] / rows[0][3]}
    rows.append(["ratio", f"{ratios['of predictions']:.1f}×", "", f"{ratios['of decoding']:.1f}×", ""])
    run.show_table(
        f"decoding {sizes['tests']:,} tests; IOKR (rank {iokr['r']}) measured on {sizes['iokr_tests']:,} and scaled",
        ["method", "predict s", "k_x(test, landmarks) s", "decoding s", "peak GiB"],
        rows,
    )
    return ratios


def _compare_precisions(run: Run, sizes: dict[str, int]) -> Figures:
    """Compare the predictions in float32 with those in float64."""
    found = _run_child(run, "compare_precisions", sizes)
    text = (
        f"{100 * found['identical']:.3f} % identical, {found['distinct']:,} distinct predictions, F1 of random inputs "
        f"{found['F1']:.3f} and {found['F1 in float64']:.3f}"
    )
    met = found["identical"] >= 0.999 and abs(found["F1"] - found["F1 in float64"]) <= 0.05
    run.check_claim("Bookmarks: float32 predicts as float64 does on 99.9 % of the tests", met, text)
    return found


def _measure_exact(run: Run, sizes: dict[str, int], approximate: Figures) -> Figures:
    """Measure the fit without output landmarks too, and check the seconds of both."""
    exact = median_of_each([_run_child(run, "measure_oel", sizes, exact=True) for _ in range(run.repeats)])
    kinds = {f"{sizes['r']} output landmarks, {DTYPE}": approximate, "exact outputs, float64": exact}
    for name, seconds in kinds.items():
        found = (
            f"fit {seconds['fit']:.2f} s, decode {seconds['decode']:.3f} s; predict {seconds['predict']:.2f} s in all"
        )
        met = seconds["fit"] < 6 and seconds["decode"] < 0.5
        run.check_claim(f"Bookmarks on a GPU, {name}: fit under 6 s, decode under 0.5 s", met, found)
    return exact
