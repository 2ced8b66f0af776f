"""Spectra of one compound: merged peaks against a loop over pairs, and groups."""

import numpy as np
import pytest

from psilearn_chem.spectra import Spectrum, group_spectra, merge_spectra
from psilearn_chem.spectra.merging import merge_groups

RNG = np.random.default_rng(0)


def spectrum(mz, intensity, **fields):
    return Spectrum(mz, intensity, **{"precursor_mz": 200.0, **fields})


def test_one_spectrum_with_distinct_peaks_is_only_scaled():
    given = spectrum([50.0, 60.0, 70.0], [2.0, 4.0, 1.0], name="a", smiles="CCO")
    merged = merge_spectra([given])
    np.testing.assert_allclose(merged.mz, given.mz)
    np.testing.assert_allclose(merged.intensity, given.intensity / 4)
    assert (merged.name, merged.smiles, merged.precursor_mz) == ("a", "CCO", 200.0)


def test_repetition_and_order_change_nothing():
    spectra = [spectrum(50 + 100 * RNG.random(20), RNG.random(20) + 0.01) for _ in range(3)]
    once, twice = merge_spectra(spectra), merge_spectra([*reversed(spectra), *spectra])
    np.testing.assert_allclose(once.mz, twice.mz)
    np.testing.assert_allclose(once.intensity, twice.intensity)


def test_the_mean_intensity_of_each_peak_is_kept():
    """Peaks on a grid, moved by less than the tolerance: the merged heights are the means over the spectra."""
    grid, heights = np.arange(50.0, 60.0), RNG.random((4, 10))
    heights[:, 3] = 0
    spectra = [spectrum(grid + RNG.uniform(-0.001, 0.001, 10), row) for row in heights]
    merged = merge_spectra(spectra, tolerance=0.004)
    means = np.mean(heights / heights.max(axis=1, keepdims=True), axis=0)
    np.testing.assert_allclose(merged.intensity, np.delete(means, 3) / means.max())
    np.testing.assert_allclose(merged.mz, np.delete(grid, 3), atol=0.001)


def test_spectra_of_different_ions_are_rejected():
    with pytest.raises(ValueError, match="same precursor"):
        merge_spectra([spectrum([50.0], [1.0]), spectrum([50.0], [1.0], precursor_mz=222.0)])
    with pytest.raises(ValueError, match="same adduct"):
        merge_spectra([spectrum([50.0], [1.0], adduct=adduct) for adduct in ("[M+H]+", "[M+Na]+")])
    with pytest.raises(ValueError, match="at least one"):
        merge_spectra([])
    with pytest.raises(ValueError, match="tolerance"):
        merge_spectra([spectrum([50.0], [1.0])], tolerance=-1)


def test_groups_share_identity_adduct_and_precursor():
    fields = [
        {"name": "a", "metadata": {"feature_id": "7"}},
        {"name": "b", "metadata": {"feature_id": "7"}},
        {"name": "b", "metadata": {"feature_id": "7"}, "adduct": "[M+H]+"},
        {"name": "b", "metadata": {"feature_id": "7"}, "precursor_mz": 200.5},
        {"name": "b", "metadata": {"feature_id": "7"}, "precursor_mz": 200.005},
        {"name": "", "smiles": "CCO"},
        {"name": "", "smiles": "CCO"},
        {"name": "c", "precursor_mz": None},
        {"name": "c", "precursor_mz": None},
    ]
    spectra = [spectrum([50.0], [1.0], **field) for field in fields]
    assert group_spectra(spectra) == [[0, 1, 4], [2], [3], [5], [6], [7, 8]]
    assert group_spectra(spectra, "name") == [[0], [1, 4], [2], [3], [5], [6], [7, 8]]
    assert group_spectra(spectra, "molecule") == [[0], [1], [2], [3], [4], [5, 6], [7], [8]]
    with pytest.raises(ValueError, match="feature, name, molecule"):
        group_spectra(spectra, "energy")


def test_groups_are_a_partition_that_can_be_merged():
    names = RNG.choice(["a", "b", "c"], 30)
    spectra = [spectrum([50.0], [1.0], name=name, precursor_mz=200 + RNG.random()) for name in names]
    groups = group_spectra(spectra)
    assert sorted(i for group in groups for i in group) == list(range(30))
    assert all(len(merge_spectra([spectra[i] for i in group])) == 1 for group in groups)


def test_groups_are_merged_and_cleaned():
    many = spectrum(np.linspace(50, 150, 300), np.linspace(0.5, 1, 300), name="a")
    alone = spectrum([50.0, 60.0], [3.0, 1.0], name="b")
    merged = merge_groups([many, alone, many], "name")
    assert [len(item) for item in merged] == [200, 2]
    assert merged[1] is alone


def test_merged_spectra_keep_their_parts():
    low, high, other = (Spectrum([50.0, 60.0 + i], [1.0, 2.0], precursor_mz=80.0, name="a") for i in range(3))
    merged = merge_spectra([low, high])
    assert merged.parts == (low, high)
    assert merge_spectra([merged, other]).parts == (low, high, other)
    assert merge_spectra([low]).parts == ()
    assert merge_groups([low, high], "name")[0].parts == (low, high)
    with pytest.raises(TypeError, match="parts"):
        Spectrum([50.0], [1.0], parts=[low])


def test_conditions_in_which_spectra_differ_are_unknown():
    def spectrum(energy):
        metadata = {"instrument": "Q Exactive", "collision_energy": energy, "license": "CC0"}
        return Spectrum([50.0], [1.0], metadata=metadata)

    same = merge_spectra([spectrum("10 eV"), spectrum("10 eV")]).metadata
    assert same == {"instrument": "Q Exactive", "collision_energy": "10 eV", "license": "CC0"}
    assert merge_spectra([spectrum("10 eV"), spectrum("60 eV")]).metadata == {
        "instrument": "Q Exactive",
        "license": "CC0",
    }
