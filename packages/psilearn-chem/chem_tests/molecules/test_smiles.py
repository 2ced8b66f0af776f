"""Molecules from SMILES."""

import sys

import pytest

pytest.importorskip("rdkit", reason="molecules need the extra psilearn[chem]")

from psilearn_chem.molecules.smiles import draw_svg, parse_smiles


def test_drawings_are_svg_in_the_color_of_the_text():
    text = draw_svg("CC(=O)Oc1ccccc1C(=O)O")
    assert text.startswith("<svg")
    assert "currentColor" in text
    assert "#000000" not in text
    assert draw_svg("no molecule") == ""


def test_a_missing_rdkit_is_named_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(ImportError, match=r"need RDKit: pip install 'psilearn\[chem\]'"):
        parse_smiles("CCO")


def test_drawings_have_no_inline_styles():
    text = draw_svg("CC(=O)Oc1ccccc1C(=O)O")
    assert "style=" not in text and "stroke='currentColor'" in text
