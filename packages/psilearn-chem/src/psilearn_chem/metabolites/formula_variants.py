"""Spectra whose peaks are explained by the formulas of their candidates, one variant per formula."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from psilearn.kernels import Kernel
from psilearn_chem.metabolites.polarity import COMMON_ADDUCTS, find_adduct
from psilearn_chem.molecules import CandidateLibrary, Formula
from psilearn_chem.spectra import Spectrum


def needs_formula(kernel: Kernel) -> bool:
    """Return whether a kernel on spectra, or a part of it, compares formulas of fragments or losses."""
    return any(getattr(part, "_needs_formula", False) for part in (kernel, *kernel.get_params(deep=True).values()))


def iter_variants(
    spectrum: Spectrum, rows: slice, library: CandidateLibrary, adducts: tuple[str, ...] = ()
) -> Iterator[tuple[Spectrum, slice]]:
    """Yield the spectrum with each formula of its candidates, and the rows of the molecules with this formula.

    Rows are those of the candidates in the library, where molecules of one formula are adjacent. A spectrum that states
    no adduct has the one of ``adducts``, or of the common ones, that fits to formula and precursor.
    """
    start = rows.start
    for formula, molecules in groupby(library.get_formulas(rows)):
        stop = start + len(list(molecules))
        adduct = adduct_of(spectrum, formula, adducts)
        is_stated = (spectrum.formula, spectrum.adduct) == (formula, adduct)
        yield spectrum if is_stated else replace(spectrum, formula=formula, adduct=adduct), slice(start, stop)
        start = stop


def adduct_of(spectrum: Spectrum, formula: str, adducts: tuple[str, ...] = ()) -> str | None:
    """Return the adduct of a spectrum, or the one of ``adducts``, or of the common ones, that fits to its precursor."""
    return spectrum.adduct or find_adduct(spectrum, Formula.parse(formula), adducts or COMMON_ADDUCTS)
