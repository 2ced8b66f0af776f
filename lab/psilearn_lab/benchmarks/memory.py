"""The formulas of ``psilearn.memory`` against measured peaks, over a grid of fits, predictions and searches.

Every shape runs in a process of its own, forked from one that has only imported the library, with one thread, after a
small problem of the same kind has loaded code and buffers. The peak is the largest resident memory (VmHWM, reset before
the work) minus the resident memory before it.
"""

import sys
from typing import Any

from sklearn import config_context

from psilearn.memory import fit_bytes, predict_bytes, search_bytes
from psilearn_lab.benchmarks.measurement import Figures, Run
from psilearn_lab.benchmarks.memory_shapes import Shape, measure_fit, measure_search, run_shape

BAND = 0.80, 1.25  # of predicted / measured
SUPERVISIONS = {"KDE": 0.0, "IOKR": None}
Row = tuple[str, float, float, float]

FEW = {"n_components": 50}
BOTH = {"input_landmarks": 500, "output_landmarks": 1500}
WIDE = {"input_landmarks": 2500, "output_landmarks": 300}
SINGLE = {"dtype": "float32"}


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


if __name__ == "__main__":
    measure(Run(quick="--quick" in sys.argv))
