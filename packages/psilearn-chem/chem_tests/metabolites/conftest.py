"""A small library, spectra of some of its molecules, and a model that is trained on them."""

import numpy as np
import pytest

from chem_tests.chemistry import build_library, smiles_list, spectra_of
from psilearn_chem.metabolites import MetaboliteIdentifier


@pytest.fixture(scope="package")
def library(tmp_path_factory):
    return build_library(tmp_path_factory.mktemp("library") / "lib")


@pytest.fixture(scope="package")
def spectra():
    chosen = np.random.default_rng(0).permutation(len(smiles_list()))[:120]
    return spectra_of([smiles_list()[i] for i in chosen])


@pytest.fixture(scope="package")
def identifier(library, spectra):
    return MetaboliteIdentifier(n_unlabeled=100, calibration=0.25).fit(spectra, library)
