"""Data, kernels, score and grid that the multi-label experiments share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import StandardScaler, normalize

from psilearn.kernels import Dice, Gaussian, Kernel
from psilearn.utils import Index, Samples
from psilearn_lab import datasets
from psilearn_lab.experiments.experiment import Config
from psilearn_lab.experiments.protocol import Data, Grid
from psilearn_lab.experiments.results import Metric

F1 = Metric("F1", "higher", 1)
PERCENT = 100.0  # F1 is shown in percent, as in the paper
TITLES = {
    "bibtex": "Bibtex",
    "bookmarks": "Bookmarks",
    "corel5k": "Corel5k",
    "delicious": "Delicious",
    "mediamill": "Mediamill",
    "eurlex4k": "EUR-Lex-4K",
}
OTHER_FEATURES = {"corel5k"}  # the paper's 37,152 features and 260 labels of Corel5k are not public
STANDARDIZED = {"mediamill"}  # dense visual features; the others are words or binary, and their rows get length one


@dataclass(frozen=True)
class Multilabel:
    """Prepared features and tags, with the training rows in the random order of a seed."""

    X: Samples
    Y: Samples  # CSR, 0/1
    train: Index
    test: Index

    def split(self, n_pairs: int | None, n_unlabeled: int | None = 0, n_tests: int | None = None) -> Data:
        """Return training pairs, the tags of the next ``n_unlabeled`` rows, and test rows; None for all."""
        labeled, rest = self.train[:n_pairs], self.train[len(self.train[:n_pairs]) :]
        others, test = rest[:n_unlabeled], self.test[:n_tests]
        X, Y = self.X, self.Y
        return Data(X[labeled], Y[labeled], X[test], Y[test], Y[others] if len(others) else None)


def load(name: str, seed: int) -> Multilabel:
    """Load a dataset with rows of length one, or with columns standardized on the training rows."""
    bunch = datasets.load(name)
    X = bunch.X
    X = StandardScaler().fit(X[bunch.train]).transform(X) if name in STANDARDIZED else normalize(X)
    return Multilabel(X, bunch.Y, np.random.default_rng(seed).permutation(bunch.train), bunch.test)


def make_output_kernels(Y: Samples, *kinds: str) -> dict[str, list[Kernel]]:
    """Return the kernels of each kind.

    The paper's Gaussian width is σ² = 1/l̄, where l̄ is the mean number of tags. If the kernel is exp(−d²/(2σ²)), this
    means γ = l̄/2; if it is exp(−γd²), γ = 1/l̄. Validation chooses one of the two. The squared distance of Dice is
    2 − 2·F1.
    """
    mean = float(np.mean(Y.sum(axis=1)))
    kernels: dict[str, list[Kernel]] = {"Gaussian": [Gaussian(1 / mean), Gaussian(mean / 2)], "Dice": [Dice()]}
    return {kind: kernels[kind] for kind in kinds}


def make_grid(config: Config) -> Grid:
    """Return the grid of a config, scored by F1."""
    axes = config["gammas"], config["alphas"], config["sizes"]
    return Grid(*axes, ["f1"], config["splits"], max_rounds=config["max_rounds"])
