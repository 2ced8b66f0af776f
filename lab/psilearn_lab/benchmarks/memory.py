"""The formulas of ``psilearn.memory`` against measured peaks, over a grid of fits, predictions and searches.

Every shape runs in a process of its own, forked from one that has only imported the library, with one thread, after a
small problem of the same kind has loaded code and buffers. The peak is the largest resident memory (VmHWM, reset before
the work) minus the resident memory before it.
"""

import ctypes
import gc
import multiprocessing
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dgemm, sgemm
from sklearn import config_context, set_config

from psilearn import IOKR, IOKRCV, KDE, KDECV, OEL, OELCV
from psilearn.kernels import Dice, Gaussian, Kemeny, Linear, Tanimoto
from psilearn.memory import fit_bytes, predict_bytes, search_bytes
from psilearn.utils import distinct
from psilearn_lab.benchmarks.measurement import Figures, Run
from psilearn_lab.fuzz.harness import resident_bytes

# One thread, and glibc returns freed arrays to the system at once instead of keeping those below 32 MB.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "131072"}
ESTIMATORS = {"OEL": OEL, "KDE": KDE, "IOKR": IOKR}
SEARCHES = {"OEL": OELCV, "KDE": KDECV, "IOKR": IOKRCV}
OUTPUT_KERNELS = {
    "gaussian": Gaussian(0.1),
    "smooth": Gaussian(0.01),
    "dice": Dice(),
    "linear": Linear(),
    "tanimoto": Tanimoto(),
    "kemeny": Kemeny(),
}


BAND = 0.80, 1.25  # of predicted / measured
SUPERVISIONS = {"KDE": 0.0, "IOKR": None}
Row = tuple[str, float, float, float]

FEW = {"n_components": 50}
BOTH = {"input_landmarks": 500, "output_landmarks": 1500}
WIDE = {"input_landmarks": 2500, "output_landmarks": 300}
SINGLE = {"dtype": "float32"}


@dataclass(frozen=True)
class Shape:
    """The sizes of a problem and the parameters of a model."""

    estimator: str = "OEL"
    n: int = 2000
    n_unlabeled: int = 0
    n_distinct: int | None = None  # of the labeled outputs; None if all differ
    n_features: int = 10
    density: float | None = None  # share of nonzero features; None for dense inputs
    width: int = 60  # columns of the outputs
    output_kernel: str = "gaussian"
    csr_outputs: bool = False
    working_memory: int = 64  # MiB
    n_queries: int = 0
    n_candidates: int = 0  # given to the prediction; 0 for the known outputs
    k: int = 1
    n_output_kernels: int = 1  # of a search
    options: dict[str, Any] = field(default_factory=dict)

    def describe(self) -> str:
        """Return what differs from the default, in one line."""
        default = asdict(Shape())
        parts = [str(self.estimator)]
        for name, value in asdict(self).items():
            if name == "options":
                parts += [f"{key}={option}" for key, option in value.items()]
            elif name != "estimator" and (value != default[name] or name == "n"):
                parts.append(f"{name}={value}")
        return " ".join(parts)


def make_inputs(shape: Shape, n: int, rng: np.random.Generator) -> Any:
    """Return random inputs."""
    if shape.density is None:
        return rng.random((n, shape.n_features))
    return sparse.random_array((n, shape.n_features), density=shape.density, format="csr", rng=rng)


def make_outputs(shape: Shape, n: int, rng: np.random.Generator) -> Any:
    """Return random outputs: 0/1 rows with at least one 1, or rankings."""
    if shape.output_kernel == "kemeny":
        return rng.permuted(np.tile(np.arange(1, shape.width + 1), (n, 1)), axis=1)
    bits = (rng.random((n, shape.width), dtype=np.float32) < 0.3).astype(np.uint8)
    bits[:, 0] = 1
    return sparse.csr_array(bits) if shape.csr_outputs else bits


def make_labeled(shape: Shape, rng: np.random.Generator) -> Any:
    """Return the labeled outputs, with the requested number of distinct ones."""
    if shape.n_distinct is None:
        return make_outputs(shape, shape.n, rng)
    pool = make_outputs(shape, shape.n_distinct, rng)
    return pool[
        np.concatenate([np.arange(shape.n_distinct), rng.integers(0, shape.n_distinct, shape.n - shape.n_distinct)])
    ]


def make_model(shape: Shape, classes: dict[str, Any], **changes: Any) -> Any:
    """Return the estimator or the search of a shape."""
    options = {**shape.options, **changes}
    inputs = Gaussian(3.0) if shape.density is None else Gaussian(0.5)
    outputs = options.pop("output_kernels", OUTPUT_KERNELS[shape.output_kernel])
    return classes[shape.estimator](inputs, outputs, **options)


