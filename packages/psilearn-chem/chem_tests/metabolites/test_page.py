"""The HTML page of ranked molecules."""

from psilearn_chem.metabolites.rank_report import draw_spectrum
from psilearn_chem.spectra import Spectrum


def test_a_spectrum_is_drawn_as_svg():
    text = draw_spectrum(Spectrum([50.0, 100.0], [1.0, 0.5], 120.0, name="<x>"))
    assert text.count("M") >= 3
    assert 'aria-label="mass spectrum, m/z 50.0 to 120.0, 2 peaks"' in text
    assert draw_spectrum(Spectrum([50.0], [1.0])).startswith("<svg")
