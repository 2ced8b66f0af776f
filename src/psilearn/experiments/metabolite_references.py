"""The data of the experiment on reference spectra: merged spectra, and two separate spectra of some molecules.

Molecules whose [M+H]+ records come from several instruments have a second measurement. One instrument, drawn at random,
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
from psilearn.experiments.experiment import Array, Context
from psilearn.experiments.metabolite_task import open_library

ADDUCT = "[M+H]+"
NO_SPECTRUM = -1


@dataclass(frozen=True)
class ReferenceTask:
    """n molecules with merged spectra, numbered from 0; further spectra follow the merged ones."""

    spectra: list[Spectrum]
    kernels: Mapping[str, Array]  # name → matrix over all spectra
    bits: Bits  # (n, b)  of the molecules
    fold: Index  # (n,)
    rows: list[slice]  # the candidates of each molecule in the library
    truth: Index  # (n,)  the index of the molecule among its candidates
    reference: Index  # (n,)  number of the reference spectrum; −1 if there is one instrument only
    query: Index  # (n,)  number of the spectrum of the other instrument
    scaffold: npt.NDArray[np.str_]  # (n,)  Murcko scaffold
    library: CandidateLibrary

    def __len__(self) -> int:
        return len(self.bits)

    @cached_property
    def has_reference(self) -> npt.NDArray[np.bool_]:
        """Whether a molecule has a second measurement."""
        return self.reference != NO_SPECTRUM

    @cached_property
    def similarity(self) -> Array:
        """The mean of the kernels on peaks and on neutral losses."""
        return np.asarray((self.kernels["peaks"] + self.kernels["losses"]) / 2)

    @property
    def n_candidates(self) -> Index:
        """The number of candidates of each molecule."""
        return np.array([part.stop - part.start for part in self.rows])

    def candidate_bits(self, molecule: int) -> Bits:
        """Return the fingerprints of the candidates of a molecule."""
        return np.asarray(self.library.bits[self.rows[molecule]])


def load_references(context: Context) -> ReferenceTask:
    """Read spectra and records, and compare all spectra."""
    data, records = load_metabolites(), load_metabolite_records()
    n = len(data.spectra[: context.config["spectra"]])
    keys = data.inchikeys[:n]
    library = open_library(data.candidates, Fingerprints(tuple(context.config["fingerprints"])), context)
    found = {spectrum.formula: library.find_formula(spectrum.formula) for spectrum in data.spectra[:n]}
    names = {formula: library.get_names(rows) for formula, rows in found.items()}
    rows = [found[spectrum.formula] for spectrum in data.spectra[:n]]
    truth = [names[spectrum.formula].index(key) for spectrum, key in zip(data.spectra[:n], keys, strict=True)]
    spectra, reference, query = [*data.spectra[:n]], np.full(n, NO_SPECTRUM), np.full(n, NO_SPECTRUM)
    rng = np.random.default_rng(context.seed)
    by_molecule = _group_records(records.spectra, records.inchikeys)
    for i, key in enumerate(keys):
        parts = _split_by_instrument(by_molecule.get(key, []), rng)
        if parts is not None:
            reference[i], query[i] = len(spectra), len(spectra) + 1
            spectra += [_merge(part) for part in parts]
    context.log(f"kernels of {len(spectra)} spectra")
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
        np.array([find_scaffold(spectrum.smiles) for spectrum in data.spectra[:n]]),
        library,
    )


def _compare(spectra: list[Spectrum], width: float) -> dict[str, Array]:
    """Return the matrices of normalized kernels: peaks, losses, and formulas of both."""
    matrices = SpectrumSimilarity.of(spectra, width, formulas=True).matrices
    names = ["peaks", "losses", *(f"formulas {number}" for number in range(1, len(matrices) - 1))]
    return {name: matrix.astype(np.float32) for name, matrix in zip(names, matrices, strict=True)}


def _group_records(spectra: Sequence[Spectrum], keys: Sequence[str]) -> dict[str, list[Spectrum]]:
    groups: dict[str, list[Spectrum]] = {}
    for spectrum, key in zip(spectra, keys, strict=True):
        if spectrum.adduct == ADDUCT:
            groups.setdefault(str(key), []).append(spectrum)
    return groups


def _split_by_instrument(
    records: Sequence[Spectrum], rng: np.random.Generator
) -> tuple[list[Spectrum], list[Spectrum]] | None:
    """Return the records of all instruments but one, and those of this one; None for a single instrument."""
    instruments = sorted({record.metadata.get("instrument", "") for record in records})
    if len(instruments) < 2:
        return None
    chosen = instruments[rng.integers(len(instruments))]
    others = [record for record in records if record.metadata.get("instrument", "") != chosen]
    return others, [record for record in records if record.metadata.get("instrument", "") == chosen]


def _merge(records: Sequence[Spectrum]) -> Spectrum:
    return Cleaning(min_peaks=1)(merge_spectra(records))


def find_scaffold(smiles: str | None) -> str:
    """Return the Murcko scaffold of a molecule: its rings and the chains between them; "" without rings."""
    from rdkit.Chem.Scaffolds import MurckoScaffold

    scaffolds: Any = MurckoScaffold  # it has no type stubs
    return str(scaffolds.MurckoScaffoldSmiles(smiles=smiles or ""))
