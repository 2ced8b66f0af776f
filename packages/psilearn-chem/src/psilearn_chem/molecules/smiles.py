"""Molecules from SMILES: their formulas, canonical SMILES and drawings."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from rdkit import Chem
from rdkit.Chem import Mol
from rdkit.Chem.Draw import rdMolDraw2D
from rdkit.Chem.rdMolDescriptors import CalcMolFormula

from psilearn_chem.molecules.formulas import Formula


def parse_smiles(smiles: str) -> Mol | None:
    """Return the molecule of a SMILES, or None if it cannot be parsed or has no atom."""
    molecule = Chem.MolFromSmiles(smiles) if isinstance(smiles, str) and smiles.strip() else None
    return molecule if molecule is not None and molecule.GetNumAtoms() else None


def to_smiles(molecule: Mol | None) -> str:
    """Return RDKit's canonical SMILES of a molecule; "" for None."""
    return "" if molecule is None else str(Chem.MolToSmiles(molecule))


def compute_formula(molecule: Mol | None) -> str:
    """Return the formula in Hill order; "" for None, and for molecules with isotope labels or dummy atoms."""
    if molecule is None or any(atom.GetIsotope() for atom in molecule.GetAtoms()):
        return ""
    try:
        return str(Formula.parse(CalcMolFormula(molecule)))
    except ValueError:  # a dummy atom has no element
        return ""


@lru_cache(maxsize=50_000)
def compute_inchi(smiles: str) -> tuple[str, str]:
    """Return the InChI and the InChIKey of a molecule; "" for both if it has none. Cost: 0.8 ms."""
    molecule = parse_smiles(smiles)
    inchi = "" if molecule is None else str(Chem.MolToInchi(molecule))  # type: ignore[no-untyped-call]
    return (inchi, str(Chem.InchiToInchiKey(inchi))) if inchi else ("", "")  # type: ignore[no-untyped-call]


def draw_svg(smiles: str, width: int = 220, height: int = 160) -> str:
    """Return the structure as an SVG element for an HTML page; "" if the SMILES cannot be parsed.

    Lines and letters have the color of the surrounding text, so that the drawing is readable on light and dark pages.
    """
    molecule = parse_smiles(smiles)
    if molecule is None:
        return ""
    canvas = rdMolDraw2D.MolDraw2DSVG(width, height)
    options: Any = canvas.drawOptions()  # its type stubs are wrong
    options.clearBackground = False
    options.useBWAtomPalette()
    options.padding = 0.08
    rdMolDraw2D.PrepareAndDrawMolecule(canvas, molecule)
    canvas.FinishDrawing()
    text = str(canvas.GetDrawingText())
    text = text[text.index("<svg") :].replace("#000000", "currentColor")
    return re.sub(r"\bstyle='([^']*)'", lambda match: _to_attributes(match[1]), text)


def _to_attributes(style: str) -> str:
    """Return CSS declarations as attributes of SVG, because pages with a strict policy ignore inline styles."""
    pairs = [part.split(":", 1) for part in style.split(";") if ":" in part]
    return " ".join(f"{name.strip()}='{value.strip()}'" for name, value in pairs)
