"""The data of the metabolite experiment: spectra, their candidate molecules, and molecules without spectra."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psilearn._utils.samples import Index
from psilearn.chem import CandidateLibrary, Fingerprints, load_metabolites
from psilearn.chem.metabolites.parameter_choice import Examples
from psilearn.chem.metabolites.similarity import SpectrumSimilarity
from psilearn.chem.molecules import MoleculeList
from psilearn.datasets.home import cache_home
from psilearn.decoding import CandidateSets
from psilearn.experiments.experiment import Context
from psilearn.kernels import GaussianTanimoto

DEFAULT_JOBS = 2  # processes that compute fingerprints


@dataclass(frozen=True)
class Task:
    """The spectra, the library of their candidates, and the molecules without spectra."""

    examples: Examples
    fold: Index  # (n,)  number of the fold of each spectrum
    n_candidates: Index  # (n,)  number of candidates of each spectrum
    formulas: npt.NDArray[np.str_]  # (n,)
    unlabeled: npt.NDArray[np.uint8]  # (m, b)  packed fingerprints
    library: CandidateLibrary
    n_noncommercial: int  # spectra that are licensed for non-commercial use


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
    outputs = np.stack([sets[formula][i] for formula, i in zip(formulas, truth, strict=True)])
    context.log(f"kernels of {len(spectra)} spectra")
    similarity = SpectrumSimilarity.of(spectra, config["width"])
    kernel = GaussianTanimoto(config["output_gamma"], packed=True)
    candidates = CandidateSets([sets[formula] for formula in formulas])
    return Task(
        examples=Examples(similarity, outputs, candidates, truth, kernel),
        fold=data.fold[: len(spectra)],
        n_candidates=np.array([len(sets[formula]) for formula in formulas]),
        formulas=np.array(formulas),
        unlabeled=unlabeled.bits[readable],
        library=library,
        n_noncommercial=int(data.noncommercial.sum()),
    )


def _open_library(candidates: MoleculeList, fingerprints: Fingerprints, context: Context) -> CandidateLibrary:
    """Return the library of all candidates; build it if it is missing."""
    digest = hashlib.sha256("\n".join([fingerprints.identity, *candidates.smiles]).encode()).hexdigest()
    path = cache_home() / "libraries" / f"metabolites-{digest[:16]}"
    if (path / "manifest.json").is_file():
        return CandidateLibrary.open(path)
    context.log(f"building the library of {len(candidates.smiles):,} candidates in {path}, once")
    return CandidateLibrary.build(candidates, path, fingerprints, n_jobs=context.n_jobs or DEFAULT_JOBS)
