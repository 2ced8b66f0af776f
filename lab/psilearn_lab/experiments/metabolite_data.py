"""The data of the metabolite experiments: spectra, their candidate molecules, and single records of molecules."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch

from psilearn.decoding import Candidates, PerExampleCandidates
from psilearn.kernels import GaussianTanimoto, Kernel
from psilearn.utils import Index
from psilearn_chem import (
    CandidateLibrary,
    Cleaning,
    Fingerprints,
    MoleculeList,
    Spectrum,
    merge_spectra,
)
from psilearn_chem.metabolites.parameter_choice import Mixture, SpectrumSimilarity, list_kernels
from psilearn_chem.metabolites.queries import LabeledSpectra
from psilearn_chem.metabolites.reference_evidence import Conditions, FormulaRecords, Pairs
from psilearn_chem.metabolites.second_stage import spectral_similarity
from psilearn_chem.molecules.fingerprints import Bits
from psilearn_chem.spectrum_kernels import FEATURES
from psilearn_lab import datasets
from psilearn_lab.arrays import Array
from psilearn_lab.experiments.experiment import Context

N_FOLDS = 5


def load_merged_records(adduct: str) -> Bunch:
    """Return one merged spectrum per molecule with records of an adduct, in the form of ``datasets.load``.

    Molecules that are not among the candidates are left out. A molecule keeps its fold; those without one are dealt to
    the folds in the order of their InChIKeys.
    """
    records, data = datasets.load("metabolite_records"), datasets.load("metabolites")
    known = np.isin(records.inchikeys, data.candidates.names)
    rows = np.flatnonzero(known & (np.array([spectrum.adduct for spectrum in records.spectra]) == adduct))
    inchikeys, first = np.unique(records.inchikeys[rows], return_index=True)
    groups = [rows[records.inchikeys[rows] == inchikey] for inchikey in inchikeys]
    clean = Cleaning(min_peaks=1)
    fold = records.fold[rows[first]]
    is_new = fold < 0
    fold[is_new] = np.arange(is_new.sum()) % N_FOLDS
    return Bunch(
        spectra=[clean(merge_spectra([records.spectra[i] for i in group])) for group in groups],
        inchikeys=inchikeys,
        fold=fold,
        noncommercial=np.array([records.noncommercial[group].any() for group in groups]),
        candidates=data.candidates,
        unlabeled=data.unlabeled,
    )


DEFAULT_JOBS = 2  # processes that compute fingerprints


@dataclass(frozen=True)
class Task:
    """The spectra, numbered from 0, their molecules and candidates, and the molecules without spectra."""

    labeled: LabeledSpectra
    similarity: SpectrumSimilarity  # of the spectra
    output_kernel: Kernel  # on fingerprints; it defines the loss
    fold: Index  # (n,)  number of the fold of each spectrum
    formulas: npt.NDArray[np.str_]  # (n,)
    unlabeled: Bits  # (m, b)
    library: CandidateLibrary
    n_noncommercial: int  # spectra that are licensed for non-commercial use

    @property
    def outputs(self) -> Bits:
        """The fingerprint of the molecule of each spectrum, of shape (n, b)."""
        return self.labeled.bits

    @property
    def truth(self) -> Index:
        """The index of the molecule of each spectrum among its candidates, of shape (n,)."""
        return self.labeled.truth

    @cached_property
    def n_candidates(self) -> Index:
        """The number of candidates of each spectrum, of shape (n,)."""
        return np.array([len(candidates) for candidates in self.labeled.sets])

    def make_kernel(self, mixture: Mixture) -> Kernel:
        """Return a kernel on the numbers of the spectra; it learns aligned weights when it is fitted."""
        return self.similarity.on_rows(mixture, self.output_kernel)

    def candidates_of(self, spectra: Index) -> Candidates:
        """Return the candidates of some spectra, one per molecule: molecules with equal fingerprints tie."""
        return PerExampleCandidates([self.labeled.sets[i] for i in spectra])

    def few_candidates_of(self, spectra: Index, limit: int, seed: int) -> Candidates:
        """Return at most ``limit`` random candidates of some spectra, with the true one among them."""
        return PerExampleCandidates(self.labeled.thin(limit, seed)).restrict(spectra)

    def mean_losses(self, spectra: Index) -> Array:
        """Return the expected loss of a random candidate of each of these spectra."""
        distances = self.output_kernel.squared_distances
        return np.array([distances(self.labeled.sets[i], self.outputs[i : i + 1]).mean() for i in spectra])


def load_task(context: Context) -> Task:
    """Compare all spectra and find the candidates of each; the library is built once and stored."""
    config = context.config
    is_protonated = config["adduct"] == "[M+H]+"
    data = datasets.load("metabolites") if is_protonated else load_merged_records(config["adduct"])
    fingerprints = Fingerprints(tuple(config["fingerprints"]))
    library = open_library(data.candidates, fingerprints, context)
    context.log("fingerprints of unlabeled molecules")
    cache = cache_home() / "fingerprints"
    unlabeled = fingerprints(data.unlabeled.smiles, cache=cache, n_jobs=context.n_jobs or DEFAULT_JOBS)
    readable = np.setdiff1d(np.arange(len(unlabeled.bits)), unlabeled.unreadable)
    spectra = data.spectra[: config["spectra"]]
    formulas = [spectrum.formula for spectrum in spectra]
    rows = {formula: library.find_formula(formula) for formula in formulas}
    sets = {formula: library.bits[place] for formula, place in rows.items()}
    names = {formula: library.get_names(place) for formula, place in rows.items()}
    truth = np.array(
        [names[formula].index(key) for formula, key in zip(formulas, data.inchikeys[: len(spectra)], strict=True)]
    )
    labeled = LabeledSpectra(
        spectra,
        np.stack([sets[formula][i] for formula, i in zip(formulas, truth, strict=True)]),
        [sets[formula] for formula in formulas],
        truth,
        np.ones(len(spectra), dtype=bool),
    )
    context.log(f"kernels of {len(spectra)} spectra")
    return Task(
        labeled=labeled,
        similarity=SpectrumSimilarity.of(spectra, config["width"], formulas=config["formulas"]),
        output_kernel=GaussianTanimoto(config["output_gamma"], packed=True),
        fold=data.fold[: len(spectra)],
        formulas=np.array(formulas),
        unlabeled=unlabeled.bits[readable],
        library=library,
        n_noncommercial=int(data.noncommercial.sum()),
    )


def cache_home() -> Path:
    """Return the folder of recomputable files: the variable ``PSILEARN_CACHE``, else ``~/.cache/psilearn``."""
    folder = os.environ.get("PSILEARN_CACHE")
    return Path(folder or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "psilearn").expanduser()


def open_library(candidates: MoleculeList, fingerprints: Fingerprints, context: Context) -> CandidateLibrary:
    """Return the library of all candidates; build it if it is missing."""
    digest = hashlib.sha256("\n".join([fingerprints.identity, *candidates.smiles]).encode()).hexdigest()
    path = cache_home() / "libraries" / f"metabolite-candidates-{digest[:16]}"
    if (path / "library.safetensors").is_file():
        return CandidateLibrary.open(path)
    context.log(f"building the library of {len(candidates.smiles):,} candidates in {path}, once")
    return CandidateLibrary.build(candidates, path, fingerprints, n_jobs=context.n_jobs or DEFAULT_JOBS)


@dataclass
class RecordPairs:
    """Records, added molecule by molecule, and which of them each merged spectrum consists of."""

    records: list[Spectrum] = field(default_factory=list)
    molecules: list[int] = field(default_factory=list)  # of the records
    formulas: list[str] = field(default_factory=list)  # of the records
    of_spectrum: dict[int, Index] = field(default_factory=dict)  # number of a merged spectrum → its records

    def add(self, molecule: int, formula: str, records: Sequence[Spectrum]) -> Index:
        """Add the records of a molecule, and return their numbers."""
        numbers = len(self.records) + np.arange(len(records))
        clean = Cleaning(min_peaks=1)
        self.records += [clean(record) for record in records]
        self.molecules += [molecule] * len(records)
        self.formulas += [formula] * len(records)
        return numbers

    def compare(self) -> ComparedRecords:
        """Return the records with their similarities."""
        conditions, molecules = Conditions.of(self.records), np.array(self.molecules, dtype=np.intp)
        rows: dict[str, list[int]] = {}
        for i, formula in enumerate(self.formulas):
            rows.setdefault(formula, []).append(i)
        place, parts = np.zeros(len(self.records), dtype=np.intp), {}
        for formula, numbers in rows.items():
            place[numbers] = np.arange(len(numbers))
            spectra = [self.records[i] for i in numbers]
            similarity = spectral_similarity(spectra, spectra)
            parts[formula] = FormulaRecords(molecules[numbers], similarity, conditions.take(numbers))
        return ComparedRecords(parts, np.array(self.formulas), place, self.of_spectrum)


@dataclass(frozen=True)
class ComparedRecords:
    """The similarities of records of the same formula."""

    parts: dict[str, FormulaRecords]
    formulas: Array  # (records,)  text
    place: Index  # (records,)  position among the records of the formula
    of_spectrum: dict[int, Index]

    def pairs(self, query: int, references: Sequence[int]) -> Pairs | None:
        """Return the pairs of records of two merged spectra; None if they are not of the same formula."""
        left = self.of_spectrum.get(query, np.empty(0, dtype=np.intp))
        right = [self.of_spectrum.get(number, np.empty(0, dtype=np.intp)) for number in references]
        right = [part for part in right if len(part) and len(left) and self.formulas[part[0]] == self.formulas[left[0]]]
        if not right:
            return None
        records = self.parts[self.formulas[left[0]]]
        rows, columns = self.place[left], self.place[np.concatenate(right)]
        relation = records.conditions.take(rows).relate(records.conditions.take(columns))
        return Pairs(records.similarity[np.ix_(rows, columns)], relation)

    def of_molecules(self, molecules: Index) -> Iterator[FormulaRecords]:
        """Yield the records of some molecules, formula by formula."""
        for part in self.parts.values():
            chosen = np.flatnonzero(np.isin(part.molecules, molecules))
            similarity = part.similarity[np.ix_(chosen, chosen)]
            yield FormulaRecords(part.molecules[chosen], similarity, part.conditions.take(chosen))


NO_SPECTRUM = -1


@dataclass
class Measurements:
    """The merged spectra of n molecules, followed by further spectra of them, and the numbers of these spectra."""

    spectra: list[Spectrum]
    reference: Index  # (n,)  merged records of all instruments but one; −1 if there is one instrument only
    query: Index  # (n,)  merged records of the other instrument; −1 likewise
    single: (
        Index  # (n,)  one record, of that instrument if there are several; the merged spectrum if it is the only one
    )
    records: RecordPairs = field(default_factory=RecordPairs)

    @classmethod
    def of(cls, merged: Sequence[Spectrum], by_molecule: Sequence[Sequence[Spectrum]], seed: int) -> Measurements:
        """Draw an instrument of each molecule that was measured on several, and one record of each molecule."""
        n = len(merged)
        found = cls([*merged], np.full(n, NO_SPECTRUM), np.full(n, NO_SPECTRUM), np.arange(n))
        instruments, singles = np.random.default_rng(seed), np.random.default_rng([seed, 1])
        for molecule, records in enumerate(by_molecule):
            numbers = found.records.add(molecule, str(merged[molecule].formula), records)
            found.records.of_spectrum[molecule] = numbers
            is_query = _draw_instrument(records, instruments)
            if is_query is not None:
                found.reference[molecule] = found._append(records, numbers, np.flatnonzero(~is_query))
                found.query[molecule] = found.single[molecule] = found._append(
                    records, numbers, np.flatnonzero(is_query)
                )
            chosen = np.arange(len(records)) if is_query is None else np.flatnonzero(is_query)
            if len(chosen) > 1:
                found.single[molecule] = found._append(records, numbers, singles.choice(chosen, 1))
        return found

    def _append(self, records: Sequence[Spectrum], numbers: Index, chosen: Index) -> int:
        """Append the merged spectrum of some records of a molecule, and return its number."""
        self.records.of_spectrum[len(self.spectra)] = numbers[chosen]
        self.spectra.append(Cleaning(min_peaks=1)(merge_spectra([records[int(k)] for k in chosen])))
        return len(self.spectra) - 1


def _draw_instrument(records: Sequence[Spectrum], rng: np.random.Generator) -> npt.NDArray[np.bool_] | None:
    """Return which records are of an instrument that is drawn at random; None for a single instrument."""
    names = np.array([record.metadata.get("instrument", "") for record in records])
    instruments = np.unique(names)
    return None if len(instruments) < 2 else names == instruments[rng.integers(len(instruments))]


PROTONATED = "[M+H]+"


@dataclass(frozen=True)
class ReferenceTask:
    """n molecules with merged spectra, numbered from 0; further spectra follow the merged ones."""

    spectra: list[Spectrum]
    kernels: Mapping[str, Array]  # means over all kernels ("all") and over those without formulas ("plain")
    bits: Bits  # (n, b)  of the molecules
    fold: Index  # (n,)
    rows: list[slice]  # the candidates of each molecule in the library
    truth: Index  # (n,)  the index of the molecule among its candidates
    reference: Index  # (n,)  number of the reference spectrum; −1 if there is one instrument only
    query: Index  # (n,)  number of the spectrum of the other instrument
    single: Index  # (n,)  number of the spectrum that is a single record, of the other instrument if there is one
    scaffold: npt.NDArray[np.str_]  # (n,)  Murcko scaffold
    library: CandidateLibrary
    records: ComparedRecords

    def __len__(self) -> int:
        return len(self.bits)

    @cached_property
    def has_reference(self) -> npt.NDArray[np.bool_]:
        """Whether a molecule has a second measurement."""
        return self.reference != NO_SPECTRUM

    @property
    def similarity(self) -> Array:
        """The mean of the kernels on peaks and on neutral losses."""
        return self.kernels["plain"]

    @property
    def n_candidates(self) -> Index:
        """The number of candidates of each molecule."""
        return np.array([part.stop - part.start for part in self.rows])

    def candidate_bits(self, molecule: int) -> Bits:
        """Return the fingerprints of the candidates of a molecule."""
        return np.asarray(self.library.bits[self.rows[molecule]])


def load_references(context: Context) -> ReferenceTask:
    """Read spectra and records, and compare all spectra."""
    adduct = context.config["adduct"]
    data = datasets.load("metabolites") if adduct == PROTONATED else load_merged_records(adduct)
    n = len(data.spectra[: context.config["spectra"]])
    keys, merged = data.inchikeys[:n], data.spectra[:n]
    library = open_library(data.candidates, Fingerprints(tuple(context.config["fingerprints"])), context)
    found = {spectrum.formula: library.find_formula(spectrum.formula) for spectrum in merged}
    names = {formula: library.get_names(rows) for formula, rows in found.items()}
    rows = [found[spectrum.formula] for spectrum in merged]
    truth = [names[spectrum.formula].index(key) for spectrum, key in zip(merged, keys, strict=True)]
    by_molecule = _group_records(datasets.load("metabolite_records"), adduct)
    measured = Measurements.of(merged, [by_molecule.get(key, []) for key in keys], context.seed)
    context.log(f"kernels of {len(measured.spectra)} spectra and {len(measured.records.records)} records")
    bits = np.stack([library.bits[part.start + index] for part, index in zip(rows, truth, strict=True)])
    return ReferenceTask(
        measured.spectra,
        _compare(measured.spectra, context.config["width"]),
        bits,
        data.fold[:n],
        rows,
        np.array(truth),
        measured.reference,
        measured.query,
        measured.single,
        np.array([find_scaffold(spectrum.smiles) for spectrum in merged]),
        library,
        measured.records.compare(),
    )


def _compare(spectra: list[Spectrum], width: float) -> dict[str, Array]:
    """Return the means of the matrices of normalized kernels: peaks and losses, and formulas of both, too."""
    total, means = np.zeros((len(spectra), len(spectra)), np.float32), {}
    kernels = list_kernels(width, formulas=True)
    for number, kernel in enumerate(kernels, 1):  # one matrix at a time: all of them need several gigabytes
        total += np.asarray(kernel.gram(spectra, remedy="Use fewer spectra."))
        if number == len(FEATURES):
            means["plain"] = total / number
    return {**means, "all": total / len(kernels)}


def _group_records(records: Bunch, adduct: str) -> dict[str, list[Spectrum]]:
    groups: dict[str, list[Spectrum]] = {}
    for spectrum, key in zip(records.spectra, records.inchikeys, strict=True):
        if spectrum.adduct == adduct:
            groups.setdefault(str(key), []).append(spectrum)
    return groups


def find_scaffold(smiles: str | None) -> str:
    """Return the Murcko scaffold of a molecule: its rings and the chains between them; "" without rings."""
    from rdkit.Chem.Scaffolds import MurckoScaffold

    scaffolds: Any = MurckoScaffold  # it has no type stubs
    return str(scaffolds.MurckoScaffoldSmiles(smiles=smiles or ""))
