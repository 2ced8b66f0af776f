"""Candidates of a spectrum in a library, by its formula or the mass of its precursor; adducts and polarities."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from psilearn.utils import Index, match, validation
from psilearn_chem.adduct_spelling import find_polarity, normalize_adduct
from psilearn_chem.molecules import Adduct, CandidateLibrary, Formula
from psilearn_chem.molecules.fingerprints import Bits
from psilearn_chem.spectra import Problem, Spectrum

POLARITIES = ("positive", "negative")
COMMON_ADDUCTS = (
    *("[M+H]+", "[M+Na]+", "[M+NH4]+", "[M+K]+", "[M-H2O+H]+"),
    *("[M-H]-", "[M+HCOO]-", "[M+CH3COO]-", "[M+Cl]-"),
)
PRECURSOR_TOLERANCE = 0.5  # Da between the recorded precursor and that of formula and adduct
_SIGNED_CHARGE = re.compile(r"\d*([+-])\d*")


def polarities_of(adducts: Iterable[str]) -> tuple[str, ...]:
    """Return the polarities of several adducts, each once, positive first."""
    known = {find_polarity(normalize_adduct(adduct)) for adduct in adducts}
    return tuple(polarity for polarity in POLARITIES if polarity in known)


def polarity_of(spectrum: Spectrum) -> str | None:
    """Return the polarity by the adduct, else by ``ionmode`` or a signed ``charge`` of the metadata, or None."""
    if spectrum.adduct is not None:
        return find_polarity(normalize_adduct(spectrum.adduct))
    stated = spectrum.metadata.get("ionmode", "").strip().lower()
    for polarity in POLARITIES:
        if stated and polarity.startswith(stated):
            return polarity
    charge = _SIGNED_CHARGE.fullmatch(spectrum.metadata.get("charge", "").strip())
    return None if charge is None else POLARITIES[charge[1] == "-"]


def select_polarity(spectra: Sequence[Spectrum], polarity: str) -> list[Spectrum]:
    """Return the spectra without those of the other polarity; with "both", all of them."""
    validation.check_option(polarity, (*POLARITIES, "both"), "polarity")
    return [spectrum for spectrum in spectra if polarity == "both" or polarity_of(spectrum) in (None, polarity)]


def find_adduct(spectrum: Spectrum, formula: Formula, adducts: Iterable[str] = COMMON_ADDUCTS) -> str | None:
    """Return which adduct gives the formula the precursor of the spectrum, the nearest one within half a dalton.

    Only adducts of the polarity of the spectrum, if it is known, can be the result. None if there is none.
    """
    if spectrum.precursor_mz is None:
        return None
    polarity = polarity_of(spectrum)
    gaps = {
        adduct: abs(Adduct.parse(adduct).mz(formula.mass) - spectrum.precursor_mz)
        for adduct in adducts
        if polarity in (None, find_polarity(normalize_adduct(adduct)))
    }
    nearest = min(gaps, key=lambda adduct: gaps[adduct], default=None)
    return nearest if nearest is not None and gaps[nearest] <= PRECURSOR_TOLERANCE else None


METHODS = ("auto", "formula", "mass")


@dataclass(frozen=True)
class Query:
    """How the candidates of a spectrum are found in a library.

    Parameters
    ----------
    by : {"auto", "formula", "mass"}, default="auto"
        Find candidates by the molecular formula, or by the mass that follows from precursor m/z and adduct. "auto" uses
        the formula of spectra that have one, and the mass of the others.
    ppm : float, default=10.0
        Half the width of the window of masses, in millionths of the mass of the molecule.
    adducts : tuple of str, default=()
        Adducts that are accepted, usually those of the training spectra. With the empty tuple, all are accepted.

    See Also
    --------
    psilearn_chem.MetaboliteIdentifier.rank : Rank the candidates of spectra.
    psilearn_chem.CandidateLibrary : The library in which candidates are found.

    Examples
    --------
    >>> import tempfile
    >>> from psilearn_chem import CandidateLibrary, MoleculeList, Query, Spectrum
    >>> spectrum = Spectrum([29.04, 31.02], [1.0, 1.0], precursor_mz=47.0491, adduct="[M+H]+")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     library = CandidateLibrary.build(MoleculeList(["CCO", "COC", "CCCO"], ["", "", ""]), folder)
    ...     Query().find_candidates(spectrum, library)
    (slice(0, 2, None), 'mass 46.0418 Da ± 10 ppm ([M+H]+ of m/z 47.0491)')
    """

    by: str = "auto"
    ppm: float = 10.0
    adducts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        validation.check_option(self.by, METHODS, "by")
        validation.check_positive(self.ppm, "ppm")
        if not isinstance(self.adducts, list | tuple) or not all(isinstance(adduct, str) for adduct in self.adducts):
            raise TypeError(f"adducts must be a tuple of text such as '[M+H]+'; got {self.adducts!r:.80}.")

    def find_candidates(self, spectrum: Spectrum, library: CandidateLibrary) -> tuple[slice, str]:
        """Return the candidates of a spectrum.

        Parameters
        ----------
        spectrum : Spectrum
            Spectrum with precursor m/z, and a formula or an adduct.
        library : CandidateLibrary
            Library in which candidates are found.

        Returns
        -------
        rows : slice
            Rows of the candidates in the library, at least one.
        description : str
            The formula or the window of masses by which they were found.

        Raises
        ------
        ValueError
            If the spectrum lacks what is needed, its formula contradicts its precursor, its adduct is not accepted, or
            the library has no candidate.

        See Also
        --------
        psilearn_chem.CandidateLibrary.find_formula : The molecules with a formula.
        psilearn_chem.CandidateLibrary.find_mass : The molecules in a window of masses.

        Examples
        --------
        >>> import tempfile
        >>> from psilearn_chem import CandidateLibrary, MoleculeList, Query, Spectrum
        >>> spectrum = Spectrum([29.04], [1.0], precursor_mz=47.0491, adduct="[M+H]+", formula="C2H6O")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     library = CandidateLibrary.build(MoleculeList(["CCO", "COC", "CCCO"], ["", "", ""]), folder)
        ...     Query().find_candidates(spectrum, library)
        (slice(0, 2, None), 'formula C2H6O')
        """
        self.check_adduct(spectrum)
        if not isinstance(library, CandidateLibrary):
            raise TypeError(f"library must be a CandidateLibrary; got {library!r:.80}.")
        if spectrum.precursor_mz is None:
            raise ValueError("it has no precursor_mz, from which its neutral losses and its mass are computed")
        if self.by == "formula" or (self.by == "auto" and spectrum.formula is not None):
            rows, description = self._find_by_formula(spectrum, library)
        else:
            rows, description = self._find_by_mass(spectrum, library)
        if rows.start == rows.stop:
            raise ValueError(f"no molecule of {description} is in the library of {len(library):,} candidates")
        return rows, description

    def check_adduct(self, spectrum: Spectrum) -> None:
        """Raise an error if a spectrum has an adduct that cannot be parsed, or an ion that is not accepted.

        Without an adduct, the polarity is known by ``metadata["ionmode"]`` or a signed ``metadata["charge"]``, and an
        accepted adduct must give the formula the precursor of the spectrum.

        Parameters
        ----------
        spectrum : Spectrum
            Spectrum, with an adduct or without.

        Raises
        ------
        ValueError
            If the adduct cannot be parsed, if adduct or polarity are not those of ``adducts``, or if there is no
            adduct, and none of them agrees with formula and precursor.

        See Also
        --------
        find_candidates : Checks the adduct of its spectrum.

        Examples
        --------
        >>> from psilearn_chem import Query, Spectrum
        >>> Query(adducts=("[M+H]+",)).check_adduct(Spectrum([29.04], [1.0], adduct="[M+H]+"))
        """
        if not isinstance(spectrum, Spectrum):
            raise TypeError(f"spectrum must be a Spectrum; got {spectrum!r:.80}.")
        adduct = None if spectrum.adduct is None else Adduct.parse(spectrum.adduct)
        if not self.adducts:
            return
        self._check_polarity(spectrum)
        if adduct is None:
            self._check_unstated_adduct(spectrum)
        elif adduct.key not in {Adduct.parse(accepted).key for accepted in self.adducts}:
            raise ValueError(
                f"its adduct is {adduct}, but the model was trained on {', '.join(self.adducts)}: other adducts break "
                f"in other ways"
            )

    def _check_polarity(self, spectrum: Spectrum) -> None:
        polarity, known = polarity_of(spectrum), polarities_of(self.adducts)
        if polarity is not None and known and polarity not in known:
            adduct = "" if spectrum.adduct is None else f" ({spectrum.adduct})"
            raise ValueError(
                f"it is of a {polarity} ion{adduct}, but the model was trained on {known[0]} ions only "
                f"({', '.join(self.adducts)}): train a model on spectra of {polarity} ions"
            )

    def _check_unstated_adduct(self, spectrum: Spectrum) -> None:
        """Raise an error if the precursor of a spectrum with a formula belongs to none of the accepted adducts."""
        if spectrum.formula is None or spectrum.precursor_mz is None:
            return
        formula = Formula.parse(spectrum.formula)
        if find_adduct(spectrum, formula, self.adducts) is None:
            other = find_adduct(spectrum, formula)
            raise ValueError(
                f"it has no adduct, and its precursor {spectrum.precursor_mz:.4f} is not that of {formula} as "
                f"{' or '.join(self.adducts)}, on which the model was trained"
                f"{'' if other is None else f'; it is that of {other}'}"
            )

    def _find_by_formula(self, spectrum: Spectrum, library: CandidateLibrary) -> tuple[slice, str]:
        if spectrum.formula is None:
            raise ValueError("it has no formula; its precursor mass can be used instead (by mass)")
        formula = Formula.parse(spectrum.formula)
        rows = library.find_formula(str(formula))
        if spectrum.adduct is not None:
            check_precursor(spectrum, formula)
            adduct = Adduct.parse(spectrum.adduct)
            is_bare_ion = adduct.key == (1, 0.0, adduct.charge)  # [M]+: the molecule may be the ion itself
            if is_bare_ion and not formula.charge:
                rows = _join(rows, library.find_formula(str(replace(formula, charge=adduct.charge))))
        return rows, f"formula {formula}"

    def _find_by_mass(self, spectrum: Spectrum, library: CandidateLibrary) -> tuple[slice, str]:
        if spectrum.adduct is None or spectrum.precursor_mz is None:
            reason = "no formula" if self.by == "auto" else "its mass cannot be computed without one"
            raise ValueError(f"it has no adduct, and {reason}: state it in the file or with --adduct")
        mass = Adduct.parse(spectrum.adduct).mass(spectrum.precursor_mz)
        if mass <= 0:
            raise ValueError(
                f"precursor {spectrum.precursor_mz:.4f} as {spectrum.adduct} leaves no mass: {mass:.4f} Da"
            )
        description = f"mass {mass:.4f} Da ± {self.ppm:g} ppm ({spectrum.adduct} of m/z {spectrum.precursor_mz:.4f})"
        return library.find_mass(mass, self.ppm), description


def check_precursor(spectrum: Spectrum, formula: Formula) -> None:
    """Raise an error if the precursor differs from that of formula and adduct by more than half a dalton."""
    if spectrum.adduct is None or spectrum.precursor_mz is None:
        return
    expected = Adduct.parse(spectrum.adduct).mz(formula.mass)
    if abs(expected - spectrum.precursor_mz) > PRECURSOR_TOLERANCE:
        raise ValueError(
            f"{formula} as {spectrum.adduct} has m/z {expected:.4f}, but its precursor is "
            f"{spectrum.precursor_mz:.4f}: the formula, the adduct or the precursor is wrong"
        )


def _join(rows: slice, others: slice) -> slice:
    """Return all rows of two formulas with the same mass, which are adjacent in a library."""
    if rows.start == rows.stop or others.start == others.stop:
        return others if rows.start == rows.stop else rows
    return slice(min(rows.start, others.start), max(rows.stop, others.stop))


@dataclass(frozen=True)
class LabeledSpectra:
    """n spectra with the fingerprints of their molecules, and the candidates of each."""

    spectra: list[Spectrum]
    bits: Bits  # (n, b)
    sets: list[Bits]  # fingerprints of the candidates of each spectrum, the true one among them
    truth: Index  # (n,)  the index of the true one
    in_library: NDArray[np.bool_]  # (n,)  whether the library contains it

    def __len__(self) -> int:
        return len(self.spectra)

    @property
    def adducts(self) -> tuple[str, ...]:
        """The different adducts of the spectra, sorted."""
        return tuple(sorted({str(Adduct.parse(s.adduct)) for s in self.spectra if s.adduct is not None}))

    def take(self, rows: Index) -> LabeledSpectra:
        """Return some of the spectra."""
        return LabeledSpectra(
            [self.spectra[i] for i in rows],
            self.bits[rows],
            [self.sets[i] for i in rows],
            self.truth[rows],
            self.in_library[rows],
        )

    def thin(self, max_candidates: int, seed: int) -> list[Bits]:
        """Return at most ``max_candidates`` candidates per spectrum, drawn at random, the true one among them."""
        rng = np.random.default_rng(seed)
        thinned = []
        for candidates, truth in zip(self.sets, self.truth, strict=True):
            if len(candidates) > max_candidates:
                others = np.setdiff1d(np.arange(len(candidates)), [truth])
                chosen = np.sort(rng.choice(others, max_candidates - 1, replace=False))
                candidates = candidates[np.append(chosen, truth)]
            thinned.append(candidates)
        return thinned


def find_labeled(spectra: Sequence[Spectrum], library: CandidateLibrary) -> tuple[LabeledSpectra, list[Problem]]:
    """Return the spectra that can be used for training, and the reasons why the others cannot.

    The spectra have the formulas of their SMILES and, if none is stated, the common adduct that fits to the precursor.
    """
    table = library.fingerprints([spectrum.smiles or "" for spectrum in spectra])
    problems: list[Problem] = []
    usable: list[int] = []
    sets: list[Bits] = []
    truth: list[int] = []
    in_library: list[bool] = []
    for i, (spectrum, formula) in enumerate(zip(spectra, table.formulas, strict=True)):
        reason = _reason_to_reject(spectrum, formula)
        if reason is not None:
            problems.append(Problem(spectrum.name or f"spectrum {i + 1}", reason))
            continue
        candidates, true_bits = library.bits[library.find_formula(formula)], table.bits[i : i + 1]
        index = int(match(true_bits, candidates)[0]) if len(candidates) else -1
        usable.append(i)
        in_library.append(index >= 0)
        sets.append(candidates if index >= 0 else np.concatenate([candidates, true_bits]))
        truth.append(index if index >= 0 else len(candidates))
    kept = [_complete(spectra[i], table.formulas[i]) for i in usable]
    labeled = LabeledSpectra(kept, table.bits[usable], sets, np.array(truth, dtype=np.intp), np.array(in_library))
    return labeled, problems


def _complete(spectrum: Spectrum, formula: str) -> Spectrum:
    """Return a spectrum with its formula and with an adduct, if one is stated or fits to formula and precursor."""
    adduct = find_adduct(spectrum, Formula.parse(formula)) if spectrum.adduct is None else spectrum.adduct
    return replace(spectrum, formula=formula, adduct=adduct)


def _reason_to_reject(spectrum: Spectrum, formula: str) -> str | None:
    """Return why a spectrum cannot be used for training, or None; ``formula`` is that of its SMILES."""
    if not formula:
        return f"its SMILES {spectrum.smiles!r} cannot be read" if spectrum.smiles else "it has no SMILES"
    if spectrum.precursor_mz is None:
        return "it has no precursor_mz"
    try:
        if spectrum.formula is not None and str(Formula.parse(spectrum.formula)) != formula:
            return f"its formula is {spectrum.formula}, but its SMILES is of {formula}"
        check_precursor(spectrum, Formula.parse(formula))
    except ValueError as error:
        return str(error)
    return None
