"""Splits of the molecules, and the features of the candidates of all queries, formula by formula."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from psilearn.kernels import Gaussian, Precomputed, Tanimoto
from psilearn.regression import KernelRidge
from psilearn.utils import Index
from psilearn_chem import Spectrum
from psilearn_chem.metabolites.candidate_model import MoleculePrior
from psilearn_chem.metabolites.reference_evidence import N_RELATIONS, Pairs
from psilearn_chem.metabolites.second_stage import Candidates, FeatureMaker, References, SmilesOf
from psilearn_chem.metabolites.second_stage_fit import MASSBANK_EVIDENCE, Query
from psilearn_chem.molecules.fingerprints import Bits
from psilearn_lab.arrays import Array, Mask
from psilearn_lab.experiments.experiment import Config, Log
from psilearn_lab.experiments.metabolite_data import ComparedRecords, ReferenceTask

TOLERANCE = 0.01  # Da


def modified_cosine(a: Spectrum, b: Spectrum, power: float = 0.5) -> float:
    """Return the cosine over pairs of peaks at the same m/z, or at the same distance from the precursor.

    Each peak has at most one partner; the pairs with the highest products are chosen first. Intensities are raised to
    ``power``.
    """
    heights = a.intensity**power, b.intensity**power
    shift = (a.precursor_mz or 0.0) - (b.precursor_mz or 0.0)
    left, right = _find_pairs(a.mz, b.mz)
    if abs(shift) > TOLERANCE:
        shifted = _find_pairs(a.mz, b.mz + shift)
        left, right = np.append(left, shifted[0]), np.append(right, shifted[1])
    products = heights[0][left] * heights[1][right]
    used_left, used_right, total = set(), set(), 0.0
    for pair in np.argsort(-products, kind="stable"):
        i, j = int(left[pair]), int(right[pair])
        if i not in used_left and j not in used_right:
            used_left.add(i)
            used_right.add(j)
            total += float(products[pair])
    return total / float(np.linalg.norm(heights[0]) * np.linalg.norm(heights[1]))


def _find_pairs(left: Array, right: Array) -> tuple[Index, Index]:
    """Return the indices of all pairs of ascending positions within the tolerance."""
    first = np.searchsorted(right, left - TOLERANCE)
    counts = np.searchsorted(right, left + TOLERANCE, side="right") - first
    i = np.repeat(np.arange(len(left)), counts)
    offsets = np.arange(len(i)) - np.repeat(np.cumsum(counts) - counts, counts)
    return i, np.repeat(first, counts) + offsets


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


PLAIN = "without formulas of fragments"  # the control with fixed parameters
BLIND = "spectrum-blind"
N_NEIGHBORS = 10
MIN_COMPARED = 2048  # candidates of several formulas that are compared with all molecules at once
MAX_COMPARED = 50  # training spectra that a library search compares, by the mean cosine of peaks and losses


class FirstStage(NamedTuple):
    """The parameters of IOKR: γ of the Gaussian over the mean of the kernels on spectra, and λ."""

    gamma: float
    alpha: float


@dataclass(frozen=True)
class CachedCandidates(Candidates):
    """Candidates whose fragments are compared with a spectrum once, also if several splits need them."""

    explained: dict[tuple[int, int], Array] = field(default_factory=dict)  # spectrum and row → explained intensity
    number: int = -1  # of the spectrum
    tanimoto: Array = field(default_factory=lambda: np.empty((0, 0)))  # (c, n)  with the training molecules
    training: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # (n,)  the training spectra
    records: ComparedRecords | None = None

    def explain(self, indices: Index) -> Array:
        """Return how well fragments of some candidates explain the spectrum, of shape (candidates, 2)."""
        start = self.get_smiles.start  # type: ignore[attr-defined]
        missing = np.array([i for i in indices if (self.number, start + i) not in self.explained], dtype=np.intp)
        if len(missing):
            for i, values in zip(missing, super().explain(missing), strict=True):
                self.explained[self.number, start + i] = values
        return np.stack([self.explained[self.number, start + i] for i in indices])

    def compare_with(self, references: References, rows: Index) -> Array:
        """Return the Tanimoto similarity with the molecules of some training spectra, of shape (candidates, rows)."""
        return self.tanimoto[:, rows]

    def pairs_with(self, references: References, rows: list[int]) -> Pairs:
        """Return the pairs of records of the query and of training spectra; merged spectra if there are none."""
        pairs = None if self.records is None else self.records.pairs(self.number, self.training[rows].tolist())
        if pairs is not None:
            return pairs
        return Pairs(self.similarity[None, rows], np.full((1, len(rows)), N_RELATIONS - 1))


@dataclass(frozen=True)
class RankedQuery(Query):
    """A query with the scores of controls, one value per candidate."""

    molecule: int = -1
    is_single_record: bool = False  # whether its spectrum is one of several records
    controls: dict[str, Array] = field(default_factory=dict)
    embeddings: dict[FirstStage, Array] = field(default_factory=dict)  # parameters → scores of IOKR

    def choose(self, parameters: FirstStage) -> None:
        """Use the scores of IOKR with these parameters."""
        self.features["embedding"] = self.controls["IOKR"] = self.embeddings[parameters]


@dataclass(frozen=True)
class FormulaCandidates:
    """The candidates of one formula, compared with all n molecules."""

    start: int  # row of the first one in the library
    bits: Bits  # (c, b)
    tanimoto: Array  # (c, n)
    kernel: Array  # (c, n)  output kernel


@dataclass(frozen=True)
class FittedSplit:
    """What is learned from the training spectra of a split."""

    split: Split
    number: int
    weights: dict[FirstStage | str, Array]  # parameters, or PLAIN → (queries, training spectra), α(x)
    maker: FeatureMaker
    similarity: Array  # (queries, training spectra)
    training: Index  # the training spectra
    asked: Index  # the spectra of the queries

    def weights_of(self, position: int, n_molecules: int) -> Array:
        """Return the weights α(x) of all molecules for a query, one column per fit, and those without the query."""
        columns = np.zeros((n_molecules, len(self.weights) + 1))
        columns[self.split.train, -1] = 1 / len(self.split.train)
        for number, weights in enumerate(self.weights.values()):
            columns[self.split.train, number] = weights[position]
        return columns

    def rank(
        self, task: ReferenceTask, position: int, candidates: CachedCandidates, found: FormulaCandidates, scores: Array
    ) -> RankedQuery:
        """Return the features of the candidates of a query; ``scores`` are products with :meth:`weights_of`."""
        near = found.tanimoto[:, self.split.train]
        named = dict(zip((*self.weights, BLIND), scores.T.copy(), strict=True))
        embeddings = {name: values for name, values in named.items() if isinstance(name, FirstStage)}
        candidates = replace(
            candidates,
            distances=-2 * next(iter(embeddings.values())),  # squared, up to a constant
            similarity=self.similarity[position],
            tanimoto=near,
            training=self.training,
            records=task.records,
        )
        features = self.maker.cheap_features(candidates)
        features["plain embedding"] = named[PLAIN]
        molecule = int(self.split.molecules[position])
        controls = {
            BLIND: named[BLIND],
            **library_search(near, self._library_similarity(task, position)),
            f"IOKR, {PLAIN}": named[PLAIN],
        }
        is_known = bool(self.split.is_known[position])
        return RankedQuery(
            replace(candidates, tanimoto=np.empty((0, 0))),
            features,
            int(task.truth[molecule]),
            self.number,
            is_known,
            self.maker.pairs(candidates),
            is_known or not task.has_reference[molecule],
            molecule,
            bool(self.split.is_single[position]),
            controls,
            embeddings,
        )

    def _library_similarity(self, task: ReferenceTask, position: int) -> Array:
        """Return the modified cosine with the training spectra of highest similarity, and 0 for the others.

        Only tests need it; inner splits do without.
        """
        similarity = self.similarity[position]
        if not self.split.is_test:
            return similarity
        query, found = task.spectra[self.asked[position]], np.zeros(len(similarity))
        for i in np.argsort(-similarity, kind="stable")[:MAX_COMPARED]:
            found[i] = modified_cosine(query, task.spectra[self.training[i]])
        return found


def library_search(tanimoto: Array, similarity: Array) -> dict[str, Array]:
    """Return the scores of candidates by the molecules of the nearest spectrum and of the ten nearest ones."""
    nearest = np.argsort(-similarity, kind="stable")[:N_NEIGHBORS]
    weights = similarity[nearest] ** 2
    return {
        "nearest spectrum": tanimoto[:, nearest[0]].copy(),  # a view would keep the whole matrix
        "weighted library search": tanimoto[:, nearest] @ weights / max(float(weights.sum()), 1e-12),
    }


@dataclass(frozen=True)
class RankingPass:
    """Ranks the queries of splits; molecules of the same formula share their candidates."""

    task: ReferenceTask
    config: Config
    log: Log
    priors: dict[bytes, MoleculePrior] = field(default_factory=dict)
    explained: dict[tuple[int, int], Array] = field(default_factory=dict)

    def rank(self, splits: Sequence[Split]) -> dict[str, list[RankedQuery]]:
        """Return the queries of each split by its name."""
        fitted = [self._fit(split, number) for number, split in enumerate(splits)]
        queries: dict[str, list[RankedQuery]] = {split.name: [] for split in splits}
        places: dict[int, list[tuple[FittedSplit, int]]] = {}  # first candidate → splits and positions of queries
        rows: dict[int, slice] = {}  # first candidate → all candidates
        for part in fitted:
            for position, molecule in enumerate(part.split.molecules):
                candidates = self.task.rows[molecule]
                rows[candidates.start] = candidates
                places.setdefault(candidates.start, []).append((part, position))
        self.log(f"ranking {sum(map(len, places.values()))} queries with {len(places)} formulas")
        for found in self._compare([rows[start] for start in sorted(rows)]):
            self._rank_formula(found, places[found.start], queries)
        return queries

    def _compare(self, formulas: Sequence[slice]) -> Iterator[FormulaCandidates]:
        """Yield the candidates of each formula; those of several formulas are compared with molecules at once."""
        sizes = np.array([rows.stop - rows.start for rows in formulas])
        batch = np.cumsum(sizes) // MIN_COMPARED
        for number in np.unique(batch):
            chosen = [rows for rows, place in zip(formulas, batch, strict=True) if place == number]
            bits = np.concatenate([self.task.library.bits[rows] for rows in chosen])
            tanimoto = np.asarray(Tanimoto(packed=True)(bits, self.task.bits))
            kernel = np.exp(-2 * self.config["output_gamma"] * (1 - tanimoto))  # GaussianTanimoto
            ends = np.cumsum([rows.stop - rows.start for rows in chosen])
            for rows, end in zip(chosen, ends, strict=True):
                part = slice(end - (rows.stop - rows.start), end)
                yield FormulaCandidates(rows.start, bits[part].copy(), tanimoto[part], kernel[part])

    def _rank_formula(
        self,
        found: FormulaCandidates,
        places: Sequence[tuple[FittedSplit, int]],
        queries: dict[str, list[RankedQuery]],
    ) -> None:
        task = self.task
        smiles = SmilesOf(task.library, found.start)
        weights = [part.weights_of(position, len(task)) for part, position in places]
        scores = np.split(found.kernel @ np.concatenate(weights, axis=1), len(places), axis=1)
        for (part, position), values in zip(places, scores, strict=True):
            spectrum = int(part.asked[position])
            candidates = CachedCandidates(
                task.spectra[spectrum], found.bits, np.empty(0), np.empty(0), smiles, self.explained, spectrum
            )
            queries[part.split.name].append(part.rank(task, position, candidates, found, values))

    def _fit(self, split: Split, number: int) -> FittedSplit:
        self.log(f"fitting the split {split.name} of {len(split.train)} molecules")
        task = self.task
        train, asked = split.training_spectra(task), split.query_spectra(task)
        maker = FeatureMaker(References(task.bits[split.train]), MASSBANK_EVIDENCE, self._fit_prior(split))
        parameters = [FirstStage(*pair) for pair in product(self.config["gammas"], self.config["alphas"])]
        weights: dict[FirstStage | str, Array] = {
            stage: self._regress("all", stage, train, asked) for stage in parameters
        }
        weights[PLAIN] = self._regress("plain", FirstStage(*self.config["plain"]), train, asked)
        similarity = task.similarity[np.ix_(asked, train)]
        return FittedSplit(split, number, weights, maker, similarity, train, asked)

    def _regress(self, kernel: str, stage: FirstStage, train: Index, asked: Index) -> Array:
        """Return the weights α(x) of kernel ridge regression, of shape (queries, training spectra)."""
        mixture = Gaussian(gamma=stage.gamma, base=Precomputed(self.task.kernels[kernel]))
        ridge = KernelRidge(mixture, stage.alpha).fit(train)
        return np.asarray(ridge.weights(asked), dtype=np.float32)

    def _fit_prior(self, split: Split) -> MoleculePrior:
        """Return the prior of the training molecules, without known ones of the test fold: fitted once per set."""
        molecules = np.setdiff1d(split.train, split.known) if split.name.endswith("mixed") else split.train
        key = molecules.tobytes()
        if key not in self.priors:
            sets = [self.task.candidate_bits(molecule) for molecule in molecules]
            self.priors[key] = MoleculePrior.fit(sets, self.task.truth[molecules], 0)
        return self.priors[key]
