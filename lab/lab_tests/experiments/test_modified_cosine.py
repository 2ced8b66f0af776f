"""The modified cosine against a loop, and against matchms where it is installed."""

import numpy as np
import pytest

from psilearn_chem import Spectrum
from psilearn_lab.experiments.metabolite_rankings import modified_cosine


def draw(seed, n=12):
    rng = np.random.default_rng(seed)
    grid = rng.choice(np.arange(60, 120), n, replace=False)
    return Spectrum(grid + rng.normal(0, 0.002, n), rng.random(n) + 0.05, precursor_mz=130.0 + rng.integers(0, 9))


def test_it_is_one_for_a_spectrum_itself_and_symmetric():
    a, b = draw(0), draw(1)
    assert modified_cosine(a, a) == pytest.approx(1)
    assert modified_cosine(a, b) == pytest.approx(modified_cosine(b, a))
    assert 0 <= modified_cosine(a, b) <= 1


def test_shifted_peaks_match():
    a = Spectrum([50.0, 80.0], [1.0, 1.0], precursor_mz=100.0)
    b = Spectrum([50.0, 94.0], [1.0, 1.0], precursor_mz=114.0)
    assert modified_cosine(a, b) == pytest.approx(1)
    far = Spectrum([50.0, 94.0], [1.0, 1.0], precursor_mz=120.0)
    assert modified_cosine(a, far) == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_matchms(seed):
    similarity = pytest.importorskip("matchms.similarity")
    if not hasattr(similarity, "ModifiedCosineGreedy"):
        pytest.skip("another version of matchms")
    from matchms import Spectrum as Other

    a, b = draw(2 * seed), draw(2 * seed + 1)
    others = [Other(s.mz, np.sqrt(s.intensity), {"precursor_mz": s.precursor_mz}) for s in (a, b)]
    expected = similarity.ModifiedCosineGreedy(tolerance=0.01).pair(*others)["score"]
    assert modified_cosine(a, b) == pytest.approx(float(expected), abs=1e-6)