def peak_of(work: Callable[[], Any]) -> tuple[int, Any]:
    """Return the largest resident memory during the work, in addition to that before it, and its result."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the largest resident memory so far
    before = resident_bytes(peak=False)
    result = work()
    return resident_bytes(peak=True) - before, result


def measure_fit(shape: Shape) -> dict[str, Any]:
    """Fit and predict; return the peak of each, and the sizes that the formulas take."""
    set_config(working_memory=shape.working_memory)
    rng = np.random.default_rng(0)
    _warm_up(shape, ESTIMATORS, rng)
    X, Y = make_inputs(shape, shape.n, rng), make_labeled(shape, rng)
    U = make_outputs(shape, shape.n_unlabeled, rng) if shape.n_unlabeled else None
    fit, model = peak_of(lambda: make_model(shape, ESTIMATORS).fit(X, Y, unlabeled=U))
    answer = {"fit": fit, "d": len(model.candidates_), "r": len(model.embedding_.basis), "p": model.n_components_}
    answer["n_labeled"] = len(distinct(Y).first)
    if shape.n_queries:
        queries = make_inputs(shape, shape.n_queries, rng)
        given = make_outputs(shape, shape.n_candidates, rng) if shape.n_candidates else None
        answer["predict"] = peak_of(lambda: model.predict_topk(queries, shape.k, candidates=given))[0]
    return answer


def measure_search(shape: Shape) -> dict[str, Any]:
    """Search; return the peak and the sizes that the formula takes."""
    set_config(working_memory=shape.working_memory)
    rng = np.random.default_rng(0)
    _warm_up(shape, SEARCHES, rng)
    X, Y = make_inputs(shape, shape.n, rng), make_labeled(shape, rng)
    U = make_outputs(shape, shape.n_unlabeled, rng) if shape.n_unlabeled else None
    kernels = [OUTPUT_KERNELS[shape.output_kernel]]
    if shape.n_output_kernels > 1:
        kernels = [Gaussian(0.05 * (i + 1)) for i in range(shape.n_output_kernels)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the best setting is at the edge of a small grid
        peak, search = peak_of(lambda: make_model(shape, SEARCHES, output_kernels=kernels).fit(X, Y, unlabeled=U))
    known = search.best_estimator_.candidates_
    return {"search": peak, "d": len(known), "r": max(search.ranks_), "n_labeled": len(distinct(Y).first)}


def _warm_up(shape: Shape, classes: dict[str, Any], rng: np.random.Generator) -> None:
    """Fit a small problem of the same kind, which loads code and the buffers of BLAS."""
    small: dict[str, int] = {name: 20 for name in ("input_landmarks", "output_landmarks") if name in shape.options}
    if "n_components" in shape.options:
        small["n_components"] = 5
    model = make_model(shape, classes, **small)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(make_inputs(shape, 200, rng), make_outputs(shape, 200, rng)).predict(make_inputs(shape, 50, rng))
    for dtype, multiply in ((np.float64, dgemm), (np.float32, sgemm)):  # NumPy and SciPy have a BLAS each
        left, right = np.ones((400, 400), dtype), np.ones((400, 8000), dtype)
        np.matmul(left, right)
        multiply(1.0, left, right)


@cache
def _workers() -> ProcessPoolExecutor:
    """Return processes that measure one shape each, forked from a process that has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["psilearn_lab.benchmarks.memory"])
    return ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1)


def run_shape(measure: Callable[[Shape], dict[str, Any]], shape: Shape) -> dict[str, Any]:
    """Return the measurement of a shape in a new process."""
    with patch.dict(os.environ, ENVIRONMENT):
        return _workers().submit(measure, shape).result()


