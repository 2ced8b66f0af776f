"""Multi-label classification: the gain from outputs without inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from psilearn import IOKR, OEL
from psilearn.metrics import f1_score
from psilearn.plotting import plot_curves
from psilearn.utils import Samples, concat, distinct, take
from psilearn_lab.experiments.experiment import CaptionedFigures, Context, Experiment, Outcome, Part, figure_of
from psilearn_lab.experiments.multilabel import F1, PERCENT, TITLES, Multilabel, load, make_grid, make_output_kernels
from psilearn_lab.experiments.protocol import (
    Choice,
    Data,
    Evaluation,
    Method,
    choose_parameters,
    difference_note,
    edge_notes,
    fit_and_evaluate,
    make_row,
)
from psilearn_lab.experiments.results import Row

CONFIG: dict[str, Any] = {
    "pairs": 2000,
    "tests": None,
    "select": 2000,  # validation uses at most so many outputs without inputs
    "gammas": [0.12, 0.25, 0.5, 1.0],
    "alphas": [1e-6, 1e-5, 1e-4, 1e-3],
    "sizes": [20, 40, 80, 160, 320],
    "supervisions": [0.25, 0.75],
    "splits": 3,
    "max_rounds": 4,
    "exact": 5000,  # with more known outputs than this, landmarks are used
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
    "max_rounds": 0,
    "exact": 100,
    "output_landmarks": 50,
}


@dataclass
class Curve:
    """The evaluations of growing numbers of outputs without inputs, all with the same candidates."""

    title: str
    source: Multilabel
    candidates: Samples
    context: Context
    rows: list[Row] = field(default_factory=list)
    results: dict[str, Evaluation] = field(default_factory=dict)

    def add(self, choice: Choice, m: int, **options: Any) -> None:
        """Fit the chosen setting with m outputs without inputs, test it, and add its row."""
        config = self.context.config
        label = f"{choice.name}, m = {m}"
        self.context.log(f"{label}: fitting and decoding")
        data = self.source.split(config["pairs"], m, config["tests"])
        self.results[label] = fit_and_evaluate(
            choice.make_model(device=self.context.device, **options), data, f1_score, self.candidates
        )
        named = replace(choice, method=Method(label, choice.method.estimator))
        self.rows.append(make_row(self.title, named, self.results[label], F1, PERCENT))


def run(context: Context, name: str) -> Outcome:
    """Choose with a limited number of outputs without inputs, then fit with more and more of them."""
    config = context.config
    source, sizes = load(name, context.seed), config["alone"]
    choices = _choose(source.split(config["pairs"], min(config["select"], sizes[-1]), n_tests=0), context)
    everything = source.split(config["pairs"], sizes[-1], config["tests"])
    known = concat([everything.Y, everything.unlabeled])
    curve = Curve(TITLES[name], source, take(known, distinct(known).first), context)
    iokr, oel0, oel = choices
    curve.add(iokr, 0)
    curve.add(oel0, 0)
    for m in sizes:
        landmarks = config["output_landmarks"] if config["pairs"] + m > config["exact"] else None
        curve.add(oel, m, output_landmarks=landmarks)
    last, references = f"OEL, m = {sizes[-1]}", ("OEL₀, m = 0", f"OEL, m = {sizes[0]}")
    notes = [difference_note(curve.results, last, reference, PERCENT, 2) for reference in references]
    return Outcome(curve.rows, notes + edge_notes(choices), _draw_figure(name, sizes, curve.results, context))


def _choose(data: Data, context: Context) -> list[Choice]:
    """Choose the parameters of IOKR, OEL₀ and OEL."""
    config = context.config
    methods = [Method("IOKR", IOKR), Method("OEL₀", OEL, [1.0]), Method("OEL", OEL, config["supervisions"])]
    kernels = {"": make_output_kernels(data.Y, "Gaussian")["Gaussian"]}
    return choose_parameters(data, kernels, make_grid(config), methods, context)


def _draw_figure(
    name: str, sizes: Sequence[int], results: Mapping[str, Evaluation], context: Context
) -> CaptionedFigures:
    """Draw the test F1 over m; nothing without matplotlib."""
    if not context.can_draw:
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
        f"{TITLES[name]}: test F1 over m with n = {context.config['pairs']} pairs; at m = 0, OEL₀. Error bars are "
        f"standard errors over the test rows. All points share these rows, so differences between points are more "
        f"certain than the bars suggest (see the notes)."
    )
    return {"f1-by-m": (figure_of(ax), caption)}


EXPERIMENT = Experiment(
    name="multilabel-unlabeled",
    title="The gain from outputs without inputs",
    source="Figure 3",
    protocol="2000 random training rows are pairs, and the tags of m other rows are outputs without inputs. All "
    "kernels are Gaussian; rows of the input have length one (Mediamill: columns are standardized on all training "
    "rows). γ of the input kernel, the output width, λ, p and c are chosen by F1 over three random 80/20 splits of "
    "the pairs, with at most 2000 outputs without inputs (grids of γ, λ and p are extended at an end at which a chosen "
    "value lies, at most four times), and kept for every m. All methods and all m decode to the "
    "same candidates, the tag sets of the pairs and of the largest m, so that only the embedding changes. With more "
    "than 5000 known outputs, 3000 output landmarks are used.",
    parts=tuple(
        Part(name, TITLES[name], partial(run, name=name), {**CONFIG, **changes}, QUICK)
        for name, changes in DATASETS.items()
    ),
)
