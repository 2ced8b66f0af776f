"""Rows, notes and figures of the experiment on reference evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from psilearn.metrics import Mean, TruthPositions, mean_reciprocal_rank, top_k_accuracy
from psilearn.plotting import plot_curves
from psilearn_lab.experiments.experiment import Array, CaptionedFigures, figure_of
from psilearn_lab.experiments.metabolite_second_stage import COVERAGES, SECOND_STAGE
from psilearn_lab.experiments.protocol import quote_name
from psilearn_lab.experiments.result_rows import Metric, Row

Mask = npt.NDArray[np.bool_]

TOP_K = {k: Metric(f"top-{k}, %", "higher", 1) for k in (1, 5, 10, 20)}
MRR = Metric("MRR@25, %", "higher", 1)
MIN_CANDIDATES, MANY_CANDIDATES = 20, 100
LIBRARY_SEARCH = "weighted library search"
N_BINS = 10
ONE_RECORD = ", one record"  # of the names of protocols in which a query is one of several records
MERGING_METHODS = (SECOND_STAGE, "without adding up evidence", "IOKR", LIBRARY_SEARCH)


@dataclass(frozen=True)
class EvidenceResults:
    """The arrays of all test queries, by protocol and name."""

    values: Mapping[str, Mapping[str, Array]]  # protocol → name → (q,)
    folds: Sequence[Mapping[str, Any]]

    @classmethod
    def join(cls, folds: Sequence[Mapping[str, Any]]) -> EvidenceResults:
        """Join the results of the folds."""
        values: dict[str, dict[str, Array]] = {}
        for key in folds[0]:
            protocol, separator, name = key.partition(": ")
            if separator:
                joined = np.concatenate([np.asarray(fold[key], dtype=np.float64) for fold in folds])
                values.setdefault(protocol, {})[name] = joined
        sizes = [len(fold["new: candidates"]) for fold in folds]
        values["new"]["fold"] = np.repeat(np.arange(float(len(folds))), sizes)
        return cls(values, folds)

    @property
    def methods(self) -> list[str]:
        """The names of the methods."""
        return [name.removeprefix("nearer ") for name in self.values["new"] if name.startswith("nearer ")]

    def positions(self, protocol: str, method: str) -> TruthPositions:
        """Return the positions of the true molecules."""
        values = self.values[protocol]
        return TruthPositions(values[f"nearer {method}"], values[f"tied {method}"])

    def subsets(self) -> dict[str, tuple[str, Mask]]:
        """Return the subsets of at least two queries: protocol and mask by label."""
        new, n = self.values["new"], self.values["new"]["candidates"]
        found = {
            "all molecules new": ("new", n > 0),
            "all new, without the first fold": ("new", new["fold"] > 0),
            f"all new, 2 to {MIN_CANDIDATES - 1} candidates": ("new", (n > 1) & (n < MIN_CANDIDATES)),
            f"all new, at least {MIN_CANDIDATES} candidates": ("new", n >= MIN_CANDIDATES),
            f"all new, at least {MANY_CANDIDATES} candidates": ("new", n >= MANY_CANDIDATES),
            "all new, formula of a training molecule": ("new", new["shares"] > 0),
            "all new, formula of no training molecule": ("new", new["shares"] == 0),
        }
        if "mixed" in self.values:
            mixed = self.values["mixed"]
            share = np.mean(mixed["known"])
            found |= {
                f"mixed, {share:.0%} known molecules": ("mixed", mixed["candidates"] > 0),
                "mixed, the known molecules": ("mixed", mixed["known"] > 0),
                "mixed, the new molecules": ("mixed", mixed["known"] == 0),
            }
        found |= self._merging_subsets()
        return {label: subset for label, subset in found.items() if np.sum(subset[1]) > 1}

    def _merging_subsets(self) -> dict[str, tuple[str, Mask]]:
        """Return the queries of molecules with several records: all records merged, and one of them."""
        found = {}
        for protocol, kind, is_known in (("new", "all new", 0.0), ("mixed", "mixed, known", 1.0)):
            single = self.values.get(protocol + ONE_RECORD)
            if single is not None:
                merged = self.values[protocol]
                has_several = np.isin(merged["molecule"], single["molecule"])
                label = f"{kind}, molecules with several records"
                found[f"{label}, merged"] = (protocol, has_several & (merged["known"] == is_known))
                found[f"{label}, one of them"] = (protocol + ONE_RECORD, single["known"] == is_known)
        return found

    def rows(self) -> list[Row]:
        """Return the rows of all subsets, methods and metrics."""
        rows = []
        for label, (protocol, mask) in self.subsets().items():
            for metric, values in self._metrics(protocol).items():
                for method, examples in values.items():
                    mean = Mean(100 * examples[mask])
                    rows.append(Row(label, method, metric, float(mean), mean.standard_error))
        return rows

    def _metrics(self, protocol: str) -> dict[Metric, dict[str, Array]]:
        """Return one value per query for each metric and method."""
        positions = {method: self.positions(protocol, method) for method in self.methods}
        n = self.values[protocol]["candidates"]
        found: dict[Metric, dict[str, Array]] = {}
        for k, metric in TOP_K.items():
            found[metric] = {method: top_k_accuracy(place, k).values for method, place in positions.items()}
            found[metric]["chance"] = np.minimum(k, n) / n
        found[MRR] = {method: mean_reciprocal_rank(place).values for method, place in positions.items()}
        return found

    def notes(self, fold_numbers: Sequence[int]) -> list[str]:
        """Return notes on differences, coverage, calibration and weights."""
        return [
            *(self._difference(reference) for reference in (LIBRARY_SEARCH, "IOKR")),
            *self._gains_of_merging(),
            *(self._coverage(label, protocol, mask) for label, (protocol, mask) in self.subsets().items()),
            self._reliability(),
            *self._weights(fold_numbers),
        ]

    def _difference(self, reference: str) -> str:
        texts = []
        for k in TOP_K:
            ours, theirs = (
                top_k_accuracy(self.positions("new", method), k).values for method in (SECOND_STAGE, reference)
            )
            mean = Mean(100 * (ours - theirs))
            texts.append(f"top-{k} {mean:+.2f} ± {mean.standard_error:.2f}")
        names, n = f"{quote_name(SECOND_STAGE)} minus {quote_name(reference)}", len(self.values["new"]["candidates"])
        return f"{names}, paired over {n} new molecules: {', '.join(texts)}."

    def _gains_of_merging(self) -> list[str]:
        """Return how much better merged records are than one of them, paired over molecules."""
        subsets, notes = list(self._merging_subsets().items()), []
        for (label, merged), (_, single) in zip(subsets[::2], subsets[1::2], strict=True):
            for method in MERGING_METHODS:
                texts = []
                for k in TOP_K:
                    gain = Mean(100 * (self._hits(*merged, method, k) - self._hits(*single, method, k)))
                    texts.append(f"top-{k} {gain:+.2f} ± {gain.standard_error:.2f}")
                notes.append(f"{label} minus one of them, {quote_name(method)}: {', '.join(texts)}.")
        return notes

    def _hits(self, protocol: str, mask: Mask, method: str, k: int) -> Array:
        """Return whether the truth is among the first k for some queries, in the order of their molecules."""
        order = np.argsort(self.values[protocol]["molecule"][mask])
        return top_k_accuracy(self.positions(protocol, method), k).values[mask][order]

    def _coverage(self, label: str, protocol: str, mask: Mask) -> str:
        values, texts = self.values[protocol], []
        for coverage in COVERAGES:
            shown = []
            for kind in ("adaptive", "plain"):
                covered = np.mean(values[f"covered {kind} {coverage}"][mask])
                size = values[f"size {kind} {coverage}"][mask]
                shown.append(f"{covered:.1%} with {np.mean(size):.1f} molecules (median {np.median(size):.0f}) {kind}")
            texts.append(f"{coverage:.0%} requested, {' and '.join(shown)}")
        return f"Conformal sets, {label}: {'; '.join(texts)}."

    def _bins(self) -> list[tuple[float, float, int]]:
        """Return mean confidence, share of correct first places, and number of queries of bins of confidence."""
        protocol = self.values.get("mixed", self.values["new"])
        confidence, right = protocol["confidence"], protocol["right"]
        number = np.minimum((N_BINS * confidence).astype(int), N_BINS - 1)
        return [
            (float(confidence[number == i].mean()), float(right[number == i].mean()), int(np.sum(number == i)))
            for i in range(N_BINS)
            if np.any(number == i)
        ]

    def _reliability(self) -> str:
        bins = self._bins()
        total = sum(count for *_, count in bins)
        error = sum(count * abs(mean - share) for mean, share, count in bins) / total
        texts = "; ".join(f"{mean:.2f} → {share:.2f} ({count})" for mean, share, count in bins)
        return (
            f"Probability of the first molecule → how often it is right (number): {texts}. Mean difference {error:.3f}."
        )

    def _weights(self, fold_numbers: Sequence[int]) -> list[str]:
        notes = []
        for number, fold in zip(fold_numbers, self.folds, strict=True):
            weights = ", ".join(f"{n} {w:.3g}" for n, w in zip(fold["names"], fold["weights"], strict=True))
            found = ", ".join(f"{name} {share:.1%}" for name, share in zip(fold["fits"], fold["found"], strict=True))
            ratios = ", ".join(f"{value:.2f}" for value in fold["log_ratios"])
            first_stage = "γ = {:g}, λ = {:g}".format(*fold["first_stage"])
            notes.append(
                f"Fold {number}: {first_stage}; true molecule first on inner splits: {found}; weights {weights}; "
                f"evidence at similarities 0.025, 0.075, …, 0.975: {ratios}."
            )
        return notes

    def figures(self) -> CaptionedFigures:
        """Return the reliability of probabilities and the top-k curves."""
        bins = self._bins()
        means = [mean for mean, *_ in bins]
        ax = plot_curves(means, {SECOND_STAGE: [share for _, share, _ in bins], "exact": means}, "probability", "right")
        ks = [1, 2, 3, 5, 7, 10, 15, 20, 30, 50]
        shown = [name for name in self.methods if not name.startswith("without")]
        curves = {name: [100 * float(top_k_accuracy(self.positions("new", name), k)) for k in ks] for name in shown}
        top = plot_curves(ks, curves, "k", "truth among the k first, %", highlight=SECOND_STAGE)
        return {
            "reliability": (figure_of(ax), "How often the first molecule is right, by its probability."),
            "top-k": (figure_of(top), "How often the true molecule is among the first k, all molecules new."),
        }
