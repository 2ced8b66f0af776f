"""Molecular formulas, their masses, and adducts: how a molecule became the ion that is measured."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

ELECTRON = 0.000548579909  # Da
MISSING = "Molecules need RDKit: pip install 'psilearn[chem]'."
_GROUP = re.compile(r"([A-Z][a-z]?)(\d*)")
_ADDUCT = re.compile(
    r"\[([1-9]?)M((?:[+-][1-9]?[A-Za-z][A-Za-z0-9]*)*)\](?:([1-9]?)([+-])|([+-])([1-9])|(\+{2,}|-{2,}))[*.•]?"
)
_PART = re.compile(r"([+-])([1-9]?)([A-Za-z][A-Za-z0-9]*)")
_SHORT = {"M+H": "+", "M+Na": "+", "M+K": "+", "M+NH4": "+", "M-H": "-"}  # whose charge goes without saying
_METALS = ("Li", "Na", "K", "Rb", "Cs", "Mg", "Ca", "Fe", "Cu", "Zn", "Ag")
_IN_ADDUCTS = frozenset(("H", "B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "Br", "I", *_METALS))


def rdkit_chem() -> Any:
    """Return RDKit's chemistry module, or say what to install; its own messages are silenced: callers report."""
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise ImportError(MISSING) from error
    rdBase.DisableLog("rdApp.*")
    return Chem


@cache
def _element_mass(symbol: str) -> float:
    """Return the mass of the most common isotope."""
    table = rdkit_chem().GetPeriodicTable()
    try:
        return float(table.GetMostCommonIsotopeMass(symbol))
    except RuntimeError as error:
        raise ValueError(f"{symbol!r} is not an element") from error


@dataclass(frozen=True)
class Formula:
    """A molecular formula in Hill's order (C, H, then the alphabet), with its charge.

    Examples
    --------
    >>> formula = Formula.parse("O6C6H12")
    >>> str(formula), round(formula.mass, 4)
    ('C6H12O6', 180.0634)
    >>> str(Formula.parse("C5H14NO+"))
    'C5H14NO+'
    """

    counts: tuple[tuple[str, int], ...]
    charge: int = 0

    @classmethod
    def parse(cls, text: str) -> Formula:
        """Read a formula such as C6H12O6 or C5H14NO+.

        Raises
        ------
        ValueError
            where the text is no formula, or an element is unknown.
        """
        bare = re.sub(r"^\[(.*)\](\d*[+-]\d*)$", r"\1\2", text.strip()) if isinstance(text, str) else ""  # [C5H14NO]+
        match = re.fullmatch(r"((?:[A-Z][a-z]?\d*)+)(?:([+-])(\d*))?", bare)
        if match is None:
            raise ValueError(f"{text!r} is not a molecular formula such as C6H12O6")
        counts: Counter[str] = Counter()
        for symbol, number in _GROUP.findall(match[1]):
            _element_mass(symbol)
            counts[symbol] += int(number or 1)
        charge = int(match[3] or 1) * (1 if match[2] == "+" else -1) if match[2] else 0
        carbon = counts.get("C", 0) > 0
        order = sorted((s for s in counts if counts[s]), key=lambda s: (carbon and ("C", "H", s).index(s), s))
        return cls(tuple((symbol, counts[symbol]) for symbol in order), charge)

    @property
    def mass(self) -> float:
        """Monoisotopic mass of the atoms in Da; electrons that an ion lacks or has are counted by its adduct."""
        return sum(_element_mass(symbol) * number for symbol, number in self.counts)

    def __str__(self) -> str:
        text = "".join(f"{symbol}{number if number > 1 else ''}" for symbol, number in self.counts)
        size = str(abs(self.charge)) if abs(self.charge) > 1 else ""
        return f"{text}{'+' if self.charge > 0 else '-'}{size}" if self.charge else text


@dataclass(frozen=True)
class Adduct:
    """An ion [nM + A − B]z±: its mass-to-charge ratio as a function of the molecule's mass, and back.

    Examples
    --------
    >>> round(Adduct.parse("[M+H]+").mz(180.06339), 4), round(Adduct.parse("[M-H]-").mass(179.0561), 4)
    (181.0707, 180.0634)
    >>> str(Adduct.parse("M+Na"))
    '[M+Na]+'
    """

    multiple: int  # n
    shift: float  # Da, what is added to n molecules, electrons apart
    charge: int
    text: str

    @classmethod
    def parse(cls, text: str) -> Adduct:
        """Read an adduct such as [M+H]+, [2M+Na]+, [M+HCOO]-, [M+2H]2+ or [M]+*; M+H and [M+H] are taken as [M+H]+.

        Raises
        ------
        ValueError
            where the text is no adduct, or leaves its charge open.
        """
        compact = re.sub(r"\s", "", str(text))
        bare = compact.removeprefix("[").removesuffix("]")
        if bare in _SHORT:
            compact = f"[{bare}]{_SHORT[bare]}"
        match = _ADDUCT.fullmatch(compact)
        if match is None:
            raise ValueError(f"{text!r} is not an adduct such as [M+H]+, [M+Na]+ or [M-H]-")
        shift = 0.0
        for sign, number, group in _PART.findall(match[2]):
            formula = Formula.parse(_ABBREVIATIONS.get(group.lower(), group))
            if not {symbol for symbol, _ in formula.counts} <= _IN_ADDUCTS:
                raise ValueError(f"{text!r} is not an adduct: {group} is not expected in one")
            shift += (1 if sign == "+" else -1) * int(number or 1) * formula.mass
        size, sign = (match[3] or 1, match[4]) if match[4] else (match[6], match[5])
        if match[7]:
            size, sign = len(match[7]), match[7][0]
        return cls(int(match[1] or 1), shift, int(size) * (1 if sign == "+" else -1), compact)

    @property
    def key(self) -> tuple[int, float, int]:
        """What two writings of one adduct share."""
        return self.multiple, round(self.shift, 4), self.charge

    def mz(self, mass: float) -> Any:
        """Return m/z of the ion of a molecule of this mass."""
        return (self.multiple * mass + self.shift - self.charge * ELECTRON) / abs(self.charge)

    def mass(self, mz: float) -> Any:
        """Return the mass of the molecule whose ion has this m/z."""
        return (mz * abs(self.charge) + self.charge * ELECTRON - self.shift) / self.multiple

    def __str__(self) -> str:
        return self.text


_ABBREVIATIONS = {
    "fa": "HCOOH",
    "hac": "CH3COOH",
    "acn": "C2H3N",
    "meoh": "CH4O",
    "isoprop": "C3H8O",
    "dmso": "C2H6OS",
    "tfa": "C2HF3O2",
}
