"""Known, near and all label sets as candidates, on every multi-label dataset, next to tuned competitors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from psilearn.utils import Index, hold_out
from psilearn_lab import datasets
from psilearn_lab.experiments.experiment import Config, Context, Experiment, Outcome, Part
from psilearn_lab.experiments.label_set_methods import LabelSetTask
from psilearn_lab.experiments.multilabel import PERCENT, TITLES, Multilabel
from psilearn_lab.experiments.tuned_competitors import CompetitorTask, strongest
from psilearn_lab.experiments.tuned_lines import Tested, paired_note

METHODS = ("IOKR", "OEL₀")
SMALL_COMPETITORS: dict[str, Any] = {  # positions of numbers, see BASES in widening.py, and lists of options
    "LR": {"baseline": "LR", "C": [0, 1, 2, 3, 4]},
    "LR, thresholds per label": {"baseline": "LR", "thresholds": ["per_label"], "C": [0, 1, 2, 3, 4]},
    "GFM": {"baseline": "GFM", "estimate": ["multinomial", "sizes"], "C": [0, 2, 4]},
    "ECC": {"baseline": "ECC", "n_chains": [10], "C": [0, 1, 2, 3]},
    "k-NN": {"baseline": "KNN", "weights": ["uniform", "distance"], "n_neighbors": [0, 1, 2, 3, 4, 5, 6]},
    "KRR": {"baseline": "KRR", "gamma": [-2, -1, 0, 1], "alpha": [-10, -9, -8, -7, -6, -5, -4]},
}
LARGE_COMPETITORS: dict[str, Any] = {
    **SMALL_COMPETITORS,
    "LR": {"baseline": "LR", "C": [0, 2, 4]},
    "LR, thresholds per label": {"baseline": "LR", "thresholds": ["per_label"], "C": [0, 2, 4]},
    "GFM": {"baseline": "GFM", "estimate": ["sizes"], "C": [0, 2, 4]},
    "ECC": {"baseline": "ECC", "n_chains": [5], "max_chain_labels": [100], "C": [0, 2]},
    "KRR": {"baseline": "KRR", "gamma": [-1, 1], "alpha": [-10, -8, -6, -4]},
}
CONFIG: dict[str, Any] = {
    "pairs": None,
    "tests": None,
    "held_out": 0.15,
    "max_rounds": 6,
    "scalings": ["rows", "unit rows"],
    "search_landmarks": {},  # the last fits are exact
    "precisions": False,
    "grid": {
        "gamma": [-2, -1, 0, 1],
        "alpha": [-10, -9, -8, -7, -6, -5, -4],
        "n_components": [5, 6, 7, 8, 9],
    },
    "outputs": {
        "Dice": {"candidates": ["known", "all"], "late_candidates": ["near"], "late_rounds": 6},
        "Gaussian": {"candidates": ["known"], "late_candidates": ["near"], "late_rounds": 0, "output_gamma": [0, 2]},
    },
    "competitors": SMALL_COMPETITORS,
}
LARGE: dict[str, Any] = {
    "grid": {"gamma": [-1, 1], "alpha": [-10, -8, -6, -4], "n_components": [5, 7, 9]},  # widening fills the gaps
    "outputs": {
        "Dice": {"candidates": ["known", "all"], "late_candidates": ["near"], "late_rounds": 0},
        "Gaussian": {"candidates": ["known"], "late_candidates": [], "late_rounds": 0, "output_gamma": [0, 3]},
    },
    "competitors": LARGE_COMPETITORS,
}
DATASETS: dict[str, dict[str, Any]] = {
    "bibtex": {},
    "corel5k": {},
    "delicious": {**LARGE, "precisions": True},
    "eurlex4k": {
        **LARGE,
        "precisions": True,
        "search_landmarks": {"output_landmarks": 4096},
        "outputs": {**LARGE["outputs"], "Dice": {**LARGE["outputs"]["Dice"], "late_candidates": []}},
    },
    "mediamill": {
        **LARGE,
        "ordered": True,  # the rows are frames of videos: random ones have near duplicates among the others
        "scalings": ["rows", "unit rows", "columns"],
        "search_landmarks": {"output_landmarks": 2048},
        "competitors": {**LARGE_COMPETITORS, "ECC": {**LARGE_COMPETITORS["ECC"], "C": [2, 4, 6, 8]}},
    },
}
QUICK: dict[str, Any] = {
    "pairs": 150,
    "tests": 50,
    "max_rounds": 1,
    "search_landmarks": {},
    "grid": {"gamma": [-1, 0], "alpha": [-8, -6], "n_components": [2, 3]},
    "outputs": {
        "Dice": {"candidates": ["known", "all"], "late_candidates": ["near"], "late_rounds": 1},
        "Gaussian": {"candidates": ["known"], "late_candidates": [], "late_rounds": 0, "output_gamma": [0, 1]},
    },
    "competitors": {
        "LR": {"baseline": "LR", "C": [0, 2]},
        "LR, thresholds per label": {"baseline": "LR", "thresholds": ["per_label"], "C": [2]},
        "GFM": {"baseline": "GFM", "estimate": ["sizes"], "C": [2]},
        "ECC": {"baseline": "ECC", "n_chains": [2], "max_chain_labels": [5], "C": [2]},
        "k-NN": {"baseline": "KNN", "n_neighbors": [1, 3]},
        "KRR": {"baseline": "KRR", "gamma": [0], "alpha": [-6, -5]},
    },
}


def run(context: Context, name: str) -> Outcome:
    """Tune and test IOKR and OEL₀ with every kind of output kernel and candidates, and the competitors."""
    bunch = datasets.load(name)
    source = Multilabel(bunch.X, bunch.Y, order_rows(bunch.train, context.config, context.seed), bunch.test)
    data = source.split(context.config["pairs"], n_tests=context.config["tests"])
    ours = [line for kind in context.config["outputs"] for line in LabelSetTask(data, kind, context).run()]
    chosen = [_chosen(method, ours) for method in METHODS]
    competitors = [CompetitorTask(key, data, context).run() for key in context.config["competitors"]]
    lines = [*ours, *chosen, *competitors]
    rows = [row for line in lines for row in line.make_rows(TITLES[name], PERCENT)]
    edges = [f"“{line.name}”: {note}." for line in (*ours, *competitors) for note in line.notes]
    return Outcome(rows, [*_comparisons(ours, chosen, competitors), *edges])


def order_rows(train: Index, config: Config, seed: int) -> Index:
    """Return training rows in random order, or so that the part that all methods hold out is the last rows.

    Every method holds out the same positions (``hold_out``). If the config says that the rows are ordered, the last
    rows are put at these positions.
    """
    if not config.get("ordered"):
        return np.random.default_rng(seed).permutation(train)
    rows = train[: config["pairs"]]
    kept, held_out = hold_out(len(rows), config["held_out"], seed)
    order = np.empty_like(rows)
    order[np.concatenate([np.sort(kept), np.sort(held_out)])] = rows
    return order


def _chosen(method: str, lines: Sequence[Tested]) -> Tested:
    """Return the line of a method with the best F1 on the held-out rows, over output kernels and candidates."""
    best = max((line for line in lines if line.name.startswith(method)), key=lambda line: line.validation)
    return replace(best, name=f"{method}, chosen")


def _comparisons(ours: Sequence[Tested], chosen: Sequence[Tested], competitors: Sequence[Tested]) -> list[str]:
    """Return notes with paired differences: candidates, methods, and the strongest competitor on the test rows."""
    by_name = {line.name: line for line in ours}
    notes = []
    for line in ours:
        method, kind, candidates = line.name.split(", ")
        if candidates != "known":
            notes.append(paired_note(line, by_name[f"{method}, {kind}, known"], PERCENT))
    for line in chosen:
        used = f"{line.parameters['output_kernel']} and candidates={line.parameters['candidates']!r}"
        notes.append(f"“{line.name}” has the output kernel {used}, chosen by F1 on the held-out rows.")
        notes.append(paired_note(line, by_name[line.name.replace("chosen", "Dice, known")], PERCENT))
    notes.append(paired_note(chosen[1], chosen[0], PERCENT))
    rival = strongest(competitors)
    notes += [paired_note(line, rival, PERCENT) for line in chosen]
    notes.append(f"“{rival.name}” is the competitor with the largest F1 on the test rows.")
    return notes


EXPERIMENT = Experiment(
    name="multilabel-sets",
    title="Multi-label classification with known, near and all label sets",
    source="beyond the paper",
    protocol="The original splits. Candidates are the label sets of the training rows (known), these and all sets that "
    "differ from one of them by one label (near), or all 2^L label sets (all). With the Gaussian output kernel "
    "all sets cannot be searched; near sets are searched on Bibtex and Corel5k. "
    "On EUR-Lex-4K near sets are left out.\n\n"
    "Every choice is made by F1 on 15 % of the training rows, held out once: the same rows for all methods. "
    "They are random rows, except on Mediamill, whose rows are frames of videos in order: there the last 15 % are held "
    "out, because random rows have near duplicates among the others. "
    "Inputs are the rows as they are, rows of length one or (Mediamill) standardized columns, always divided by "
    "one number, so that the mean squared length is one. The scaling and options without an order are chosen by a "
    "first grid. Then the grid of all numbers (γ, λ, p, C, k) is widened around the best setting until every "
    "neighbor of it (a factor of two for γ, p and k, of √10 for λ and C, in all directions) is known to be no "
    "better, at most six times. IOKR chooses γ, λ and the width of the Gaussian output kernel; OEL₀ then chooses "
    "λ and p. Near sets, whose search takes longest, start from the best settings of the other candidates: with "
    "Dice on Bibtex and Corel5k the grid is widened around these, otherwise only these are validated. “Chosen” is "
    "the output kernel and the kind of candidates with the best F1 on the held-out rows. The searches on EUR-Lex-4K "
    "have 4096 output landmarks, those on Mediamill 2048; all other fits are exact. The scaling, "
    "and γ of OEL₀, are those of IOKR's best setting over all candidates.\n\n"
    "Competitors predict at least one label: logistic regressions with one threshold or with one threshold per "
    "label that has at least five held-out examples (LR), expected-F1 maximization (GFM), ensembles of classifier "
    "chains (ECC), nearest neighbors with a threshold (k-NN) and kernel ridge regression of the labels with one "
    "threshold (KRR). GFM chooses between multinomial regressions per label and the factorization into sizes and "
    "labels; Delicious, EUR-Lex-4K and Mediamill have only the latter, and 5 chains (otherwise 10) of the 100 "
    "most frequent labels.\n\n"
    "P@k is the share of true labels among the k first ones. For a method that predicts sets, these are the "
    "nearest label set with exactly k labels (Dice only); for a competitor, the k labels with the highest scores.",
    parts=tuple(
        Part(name, TITLES[name], partial(run, name=name), {**CONFIG, **changes}, QUICK)
        for name, changes in DATASETS.items()
    ),
)
