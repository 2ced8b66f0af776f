"""Ranked molecules as a tab-separated table with the columns of SIRIUS, which tools join by feature and InChIKey."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from psilearn.utils import open_text_atomically
from psilearn_chem.metabolites.rank import Ranking
from psilearn_chem.metabolites.spectrum_fields import feature_id, precursor_text, retention_seconds
from psilearn_chem.molecules import CandidateLibrary
from psilearn_chem.molecules.smiles import compute_inchi

COLUMNS = (
    "structurePerIdRank",
    "molecularFormula",
    "adduct",
    "InChIkey2D",
    "InChI",
    "name",
    "smiles",
    "ionMass",
    "retentionTimeInSeconds",
    "mappingFeatureId",
    "psilearnSpectrum",
    "psilearnDistance",
    "psilearnProbability",
    "psilearnPValue",
    "psilearnInSet",
)


class SiriusTable:
    """A table as ``structure_identifications.tsv`` of SIRIUS, which is written ranking by ranking.

    The scores of SIRIUS are left out; the columns that begin with psilearn have those of the ranking.
    """

    def __init__(self, file: TextIO, library: CandidateLibrary) -> None:
        self._file = file
        self._library = library
        self._write(COLUMNS)

    def add(self, number: int, ranking: Ranking) -> None:
        """Write one row per molecule of a ranking."""
        rows = [int(row) for row in ranking.rows]
        library, spectrum = self._library, ranking.spectrum
        molecules = zip(library.get_smiles(rows), library.get_names(rows), library.get_formulas(rows), strict=True)
        for i, (smiles, name, formula) in enumerate(molecules):
            inchi, key = compute_inchi(smiles)
            molecule = (str(i + 1), formula, spectrum.adduct or "", key.partition("-")[0], inchi, name, smiles)
            feature = (precursor_text(spectrum), retention_seconds(spectrum), feature_id(spectrum) or str(number))
            probability = "" if ranking.probabilities is None else f"{ranking.probabilities[i]:.6f}"
            p_value = "" if ranking.p_values is None else f"{ranking.p_values[i]:.6f}"
            in_set = "" if ranking.set_size is None else str(bool(ranking.in_set[i])).lower()
            scores = (f"{ranking.distances[i]:.6f}", probability, p_value, in_set)
            self._write((*molecule, *feature, spectrum.name, *scores))

    def _write(self, values: tuple[str, ...]) -> None:
        """Write a line; in texts, tabs and line ends become spaces."""
        self._file.write("\t".join(" ".join(value.split()) for value in values) + "\n")

    @classmethod
    @contextmanager
    def open(cls, path: Path, library: CandidateLibrary) -> Iterator[SiriusTable]:
        """Open a table; if it is not completed, the previous file stays unchanged."""
        with open_text_atomically(path) as file:
            yield cls(file, library)
