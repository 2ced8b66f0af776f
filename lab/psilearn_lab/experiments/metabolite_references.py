"""The data of the experiment on reference spectra: merged spectra, and two separate spectra of some molecules.

Molecules whose records come from several instruments have a second measurement. One instrument, drawn at random,
gives the query, and the records of the others give the reference spectrum. As queries of known molecules, they are
searched for among candidates whose references are in the training set; as queries of new molecules, no spectrum of the
molecule is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch

from psilearn.utils import Index
from psilearn_chem import CandidateLibrary, Fingerprints, Spectrum
from psilearn_chem.metabolites.parameter_choice import list_kernels
from psilearn_chem.molecules.fingerprints import Bits
from psilearn_chem.spectrum_kernels import FEATURES
from psilearn_lab.datasets.metabolites import load_metabolite_records, load_metabolites
from psilearn_lab.experiments.experiment import Array, Context
from psilearn_lab.experiments.metabolite_measurements import NO_SPECTRUM, Measurements
from psilearn_lab.experiments.metabolite_record_pairs import ComparedRecords
from psilearn_lab.experiments.metabolite_records import load_merged_records
from psilearn_lab.experiments.metabolite_task import open_library

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
    data = load_metabolites() if adduct == PROTONATED else load_merged_records(adduct)
    n = len(data.spectra[: context.config["spectra"]])
    keys, merged = data.inchikeys[:n], data.spectra[:n]
    library = open_library(data.candidates, Fingerprints(tuple(context.config["fingerprints"])), context)
    found = {spectrum.formula: library.find_formula(spectrum.formula) for spectrum in merged}
    names = {formula: library.get_names(rows) for formula, rows in found.items()}
    rows = [found[spectrum.formula] for spectrum in merged]
    truth = [names[spectrum.formula].index(key) for spectrum, key in zip(merged, keys, strict=True)]
    by_molecule = _group_records(load_metabolite_records(), adduct)
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
