"""Features of the candidates of all queries of several splits, in one pass over the molecules of each formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from psilearn._utils.samples import Index
from psilearn.chem.metabolites.candidate_features import References
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
MAX_COMPARED = 50  # training spectra that a library search compares, by the mean cosine of peaks and losses


@dataclass(frozen=True)
class CachedCandidates(Candidates):
    """Candidates whose fragments are compared with a spectrum once, also if several splits need them."""

    explained: dict[tuple[int, int], Array] = field(default_factory=dict)  # spectrum and row → explained intensity
    number: int = -1  # of the spectrum

    def explain(self, indices: Index) -> Array:
        """Return how well fragments of some candidates explain the spectrum, of shape (candidates, 2)."""
        start = self.get_smiles.start  # type: ignore[attr-defined]
        missing = np.array([i for i in indices if (self.number, start + i) not in self.explained], dtype=np.intp)
        if len(missing):
            for i, values in zip(missing, super().explain(missing), strict=True):
                self.explained[self.number, start + i] = values
        return np.stack([self.explained[self.number, start + i] for i in indices])


@dataclass(frozen=True)
class RankedQuery(Query):
    """A query with the scores of controls, one value per candidate."""

    molecule: int = -1
    controls: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class FittedSplit:
    """What is learned from the training spectra of a split."""

    split: Split
    number: int
    weights: dict[str, Array]  # set of kernels → (queries, training spectra), α(x)
    maker: FeatureMaker
    similarity: Array  # (queries, training spectra)

    def rank(
        self, task: ReferenceTask, position: int, candidates: Candidates, tanimoto: Array, gamma: float
    ) -> RankedQuery:
        """Return the features of the candidates of a query; ``tanimoto`` compares them with all molecules."""
        near = tanimoto[:, self.split.train]
        kernel = np.exp(-2 * gamma * (1 - near))  # GaussianTanimoto
        scores = {name: kernel @ weights[position] for name, weights in self.weights.items()}
        distances = -2 * scores["all"]  # squared, up to a constant
        candidates = replace(candidates, distances=distances, similarity=self.similarity[position])
        features = self.maker.cheap_features(candidates)
        molecule = int(self.split.molecules[position])
        controls = {
            "IOKR, without formulas of fragments": scores["plain"],
            "IOKR": scores["all"],
            **library_search(near, self._library_similarity(task, position)),
        }
        is_known = bool(self.split.is_known[position])
        return RankedQuery(candidates, features, int(task.truth[molecule]), self.number, is_known, molecule, controls)

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
        places: dict[int, list[tuple[int, int]]] = {}  # first candidate → number of a split and position of a query
        for number, split in enumerate(splits):
            for position, molecule in enumerate(split.molecules):
                places.setdefault(self.task.rows[molecule].start, []).append((number, position))
        self.log(f"ranking {sum(map(len, places.values()))} queries with {len(places)} formulas")
        for start, found in places.items():
            self._rank_formula(start, found, fitted, queries)
        return queries

    def _rank_formula(
        self,
        start: int,
        found: list[tuple[int, int]],
        fitted: list[FittedSplit],
        queries: dict[str, list[RankedQuery]],
    ) -> None:
        task = self.task
        bits = task.candidate_bits(fitted[found[0][0]].split.molecules[found[0][1]])
        tanimoto = np.asarray(Tanimoto(packed=True)(bits, task.bits))
        for number, position in found:
            part = fitted[number]
            spectrum = int(part.split.query_spectra(task)[position])
            candidates = CachedCandidates(
                task.spectra[spectrum],
                bits,
                np.empty(0),
                np.empty(0),
                SmilesOf(task.library, start),
                self.explained,
                spectrum,
            )
            ranked = part.rank(task, position, candidates, tanimoto, self.config["output_gamma"])
            queries[part.split.name].append(ranked)

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
