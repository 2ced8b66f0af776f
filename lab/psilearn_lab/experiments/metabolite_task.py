"""The data of the metabolite experiment: spectra, their candidate molecules, and molecules without spectra."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from psilearn.decoding import Candidates, PerExampleCandidates
from psilearn.kernels import GaussianTanimoto, Kernel
from psilearn.utils import Index
from psilearn_chem import CandidateLibrary, Fingerprints, MoleculeList
from psilearn_chem.metabolites.labeled_spectra import LabeledSpectra
from psilearn_chem.metabolites.parameter_choice import Mixture, SpectrumSimilarity
from psilearn_chem.molecules.fingerprints import Bits
from psilearn_lab.datasets.home import cache_home
from psilearn_lab.datasets.metabolites import load_metabolites
from psilearn_lab.experiments.experiment import Array, Context
from psilearn_lab.experiments.metabolite_records import load_merged_records

DEFAULT_JOBS = 2  # processes that compute fingerprints


@dataclass(frozen=True)
class Task:
    """The spectra, numbered from 0, their molecules and candidates, and the molecules without spectra."""

    labeled: LabeledSpectra
    similarity: SpectrumSimilarity  # of the spectra
    output_kernel: Kernel  # on fingerprints; it defines the loss
    fold: Index  # (n,)  number of the fold of each spectrum
    formulas: npt.NDArray[np.str_]  # (n,)
    unlabeled: Bits  # (m, b)
    library: CandidateLibrary
    n_noncommercial: int  # spectra that are licensed for non-commercial use

    @property
    def outputs(self) -> Bits:
        """The fingerprint of the molecule of each spectrum, of shape (n, b)."""
        return self.labeled.bits

    @property
    def truth(self) -> Index:
        """The index of the molecule of each spectrum among its candidates, of shape (n,)."""
        return self.labeled.truth

    @cached_property
    def n_candidates(self) -> Index:
        """The number of candidates of each spectrum, of shape (n,)."""
        return np.array([len(candidates) for candidates in self.labeled.sets])

    def make_kernel(self, mixture: Mixture) -> Kernel:
        """Return a kernel on the numbers of the spectra; it learns aligned weights when it is fitted."""
        return self.similarity.on_rows(mixture, self.output_kernel)

    def candidates_of(self, spectra: Index) -> Candidates:
        """Return the candidates of some spectra, one per molecule: molecules with equal fingerprints tie."""
        return PerExampleCandidates([self.labeled.sets[i] for i in spectra])

    def few_candidates_of(self, spectra: Index, limit: int, seed: int) -> Candidates:
        """Return at most ``limit`` random candidates of some spectra, with the true one among them."""
        return PerExampleCandidates(self.labeled.thin(limit, seed)).restrict(spectra)

    def mean_losses(self, spectra: Index) -> Array:
        """Return the expected loss of a random candidate of each of these spectra."""
        distances = self.output_kernel.squared_distances
        return np.array([distances(self.labeled.sets[i], self.outputs[i : i + 1]).mean() for i in spectra])


def load_task(context: Context) -> Task:
    """Compare all spectra and find the candidates of each; the library is built once and stored."""
    config = context.config
    is_protonated = config["adduct"] == "[M+H]+"
    data = load_metabolites() if is_protonated else load_merged_records(config["adduct"])
    fingerprints = Fingerprints(tuple(config["fingerprints"]))
    library = open_library(data.candidates, fingerprints, context)
    context.log("fingerprints of unlabeled molecules")
    cache = cache_home() / "fingerprints"
    unlabeled = fingerprints(data.unlabeled.smiles, cache=cache, n_jobs=context.n_jobs or DEFAULT_JOBS)
    readable = np.setdiff1d(np.arange(len(unlabeled.bits)), unlabeled.unreadable)
    spectra = data.spectra[: config["spectra"]]
    formulas = [spectrum.formula for spectrum in spectra]
    rows = {formula: library.find_formula(formula) for formula in formulas}
    sets = {formula: library.bits[place] for formula, place in rows.items()}
    names = {formula: library.get_names(place) for formula, place in rows.items()}
    truth = np.array(
        [names[formula].index(key) for formula, key in zip(formulas, data.inchikeys[: len(spectra)], strict=True)]
    )
    labeled = LabeledSpectra(
        spectra,
        np.stack([sets[formula][i] for formula, i in zip(formulas, truth, strict=True)]),
        [sets[formula] for formula in formulas],
        truth,
        np.ones(len(spectra), dtype=bool),
    )
    context.log(f"kernels of {len(spectra)} spectra")
    return Task(
        labeled=labeled,
        similarity=SpectrumSimilarity.of(spectra, config["width"], formulas=config["formulas"]),
        output_kernel=GaussianTanimoto(config["output_gamma"], packed=True),
        fold=data.fold[: len(spectra)],
        formulas=np.array(formulas),
        unlabeled=unlabeled.bits[readable],
        library=library,
        n_noncommercial=int(data.noncommercial.sum()),
    )


def open_library(candidates: MoleculeList, fingerprints: Fingerprints, context: Context) -> CandidateLibrary:
    """Return the library of all candidates; build it if it is missing."""
    digest = hashlib.sha256("\n".join([fingerprints.identity, *candidates.smiles]).encode()).hexdigest()
    path = cache_home() / "libraries" / f"metabolite-candidates-{digest[:16]}"
    if (path / "manifest.json").is_file():
        return CandidateLibrary.open(path)
    context.log(f"building the library of {len(candidates.smiles):,} candidates in {path}, once")
    return CandidateLibrary.build(candidates, path, fingerprints, n_jobs=context.n_jobs or DEFAULT_JOBS)
