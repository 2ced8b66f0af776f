"""The shapes whose peak memory is measured: fits, predictions and searches, each in a process of its own."""

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
from sklearn import set_config

from psilearn import IOKR, IOKRCV, KDE, KDECV, OEL, OELCV
from psilearn.kernels import Dice, Gaussian, Kemeny, Linear, Tanimoto
from psilearn.utils import distinct
from psilearn_lab.benchmarks.child_process import resident_bytes

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
    small = {name: 20 for name in ("input_landmarks", "output_landmarks") if name in shape.options}
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
    context.set_forkserver_preload(["psilearn_lab.benchmarks.memory_shapes"])
    return ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1)


def run_shape(measure: Callable[[Shape], dict[str, Any]], shape: Shape) -> dict[str, Any]:
    """Return the measurement of a shape in a new process."""
    with patch.dict(os.environ, ENVIRONMENT):
        return _workers().submit(measure, shape).result()
