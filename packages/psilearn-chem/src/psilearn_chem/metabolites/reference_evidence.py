"""Evidence of reference spectra: how much likelier a similarity is for the same molecule than for an isomer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import IsotonicRegression

from psilearn.utils import Index, validation
from psilearn_chem.spectra import Spectrum

# Two spectra of one molecule are less similar if their instruments or energies differ, so evidence depends on the
# relation of the two. It has eight values: the kinds of instruments are the same or not (or unknown), and the energies
# are close, not far, far, or not comparable.

CLOSE, NOT_FAR = 5.0, 20.0  # largest differences of energies, in eV or percent
N_ENERGY_RELATIONS = 4
N_RELATIONS = 2 * N_ENERGY_RELATIONS
INSTRUMENT_FIELDS = ("instrument_family", "instrument", "instrument_type")
ORBITRAP_WORDS = (  # of instruments and of their types, also of other Fourier transform analyzers
    *("orbitr?ap", "exactive", "exploris", "tribrid", "lumos", r"\bid-?x\b"),
    *(r"(?<![a-z])(?:q|l?it|ltq)?-?ft(?:-?(?:ms|icr))?(?![a-z])", "solarix"),
)
TOF_WORDS = (  # models that are named without their analyzer
    *("tof", "maxis", r"\bimpact\b", r"(?<!software )\bcompact\b(?! mass)", "q-?star", "synapt", r"\bvion\b"),
    *("xevo g[23]", "x500", r"\blct\b"),
    *(r"agilent(?:\W+technologies)?\W+g?65\d\d", r"\bg?65\d\d[a-z]?\W+agilent", r"\bg65\d\d"),
)
KINDS = {"orbitrap": "|".join(ORBITRAP_WORDS), "tof": "|".join(TOF_WORDS)}
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
RELATIVE = re.compile(r"%|nce", re.IGNORECASE)  # energies in percent of a normalized scale


@dataclass(frozen=True)
class Conditions:
    """The conditions of n spectra."""

    instruments: NDArray[np.str_]  # (n,)  "" if unknown
    kinds: NDArray[np.str_]  # (n,)  "orbitrap" (also FT-ICR), "tof" or ""
    energies: NDArray[np.float64]  # (n,)  NaN if unknown
    is_relative: NDArray[np.bool_]  # (n,)  whether the energy is in percent

    def __post_init__(self) -> None:
        if not self.instruments.shape == self.kinds.shape == self.energies.shape == self.is_relative.shape:
            raise ValueError("conditions of spectra have different lengths")

    @classmethod
    def of(cls, spectra: Sequence[Spectrum]) -> Conditions:
        """Read the metadata of spectra."""
        texts = [" ".join(spectrum.metadata.get(name, "") for name in INSTRUMENT_FIELDS) for spectrum in spectra]
        energies = [spectrum.metadata.get("collision_energy", "") for spectrum in spectra]
        return cls(
            np.array([spectrum.metadata.get("instrument", "") for spectrum in spectra], dtype=np.str_),
            np.array([_find_kind(text) for text in texts], dtype=np.str_),
            np.array([_find_energy(text) for text in energies], dtype=np.float64),
            np.array([RELATIVE.search(text) is not None for text in energies], dtype=bool),
        )

    def __len__(self) -> int:
        return len(self.kinds)

    def take(self, rows: Any) -> Conditions:
        """Return those of some spectra."""
        return Conditions(self.instruments[rows], self.kinds[rows], self.energies[rows], self.is_relative[rows])

    def without_instruments(self) -> Conditions:
        """Return the same without the names of instruments, which only a fit needs."""
        return replace(self, instruments=np.full(len(self), "", dtype=np.str_))

    def relate(self, other: Conditions) -> Index:
        """Return the number of the relation of each pair, of shape (spectra, other spectra)."""
        gaps = np.abs(self.energies[:, None] - other.energies)
        comparable = (self.is_relative[:, None] == other.is_relative) & ~np.isnan(gaps)
        energy = np.where(comparable, (gaps > CLOSE).astype(int) + (gaps > NOT_FAR), N_ENERGY_RELATIONS - 1)
        same = (self.kinds[:, None] == other.kinds) & (other.kinds != "")
        return np.asarray(np.where(same, 0, N_ENERGY_RELATIONS) + energy, dtype=np.intp)

    def share_instrument(self, other: Conditions) -> NDArray[np.bool_]:
        """Return whether both spectra of each pair state the same instrument, of shape (spectra, other spectra)."""
        return np.asarray((self.instruments[:, None] == other.instruments) & (other.instruments != ""))


def _find_kind(text: str) -> str:
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, text, re.IGNORECASE)), "")


def _find_energy(text: str) -> float:
    """Return the mean of the numbers of a text such as "20 eV", "35 % (nominal)" or "Ramp 5-60 V"; NaN without one."""
    numbers = [float(number) for number in NUMBER.findall(text)]
    return float(np.mean(numbers)) if numbers else float("nan")


Array = NDArray[np.float64]

N_BINS = 20  # of similarities in [0, 1]
EDGES = np.linspace(0, 1, N_BINS + 1)
PSEUDO_COUNT = 0.5  # pairs that are added to each bin


@dataclass(frozen=True)
class ReferenceEvidence:
    """The log-likelihood ratio of "same molecule" against "other molecule of this formula", given a similarity.

    Similarities of pairs of spectra are counted in bins. The ratio of the two frequencies is made non-decreasing by
    isotonic regression, and interpolated linearly between the centers of the bins. Several spectra of one compound
    are treated as independent: their ratios add up.

    Parameters
    ----------
    similarities : tuple of float
        The centers of the bins, ascending.
    log_ratios : tuple of float
        The log-likelihood ratio at each center, non-decreasing.

    See Also
    --------
    MetaboliteIdentifier : Combines this evidence with the distance in the output space.

    Examples
    --------
    >>> from psilearn_chem.metabolites import ReferenceEvidence
    >>> evidence = ReferenceEvidence((0.2, 0.8), (-2.0, 2.0))
    >>> evidence([0.1, 0.9])
    array([-2.,  2.])
    """

    similarities: tuple[float, ...]
    log_ratios: tuple[float, ...]

    def __post_init__(self) -> None:
        centers = validation.check_array_of_numbers(self.similarities, "similarities", ndim=1)
        ratios = validation.check_array_of_numbers(self.log_ratios, "log_ratios", ndim=1)
        if centers.shape != ratios.shape:
            raise ValueError(
                f"similarities and log_ratios must have the same length, at least 1; got shapes {centers.shape} and "
                f"{ratios.shape}."
            )
        if not ((np.diff(centers) > 0).all() and (np.diff(ratios) >= 0).all()):
            raise ValueError("similarities must be ascending, and log_ratios non-decreasing.")

    @classmethod
    def fit(cls, same: ArrayLike, other: ArrayLike) -> ReferenceEvidence:
        """Learn the ratio from similarities of pairs of spectra.

        Parameters
        ----------
        same : array-like of shape (a,)
            Similarities in [0, 1] of pairs of spectra of the same molecule, measured separately.
        other : array-like of shape (b,)
            Similarities of pairs of spectra of different molecules with the same formula.

        Returns
        -------
        ReferenceEvidence
            The fitted ratio.

        Raises
        ------
        ValueError
            If there are no pairs of one kind, or if a similarity is not finite.

        See Also
        --------
        MetaboliteIdentifier.fit : Learns the ratio from the training spectra.

        Examples
        --------
        >>> from psilearn_chem.metabolites import ReferenceEvidence
        >>> evidence = ReferenceEvidence.fit(same=[0.9, 0.8, 0.95], other=[0.1, 0.3, 0.2])
        >>> bool(evidence([0.9])[0] > 0 > evidence([0.2])[0])
        True
        """
        counts = []
        for values, name in ((same, "same"), (other, "other")):
            numbers = validation.check_array_of_numbers(values, name, ndim=1)
            counts.append(np.histogram(np.clip(numbers, 0, 1), EDGES)[0].astype(np.float64))
        return cls._of_counts(*counts)

    @classmethod
    def _of_counts(cls, same: Array, other: Array) -> ReferenceEvidence:
        """Learn the ratio from the numbers of pairs in each bin."""
        smooth = [count + PSEUDO_COUNT for count in (same, other)]
        ratios = np.log(smooth[0] / smooth[0].sum()) - np.log(smooth[1] / smooth[1].sum())
        precision = 1 / (1 / smooth[0] + 1 / smooth[1])  # inverse variance of the logarithm of a ratio of counts
        centers = (EDGES[:-1] + EDGES[1:]) / 2
        monotone = IsotonicRegression().fit(centers, ratios, precision).predict(centers)
        return cls(tuple(map(float, centers)), tuple(map(float, np.maximum.accumulate(monotone))))

    def __call__(self, similarity: ArrayLike) -> Array:
        """Compute the log-likelihood ratio of similarities.

        Parameters
        ----------
        similarity : array-like of shape (k,)
            Similarities of spectra with the reference spectra of a molecule.

        Returns
        -------
        ndarray of shape (k,)
            The ratios: positive where the same molecule is likelier.

        See Also
        --------
        fit : Learn the ratio.

        Examples
        --------
        >>> from psilearn_chem.metabolites import ReferenceEvidence
        >>> ReferenceEvidence((0.0, 1.0), (-1.0, 3.0))([0.25])
        array([0.])
        """
        values = validation.check_array_of_numbers(similarity, "similarity", allow_infinite=True)
        return np.asarray(np.interp(values, self.similarities, self.log_ratios))


MIN_PAIRS = 30  # pairs of molecules of each kind; relations with fewer use the pairs of all relations


@dataclass(frozen=True)
class Pairs:
    """The spectra of a query and the reference spectra of a candidate: their similarities, and how they are related."""

    similarity: Array  # (a, b)
    relation: Index  # (a, b)


@dataclass(frozen=True)
class RecordEvidence:
    """The log-likelihood ratio of "same molecule" against "other molecule of this formula", for each relation."""

    ratios: tuple[ReferenceEvidence, ...]  # one per relation

    def __post_init__(self) -> None:
        if len(self.ratios) != N_RELATIONS:
            raise ValueError(f"evidence of spectra has {len(self.ratios)} relations instead of {N_RELATIONS}")

    def __call__(self, pairs: Pairs) -> float:
        """Return the sum of the ratios of all pairs, divided by √(number of pairs).

        The sum would be right for independent pairs, the mean for pairs that repeat each other.
        """
        total = 0.0
        for relation in np.unique(pairs.relation):
            total += float(self.ratios[relation](pairs.similarity[pairs.relation == relation]).sum())
        return total / float(np.sqrt(pairs.similarity.size))


@dataclass(frozen=True)
class FormulaRecords:
    """Single spectra of molecules of one formula."""

    molecules: Index  # (n,)
    similarity: Array  # (n, n)
    conditions: Conditions


def fit_record_evidence(
    formulas: Iterable[FormulaRecords], fallback: ReferenceEvidence | None = None
) -> RecordEvidence:
    """Learn the evidence from pairs of single spectra of the same formula; ``fallback`` replaces that of too few pairs.

    Pairs of the same molecule that state the same instrument are left out: queries are usually measured on another one.
    The pairs of two molecules, or of one molecule with itself, count as one pair in each relation.
    """
    counts = np.zeros((N_RELATIONS, 2, N_BINS))
    for records in formulas:
        _add_counts(counts, records)
    pooled = counts.sum(axis=0)
    has_pairs = bool((pooled.sum(axis=1) >= MIN_PAIRS).all())
    total = ReferenceEvidence._of_counts(*pooled[::-1]) if has_pairs or fallback is None else fallback
    enough = (counts.sum(axis=2) >= MIN_PAIRS).all(axis=1)
    return RecordEvidence(
        tuple(
            ReferenceEvidence._of_counts(*part[::-1]) if ok else total for part, ok in zip(counts, enough, strict=True)
        )
    )


def _add_counts(counts: Array, records: FormulaRecords) -> None:
    """Add the pairs of one formula to counts by relation, by whether the molecule is the same, and by bin."""
    first, second = np.triu_indices(len(records.molecules), 1)
    conditions, molecules = records.conditions, records.molecules
    is_same = molecules[first] == molecules[second]
    kept = ~(is_same & conditions.share_instrument(conditions)[first, second])
    first, second, is_same = first[kept], second[kept], is_same[kept]
    if not len(first):
        return
    relation = conditions.relate(conditions)[first, second]
    pair = np.sort(np.stack([molecules[first], molecules[second]], axis=1), axis=1)
    _, number, repeats = np.unique(np.column_stack([pair, relation]), axis=0, return_inverse=True, return_counts=True)
    bins = np.clip(np.searchsorted(EDGES, records.similarity[first, second], side="right") - 1, 0, N_BINS - 1)
    np.add.at(counts, (relation, is_same.astype(int), bins), 1 / repeats[number.ravel()])
