"""Ranked molecules as a CSV table with one row per molecule."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from psilearn._utils.files import write_atomically
from psilearn.chem.metabolites.rank import Ranking
from psilearn.chem.molecules import CandidateLibrary

COLUMNS = (
    "query",
    "spectrum",
    "rank",
    "smiles",
    "name",
    "formula",
    "distance",
    "margin",
    "in_set",
    "trained_on",
    "set_size",
    "candidates",
    "found_by",
)


def to_rows(number: int, ranking: Ranking, library: CandidateLibrary) -> list[dict[str, str | int]]:
    """Return one row per ranked molecule of a spectrum.

    ``margin`` is empty for the last candidate; ``in_set`` and ``set_size`` are empty if the model is not calibrated.
    """
    library_rows = [int(row) for row in ranking.rows]
    smiles, names = library.get_smiles(library_rows), library.get_names(library_rows)
    formulas = library.get_formulas(library_rows)
    is_calibrated = ranking.set_size is not None
    return [
        {
            "query": number,
            "spectrum": ranking.spectrum.name,
            "rank": f"{ranking.ranks[i]:g}",
            "smiles": smiles[i],
            "name": names[i],
            "formula": formulas[i],
            "distance": f"{ranking.distances[i]:.6f}",
            "margin": "" if np.isinf(ranking.margins[i]) else f"{ranking.margins[i]:.6f}",
            "in_set": _to_yes_or_no(bool(ranking.in_set[i])) if is_calibrated else "",
            "trained_on": _to_yes_or_no(bool(ranking.trained_on[i])),
            "set_size": "" if ranking.set_size is None else ranking.set_size,
            "candidates": ranking.n_candidates,
            "found_by": ranking.how,
        }
        for i in range(len(library_rows))
    ]


def write_table(rankings: Iterable[Ranking], library: CandidateLibrary, path: Path) -> None:
    """Write rankings to a CSV file; if the write is interrupted, the previous file stays unchanged."""
    write_atomically(path, format_table(rankings, library).encode())


def format_table(rankings: Iterable[Ranking], library: CandidateLibrary) -> str:
    """Return rankings as the text of a CSV file."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for number, ranking in enumerate(rankings, 1):
        writer.writerows(to_rows(number, ranking, library))
    return text.getvalue()


def _to_yes_or_no(flag: bool) -> str:
    return "yes" if flag else "no"
