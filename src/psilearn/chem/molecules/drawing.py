"""Drawings of molecules as SVG."""

from __future__ import annotations

from typing import Any

from psilearn.chem.molecules.fingerprints import molecule_of


def drawing(smiles: str, width: int = 220, height: int = 160) -> str:
    """Return the structure as an SVG element that can stand inside HTML; "" where the SMILES cannot be read.

    Lines and letters take the colour of the text around them, so that the drawing suits light and dark pages.
    """
    molecule = molecule_of(smiles)
    if molecule is None:
        return ""
    from rdkit.Chem.Draw import rdMolDraw2D

    canvas = rdMolDraw2D.MolDraw2DSVG(width, height)
    options: Any = canvas.drawOptions()
    options.clearBackground = False
    options.useBWAtomPalette()
    options.padding = 0.08
    rdMolDraw2D.PrepareAndDrawMolecule(canvas, molecule)
    canvas.FinishDrawing()
    text = canvas.GetDrawingText()
    return text[text.index("<svg") :].replace("#000000", "currentColor")
