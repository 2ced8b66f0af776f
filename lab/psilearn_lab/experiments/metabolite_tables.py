"""Rows, notes and figures from the ranked candidates of all test spectra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from psilearn.metrics import Mean, TruthPositions, top_k_accuracy
from psilearn.plotting import plot_curves
from psilearn.utils import Index
from psilearn_lab.arrays import Array
from psilearn_lab.experiments.competitors import NETWORKS
from psilearn_lab.experiments.experiment import CaptionedFigures, figure_of
from psilearn_lab.experiments.protocol import quote_name
from psilearn_lab.experiments.results import Metric, Row

LOSS = Metric("Gaussian-Tanimoto loss", "lower", 3)
TOP_K = {k: Metric(f"top-{k}, %", "higher", 1) for k in (1, 5, 10)}
PAPER = {  # other data: 6974 spectra, 7593 bits, PubChem
    "SPEN": (0.537, 25.9, 54.1, 64.3),  # the paper's table has the last two in the other order
    "IOKR": (0.463, 29.6, 61.1, 71.0),
    "OEL": (0.441, 31.2, 63.5, 72.7),
}
CURVE_K = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
CURVE_TICKS = (1, 2, 5, 10, 20, 50, 100)
MIN_CANDIDATES = 20  # spectra with at least so many candidates have separate rows
ALL_SPECTRA = "all spectra"


@dataclass(frozen=True)
class Results:
    """Losses and positions of the truth of every method on all test spectra, and the choices of each fold."""

    values: Mapping[str, Mapping[str, Array]]  # method → loss, nearer and tied, each (n,); "chance" has the loss only
    n_candidates: Index  # (n,)  number of candidates of each spectrum
    shares_formula: npt.NDArray[np.bool_]  # (n,)  whether a training molecule has the formula of the spectrum
    folds: Sequence[Mapping[str, Any]]
    fold_numbers: Sequence[int]
    tuned: Sequence[str]  # methods with parameters

    @classmethod
    def join(
        cls,
        folds: Sequence[Mapping[str, Any]],
        fold_numbers: Sequence[int],
        n_candidates: Index,
        known_formulas: Sequence[npt.NDArray[np.bool_]],
    ) -> Results:
        """Join the results of the folds.

        ``n_candidates`` is given for all spectra; ``known_formulas`` states for each fold which spectra have a formula
        of its training molecules.
        """
        names = [str(name) for name in folds[0]["methods"]]
        values: dict[str, dict[str, Array]] = {
            name: {key: np.concatenate([fold[key][i] for fold in folds]) for key in ("loss", "nearer", "tied")}
            for i, name in enumerate(names)
        }
        values["chance"] = {"loss": np.concatenate([fold["chance"] for fold in folds])}
        tested = np.concatenate([fold["test"] for fold in folds])
        shares = np.concatenate([known[fold["test"]] for known, fold in zip(known_formulas, folds, strict=True)])
        return cls(values, n_candidates[tested], shares, folds, fold_numbers, names[: len(folds[0]["settings"])])

    def top_k(self, name: str, k: int) -> Mean:
        """Return the top-k accuracy of a method, in expectation over ties."""
        value = self.values[name]
        if "nearer" not in value:
            return Mean(np.minimum(k, self.n_candidates) / self.n_candidates)
        return top_k_accuracy(TruthPositions(value["nearer"], value["tied"]), k)

    def rows(self) -> list[Row]:
        """Return the rows over all spectra and over those with many candidates."""
        rows = self._rows_among(ALL_SPECTRA, self.n_candidates >= 1)
        many = self.n_candidates >= MIN_CANDIDATES
        if np.sum(many) > 1:
            rows += self._rows_among(f"at least {MIN_CANDIDATES} candidates", many)
        return rows

    def _rows_among(self, label: str, selected: npt.NDArray[np.bool_]) -> list[Row]:
        """Return the rows over the selected spectra."""
        rows = []
        for column, (metric, k) in enumerate([(LOSS, 0), *((metric, k) for k, metric in TOP_K.items())]):
            if label == ALL_SPECTRA and "SPEN" not in self.values:
                quoted = PAPER["SPEN"][column]
                rows.append(Row(label, "SPEN", metric, paper=quoted, comparable=False, source="the paper"))
            for name, value in self.values.items():
                examples = value["loss"] if metric is LOSS else 100 * self.top_k(name, k).values
                mean = Mean(examples[selected])
                paper = PAPER.get("OEL" if name.startswith("OEL,") else name) if label == ALL_SPECTRA else None
                rows.append(
                    Row(
                        label,
                        name,
                        metric,
                        float(mean),
                        mean.standard_error,
                        paper=None if paper is None else paper[column],
                        comparable=False,
                        parameters=self._parameters(name) if metric is LOSS else {},
                        seconds=self._seconds(name) if metric is LOSS else {},
                    )
                )
        return rows

    def _parameters(self, name: str) -> dict[str, str]:
        if name not in self.tuned:
            return {}
        i = self.tuned.index(name)
        return {f"fold {n}": str(fold["settings"][i]) for n, fold in zip(self.fold_numbers, self.folds, strict=True)}

    def _seconds(self, name: str) -> dict[str, float]:
        """Return the median seconds over the folds; the networks have no separate time of the choice."""
        if name not in self.tuned:
            return {}
        medians = np.median([fold["seconds"] for fold in self.folds], axis=0)
        fit = {"fit": float(medians[self.tuned.index(name) + 1])}
        return fit if name in NETWORKS else {"choose": float(medians[0]), **fit}

    def notes(self, coverages: Sequence[float]) -> list[str]:
        """Return notes on paired differences, single candidates, formulas, ties, conformal sets and edges."""
        learned = [name for name in self.tuned if name.startswith("OEL")]
        pairs = [*((name, "IOKR") for name in learned), *((name, learned[0]) for name in learned[1:])]
        pairs += [(name, "IOKR") for name in self.tuned if name in NETWORKS]
        return [
            *(self._difference_note(*pair) for pair in pairs),
            *self._subset_notes(),
            self._ties_note(learned[-1]),
            self._coverage_note(learned[-1], coverages),
            *self._edge_notes(),
        ]

    def _difference_note(self, name: str, reference: str) -> str:
        loss = Mean(self.values[name]["loss"] - self.values[reference]["loss"])
        top_1 = Mean(100 * (self.top_k(name, 1).values - self.top_k(reference, 1).values))
        return (
            f"{quote_name(name)} minus {quote_name(reference)}, paired over {len(self.n_candidates)} spectra: "
            f"loss {loss:+.4f} ± {loss.standard_error:.4f}, top-1 {top_1:+.2f} ± {top_1.standard_error:.2f} points."
        )

    def _subset_notes(self) -> list[str]:
        """Return top-1 without single candidates, and with and without a training molecule of the same formula."""
        single = self.n_candidates == 1
        rates = (f"{name} {self._top_1(name, ~single)}" for name in self.values)
        notes = [
            f"{np.mean(single):.1%} of the spectra have a single candidate and are right whatever is predicted. "
            f"Without them, top-1 is {'; '.join(rates)}."
        ]
        shared, others = self.shares_formula & ~single, ~self.shares_formula & ~single
        if shared.any() and others.any():
            rates = (f"{name} {self._top_1(name, shared)} and {self._top_1(name, others)}" for name in self.values)
            notes.append(
                f"{np.mean(self.shares_formula):.1%} of the spectra share their formula with a training molecule, a "
                f"wrong candidate that attracts predictions. Top-1 on these and on the other spectra, both without "
                f"single candidates: {'; '.join(rates)}."
            )
        return notes

    def _top_1(self, name: str, selected: npt.NDArray[np.bool_]) -> str:
        return f"{100 * np.mean(self.top_k(name, 1).values[selected]):.1f}"

    def _ties_note(self, name: str) -> str:
        positions = TruthPositions(self.values[name]["nearer"], self.values[name]["tied"])
        first, last = (100 * float(top_k_accuracy(positions, 1, ties)) for ties in ("optimistic", "pessimistic"))
        return (
            f"Molecules at the same distance are counted in random order (expected position). If the truth always came "
            f"first among them, top-1 of {quote_name(name)} would be {first:.1f}; if it always came last, {last:.1f}."
        )

    def _coverage_note(self, name: str, coverages: Sequence[float]) -> str:
        measured = np.mean([fold["conformal"] for fold in self.folds], axis=0)
        sentences = "; ".join(
            f"{coverage:.0%} requested, {actual:.1%} measured, {size:.1f} molecules on average (median {middle:.0f})"
            for coverage, (actual, size, middle) in zip(coverages, measured, strict=True)
        )
        return (
            f"Conformal sets of {quote_name(name)}, calibrated on every other test spectrum of a fold and "
            f"checked on the others: {sentences}."
        )

    def _edge_notes(self) -> list[str]:
        notes = []
        for i, name in enumerate(self.tuned):
            edges = [(n, str(fold["edges"][i])) for n, fold in zip(self.fold_numbers, self.folds, strict=True)]
            texts = [f"fold {n}: {edge}" for n, edge in edges if edge]
            if texts:
                notes.append(f"{quote_name(name)}, parameters at an end of their grids: {'; '.join(texts)}.")
        return notes

    def figures(self) -> CaptionedFigures:
        """Return the figure with the top-k curves."""
        curves = {name: [100 * float(self.top_k(name, k)) for k in CURVE_K] for name in self.values}
        ax = plot_curves(list(CURVE_K), curves, "k", "truth among the k nearest, %", highlight="IOKR")
        ax.set_xscale("log")
        ax.set_xticks(CURVE_TICKS, [str(k) for k in CURVE_TICKS])
        caption = "How often the true molecule is among the k nearest candidates, over all spectra."
        return {"top-k": (figure_of(ax), caption)}
