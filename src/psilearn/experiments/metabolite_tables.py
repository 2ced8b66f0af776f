"""What is made of ranked candidates: rows, remarks and the figure of top-k curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psilearn._linalg import Array
from psilearn._utils.samples import Index
from psilearn.decoding import Ranks
from psilearn.experiments.competitors import NETWORKS
from psilearn.experiments.record import Metric, Row
from psilearn.metrics import Mean, top_k_accuracy
from psilearn.plotting import plot_curves

LOSS = Metric("Gaussian-Tanimoto loss", "lower", 3)
TOPS = {k: Metric(f"top-{k}, %", "higher", 1) for k in (1, 5, 10)}
PAPER = {  # other data: 6974 spectra, 7593 bits, PubChem
    "SPEN": (0.537, 25.9, 54.1, 64.3),  # the paper's table has the last two the other way round
    "IOKR": (0.463, 29.6, 61.1, 71.0),
    "OEL": (0.441, 31.2, 63.5, 72.7),
}
CURVE = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
MANY = 20  # candidates from which on a spectrum counts as hard
EVERY = "all spectra"


@dataclass(frozen=True)
class Results:
    """Losses and ranks of every method on all test spectra, and what each fold chose."""

    values: Mapping[str, Mapping[str, Array]]  # method → loss, nearer and tied, each (n,); by chance the loss alone
    sizes: Index  # (n,)  candidates of each spectrum
    shared: Any  # (n,) bool: whether a training molecule has the formula of the spectrum
    folds: Sequence[Mapping[str, Any]]
    numbers: Sequence[int]  # of the folds
    chosen: Sequence[str]  # methods that have parameters

    @classmethod
    def of(
        cls, folds: Sequence[Mapping[str, Any]], numbers: Sequence[int], sizes: Index, known: Sequence[Any]
    ) -> Results:
        """Join what the folds found.

        ``sizes`` are those of all spectra, ``known`` tells for each fold which formulas its training molecules have.
        """
        names = [str(name) for name in folds[0]["methods"]]
        values: dict[str, dict[str, Array]] = {
            name: {part: np.concatenate([one[part][i] for one in folds]) for part in ("loss", "nearer", "tied")}
            for i, name in enumerate(names)
        }
        values["chance"] = {"loss": np.concatenate([one["chance"] for one in folds])}
        tested = np.concatenate([one["test"] for one in folds])
        shared = np.concatenate([among[one["test"]] for among, one in zip(known, folds, strict=True)])
        return cls(values, sizes[tested], shared, folds, numbers, names[: len(folds[0]["settings"])])

    def top(self, name: str, k: int) -> Mean:
        """Return the top-k accuracy in expectation over ties."""
        value = self.values[name]
        if "nearer" not in value:
            return Mean(np.minimum(k, self.sizes) / self.sizes)
        return top_k_accuracy(Ranks(value["nearer"], value["tied"]), k)

    def rows(self) -> list[Row]:
        """Return every figure, over all spectra and over those with many candidates."""
        rows = self._rows(EVERY, self.sizes >= 1)
        hard = self.sizes >= MANY
        return rows + (self._rows(f"at least {MANY} candidates", hard) if np.sum(hard) > 1 else [])

    def _rows(self, label: str, among: Any) -> list[Row]:
        rows = []
        for place, metric in enumerate((LOSS, *TOPS.values())):
            if label == EVERY and "SPEN" not in self.values:
                quoted = PAPER["SPEN"][place]
                rows.append(Row(label, "SPEN", metric, paper=quoted, comparable=False, source="the paper"))
            for name, value in self.values.items():
                k = list(TOPS)[place - 1]
                examples = value["loss"] if metric is LOSS else 100 * self.top(name, k).values
                mean = Mean(examples[among])
                paper = PAPER.get("OEL" if name.startswith("OEL,") else name) if label == EVERY else None
                rows.append(
                    Row(
                        label,
                        name,
                        metric,
                        float(mean),
                        mean.standard_error,
                        paper=None if paper is None else paper[place],
                        comparable=False,
                        parameters=self._parameters(name) if metric is LOSS else {},
                        seconds=self._seconds(name) if metric is LOSS else {},
                    )
                )
        return rows

    def _parameters(self, name: str) -> dict[str, Any]:
        if name not in self.chosen:
            return {}
        place = self.chosen.index(name)
        return {f"fold {i}": str(one["settings"][place]) for i, one in zip(self.numbers, self.folds, strict=True)}

    def _seconds(self, name: str) -> dict[str, float]:
        if name not in self.chosen:
            return {}
        place = self.chosen.index(name) + 1
        medians = np.median([one["seconds"] for one in self.folds], axis=0)
        own = {"fit": float(medians[place])}
        return own if name in NETWORKS else {"choose": float(medians[0]), **own}

    def notes(self, coverages: Sequence[float]) -> list[str]:
        """Return differences with paired standard errors, what ties and single candidates do, coverage, and edges."""
        learned = [name for name in self.chosen if name.startswith("OEL")]
        pairs = [*((name, "IOKR") for name in learned), *((name, learned[0]) for name in learned[1:])]
        pairs += [(name, "IOKR") for name in self.chosen if name in NETWORKS]
        notes = [self._difference(*pair) for pair in pairs]
        single = self.sizes == 1
        told = (f"{name} {100 * np.mean(self.top(name, 1).values[~single]):.1f}" for name in self.values)
        notes.append(
            f"{np.mean(single):.1%} of the spectra have a single candidate and are right whatever is predicted; "
            f"without them top-1 is {', '.join(told)}."
        )
        parts = self.shared & ~single, ~self.shared & ~single
        if all(part.any() for part in parts):
            rates = (
                f"{name} " + ", ".join(f"{100 * np.mean(self.top(name, 1).values[part]):.1f}" for part in parts)
                for name in self.values
            )
            notes.append(
                f"{np.mean(self.shared):.1%} of the spectra share their formula with a training molecule, a wrong "
                f"candidate that attracts predictions. Top-1 there, and elsewhere, without single candidates: "
                f"{'; '.join(rates)}."
            )
        last = self.values[learned[-1]]
        ranks = Ranks(last["nearer"], last["tied"])
        first, final = (100 * float(top_k_accuracy(ranks, 1, ties)) for ties in ("optimistic", "pessimistic"))
        notes.append(
            f"Molecules at the same distance stand in random order (expected rank); if the truth always came first "
            f"among them top-1 of {learned[-1]} would be {first:.1f}, if always last {final:.1f}."
        )
        found = np.mean([one["conformal"] for one in self.folds], axis=0)
        notes.append(
            f"Conformal sets of {learned[-1]}, calibrated on every other test spectrum of a fold and checked on the "
            + "rest: "
            + "; ".join(
                f"{coverage:.0%} asked, {held:.1%} found, {size:.1f} molecules on average (median {middle:.0f})"
                for coverage, (held, size, middle) in zip(coverages, found, strict=True)
            )
            + "."
        )
        return notes + self._edges()

    def _difference(self, name: str, other: str) -> str:
        loss = Mean(self.values[name]["loss"] - self.values[other]["loss"])
        top = Mean(100 * (self.top(name, 1).values - self.top(other, 1).values))
        return (
            f"{name} minus {other}, paired over {len(self.sizes)} spectra: loss {loss:+.4f} ± "
            f"{loss.standard_error:.4f}, top-1 {top:+.2f} ± {top.standard_error:.2f} points."
        )

    def _edges(self) -> list[str]:
        notes = []
        for i, name in enumerate(self.chosen):
            edges = [f"fold {f}: {one['edges'][i]}" for f, one in zip(self.numbers, self.folds, strict=True)]
            edges = [edge for edge in edges if not edge.endswith(": ")]
            if edges:
                notes.append(f"{name}, choices at an end of their grids: {'; '.join(edges)}.")
        return notes

    def figures(self) -> dict[str, tuple[Any, str]]:
        """Return the top-k curves."""
        curves = {name: [100 * float(self.top(name, k)) for k in CURVE] for name in self.values}
        ax = plot_curves(list(CURVE), curves, "k", "truth among the k nearest, %", highlight="IOKR")
        ax.set_xscale("log")
        ax.set_xticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
        caption = "How often the true molecule is among the k nearest candidates, over all spectra."
        return {"top-k": (ax.figure, caption)}
