"""Kernels on spectra satisfy what every kernel must satisfy."""

import pytest
from hypothesis import strategies as st

from psilearn_chem import PrecursorMass, ProbabilityProduct, spectrum_kernel
from psilearn_chem.spectra import Spectrum
from tests.kernels import test_kernel_blocks, test_kernels
from tests.kernels.kernel_cases import Case

_peak = st.tuples(st.integers(0, 60).map(lambda i: 50 + i / 50), st.floats(0.01, 1.0))  # close to each other
spectra = st.lists(
    st.builds(
        lambda peaks, precursor: Spectrum([p[0] for p in peaks], [p[1] for p in peaks], precursor_mz=precursor),
        st.lists(_peak, min_size=1, max_size=8),
        st.sampled_from([50.5, 51.0, 80.0]),  # some peaks lie above it
    ),
    min_size=2,
    max_size=7,
)
CASES = [
    Case("peaks", ProbabilityProduct(width=0.02), spectra),
    Case("losses", ProbabilityProduct("losses", width=0.02), spectra),
    Case("peaks in ppm", ProbabilityProduct(width=300.0, unit="ppm", power=1.0), spectra),
    Case("losses in ppm, counted", ProbabilityProduct("losses", width=300.0, unit="ppm", power=0.0), spectra),
    Case("precursor", PrecursorMass(width=10.0), spectra),
    Case("spectra", spectrum_kernel(width=0.02), spectra),
]
PROPERTIES = [
    function
    for module in (test_kernels, test_kernel_blocks)
    for name, function in vars(module).items()
    if name.startswith("test_") and module.every_case.mark in getattr(function, "pytestmark", ())
]


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("check", PROPERTIES, ids=lambda function: function.__name__)
def test_what_every_kernel_satisfies(check, case):
    check(case=case)
