"""Peaks that a molecular formula explains: fragment ions that consist of a part of its atoms."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psilearn.chem.molecules.formulas import Formula

ELECTRON_MASS = 0.000548579909
MAX_COMBINATIONS = 200_000  # of atoms other than hydrogen; larger formulas explain nothing
_ADDED_ATOM = re.compile(r"\+([A-Z][a-z]?)(?![A-Za-z0-9])")


class _Parts(NamedTuple):
    """All combinations of the atoms of a formula other than hydrogen."""

    symbols: tuple[str, ...]
    counts: NDArray[np.intp]  # (combinations, symbols)
    masses: NDArray[np.float64]
    n_hydrogen: int


def explain_peaks(mz: NDArray[np.float64], formula: str, adduct: str | None = None, ppm: float = 10.0) -> list[str]:
    """Return for each peak the nearest part of a formula as a singly charged ion, or "" if none is within ``ppm``.

    The ion may also contain the atom that the adduct adds, such as the H of ``[M+H]+``. Cost: one pass over all
    combinations of the atoms other than hydrogen per peak.
    """
    sign = -1 if (adduct or "").rstrip("*.•").endswith("-") else 1
    parts = _combine_atoms(formula, "" if adduct is None else adduct, sign)
    return [_explain_peak(float(value), parts, sign, ppm) for value in mz]


@lru_cache(maxsize=64)
def _combine_atoms(formula: str, adduct: str, sign: int) -> _Parts:
    counts = dict(Formula.parse(formula).counts)
    added = _ADDED_ATOM.findall(adduct) or (["H"] if sign > 0 else [])
    for symbol in {*added, *(["H"] if sign > 0 else [])}:
        counts[symbol] = counts.get(symbol, 0) + 1
    n_hydrogen = counts.pop("H", 0)
    symbols = tuple(counts)
    if np.prod([counts[symbol] + 1.0 for symbol in symbols]) > MAX_COMBINATIONS:
        return _Parts(symbols, np.empty((0, len(symbols)), np.intp), np.empty(0), n_hydrogen)
    grid = np.indices([counts[symbol] + 1 for symbol in symbols]).reshape(len(symbols), -1).T
    masses = grid.astype(np.float64) @ np.array([Formula.parse(symbol).mass for symbol in symbols])
    return _Parts(symbols, grid, masses, n_hydrogen)


def _explain_peak(mz: float, parts: _Parts, sign: int, ppm: float) -> str:
    hydrogen = Formula.parse("H").mass
    rest = mz + sign * ELECTRON_MASS - parts.masses
    n_hydrogen = np.clip(np.round(rest / hydrogen), 0, parts.n_hydrogen)
    errors = np.abs(rest - n_hydrogen * hydrogen)
    if not len(errors) or errors.min() > mz * ppm * 1e-6:
        return ""
    best = int(np.argmin(errors))
    atoms = [(symbol, int(count)) for symbol, count in zip(parts.symbols, parts.counts[best], strict=True)]
    text = "".join(f"{symbol}{count}" for symbol, count in [*atoms, ("H", int(n_hydrogen[best]))] if count)
    return str(Formula.parse(text))
