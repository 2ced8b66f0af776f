"""The data of the experiment on reference spectra: merged spectra, and two separate spectra of some molecules.

Molecules whose records come from several instruments have a second measurement. One instrument, drawn at random,
gives the query, and the records of the others give the reference spectrum. As queries of known molecules, they are
searched for among candidates whose references are in the training set; as queries of new molecules, no spectrum of the
molecule is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch

from psilearn._utils.samples import Index
from psilearn.chem import (
    CandidateLibrary,
    Cleaning,
    Fingerprints,
    Spectrum,
    load_metabolite_records,
    load_metabolites,
    merge_spectra,
)
from psilearn.chem.metabolites.labeled_spectra import Bits
from psilearn.chem.metabolites.similarity import SpectrumSimilarity
from psilearn.chem.spectrum_kernels import FEATURES
from psilearn.experiments.experiment import Array, Context
from psilearn.experiments.metabolite_record_pairs import ComparedRecords, RecordPairs
from psilearn.experiments.metabolite_records import load_merged_records
from psilearn.experiments.metabolite_task import open_library

PROTONATED = "[M+H]+"
NO_SPECTRUM = -1


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
    data = load_metabolites() if adduct == PROTONATED else load_merged_records(adduct)
    n = len(data.spectra[: context.config["spectra"]])
    keys, merged = data.inchikeys[:n], data.spectra[:n]
    library = open_library(data.candidates, Fingerprints(tuple(context.config["fingerprints"])), context)
    found = {spectrum.formula: library.find_formula(spectrum.formula) for spectrum in merged}
    names = {formula: library.get_names(rows) for formula, rows in found.items()}
    rows = [found[spectrum.formula] for spectrum in merged]
    truth = [names[spectrum.formula].index(key) for spectrum, key in zip(merged, keys, strict=True)]
    by_molecule = _group_records(load_metabolite_records(), adduct)
    spectra, reference, query, records = _add_measurements(merged, [by_molecule.get(key, []) for key in keys], context)
    context.log(f"kernels of {len(spectra)} spectra and {len(records.records)} records")
    bits = np.stack([library.bits[part.start + index] for part, index in zip(rows, truth, strict=True)])
    return ReferenceTask(
        spectra,
        _compare(spectra, context.config["width"]),
        bits,
        data.fold[:n],
        rows,
        np.array(truth),
        reference,
        query,
        np.array([find_scaffold(spectrum.smiles) for spectrum in merged]),
        library,
        records.compare(),
    )


def _add_measurements(
    merged: Sequence[Spectrum], by_molecule: Sequence[Sequence[Spectrum]], context: Context
) -> tuple[list[Spectrum], Index, Index, RecordPairs]:
    """Return the merged spectra, followed by two spectra of each molecule with several instruments, and the records.

    The arrays have the numbers of the reference spectra and of the spectra of queries.
    """
    n = len(merged)
    spectra, reference, query = [*merged], np.full(n, NO_SPECTRUM), np.full(n, NO_SPECTRUM)
    rng, records = np.random.default_rng(context.seed), RecordPairs()
    for i, found in enumerate(by_molecule):
        numbers = records.add(i, str(merged[i].formula), found)
        records.of_spectrum[i] = numbers
        is_query = _draw_instrument(found, rng)
        if is_query is not None:
            reference[i], query[i] = len(spectra), len(spectra) + 1
            for part in (np.flatnonzero(~is_query), np.flatnonzero(is_query)):
                records.of_spectrum[len(spectra)] = numbers[part]
                spectra.append(_merge([found[int(k)] for k in part]))
    return spectra, reference, query, records


def _compare(spectra: list[Spectrum], width: float) -> dict[str, Array]:
    """Return the means of the matrices of normalized kernels: peaks and losses, and formulas of both, too."""
    matrices = SpectrumSimilarity.of(spectra, width, formulas=True).matrices
    plain = matrices[: len(FEATURES)]
    return {name: np.mean(part, axis=0, dtype=np.float32) for name, part in (("all", matrices), ("plain", plain))}


def _group_records(records: Bunch, adduct: str) -> dict[str, list[Spectrum]]:
    groups: dict[str, list[Spectrum]] = {}
    for spectrum, key in zip(records.spectra, records.inchikeys, strict=True):
        if spectrum.adduct == adduct:
            groups.setdefault(str(key), []).append(spectrum)
    return groups


def _draw_instrument(records: Sequence[Spectrum], rng: np.random.Generator) -> npt.NDArray[np.bool_] | None:
    """Return which records are of an instrument that is drawn at random; None for a single instrument."""
    names = np.array([record.metadata.get("instrument", "") for record in records])
    instruments = np.unique(names)
    return None if len(instruments) < 2 else names == instruments[rng.integers(len(instruments))]


def _merge(records: Sequence[Spectrum]) -> Spectrum:
    return Cleaning(min_peaks=1)(merge_spectra(records))


def find_scaffold(smiles: str | None) -> str:
    """Return the Murcko scaffold of a molecule: its rings and the chains between them; "" without rings."""
    from rdkit.Chem.Scaffolds import MurckoScaffold

    scaffolds: Any = MurckoScaffold  # it has no type stubs
    return str(scaffolds.MurckoScaffoldSmiles(smiles=smiles or ""))
