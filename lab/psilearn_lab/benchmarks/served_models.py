"""Models that the benchmark of the service serves: rows, and metabolites with artificial spectra."""

from pathlib import Path
from typing import Any

import numpy as np

from psilearn import OEL, save_model
from psilearn.kernels import Gaussian, GaussianTanimoto

WIDTH = 64  # numbers per input


def fit_rows(n: int) -> tuple[Any, OEL]:
    """Return n inputs and a model that was fitted on them."""
    rng = np.random.default_rng(0)
    X, Y = rng.random((n, WIDTH)), rng.random((n, 32))
    return X, OEL(Gaussian(0.05), Gaussian(0.1), alpha=1e-3, n_components=min(50, n)).fit(X, Y)


def save_models(rows: OEL, folder: Path) -> list[str]:
    """Save a model of rows and a metabolite model with its library; return the arguments of ``psilearn serve``."""
    from psilearn_chem import CandidateLibrary, Fingerprints, MetaboliteIdentifier, MoleculeList, spectrum_kernel

    smiles = [f"{'C' * a}O{'C' * b}" for a in range(1, 8) for b in range(a, 8)]
    library = CandidateLibrary.build(MoleculeList(smiles, [""] * len(smiles)), folder / "library", Fingerprints())
    model = OEL(spectrum_kernel(), GaussianTanimoto(packed=True), alpha=1e-2, n_components=5)
    model.fit(make_spectra(library), np.asarray(library.bits[: len(library)]))
    MetaboliteIdentifier.from_model(model, library.fingerprints, ("[M+H]+",)).save(folder / "metabolites")
    save_model(rows, folder / "rows")
    names = [folder / "rows", folder / "metabolites", "--candidates", folder / "library", "--jobs", folder / "jobs"]
    return list(map(str, names))


def make_spectra(library: Any) -> list[Any]:
    """Return one spectrum of random peaks per molecule."""
    from psilearn_chem import Adduct, Formula, Spectrum

    rng = np.random.default_rng(1)
    formulas = library.get_formulas(range(len(library)))
    precursors = [Adduct.parse("[M+H]+").mz(Formula.parse(formula).mass) for formula in formulas]
    return [Spectrum(20 + 20 * rng.random(8), rng.random(8) + 0.1, mz, "[M+H]+") for mz in precursors]