def _exact_fits() -> list[Shape]:
    """Return fits without landmarks."""
    return [
        *(Shape(n=2500, options={**FEW, "supervision": c}) for c in (0.0, 0.2, 0.5, 1.0)),
        *(Shape(n=2200, options={"n_components": p}) for p in (10, 300, 1000, 1500, 2200)),
        Shape(n=2500, options={**FEW, **SINGLE}),
        Shape("KDE", n=2500, options=FEW),
        Shape("KDE", n=2000, options={"n_components": 1200}),
        Shape("IOKR", n=2500),
        Shape("IOKR", n=2300, options=SINGLE),
        *(Shape(n=4000, n_distinct=d, options={"n_components": min(d, 40)}) for d in (50, 400, 1200)),
        Shape("IOKR", n=4000, n_distinct=300),
        Shape("KDE", n=4000, n_distinct=700, options=FEW),
        Shape(n=4000, n_distinct=500, options={**FEW, **SINGLE}),
        Shape(n=500, n_unlabeled=3500, options=FEW),
        Shape(n=2500, n_unlabeled=3500, options={**FEW, "supervision": 1.0}),
        Shape("KDE", n=800, n_unlabeled=3000, options={"n_components": 30}),
        Shape("IOKR", n=1500, n_unlabeled=15000),
        *(Shape(n=3000, output_kernel=kernel, options=FEW) for kernel in ("dice", "tanimoto")),
        Shape(n=4000, output_kernel="linear", options={"n_components": 20}),
        Shape(n=4000, output_kernel="kemeny", width=8, options={"n_components": 20}),
        Shape(n=3500, csr_outputs=True, output_kernel="dice", options=FEW),
        Shape(n=2400, density=0.02, n_features=2000, options=FEW),
        Shape(n=4000, n_distinct=100, density=0.01, n_features=5000, options=FEW),
        Shape(n=4000, n_distinct=100, n_features=300, options=FEW),
    ]


def _landmark_fits() -> list[Shape]:
    """Return fits with landmarks on one or both sides."""
    return [
        *(Shape(n=20000, options={**FEW, **WIDE, **extra}) for extra in ({}, SINGLE, {"supervision": 0.0})),
        *(Shape(n=20000, options={**FEW, **BOTH, **extra}) for extra in ({}, SINGLE, {"supervision": 1.0})),
        Shape(n=20000, options={"n_components": 1000, **BOTH}),
        Shape(n=20000, options={"n_components": 1000, **BOTH, **SINGLE}),
        Shape(n=3000, n_unlabeled=40000, options={**FEW, **BOTH}),
        Shape(n=3000, n_unlabeled=40000, options={**FEW, **BOTH, **SINGLE}),
        Shape("KDE", n=20000, options={**FEW, **BOTH}),
        Shape("KDE", n=20000, options={**FEW, **WIDE, **SINGLE}),
        Shape("IOKR", n=20000, options=WIDE),
        Shape("IOKR", n=12000, options=BOTH),
        Shape("IOKR", n=12000, options={**BOTH, **SINGLE}),
        Shape(n=20000, n_distinct=1000, options={**FEW, "input_landmarks": 2000}),
        Shape(n=20000, n_distinct=300, options={**FEW, "input_landmarks": 2500, **SINGLE}),
        Shape(n=4000, options={**FEW, "output_landmarks": 500}),
        Shape("IOKR", n=4000, options={"output_landmarks": 300}),
        Shape("KDE", n=4000, options={**FEW, "output_landmarks": 300, **SINGLE}),
        Shape(n=20000, output_kernel="dice", options={**FEW, **WIDE}),
        Shape(n=20000, output_kernel="tanimoto", csr_outputs=True, options={**FEW, **WIDE}),
        Shape(n=20000, output_kernel="linear", options={"n_components": 20, **WIDE}),
        Shape(n=20000, density=0.02, n_features=2000, options={**FEW, **WIDE}),
        Shape(n=20000, density=0.02, n_features=2000, options={**FEW, **WIDE, **SINGLE}),
        Shape(n=20000, working_memory=256, options={**FEW, **WIDE}),
        Shape(n=20000, working_memory=16, options={**FEW, "input_landmarks": 2500, "output_landmarks": 1000}),
    ]


def _predictions() -> list[Shape]:
    """Return predictions; their fits are small."""
    p100 = {"n_components": 100}
    return [
        Shape(n=1500, options=p100, n_queries=200_000, k=1),
        Shape(n=1500, options={**p100, **SINGLE}, n_queries=400_000, k=1),
        Shape(n=1500, options={"n_components": 20}, n_queries=300_000, k=20),
        Shape(n=1500, options={**p100, "output_landmarks": 500}, n_queries=100_000, n_candidates=20_000, k=5),
        Shape("IOKR", n=1000, n_queries=20_000, k=3),
        Shape("KDE", n=4000, n_distinct=300, options=p100, n_queries=150_000, working_memory=256),
        Shape(n=1500, options=p100, density=0.02, n_features=2000, n_queries=150_000),
        Shape(n=1500, output_kernel="dice", options={"n_components": 300}, n_queries=60_000, k=10),
    ]


