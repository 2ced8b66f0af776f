"""Peaks that a molecular formula explains: fragment ions that consist of a part of its atoms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem

from psilearn.utils import Index
from psilearn_chem.molecules.formulas import ELECTRON_MASS, Adduct, Formula

MAX_COMBINATIONS = 200_000  # of atoms other than hydrogen; larger formulas explain nothing
UNKNOWN_VALENCE = 6  # of elements whose valence RDKit does not know: it never makes a fragment impossible


class _Parts(NamedTuple):
    """All combinations of the atoms of an ion other than hydrogen, in ascending order of mass."""

    symbols: tuple[str, ...]  # of the ion, hydrogen last
    ion: Index  # (symbols,)  numbers of atoms
    counts: Index  # (combinations, symbols − 1)
    masses: NDArray[np.float64]  # (combinations,)


@dataclass(frozen=True)
class PeakAnnotation:
    """The best explanation of each peak that a part of the ion explains."""

    symbols: tuple[str, ...]  # elements of the ion, hydrogen last
    ion: Index  # (symbols,)  numbers of atoms of the ion
    peaks: Index  # (m,)  explained peaks, ascending
    fragments: Index  # (m, symbols)  numbers of atoms of their fragments
    errors: NDArray[np.float64]  # (m,)  measured minus exact m/z

    @property
    def losses(self) -> Index:
        """Numbers of atoms that the fragments lack, of shape (m, symbols)."""
        return self.ion - self.fragments


def annotate_peaks(
    mz: NDArray[np.float64],
    formula: str,
    adduct: str | None = None,
    *,
    ppm: float = 10.0,
    floor: float = 0.0,
    valence: bool = True,
) -> PeakAnnotation:
    """Explain peaks by singly charged fragments of the ion of a molecule; without an adduct, of [M+H]+.

    A fragment consists of a part of the atoms of the ion and is within ``ppm`` of the peak, or within ``floor`` Da if
    that is more. With ``valence``, its atoms can be bonded: its degree of unsaturation, 1 + ½Σ(valence − 2), is at
    least −½, as for a saturated molecule with one more proton, or that of the ion itself if this is less. Among
    several fragments, the nearest one is returned.

    Cost: two bisections per peak and number of hydrogen atoms, among all combinations of the other atoms.
    """
    parts = _combine_atoms(formula, "[M+H]+" if adduct is None else adduct)
    sign = -1 if adduct is not None and Adduct.parse(adduct).charge < 0 else 1
    tolerance = np.maximum(1e-6 * ppm * mz, floor)
    n_hydrogen = int(parts.ion[-1])
    # rest[i, h]: mass of the atoms other than hydrogen, if peak i has h hydrogen atoms
    rest = (mz + sign * ELECTRON_MASS)[:, None] - Formula.parse("H").mass * np.arange(n_hydrogen + 1)
    first = np.searchsorted(parts.masses, rest - tolerance[:, None], side="left")
    last = np.searchsorted(parts.masses, rest + tolerance[:, None], side="right")
    peak, hydrogen = np.nonzero(last > first)
    n_matches = (last - first)[peak, hydrogen]
    starts = np.repeat(first[peak, hydrogen] - (np.cumsum(n_matches) - n_matches), n_matches)
    combination = starts + np.arange(len(starts))
    peak, hydrogen = np.repeat(peak, n_matches), np.repeat(hydrogen, n_matches)
    errors = rest[peak, hydrogen] - parts.masses[combination]
    fragments = np.column_stack([parts.counts[combination], hydrogen])
    if valence:
        possible = _can_be_bonded(fragments, parts)
        peak, fragments, errors = peak[possible], fragments[possible], errors[possible]
    order = np.lexsort((np.abs(errors), peak))
    best = order[np.flatnonzero(np.diff(peak[order], prepend=-1))]
    return PeakAnnotation(parts.symbols, parts.ion, peak[best], fragments[best], errors[best])


def explain_peaks(mz: NDArray[np.float64], formula: str, adduct: str | None = None, ppm: float = 10.0) -> list[str]:
    """Return for each peak the nearest part of the ion as a singly charged ion, or "" if none is within ``ppm``.

    Atoms need not fit together by their valences, unlike those of :func:`annotate_peaks`.
    """
    annotation = annotate_peaks(mz, formula, adduct, ppm=ppm, valence=False)
    texts = [""] * len(mz)
    for peak, counts in zip(annotation.peaks, annotation.fragments, strict=True):
        texts[peak] = formula_text(annotation.symbols, counts)
    return texts


def formula_text(symbols: tuple[str, ...], counts: Index) -> str:
    """Return a formula in Hill order from numbers of atoms; "" without atoms."""
    text = "".join(f"{symbol}{count}" for symbol, count in zip(symbols, counts, strict=True) if count)
    return str(Formula.parse(text)) if text else ""


@lru_cache(maxsize=64)
def _combine_atoms(formula: str, adduct: str) -> _Parts:
    """Return the parts of an ion; none if the molecule does not have this ion, or if they are too many."""
    try:
        counts = dict(Adduct.parse(adduct).ion_formula(Formula.parse(formula)).counts)
    except ValueError:
        return _Parts(("H",), np.zeros(1, np.intp), np.empty((0, 0), np.intp), np.empty(0))
    n_hydrogen = counts.pop("H", 0)
    symbols = tuple(counts)
    ion = np.array([*counts.values(), n_hydrogen], dtype=np.intp)
    n_combinations = np.prod(ion[:-1] + 1.0)
    if n_combinations > MAX_COMBINATIONS:
        return _Parts((*symbols, "H"), ion, np.empty((0, len(symbols)), np.intp), np.empty(0))
    grid = np.indices([n + 1 for n in counts.values()]).reshape(len(symbols), int(n_combinations)).T
    masses = grid.astype(np.float64) @ np.array([Formula.parse(symbol).mass for symbol in symbols])
    order = np.argsort(masses, kind="stable")
    return _Parts((*symbols, "H"), ion, grid[order], masses[order])


def _can_be_bonded(fragments: Index, parts: _Parts) -> NDArray[np.bool_]:
    """Return which fragments have enough valences to bond all of their atoms."""
    excess = np.array([_valence(symbol) - 2 for symbol in parts.symbols])
    least = min(-3, int(parts.ion @ excess))  # 2 + excess = twice the degree of unsaturation
    return np.asarray(fragments @ excess >= least)


@cache
def _valence(symbol: str) -> int:
    valence = int(Chem.GetPeriodicTable().GetDefaultValence(symbol))
    return valence if valence > 0 else UNKNOWN_VALENCE
