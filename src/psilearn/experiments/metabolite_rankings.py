"""Features of the candidates of all queries of several splits, in one pass over the molecules of each formula."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from psilearn._utils.samples import Index
from psilearn.chem.metabolites.candidate_features import References
from psilearn.chem.metabolites.labeled_spectra import Bits
from psilearn.chem.metabolites.molecule_prior import MoleculePrior
from psilearn.chem.metabolites.second_stage import Candidates, FeatureMaker, SmilesOf
from psilearn.chem.metabolites.second_stage_fit import MASSBANK_EVIDENCE, Query
from psilearn.chem.metabolites.similarity import Mixture
from psilearn.experiments.experiment import Array, Config, Log
from psilearn.experiments.metabolite_references import ReferenceTask
from psilearn.experiments.metabolite_splits import Split
from psilearn.experiments.modified_cosine import modified_cosine
from psilearn.kernels import GaussianTanimoto, Precomputed, Tanimoto
from psilearn.regression import KernelRidge

PLAIN_KERNELS = ("peaks", "losses")  # without formulas
N_NEIGHBORS = 10
MIN_COMPARED = 2048  # candidates of several formulas that are compared with all molecules at once
MAX_COMPARED = 50  # training spectra that a library search compares, by the mean cosine of peaks and losses


@dataclass(frozen=True)
class CachedCandidates(Candidates):
    """Candidates whose fragments are compared with a spectrum once, also if several splits need them."""

    explained: dict[tuple[int, int], Array] = field(default_factory=dict)  # spectrum and row → explained intensity
    number: int = -1  # of the spectrum
    tanimoto: Array = field(default_factory=lambda: np.empty((0, 0)))  # (c, n)  with the training molecules

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


@dataclass(frozen=True)
class RankedQuery(Query):
    """A query with the scores of controls, one value per candidate."""

    molecule: int = -1
    controls: dict[str, Array] = field(default_factory=dict)


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
    weights: dict[str, Array]  # set of kernels → (queries, training spectra), α(x)
    maker: FeatureMaker
    similarity: Array  # (queries, training spectra)

    def weights_of(self, position: int, n_molecules: int) -> Array:
        """Return the weights α(x) of all molecules for a query, one column per set of kernels, and their mean."""
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
        named = dict(zip((*self.weights, "blind"), scores.T, strict=True))
        distances = -2 * named["all"]  # squared, up to a constant
        candidates = replace(candidates, distances=distances, similarity=self.similarity[position], tanimoto=near)
        features = self.maker.cheap_features(candidates)
        molecule = int(self.split.molecules[position])
        controls = {
            "spectrum-blind": named["blind"].copy(),
            **library_search(near, self._library_similarity(task, position)),
            "IOKR, without formulas of fragments": named["plain"].copy(),
            "IOKR": named["all"].copy(),
        }
        is_known = bool(self.split.is_known[position])
        kept = replace(candidates, tanimoto=np.empty((0, 0)))
        return RankedQuery(kept, features, int(task.truth[molecule]), self.number, is_known, molecule, controls)

    def _library_similarity(self, task: ReferenceTask, position: int) -> Array:
        """Return the modified cosine with the training spectra of highest similarity, and 0 for the others.

        Only tests need it; inner splits do without.
        """
        similarity = self.similarity[position]
        if not self.split.is_test:
            return similarity
        query = task.spectra[self.split.query_spectra(task)[position]]
        train, found = self.split.training_spectra(task), np.zeros(len(similarity))
        for i in np.argsort(-similarity, kind="stable")[:MAX_COMPARED]:
            found[i] = modified_cosine(query, task.spectra[train[i]])
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
            chosen = [formulas[i] for i in np.flatnonzero(batch == number)]
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
            spectrum = int(part.split.query_spectra(task)[position])
            candidates = CachedCandidates(
                task.spectra[spectrum], found.bits, np.empty(0), np.empty(0), smiles, self.explained, spectrum
            )
            queries[part.split.name].append(part.rank(task, position, candidates, found, values))

    def _fit(self, split: Split, number: int) -> FittedSplit:
        self.log(f"fitting the split {split.name} of {len(split.train)} molecules")
        task = self.task
        train, asked = split.training_spectra(task), split.query_spectra(task)
        maker = FeatureMaker(References(task.bits[split.train]), MASSBANK_EVIDENCE, self._fit_prior(split))
        weights = {
            "all": self._regress(tuple(task.kernels), train, asked),
            "plain": self._regress(PLAIN_KERNELS, train, asked),
        }
        return FittedSplit(split, number, weights, maker, task.similarity[np.ix_(asked, train)])

    def _regress(self, names: Sequence[str], train: Index, asked: Index) -> Array:
        """Return the weights α(x) of kernel ridge regression, of shape (queries, training spectra)."""
        kernels = [Precomputed(self.task.kernels[name]) for name in names]
        mixture = Mixture("uniform", self.config["gamma"]).combine(kernels, GaussianTanimoto(packed=True))
        ridge = KernelRidge(mixture, self.config["alpha"]).fit(train)
        return np.asarray(ridge.weights(asked), dtype=np.float32)

    def _fit_prior(self, split: Split) -> MoleculePrior:
        """Return the prior of the training molecules, without known ones of the test fold: fitted once per set."""
        molecules = np.setdiff1d(split.train, split.known) if split.name.endswith("mixed") else split.train
        key = molecules.tobytes()
        if key not in self.priors:
            sets = [self.task.candidate_bits(molecule) for molecule in molecules]
            self.priors[key] = MoleculePrior.fit(sets, self.task.truth[molecules], 0)
        return self.priors[key]
