"""Values of spectra that are computed once, together, and dropped with their spectra."""

import gc

import numpy as np

from psilearn_chem import Spectrum, spectrum_kernel, spectrum_kernels
from psilearn_chem.spectrum_kernels import ProbabilityProduct, remember, share_blocks


def test_values_are_computed_once_for_the_spectra_that_need_them():
    spectra = [Spectrum([50.0 + i], [1.0]) for i in range(4)]
    calls = []

    def heaviest(missing):
        calls.append(len(missing))
        return [float(spectrum.mz[-1]) for spectrum in missing]

    gc.collect()  # spectra of earlier tests
    before = len(spectrum_kernels._values)
    assert remember(spectra[:2], "heaviest", heaviest) == [50.0, 51.0]
    assert remember([spectra[3], spectra[0], spectra[2]], "heaviest", heaviest) == [53.0, 50.0, 52.0]
    assert remember(spectra, "heaviest", heaviest) == [50.0, 51.0, 52.0, 53.0]
    assert calls == [2, 2]
    assert remember(spectra, "other", lambda missing: range(4)) == [0, 1, 2, 3]
    assert remember([], "heaviest", heaviest) == []
    del spectra
    gc.collect()
    assert len(spectrum_kernels._values) == before


def test_blocks_are_computed_once_while_they_are_shared(monkeypatch):
    spectra = [Spectrum([50.0, 60.0 + i], [1.0, 2.0], precursor_mz=100.0) for i in range(4)]
    calls = []

    def count(self, A, B, compute, original=ProbabilityProduct._compute_block):
        calls.append((self.of, len(A), len(B)))
        return original(self, A, B, compute)

    monkeypatch.setattr(ProbabilityProduct, "_compute_block", count)
    kernel = ProbabilityProduct()
    expected = kernel(spectra[:2], spectra)
    calls.clear()
    with share_blocks():
        first = kernel(spectra[:2], spectra)
        first *= 0  # blocks are given away: changing one must not change the next
        np.testing.assert_array_equal(kernel(spectra[:2], spectra), expected)
        spectrum_kernel()(spectra[:2], spectra)
        assert calls == [("peaks", 2, 4), ("losses", 2, 4)]
        np.testing.assert_array_equal(kernel(spectra[2:], spectra)[0, 2], kernel(spectra[2:3])[0, 0])
        ProbabilityProduct(width=0.01)(spectra[:2], spectra)
        assert len(calls) == 5
    kernel(spectra[:2], spectra)
    assert len(calls) == 6
