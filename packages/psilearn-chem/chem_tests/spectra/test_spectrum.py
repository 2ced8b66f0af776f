"""Spectra: valid and invalid peaks, neutral losses."""

import numpy as np
import pytest

from psilearn_chem.spectra import Spectrum


@pytest.mark.parametrize(
    ("mz", "intensity", "reason"),
    [
        ([1.0, 2.0], [1.0], "2 m/z values and 1 intensities"),
        ([], [], "empty"),
        ([[1.0]], [[1.0]], "one per peak"),
        (["a"], [1.0], "numbers"),
        ([np.inf], [1.0], "finite"),
        ([0.0], [1.0], "m/z > 0"),
        ([1e17], [1.0], "cannot be measured"),
        ([1.0], [-1.0], "≥ 0"),
    ],
)
def test_invalid_peaks_are_rejected(mz, intensity, reason):
    with pytest.raises(ValueError, match=reason):
        Spectrum(mz, intensity, name="mine")


def test_losses_need_a_valid_precursor():
    with pytest.raises(ValueError, match="no precursor_mz"):
        _ = Spectrum([1.0], [1.0]).losses
    with pytest.raises(ValueError, match="precursor_mz must be"):
        Spectrum([1.0], [1.0], precursor_mz=-3)
