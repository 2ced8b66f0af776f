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
_ADDUCT = re.compile(r"\[(\d*)M((?:[+-]\d*[A-Za-z][A-Za-z0-9]*)*)\](\d*)([+-])")
_PART = re.compile(r"([+-])(\d*)([A-Za-z][A-Za-z0-9]*)")


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
        match = re.fullmatch(r"((?:[A-Z][a-z]?\d*)+)(?:([+-])(\d*))?", text.strip()) if isinstance(text, str) else None
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
        """Monoisotopic mass in Da; an ion's is that of its nuclei and of the electrons that it has."""
        return sum(_element_mass(symbol) * number for symbol, number in self.counts) - self.charge * ELECTRON

    def __str__(self) -> str:
        text = "".join(f"{symbol}{number if number > 1 else ''}" for symbol, number in self.counts)
        size = str(abs(self.charge)) if abs(self.charge) > 1 else ""
        return f"{text}{'+' if self.charge > 0 else '-'}{size}" if self.charge else text


@dataclass(frozen=True)
class Adduct:
    """An ion [nM + A − B]z±: its mass-to-charge ratio as a function of the molecule's mass, and back.

    Examples
    --------
    >>> Adduct.parse("[M+H]+").mz(180.06339).round(4), Adduct.parse("[M-H]-").mass(179.0561).round(4)
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
        """Read an adduct such as [M+H]+, [2M+Na]+ or [M+HCOO]-; M+H and [M+H] are taken as [M+H]+.

        Raises
        ------
        ValueError
            where the text is no adduct.
        """
        compact = re.sub(r"\s", "", str(text))
        compact = re.sub(r"^\[?([^\[\]]*M[^\[\]]*?)\]?(?:(\d*)([+-]))?$", _completed, compact)
        match = _ADDUCT.fullmatch(compact)
        if match is None:
            raise ValueError(f"{text!r} is not an adduct such as [M+H]+, [M+Na]+ or [M-H]-")
        shift = 0.0
        for sign, number, group in _PART.findall(match[2]):
            part = Formula.parse(_ABBREVIATIONS.get(group, group)).mass * int(number or 1)
            shift += part if sign == "+" else -part
        charge = int(match[3] or 1) * (1 if match[4] == "+" else -1)
        return cls(int(match[1] or 1), shift, charge, compact)

    def mz(self, mass: float) -> Any:
        """Return m/z of the ion of a molecule of this mass."""
        return (self.multiple * mass + self.shift - self.charge * ELECTRON) / abs(self.charge)

    def mass(self, mz: float) -> Any:
        """Return the mass of the molecule whose ion has this m/z."""
        return (mz * abs(self.charge) + self.charge * ELECTRON - self.shift) / self.multiple

    def __str__(self) -> str:
        return self.text


_ABBREVIATIONS = {"FA": "HCOOH", "Hac": "CH3COOH", "ACN": "C2H3N", "MeOH": "CH4O", "IsoProp": "C3H8O", "DMSO": "C2H6OS"}


def _completed(match: re.Match[str]) -> str:
    """Add what people leave out: brackets, and the charge of a single plus."""
    inside, size, sign = match.groups()
    return f"[{inside}]{size or ''}{sign or ('-' if inside.endswith('M-H') else '+')}"
