"""Values of spectra that are computed once, together, and dropped with their spectra."""

import gc

from psilearn.chem import Spectrum, spectrum_memory
from psilearn.chem.spectrum_memory import remember


def test_values_are_computed_once_for_the_spectra_that_need_them():
    spectra = [Spectrum([50.0 + i], [1.0]) for i in range(4)]
    calls = []

    def heaviest(missing):
        calls.append(len(missing))
        return [float(spectrum.mz[-1]) for spectrum in missing]

    before = len(spectrum_memory._values)
    assert remember(spectra[:2], "heaviest", heaviest) == [50.0, 51.0]
    assert remember([spectra[3], spectra[0], spectra[2]], "heaviest", heaviest) == [53.0, 50.0, 52.0]
    assert remember(spectra, "heaviest", heaviest) == [50.0, 51.0, 52.0, 53.0]
    assert calls == [2, 2]
    assert remember(spectra, "other", lambda missing: range(4)) == [0, 1, 2, 3]
    assert remember([], "heaviest", heaviest) == []
    del spectra
    gc.collect()
    assert len(spectrum_memory._values) == before
