"""Molecular formulas, their masses, and the adducts that form ions from molecules."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache

from rdkit import Chem

from psilearn.utils import validation
from psilearn_chem.adduct_spelling import ADDUCT_PARTS, normalize_adduct, parse_charge

ELECTRON_MASS = 0.000548579909  # Da
METALS = ("Li", "Na", "K", "Rb", "Cs", "Mg", "Ca", "Fe", "Cu", "Zn", "Ag")
ADDUCT_ELEMENTS = frozenset(("H", "B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "Br", "I", *METALS))
ABBREVIATIONS = {
    "fa": "HCOOH",
    "hac": "CH3COOH",
    "acn": "C2H3N",
    "meoh": "CH4O",
    "isoprop": "C3H8O",
    "dmso": "C2H6OS",
    "tfa": "C2HF3O2",
}
_BRACKETED_ION = re.compile(r"\[(.*)\](\d*[+-]\d*)")  # [C5H14NO]+
_FORMULA = re.compile(r"((?:[A-Z][a-z]?\d*)+)(?:([+-])(\d*))?")
_ELEMENT = re.compile(r"([A-Z][a-z]?)(\d*)")
_ADDUCT = re.compile(
    r"\[(?P<molecules>[1-9]?)M(?P<groups>(?:[+-][1-9]?[A-Za-z][A-Za-z0-9]*)*)\]"
    r"(?P<charge>[1-9]?[+-])\*?"
)


@cache
def _element_mass(symbol: str) -> float:
    """Return the mass of the most common isotope of an element."""
    try:
        return float(Chem.GetPeriodicTable().GetMostCommonIsotopeMass(symbol))
    except RuntimeError as error:
        raise ValueError(f"{symbol!r} is not an element") from error


@dataclass(frozen=True)
class Formula:
    """Molecular formula with its charge.

    Two parsed formulas are equal if they have the same numbers of atoms and the same charge, in whatever order the
    elements were written. ``str(formula)`` is in Hill order: C, H, then the other elements alphabetically; without
    carbon, all elements alphabetically.

    Parameters
    ----------
    counts : tuple of (str, int)
        Symbols of the elements and numbers of their atoms, in Hill order.
    charge : int, default=0
        Charge of a molecule that is an ion by itself.

    See Also
    --------
    Adduct : An ion that is formed from a molecule.

    Examples
    --------
    >>> from psilearn_chem.molecules import Formula
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
        """Return the formula that a text contains.

        Parameters
        ----------
        text : str
            A formula such as ``"C6H12O6"``, ``"C5H14NO+"`` or ``"[C5H14NO]+"``.

        Returns
        -------
        Formula
            The formula with its elements in Hill order.

        Raises
        ------
        ValueError
            If the text is not a formula, or an element is unknown.

        See Also
        --------
        Adduct.parse : Parse an adduct.

        Examples
        --------
        >>> from psilearn_chem.molecules import Formula
        >>> Formula.parse("O6C6H12")
        Formula(counts=(('C', 6), ('H', 12), ('O', 6)), charge=0)
        """
        stripped = text.strip() if isinstance(text, str) else ""
        ion = _BRACKETED_ION.fullmatch(stripped)
        match = _FORMULA.fullmatch(ion[1] + ion[2] if ion else stripped)
        if match is None:
            raise ValueError(f"{text!r} is not a molecular formula such as C6H12O6")
        counts: Counter[str] = Counter()
        for symbol, number in _ELEMENT.findall(match[1]):
            _element_mass(symbol)  # raises an error for unknown elements
            counts[symbol] += int(number or 1)
        charge = int(match[3] or 1) * _sign(match[2]) if match[2] else 0
        has_carbon = counts.get("C", 0) > 0
        order = sorted((s for s in counts if counts[s]), key=lambda s: (has_carbon and ("C", "H", s).index(s), s))
        return cls(tuple((symbol, counts[symbol]) for symbol in order), charge)

    @property
    def mass(self) -> float:
        """Monoisotopic mass of the atoms in Da; the electrons of an ion are counted by its adduct."""
        return sum(_element_mass(symbol) * number for symbol, number in self.counts)

    def __str__(self) -> str:
        text = "".join(f"{symbol}{number if number > 1 else ''}" for symbol, number in self.counts)
        if not self.charge:
            return text
        size = str(abs(self.charge)) if abs(self.charge) > 1 else ""
        return f"{text}{'+' if self.charge > 0 else '-'}{size}"


