"""Which molecules of a library a spectrum may belong to: by its formula, or by the mass of its precursor."""

from __future__ import annotations

from dataclasses import dataclass, replace

from psilearn._utils import validation
from psilearn.chem.molecules import Adduct, CandidateLibrary, Formula
from psilearn.chem.spectra import Spectrum

WAYS = ("auto", "formula", "mass")
FIT = 0.5  # Da by which a recorded precursor may differ from the formula's before something is wrong


@dataclass(frozen=True)
class Query:
    """How the candidates of a spectrum are found.

    Parameters
    ----------
    by : "auto", "formula" or "mass"
        by the molecular formula; by precursor m/z and adduct; or by the formula where the spectrum has one.
    ppm : float
        half the width of the window of masses, in millionths of the molecule's own mass.
    adducts : tuple of str
        those that are accepted, the model's own; empty: any.

    Examples
    --------
    >>> from psilearn.chem.spectra import Spectrum
    >>> Query(adducts=("[M+H]+",)).check_adduct(Spectrum([50.0], [1.0], adduct="[M+Na]+", name="s"))
    Traceback (most recent call last):
    ...
    ValueError: its adduct is [M+Na]+, but the model was trained on [M+H]+: other adducts break in other ways
    """

    by: str = "auto"
    ppm: float = 10.0
    adducts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.by not in WAYS:
            raise ValueError(f"by must be one of {', '.join(WAYS)}; got {self.by!r}.")
        validation.check_positive(self.ppm, "ppm")

    def rows(self, spectrum: Spectrum, library: CandidateLibrary) -> tuple[slice, str]:
        """Return the rows of the candidates, at least one, and how they were found, in words.

        Raises
        ------
        ValueError
            where the spectrum does not say enough, contradicts itself, or nothing in the library fits.
        """
        self.check_adduct(spectrum)
        if spectrum.precursor_mz is None:
            raise ValueError("it has no precursor_mz, from which its neutral losses and its mass are counted")
        if self.by == "formula" or (self.by == "auto" and spectrum.formula is not None):
            rows, how = self._by_formula(spectrum, library)
        else:
            rows, how = self._by_mass(spectrum, library)
        if rows.start == rows.stop:
            raise ValueError(f"no molecule of {how} is in the library of {len(library):,} candidates")
        return rows, how

    def check_adduct(self, spectrum: Spectrum) -> None:
        """Refuse an adduct that cannot be read, or that the model was not trained on."""
        if spectrum.adduct is None:
            return
        adduct = Adduct.parse(spectrum.adduct)
        if self.adducts and adduct.key not in {Adduct.parse(known).key for known in self.adducts}:
            raise ValueError(
                f"its adduct is {adduct}, but the model was trained on {', '.join(self.adducts)}: other adducts break "
                f"in other ways"
            )

    def _by_formula(self, spectrum: Spectrum, library: CandidateLibrary) -> tuple[slice, str]:
        if spectrum.formula is None:
            raise ValueError("it has no formula; its precursor mass can be used instead (by mass)")
        formula = Formula.parse(spectrum.formula)
        rows = library.of_formula(str(formula))
        if spectrum.adduct is not None:
            check_fit(spectrum, formula)
            adduct = Adduct.parse(spectrum.adduct)
            if adduct.key == (1, 0.0, adduct.charge) and not formula.charge:  # [M]+: M may be the ion itself
                charged = library.of_formula(str(replace(formula, charge=adduct.charge)))
                rows = (
                    charged
                    if rows.start == rows.stop
                    else rows
                    if charged.start == charged.stop
                    else slice(min(rows.start, charged.start), max(rows.stop, charged.stop))
                )  # of one mass, so side by side
        return rows, f"formula {formula}"

    def _by_mass(self, spectrum: Spectrum, library: CandidateLibrary) -> tuple[slice, str]:
        if spectrum.adduct is None or spectrum.precursor_mz is None:
            raise ValueError(f"it has no adduct, and {'no formula' if self.by == 'auto' else 'masses need it'}")
        mass = Adduct.parse(spectrum.adduct).mass(spectrum.precursor_mz)
        if mass <= 0:
            raise ValueError(
                f"precursor {spectrum.precursor_mz:.4f} as {spectrum.adduct} leaves no mass: {mass:.4f} Da"
            )
        how = f"mass {mass:.4f} Da ± {self.ppm:g} ppm ({spectrum.adduct} of m/z {spectrum.precursor_mz:.4f})"
        return library.of_mass(mass, self.ppm), how


def check_fit(spectrum: Spectrum, formula: Formula) -> None:
    """Refuse a precursor that formula and adduct contradict by more than half a dalton."""
    if spectrum.adduct is None or spectrum.precursor_mz is None:
        return
    expected = Adduct.parse(spectrum.adduct).mz(formula.mass)
    if abs(expected - spectrum.precursor_mz) > FIT:
        raise ValueError(
            f"{formula} as {spectrum.adduct} has m/z {expected:.4f}, but its precursor is "
            f"{spectrum.precursor_mz:.4f}: the formula, the adduct or the precursor is wrong"
        )
