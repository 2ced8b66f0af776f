"""Spellings of adducts in files: brackets, superscripts, minus signs, and charges that are left out."""

from __future__ import annotations

import re
import unicodedata

MAX_CHARACTERS = 60  # of an adduct; longer texts are not one
CATIONS = frozenset(("H", "Li", "Na", "K", "Rb", "Cs", "Ag", "NH4"))
ANIONS = frozenset(("Cl", "Br", "I", "HCOO", "CHO2", "CH3COO", "C2H3O2", "CF3COO"))
SOLVENTS = frozenset(("ACN", "CH3CN", "C2H3N", "MeOH", "CH3OH", "CH4O", "IsoProp", "DMSO"))
ACIDS = frozenset(("FA", "HCOOH", "CH2O2", "HAc", "Hac", "CH3COOH", "C2H4O2", "TFA"))
NEUTRAL_GROUPS = SOLVENTS | ACIDS | frozenset(("H2O", "NH3", "CO", "CO2"))
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d", "-"))
_GROUP = r"[+-][1-9]?[A-Za-z][A-Za-z0-9]*"
_BODY = rf"[1-9]?M(?:{_GROUP})*"
_RADICAL = re.compile(r"[*•·˙]|\.$")
_CHARGE = r"(?P<charge>[1-9]?[+-]|[+-][1-9]|\+{2,4}|-{2,4})?"
_BRACKETED = re.compile(rf"[\[({{](?P<body>{_BODY})[\])}}]{_CHARGE}")
_BARE = re.compile(rf"(?P<body>{_BODY})(?P<charge>\+{{1,4}}|-{{1,4}})?")
ADDUCT_PARTS = re.compile(r"([+-])([1-9]?)([A-Za-z][A-Za-z0-9]*)")


def normalize_adduct(text: str) -> str:
    """Return an adduct as ``[nM±groups]charge``; any other text as it is, without white space at its ends.

    A charge that is left out is the sum of those of the groups, if all of them are known: ``M+ACN+H`` is
    ``[M+ACN+H]+`` and ``M-H2O-H`` is ``[M-H2O-H]-``.

    >>> [normalize_adduct(text) for text in ("[M+H]⁺", "(M+2H)²⁺", "M−H", "[M+H]1+", "M+", "unknown")]
    ['[M+H]+', '[M+2H]2+', '[M-H]-', '[M+H]+', '[M]+', 'unknown']
    """
    stripped = text.strip()
    if len(stripped) > MAX_CHARACTERS:
        return stripped
    compact, n_dots = _RADICAL.subn("", _to_ascii_signs(stripped))
    match = _BRACKETED.fullmatch(compact) or _BARE.fullmatch(compact)
    if match is None:
        return stripped
    charge = parse_charge(match["charge"]) if match["charge"] else _sum_of_charges(match["body"])
    if not charge:
        return stripped
    size = str(abs(charge)) if abs(charge) > 1 else ""
    return f"[{match['body']}]{size}{'+' if charge > 0 else '-'}{'*' if n_dots else ''}"


def find_adduct_in_name(name: str) -> str | None:
    """Return the adduct with which a name ends, as in libraries of GNPS; None if it ends otherwise.

    >>> find_adduct_in_name("Hoiamide B M+H"), find_adduct_in_name("Vitamin K")
    ('[M+H]+', None)
    """
    last = name.split()[-1] if name.strip() else ""
    if not re.search(r"M[+\-−]", last):
        return None
    adduct = normalize_adduct(last)
    return adduct if _BRACKETED.fullmatch(adduct) and adduct.startswith("[") else None


def find_polarity(adduct: str) -> str | None:
    """Return "positive" or "negative" by the charge of an adduct, which may have unknown groups; None without charge.

    >>> find_polarity("[M+?]-"), find_polarity("[M+H]+"), find_polarity("unknown")
    ('negative', 'positive', None)
    """
    sign = re.search(r"\][1-9]?([+-])", _to_ascii_signs(adduct[:MAX_CHARACTERS]))
    return None if sign is None else {"+": "positive", "-": "negative"}[sign[1]]


def _to_ascii_signs(text: str) -> str:
    """Return a text without white space, in which superscripts, dashes and minus signs are digits, + and -."""
    return re.sub(r"\s", "", unicodedata.normalize("NFKC", text).translate(_DASHES))


def parse_charge(text: str) -> int:
    """Return the charge that is written as ``2+``, ``+2`` or ``++``."""
    sign = 1 if "+" in text else -1
    digits = text.strip("+-")
    return sign * (int(digits) if digits else len(text))


def _sum_of_charges(body: str) -> int:
    """Return the sum of the charges of the groups of an adduct; 0 if one of them is unknown."""
    total = 0
    for sign, number, group in ADDUCT_PARTS.findall(body):
        if group not in CATIONS | ANIONS | NEUTRAL_GROUPS or (group in ANIONS and sign == "-"):
            return 0
        charge = (group in CATIONS) - (group in ANIONS)
        total += (1 if sign == "+" else -1) * int(number or 1) * charge
    return total
