"""Cleaning of spectra: which peaks are removed."""

import pytest

from psilearn_chem.spectra import Cleaning, Spectrum


def test_each_step_removes_its_peaks():
    spectrum = Spectrum([50, 60, 70, 99.5, 101.0, 103.0], [0.05, 40, 100, 30, 20, 500], precursor_mz=100.0)
    assert Cleaning()(spectrum).mz.tolist() == [60, 70, 99.5, 101]  # below 0.1 %, above the precursor
    assert Cleaning(noise=0.0)(spectrum).mz.tolist() == [50, 60, 70, 99.5, 101]
    assert Cleaning(around_precursor=1.0)(spectrum).mz.tolist() == [60, 70]
    assert Cleaning(above_precursor=None)(spectrum).intensity.max() == 1
    assert Cleaning(max_peaks=2)(spectrum).mz.tolist() == [60, 70]
    doubly_charged = Spectrum(spectrum.mz, spectrum.intensity, 100.0, adduct="[M+2H]2+")
    assert 103.0 in Cleaning()(doubly_charged).mz  # fragments with one charge may have a larger m/z
    by_metadata = Spectrum(spectrum.mz, spectrum.intensity, 100.0, metadata={"charge": "2"})
    assert 103.0 in Cleaning()(by_metadata).mz
    for adduct in ("[M+H]1+", "M+NH4", "[2M+H]+"):
        assert 103.0 not in Cleaning()(Spectrum(spectrum.mz, spectrum.intensity, 100.0, adduct=adduct)).mz
    with pytest.raises(ValueError, match="0 of its 6 peaks left"):
        Cleaning(above_precursor=0.0)(Spectrum(spectrum.mz, spectrum.intensity, 10.0))


@pytest.mark.parametrize(
    "bad", [{"noise": 2}, {"max_peaks": 0}, {"min_peaks": 0}, {"max_peaks": 1}, {"above_precursor": -1}]
)
def test_invalid_parameters_are_rejected(bad):
    with pytest.raises(ValueError, match=r"must be|below"):
        Cleaning(**bad)