def _searches() -> list[Shape]:
    """Return searches."""
    grid = {"alphas": [1e-4, 1e-3], "cv": 3, "scoring": "mse"}
    some = {"n_components": [10, 50], "supervisions": [0.0, 0.5, 1.0]}
    return [
        Shape(n=3000, n_distinct=300, options={**grid, **some}),
        Shape(n=1500, options={**grid, **some}),
        Shape(n=2700, n_distinct=400, options={**grid, **some, "alphas": [10.0**-i for i in range(12)]}),
        Shape(n=600, n_unlabeled=2500, output_kernel="smooth", options={**grid, **some}),
        Shape(n=600, n_unlabeled=1500, options={**grid, "n_components": [200], "supervisions": [0.5]}),
        Shape("KDE", n=1500, options={**grid, "n_components": [10, 50]}),
        Shape("IOKR", n=1500, options=grid),
        Shape("IOKR", n=3000, n_distinct=200, options={**grid, "scoring": "loss"}),
        Shape(n=1800, n_distinct=1100, n_output_kernels=3, options={**grid, **some, "scoring": "f1"}),
        Shape(n=2400, n_distinct=500, output_kernel="dice", options={**grid, **some, "scoring": "f1"}),
        Shape(n=2500, options={**grid, **some, "output_landmarks": 800}),
        Shape(n=1200, options={**grid, **some, "cv": "loo"}),
        Shape(n=8000, options={**grid, **some, "input_landmarks": 1500, "output_landmarks": 300}),
    ]


def predicted_fit(shape: Shape, found: Figures) -> int:
    """Return what the formula says of a fit."""
    options = {name: value for name, value in shape.options.items() if name != "supervision"}
    supervision = shape.options.get("supervision", SUPERVISIONS.get(shape.estimator, 0.5))
    with config_context(working_memory=shape.working_memory):
        return fit_bytes(
            shape.n, found["d"], supervision=supervision, rank=found["r"], n_labeled=found["n_labeled"], **options
        )


def predicted_prediction(shape: Shape, found: Figures) -> int:
    """Return what the formula says of a prediction."""
    n_anchors = min(shape.n, shape.options.get("input_landmarks", shape.n))
    with config_context(working_memory=shape.working_memory):
        return predict_bytes(
            shape.n_queries,
            found["p"],
            shape.k,
            shape.options.get("dtype", "float64"),
            n_anchors=n_anchors,
            n_candidates=shape.n_candidates or found["d"],
            rank=found["r"] if shape.n_candidates else 0,
        )


def predicted_search(shape: Shape, found: Figures) -> int:
    """Return what the formula says of a search."""
    options = shape.options
    is_loo = options["cv"] == "loo"
    supervisions = {"KDE": [0.0], "IOKR": None}.get(shape.estimator, options.get("supervisions"))
    sizes = options.get("n_components")
    with config_context(working_memory=shape.working_memory):
        return search_bytes(
            shape.n,
            found["d"],
            n_alphas=len(options["alphas"]),
            supervisions=supervisions,
            n_components=None if sizes is None else max(sizes),
            input_landmarks=options.get("input_landmarks"),
            output_landmarks=options.get("output_landmarks"),
            n_output_kernels=shape.n_output_kernels,
            validation_share=0.2 if is_loo else 1 / options["cv"],
            leave_one_out=is_loo,
            decoded=options["scoring"] != "mse",
            rank=found["r"],
            n_labeled=found["n_labeled"],
        )


def compare(kind: str, shape: Shape) -> Row:
    """Return the description of a shape, predicted and measured megabytes, and their ratio."""
    found = run_shape(measure_search if kind == "search" else measure_fit, shape)
    predict: Any = {"fit": predicted_fit, "predict": predicted_prediction, "search": predicted_search}[kind]
    predicted, measured = predict(shape, found), found[kind]
    return f"{kind}: {shape.describe()}", predicted / 1e6, measured / 1e6, predicted / measured


def measure(run: Run) -> Figures:
    """Compare all shapes; raise if one is outside of the band."""
    fits = [*_exact_fits(), *_landmark_fits()]
    grids = {"fit": fits, "predict": _predictions(), "search": _searches()}
    rows = []
    for kind, shapes in grids.items():
        for shape in shapes[:1] if run.quick else shapes:
            rows.append(compare(kind, shape))
            run.log(f"{rows[-1][0]}: {rows[-1][1]:.0f} / {rows[-1][2]:.0f} MB = {rows[-1][3]:.2f}")
    run.show_table("peak memory in MB", ("shape", "predicted", "measured", "ratio"), rows)
    ratios = [row[3] for row in rows]
    found = f"{len(rows)} shapes, {min(ratios):.2f} to {max(ratios):.2f}"
    is_met = BAND[0] <= min(ratios) and max(ratios) <= BAND[1]
    run.check_claim(f"predicted / measured peak memory is within {BAND[0]} and {BAND[1]}", is_met, found)
    if not is_met and not run.quick:
        raise ValueError(f"predicted / measured is outside of the band: {found}")
    return {"n_shapes": len(rows), "min_ratio": min(ratios), "max_ratio": max(ratios)}
