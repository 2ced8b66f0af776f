"""Multi-label classification: what outputs without inputs are worth."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from psilearn import IOKR, OEL
from psilearn._utils.samples import concat, distinct, take
from psilearn.experiments.experiment import Context, Experiment, Outcome, Part
from psilearn.experiments.multilabel import F1, PERCENT, TITLES, load, output_kernels
from psilearn.experiments.protocol import Choice, Grid, Measured, Method, choose, edge_notes, measure, paired_note, row
from psilearn.experiments.record import Row
from psilearn.kernels import Gaussian
from psilearn.metrics import f1_score
from psilearn.plotting import plot_curves

CONFIG: dict[str, Any] = {
    "pairs": 2000,
    "tests": None,
    "select": 2000,  # outputs alone that validation uses, at the most
    "gammas": [0.12, 0.25, 0.5, 1.0],
    "alphas": [1e-6, 1e-5, 1e-4, 1e-3],
    "sizes": [20, 40, 80, 160, 320],
    "supervisions": [0.25, 0.75],
    "splits": 3,
    "exact": 5000,  # known outputs from which on landmarks stand for them
    "output_landmarks": 3000,
}
DATASETS: dict[str, dict[str, Any]] = {
    "bookmarks": {"alone": [500, 1000, 2000, 5000, 10000, 20000, 50000]},
    "bibtex": {"alone": [300, 1000, 2000, 2880]},
    "delicious": {"alone": [500, 1000, 2000, 5000, 10920]},
    "mediamill": {
        "alone": [500, 2000, 5000, 10000, 28993],
        "gammas": [0.001, 0.003, 0.01],
        "alphas": [1e-8, 1e-7, 1e-6, 1e-5, 1e-4],
    },
}
QUICK = {
    "pairs": 80,
    "alone": [20, 40],
    "tests": 40,
    "select": 30,
    "gammas": [0.5],
    "alphas": [1e-4, 1e-2],
    "sizes": [5, 10],
    "supervisions": [0.5],
    "splits": 2,
    "exact": 100,
    "output_landmarks": 50,
}


def run(context: Context, name: str) -> Outcome:
    """Choose with a limited number of outputs alone, then fit with more and more of them."""
    config = context.config
    source, sizes = load(name, context.seed), config["alone"]
    several = source.data(config["pairs"], min(config["select"], sizes[-1]), tests=0)
    methods = [Method("IOKR", IOKR), Method("OEL₀", OEL, [1.0]), Method("OEL", OEL, config["supervisions"])]
    grid = Grid(
        [Gaussian(gamma) for gamma in config["gammas"]], config["alphas"], config["sizes"], ["f1"], config["splits"]
    )
    choices = choose(several, {"": output_kernels(several.Y, "Gaussian")["Gaussian"]}, grid, methods, context)
    full = source.data(config["pairs"], sizes[-1], config["tests"])
    everything = concat([full.Y, full.unlabeled])
    candidates = take(everything, distinct(everything).first)
    rows: list[Row] = []
    results: dict[str, Measured] = {}

    def add(choice: Choice, m: int, **options: Any) -> None:
        label = f"{choice.name}, m = {m}"
        context.say(f"{label}: fitting and decoding")
        data = source.data(config["pairs"], m, config["tests"])
        results[label] = measure(choice.model(**options), data, f1_score, candidates)
        named = Choice(Method(label, choice.method.estimator), "", choice.parameters, choice.edges, choice.seconds)
        rows.append(row(TITLES[name], named, results[label], F1, PERCENT))

    iokr, oel0, oel = choices
    add(iokr, 0)
    add(oel0, 0)
    for m in sizes:
        landmarks = config["output_landmarks"] if config["pairs"] + m > config["exact"] else None
        add(oel, m, output_landmarks=landmarks)
    last = f"OEL, m = {sizes[-1]}"
    notes = [paired_note(results, last, label, PERCENT, 2) for label in ("OEL₀, m = 0", f"OEL, m = {sizes[0]}")]
    return Outcome(rows, notes + edge_notes(choices), _figure(name, sizes, results, context))


def _figure(name: str, sizes: list[int], results: dict[str, Measured], context: Context) -> dict[str, Any]:
    if not context.draws:
        return {}
    labels = ["OEL₀, m = 0", *(f"OEL, m = {m}" for m in sizes)]
    scores = [results[label].score for label in labels]
    iokr = results["IOKR, m = 0"].score
    curves = {
        "OEL": PERCENT * np.array([scores, [score.standard_error for score in scores]]),
        "IOKR": PERCENT * np.full(len(labels), float(iokr)),
    }
    ax = plot_curves([0, *sizes], curves, "m, outputs without inputs", f"test F1, {TITLES[name]}", highlight="IOKR")
    ax.set_xscale("symlog", linthresh=sizes[0])
    caption = (
        f"{TITLES[name]}: test F1 over m with n = {context.config['pairs']} pairs; at m = 0 OEL₀. Bars are standard "
        f"errors over the test rows, which the points share: differences are surer than the bars (see the notes)."
    )
    return {"f1-by-m": (ax.figure, caption)}


EXPERIMENT = Experiment(
    name="multilabel-unlabeled",
    title="What outputs without inputs are worth",
    source="Figure 3",
    protocol="2000 random training rows as pairs, the tags of m others as outputs alone. Gaussian kernels; rows of the "
    "input have length one (Mediamill: columns standardised on all training rows). γ of the input kernel, the output "
    "width, λ, p and c are chosen by F1 over three random 80/20 splits of the pairs, with at most 2000 outputs alone, "
    "and kept for every m. All methods and all m decode to the same candidates, the tag sets of the pairs and of the "
    "largest m, so that only the embedding changes. Beyond 5000 known outputs 3000 landmarks stand for them.",
    parts=tuple(
        Part(name, TITLES[name], partial(run, name=name), {**CONFIG, **own}, QUICK) for name, own in DATASETS.items()
    ),
)
