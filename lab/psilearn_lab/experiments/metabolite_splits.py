"""Splits of the experiment on reference spectra: which molecules train, and which spectra are queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from psilearn.utils import Index
from psilearn_lab.experiments.metabolite_references import ReferenceTask

Mask = npt.NDArray[np.bool_]

N_FOLDS = 5
NEW, MIXED = "new", "mixed"  # protocols


@dataclass(frozen=True)
class Split:
    """Training molecules, and queries: new molecules, and known ones whose reference spectrum trains.

    Molecules of ``single``, new or known, are queried a second time, with a single one of the records of the query.
    """

    name: str
    outer: int  # the outer fold
    train: Index  # molecules, the known ones among them
    known: Index  # molecules whose query is the spectrum of another instrument
    new: Index  # molecules without a training spectrum
    single: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    @property
    def is_test(self) -> bool:
        """Whether the queries are those of an outer fold."""
        return self.name.endswith((NEW, MIXED))

    @property
    def molecules(self) -> Index:
        """The molecule of each query, new ones first, and single records last."""
        return np.concatenate([self.new, self.known, self.single])

    @property
    def is_known(self) -> Mask:
        """Whether the molecule of each query has a reference spectrum."""
        return np.isin(self.molecules, self.known)

    @property
    def is_single(self) -> Mask:
        """Whether each query is a single one of several records."""
        return np.repeat([False, True], [len(self.new) + len(self.known), len(self.single)])

    def training_spectra(self, task: ReferenceTask) -> Index:
        """Return the spectrum of each training molecule: the merged one, or the reference of known molecules."""
        return np.where(np.isin(self.train, self.known), task.reference[self.train], self.train)

    def query_spectra(self, task: ReferenceTask) -> Index:
        """Return the spectrum of each query."""
        return np.concatenate([self.new, task.query[self.known], task.single[self.single]])

    def with_single_records(self, task: ReferenceTask) -> Split:
        """Return the split in which molecules with several records are queried a second time."""
        spectra, molecules = self.query_spectra(task), self.molecules
        return replace(self, single=molecules[task.single[molecules] != spectra])


def inner_splits(task: ReferenceTask, fold: Index, outer: int) -> Iterator[Split]:
    """Yield the splits within the training folds of an outer fold, each of them held out once.

    The molecules of the next fold with a second measurement are known queries.
    """
    others = [number for number in range(N_FOLDS) if number != outer]
    for i, held in enumerate(others):
        following = others[(i + 1) % len(others)]
        train = np.flatnonzero(np.isin(fold, [number for number in others if number != held]))
        known = np.flatnonzero((fold == following) & task.has_reference)
        yield Split(f"{outer}-{held}", outer, train, known, np.flatnonzero(fold == held))


def new_split(fold: Index, outer: int) -> Split:
    """Return the split in which all molecules of the outer fold are new."""
    train, new = np.flatnonzero(fold != outer), np.flatnonzero(fold == outer)
    return Split(f"{outer}-{NEW}", outer, train, np.empty(0, dtype=np.intp), new)


def mixed_split(task: ReferenceTask, fold: Index, outer: int) -> Split:
    """Return the split in which the molecules of the outer fold with a second measurement are known."""
    is_test = fold == outer
    known = np.flatnonzero(is_test & task.has_reference)
    return Split(
        f"{outer}-{MIXED}",
        outer,
        np.flatnonzero(~is_test | task.has_reference),
        known,
        np.flatnonzero(is_test & ~task.has_reference),
    )


def scaffold_folds(task: ReferenceTask, seed: int) -> Index:
    """Return folds in which molecules with the same scaffold are together; without rings, each is alone."""
    names = np.where(task.scaffold == "", np.char.add("chain ", np.arange(len(task)).astype(str)), task.scaffold)
    groups, number = np.unique(names, return_inverse=True)
    counts = np.bincount(number)
    order = np.random.default_rng(seed).permutation(len(groups))
    order = order[np.argsort(-counts[order], kind="stable")]
    fold_of_group, sizes = np.zeros(len(groups), dtype=np.intp), np.zeros(N_FOLDS)
    for group in order:  # the largest group first, into the smallest fold
        fold_of_group[group] = np.argmin(sizes)
        sizes[fold_of_group[group]] += counts[group]
    return fold_of_group[number]
