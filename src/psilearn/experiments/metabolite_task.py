"""The data of the metabolite experiment: spectra, their candidate molecules, and molecules without spectra."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from psilearn._utils.samples import Index
from psilearn.chem import CandidateLibrary, Fingerprints, MoleculeList, ProbabilityProduct, Spectrum, load_metabolites
from psilearn.datasets.home import cache_home
from psilearn.decoding import Candidates, PerExampleCandidates
from psilearn.experiments.experiment import Array, Context
from psilearn.kernels import GaussianTanimoto, Kernel, Precomputed

Bits = npt.NDArray[np.uint8]  # packed fingerprints, one row per molecule

DEFAULT_JOBS = 2  # processes that compute fingerprints


@dataclass(frozen=True)
class Task:
    """The spectra, numbered from 0, their molecules and candidates, and the molecules without spectra."""

    kernels: Sequence[Kernel]  # on the numbers of spectra: of their peaks and of their neutral losses
    output_kernel: Kernel  # on fingerprints; it defines the loss
    outputs: Bits  # (n, b)  the fingerprint of the molecule of each spectrum
    sets: Sequence[Bits]  # the fingerprints of the candidates of each spectrum
    truth: Index  # (n,)  index of the molecule of each spectrum among its candidates
    fold: Index  # (n,)  number of the fold of each spectrum
    formulas: npt.NDArray[np.str_]  # (n,)
    unlabeled: Bits  # (m, b)
    library: CandidateLibrary
    n_noncommercial: int  # spectra that are licensed for non-commercial use

    @cached_property
    def n_candidates(self) -> Index:
        """The number of candidates of each spectrum, of shape (n,)."""
        return np.array([len(candidates) for candidates in self.sets])

    def candidates_of(self, spectra: Index) -> Candidates:
        """Return the candidates of some spectra, one per molecule: molecules with equal fingerprints tie."""
        return PerExampleCandidates([self.sets[i] for i in spectra])

    def mean_losses(self, spectra: Index) -> Array:
        """Return the expected loss of a random candidate of each of these spectra."""
        losses = [self.output_kernel.squared_distances(self.sets[i], self.outputs[i : i + 1]).mean() for i in spectra]
        return np.array(losses)


def load_task(context: Context) -> Task:
    """Compare all spectra and find the candidates of each; the library is built once and stored."""
    config = context.config
    data = load_metabolites()
    fingerprints = Fingerprints(tuple(config["fingerprints"]))
    library = _open_library(data.candidates, fingerprints, context)
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
    context.log(f"kernels of {len(spectra)} spectra")
    return Task(
        kernels=_compare_spectra(spectra, config["width"]),
        output_kernel=GaussianTanimoto(config["output_gamma"], packed=True),
        outputs=np.stack([sets[formula][i] for formula, i in zip(formulas, truth, strict=True)]),
        sets=[sets[formula] for formula in formulas],
        truth=truth,
        fold=data.fold[: len(spectra)],
        formulas=np.array(formulas),
        unlabeled=unlabeled.bits[readable],
        library=library,
        n_noncommercial=int(data.noncommercial.sum()),
    )


def _compare_spectra(spectra: Sequence[Spectrum], width: float) -> list[Kernel]:
    """Return the kernels on peaks and on neutral losses, with their matrices computed once."""
    kernels = [ProbabilityProduct(of, width=width).normalized() for of in ("peaks", "losses")]
    return [Precomputed(kernel.gram(spectra)) for kernel in kernels]


def _open_library(candidates: MoleculeList, fingerprints: Fingerprints, context: Context) -> CandidateLibrary:
    """Return the library of all candidates; build it if it is missing."""
    digest = hashlib.sha256("\n".join([fingerprints.identity, *candidates.smiles]).encode()).hexdigest()
    path = cache_home() / "libraries" / f"metabolites-{digest[:16]}"
    if (path / "manifest.json").is_file():
        return CandidateLibrary.open(path)
    context.log(f"building the library of {len(candidates.smiles):,} candidates in {path}, once")
    return CandidateLibrary.build(candidates, path, fingerprints, n_jobs=context.n_jobs or DEFAULT_JOBS)
