"""Searches with landmarks on all rows: time and memory against the number of rows, each size in a new process.

Noisy copies of 2000 label sets with 200 labels, 500 input and 200 output landmarks; 3 widths, 7 λ, 3 c and the
default p on 3 splits with 80 % training rows.
"""

import warnings
from time import perf_counter, process_time

import numpy as np
from sklearn.model_selection import ShuffleSplit

from psilearn import OEL, OELCV
from psilearn.kernels import Gaussian, Tanimoto
from psilearn_lab.benchmarks.child_process import run_in_child
from psilearn_lab.benchmarks.measurement import Figures, Run, growth_exponent
from psilearn_lab.benchmarks.million import make_pairs

GAMMAS, SUPERVISIONS, N_SPLITS = (0.01, 0.02, 0.04), (0.0, 0.5, 1.0), 3
ALPHAS = np.geomspace(1e-7, 1e-1, 7).tolist()
MAX_EXPONENT = 1.1
TOLERANCE = 1e-6


def search_rows(n: int, q: int, r: int) -> Figures:
    """Search on n rows; return seconds, and how much the best score differs from that of fits with its setting."""
    X, Y = make_pairs(n)
    splits = ShuffleSplit(N_SPLITS, test_size=0.2, random_state=0)
    landmarks = {"input_landmarks": q, "output_landmarks": r}
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


def measure(run: Run) -> Figures:
    """Print seconds and memory for growing n, and return the figures."""
    q, r = run.select((500, 200), (40, 20))
    results = [
        run_in_child("psilearn_lab.benchmarks.search_scale", "search_rows", n=n, q=q, r=r)
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