@dataclass(frozen=True)
class Adduct:
    """Ion [nM + A − B]z± that is formed from n molecules M.

    It converts the mass of a molecule to the mass-to-charge ratio of its ion, and back.

    Parameters
    ----------
    n_molecules : int
        Number n of molecules in the ion.
    mass_shift : float
        Mass in Da of the atoms that are added to the molecules, minus that of the atoms that are lost.
    charge : int
        Charge z of the ion.
    text : str
        The adduct in its usual spelling, such as ``"[M+H]+"``.

    See Also
    --------
    Formula : A molecular formula and its mass.

    Examples
    --------
    >>> from psilearn_chem.molecules import Adduct
    >>> round(Adduct.parse("[M+H]+").mz(180.06339), 4), round(Adduct.parse("[M-H]-").mass(179.0561), 4)
    (181.0707, 180.0634)
    >>> str(Adduct.parse("M+Na"))
    '[M+Na]+'
    """

    n_molecules: int
    mass_shift: float
    charge: int
    text: str

    @classmethod
    def parse(cls, text: str) -> Adduct:
        """Return the adduct that a text contains.

        Parameters
        ----------
        text : str
            An adduct such as ``"[M+H]+"``, ``"[2M+Na]+"``, ``"[M+HCOO]-"``, ``"[M+2H]2+"`` or ``"[M]+*"``. Brackets
            may be round or left out, charges may be superscripts, and the charge may be left out where the usual
            groups determine it, as in ``"M+H"``, ``"M+ACN+Na"`` or ``"M-2H"``.

        Returns
        -------
        Adduct
            The adduct.

        Raises
        ------
        ValueError
            If the text is not an adduct, or does not determine its charge.

        See Also
        --------
        Formula.parse : Parse a molecular formula.

        Examples
        --------
        >>> from psilearn_chem.molecules import Adduct
        >>> adduct = Adduct.parse("[2M+Na]+")
        >>> adduct.n_molecules, adduct.charge
        (2, 1)
        """
        compact = normalize_adduct(str(text))
        match = _ADDUCT.fullmatch(compact)
        if match is None:
            raise ValueError(f"{text!r} is not an adduct such as [M+H]+, [M+Na]+ or [M-H]-")
        mass_shift = 0.0
        for sign, number, group in ADDUCT_PARTS.findall(match["groups"]):
            mass_shift += _sign(sign) * int(number or 1) * _group_mass(group, text)
        return cls(int(match["molecules"] or 1), mass_shift, parse_charge(match["charge"]), compact)

    @property
    def key(self) -> tuple[int, float, int]:
        """Value that is equal for different spellings of the same adduct."""
        return self.n_molecules, round(self.mass_shift, 4), self.charge

    def mz(self, mass: float) -> float:
        """Return the mass-to-charge ratio of the ion of a molecule.

        Parameters
        ----------
        mass : float
            Monoisotopic mass of the molecule in Da.

        Returns
        -------
        float
            The m/z of the ion.

        See Also
        --------
        mass : Return the mass of the molecule of an ion.

        Examples
        --------
        >>> from psilearn_chem.molecules import Adduct, Formula
        >>> round(Adduct.parse("[M+H]+").mz(Formula.parse("C6H12O6").mass), 4)
        181.0707
        """
        mass = validation.check_real(mass, "mass")
        return (self.n_molecules * mass + self.mass_shift - self.charge * ELECTRON_MASS) / abs(self.charge)

    def mass(self, mz: float) -> float:
        """Return the mass of the molecule whose ion has a given mass-to-charge ratio.

        Parameters
        ----------
        mz : float
            The m/z of the ion.

        Returns
        -------
        float
            Monoisotopic mass of the molecule in Da.

        See Also
        --------
        mz : Return the mass-to-charge ratio of the ion of a molecule.

        Examples
        --------
        >>> from psilearn_chem.molecules import Adduct
        >>> round(Adduct.parse("[M-H]-").mass(179.0561), 4)
        180.0634
        """
        mz = validation.check_real(mz, "mz")
        return (mz * abs(self.charge) + self.charge * ELECTRON_MASS - self.mass_shift) / self.n_molecules

    def ion_formula(self, formula: Formula) -> Formula:
        """Return the formula of the ion of a molecule.

        Parameters
        ----------
        formula : Formula
            Formula of the molecule.

        Returns
        -------
        Formula
            All atoms of the ion, with its charge.

        Raises
        ------
        ValueError
            If the molecule lacks atoms that the adduct loses.

        See Also
        --------
        mz : Return the mass-to-charge ratio of the ion.

        Examples
        --------
        >>> from psilearn_chem.molecules import Adduct, Formula
        >>> str(Adduct.parse("[M+HCOO]-").ion_formula(Formula.parse("C6H12O6")))
        'C7H13O8-'
        """
        if not isinstance(formula, Formula):
            raise TypeError(f"formula must be a Formula, such as Formula.parse('C2H6O'); got {formula!r:.80}.")
        counts = Counter({symbol: self.n_molecules * number for symbol, number in formula.counts})
        for sign, number, group in ADDUCT_PARTS.findall(self.text):
            for symbol, n_atoms in _group_formula(group).counts:
                counts[symbol] += _sign(sign) * int(number or 1) * n_atoms
        if min(counts.values()) < 0:
            raise ValueError(f"{formula} has no ion {self}: it lacks atoms that the adduct loses")
        return replace(Formula.parse("".join(f"{symbol}{n}" for symbol, n in counts.items() if n)), charge=self.charge)

    def __str__(self) -> str:
        return self.text


def _group_formula(group: str) -> Formula:
    return Formula.parse(ABBREVIATIONS.get(group.lower(), group))


def _group_mass(group: str, adduct: str) -> float:
    """Return the mass of a group of atoms that an adduct adds or loses."""
    formula = _group_formula(group)
    if not {symbol for symbol, _ in formula.counts} <= ADDUCT_ELEMENTS:
        raise ValueError(f"{adduct!r} is not an adduct: {group} is not expected in one")
    return formula.mass


def _sign(symbol: str) -> int:
    return 1 if symbol == "+" else -1
