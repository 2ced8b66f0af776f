"""Ranked molecules as a CSV table with one row per molecule."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np

from psilearn.utils import open_text_atomically
from psilearn_chem.metabolites.rank import Ranking
from psilearn_chem.metabolites.spectrum_fields import feature_id, precursor_text, retention_seconds
from psilearn_chem.molecules import CandidateLibrary
from psilearn_chem.molecules.smiles import compute_inchi

COLUMNS = (
    "query",
    "spectrum",
    "feature_id",
    "precursor_mz",
    "adduct",
    "retention_time",
    "rank",
    "smiles",
    "inchikey",
    "name",
    "formula",
    "distance",
    "margin",
    "probability",
    "evidence",
    "p_value",
    "in_set",
    "trained_on",
    "set_size",
    "candidates",
    "found_by",
)


def to_rows(number: int, ranking: Ranking, library: CandidateLibrary) -> list[dict[str, str | int]]:
    """Return one row per ranked molecule of a spectrum.

    ``margin`` is empty for the last candidate; ``p_value``, ``in_set`` and ``set_size`` are empty if the model is not
    calibrated; ``probability`` and ``evidence`` are empty if it has no second stage, and ``evidence`` for molecules
    without reference spectra.
    """
    library_rows = [int(row) for row in ranking.rows]
    smiles, names = library.get_smiles(library_rows), library.get_names(library_rows)
    formulas = library.get_formulas(library_rows)
    is_calibrated = ranking.set_size is not None
    spectrum = ranking.spectrum
    return [
        {
            "query": number,
            "spectrum": spectrum.name,
            "feature_id": feature_id(spectrum),
            "precursor_mz": precursor_text(spectrum),
            "adduct": spectrum.adduct or "",
            "retention_time": retention_seconds(spectrum),
            "rank": f"{ranking.ranks[i]:g}",
            "smiles": smiles[i],
            "inchikey": compute_inchi(smiles[i])[1],
            "name": names[i],
            "formula": formulas[i],
            "distance": f"{ranking.distances[i]:.6f}",
            "margin": "" if np.isinf(ranking.margins[i]) else f"{ranking.margins[i]:.6f}",
            "probability": "" if ranking.probabilities is None else f"{ranking.probabilities[i]:.6f}",
            "evidence": _format_evidence(ranking, i),
            "p_value": "" if ranking.p_values is None else f"{ranking.p_values[i]:.6f}",
            "in_set": _to_yes_or_no(bool(ranking.in_set[i])) if is_calibrated else "",
            "trained_on": _to_yes_or_no(bool(ranking.trained_on[i])),
            "set_size": "" if ranking.set_size is None else ranking.set_size,
            "candidates": ranking.n_candidates,
            "found_by": ranking.how,
        }
        for i in range(len(library_rows))
    ]


class CSVTable:
    """A CSV table that is written ranking by ranking."""

    def __init__(self, file: TextIO, library: CandidateLibrary) -> None:
        self._rows = csv.DictWriter(file, COLUMNS)
        self._rows.writeheader()
        self._library = library

    def add(self, number: int, ranking: Ranking) -> None:
        """Write the rows of a ranking."""
        self._rows.writerows(to_rows(number, ranking, self._library))

    @classmethod
    @contextmanager
    def open(cls, path: Path, library: CandidateLibrary) -> Iterator[CSVTable]:
        """Open a table; if it is not completed, the previous file stays unchanged."""
        with open_text_atomically(path) as file:
            yield cls(file, library)


def format_table(rankings: Iterable[Ranking], library: CandidateLibrary) -> str:
    """Return rankings as the text of a CSV file."""
    text = io.StringIO(newline="")
    table = CSVTable(text, library)
    for number, ranking in enumerate(rankings, 1):
        table.add(number, ranking)
    return text.getvalue()


def _format_evidence(ranking: Ranking, i: int) -> str:
    if ranking.evidence is None or np.isnan(ranking.evidence[i]):
        return ""
    return f"{ranking.evidence[i]:.3f}"


def _to_yes_or_no(flag: bool) -> str:
    return "yes" if flag else "no"
