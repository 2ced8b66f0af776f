"""The molecules of the experiment SMI2Mol, as texts and as graphs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psilearn.kernels import Graph
from psilearn_chem import molecule_graphs
from psilearn_lab import datasets
from psilearn_lab.experiments.experiment import Config

FIRST, LAST = "^", "$"  # mark the ends of a string, so that substrings know them


@dataclass(frozen=True)
class Molecules:
    """Molecules as texts and as graphs."""

    texts: list[str]
    graphs: list[Graph]

    @classmethod
    def of(cls, smiles: Sequence[str], n_jobs: int | None) -> Molecules:
        """Return molecules; marks of stereochemistry, of which graphs know nothing, are removed from the texts."""
        return cls([FIRST + remove_stereo(text) + LAST for text in smiles], molecule_graphs(smiles, n_jobs=n_jobs))

    def __len__(self) -> int:
        return len(self.texts)

    def head(self, n: int | None) -> Molecules:
        """Return the first n molecules."""
        return Molecules(self.texts[:n], self.graphs[:n])


@dataclass(frozen=True)
class Task:
    """Training, validation and test molecules, and molecules without a text."""

    train: Molecules
    validation: Molecules
    test: Molecules
    unlabeled: Molecules

    @property
    def title(self) -> str:
        """The numbers of training pairs and of molecules without a text."""
        pairs = f"QM9, {len(self.train):,} pairs"
        return f"{pairs} and {len(self.unlabeled):,} molecules without a SMILES" if self.unlabeled.texts else pairs

    @classmethod
    def load(cls, config: Config, seed: int, n_jobs: int | None) -> Task:
        """Read the SMILES and divide them at random; molecules that differ by stereochemistry only count once."""
        smiles = list({remove_stereo(text): text for text in datasets.load("qm9").smiles}.values())
        order = np.random.default_rng(seed).permutation(len(smiles))
        sizes = [config["tests"], config["validation"], config["pairs"], config["unlabeled"]]
        parts, start = [], 0
        for size in sizes:
            stop = len(smiles) if size is None else start + size
            parts.append(Molecules.of([smiles[i] for i in order[start:stop]], n_jobs))
            start = stop
        test, validation, train, unlabeled = parts
        return cls(train, validation, test, unlabeled)


def remove_stereo(smiles: str) -> str:
    """Return a SMILES without marks of stereochemistry, as text: nothing is parsed."""
    return re.sub(r"\[(\w)@+H?\]", r"\1", smiles).replace("/", "").replace("\\", "")
