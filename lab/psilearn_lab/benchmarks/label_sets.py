"""Decoding over all label sets: how the exact solvers grow with the number of labels.

Predictions are similar to those of a regression: most of the weight is on landmarks that resemble one of them, and all
others have a little noise. Labels have frequencies that fall like a power of their rank, and sets have five labels on
average.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from psilearn import computing
from psilearn.decoding import AllLabelSets, Candidates, NearLabelSets, TopK
from psilearn.embedding import Embedding
from psilearn.kernels import Dice, Kernel, Linear, Tanimoto
from psilearn_lab.benchmarks.measurement import Array, Clock, Figures, Run, Turn, growth_exponent, time_in_turns

N_LANDMARKS = 1000
MEAN_EXTRA_LABELS = 4  # of a set, besides the first
FREQUENCY_EXPONENT = 0.7
N_NEIGHBOURS = 8  # landmarks that a prediction consists of
NOISE = 0.01


def make_sets(n_sets: int, n_labels: int, rng: np.random.Generator) -> Any:
    """Return distinct random label sets as CSR rows."""
    frequencies = 1 / np.arange(1, n_labels + 1) ** FREQUENCY_EXPONENT
    rows: dict[tuple[int, ...], None] = {}
    while len(rows) < n_sets:
        size = min(n_labels, 1 + int(rng.poisson(MEAN_EXTRA_LABELS)))
        labels = rng.choice(n_labels, size, replace=False, p=frequencies / frequencies.sum())
        rows[tuple(sorted(labels.tolist()))] = None
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([label for labels in rows for label in labels])
    return sparse.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(n_sets, n_labels))


def make_predictions(landmarks: Any, n_queries: int, rng: np.random.Generator) -> Array:
    """Return coefficients β (q, r) of landmarks."""
    beta = NOISE * rng.standard_normal((n_queries, landmarks.shape[0]))
    common = (landmarks[rng.integers(landmarks.shape[0], size=n_queries)] @ landmarks.T).toarray()
    nearest = np.argpartition(-common, N_NEIGHBOURS, axis=1)[:, :N_NEIGHBOURS]
    np.put_along_axis(beta, nearest, np.take_along_axis(beta, nearest, axis=1) + 1 / N_NEIGHBOURS, axis=1)
    return beta


def make_turn(candidates: Candidates, beta: Array, k: int, compute: Any) -> Turn[TopK]:
    """Return a function that decodes once."""

    def run_turn(clock: Clock) -> TopK:
        with clock("decode"):
            return candidates.nearest(beta, k, compute)

    return run_turn


def measure(run: Run) -> Figures:
    """Print seconds for each solver, check their growth, and return the figures."""
    n_queries = run.select(10_000, 50)
    label_counts = run.select([250, 500, 1000, 2000], [20, 40])
    figures: Figures = {}
    for name, (kernel, sets, k, share) in methods().items():
        n_timed = max(5, int(n_queries * share))
        with computing("float64", run.device) as compute:
            seconds = [_seconds(run, kernel, sets, k, n, n_timed, compute) for n in label_counts]
        figures[name] = {str(n): n_queries / n_timed * value for n, value in zip(label_counts, seconds, strict=True)}
    rows = [[name, *seconds.values()] for name, seconds in figures.items()]
    run.show_table(f"seconds for {n_queries} queries", ["solver", *(f"L = {n}" for n in label_counts)], rows)
    if not run.quick:
        seconds = figures["Dice"]["1000"]
        claim = "the nearest of all 2^1000 label sets is found for 10,000 queries in under 15 seconds"
        run.check_claim(claim, seconds < 15, f"{seconds:.1f} s")
        exponent = growth_exponent(label_counts, list(figures["Dice"].values()))
        run.check_claim("the time grows linearly with the number of labels", exponent < 1.2, f"L^{exponent:.2f}")
    return figures


def methods() -> dict[str, tuple[Kernel, Callable[..., Candidates], int, float]]:
    """Return the kernel, the candidates, k, and the part of the queries that is timed, of each method."""
    return {
        "Dice": (Dice(), AllLabelSets, 1, 1.0),
        "Dice, ten nearest": (Dice(), AllLabelSets, 10, 0.1),
        "Linear": (Linear(), AllLabelSets, 1, 1.0),
        "Dice, near 1000 sets": (Dice(), NearLabelSets, 1, 0.1),
        "Tanimoto": (Tanimoto(), AllLabelSets, 1, 0.002),
    }


def _seconds(
    run: Run, kernel: Kernel, sets: Callable[..., Candidates], k: int, n_labels: int, n_queries: int, compute: Any
) -> float:
    """Return the seconds to decode some queries."""
    rng = np.random.default_rng(n_labels)
    landmarks = make_sets(run.select(N_LANDMARKS, 30), n_labels, rng)
    beta = make_predictions(landmarks, n_queries, rng)
    candidates = sets(Embedding(kernel, landmarks, np.eye(landmarks.shape[0])), landmarks)
    return time_in_turns({"solver": make_turn(candidates, beta, k, compute)}, run.repeats)["solver"].seconds["decode"]
