"""Molecules from SMILES."""

from psilearn_chem.molecules.smiles import draw_svg


def test_drawings_are_svg_in_the_color_of_the_text():
    text = draw_svg("CC(=O)Oc1ccccc1C(=O)O")
    assert text.startswith("<svg")
    assert "currentColor" in text
    assert "#000000" not in text
    assert draw_svg("no molecule") == ""


def test_drawings_have_no_inline_styles():
    text = draw_svg("CC(=O)Oc1ccccc1C(=O)O")
    assert "style=" not in text and "stroke='currentColor'" in text
