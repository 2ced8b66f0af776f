"""A metabolite model with its library, saved in folders."""

import numpy as np
import pytest

from chem_tests.chemistry import build_library, smiles_list, spectra_of
from psilearn import OEL
from psilearn.kernels import GaussianTanimoto
from psilearn_chem import MetaboliteIdentifier, spectrum_kernel


@pytest.fixture(scope="package")
def metabolites(tmp_path_factory):
    """Return the folders of a calibrated model and of its library, and an MGF file with 50 spectra."""
    root = tmp_path_factory.mktemp("metabolites")
    library = build_library(root / "library")
    chosen = np.random.default_rng(0).permutation(len(smiles_list()))[:150]
    spectra = spectra_of([smiles_list()[i] for i in chosen])
    rows = [library.find_formula(spectrum.formula) for spectrum in spectra]
    bits = library.fingerprints([spectrum.smiles for spectrum in spectra]).bits
    kernel = spectrum_kernel()
    model = OEL(kernel, GaussianTanimoto(packed=True), alpha=1e-2, n_components=30).fit(spectra[:70], bits[:70])
    sets = [library.bits[part] for part in rows]
    model.calibrate(spectra[70:100], bits[70:100], candidates=sets[70:100])
    MetaboliteIdentifier.from_model(model, library.fingerprints, ("[M+H]+",)).save(root / "model")
    (root / "spectra.mgf").write_text("".join(map(to_mgf, spectra[100:])))
    return root


def to_mgf(spectrum):
    """Return a spectrum as a record of an MGF file."""
    peaks = "\n".join(
        f"{mz:.5f} {intensity:.4f}" for mz, intensity in zip(spectrum.mz, spectrum.intensity, strict=True)
    )
    feature = f"TITLE={spectrum.name}\nFEATURE_ID={spectrum.name[1:]}7\nRTINSECONDS={len(spectrum)}.5"
    head = f"{feature}\nPEPMASS={spectrum.precursor_mz:.5f}\nCHARGE=1+\nADDUCT={spectrum.adduct}"
    return f"BEGIN IONS\n{head}\n{peaks}\nEND IONS\n\n"
