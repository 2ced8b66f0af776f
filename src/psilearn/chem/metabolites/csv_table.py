"""Ranked molecules as a table: one line a molecule."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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


def lines(number: int, ranking: Ranking, library: CandidateLibrary) -> list[dict[str, Any]]:
    """Return the molecules of one spectrum; margin is empty after the last candidate, in_set without calibration."""
    rows = [int(row) for row in ranking.rows]
    texts = zip(library.smiles(rows), library.names(rows), library.formulas_of(rows), strict=True)
    return [
        {
            "query": number,
            "spectrum": ranking.spectrum.name,
            "rank": f"{ranking.ranks[i]:g}",
            "smiles": smiles,
            "name": name,
            "formula": formula,
            "distance": f"{ranking.distances[i]:.6f}",
            "margin": "" if np.isinf(ranking.margins[i]) else f"{ranking.margins[i]:.6f}",
            "in_set": "" if ranking.set_size is None else _word(ranking.in_set[i]),
            "trained_on": _word(ranking.trained_on[i]),
            "set_size": "" if ranking.set_size is None else ranking.set_size,
            "candidates": ranking.n_candidates,
            "found_by": ranking.how,
        }
        for i, (smiles, name, formula) in enumerate(texts)
    ]


def write_table(rankings: Iterable[Ranking], library: CandidateLibrary, path: Path) -> None:
    """Write a CSV file; an interrupted write leaves the former one."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for number, ranking in enumerate(rankings, 1):
        writer.writerows(lines(number, ranking, library))
    write_atomically(path, text.getvalue().encode())


def _word(flag: Any) -> str:
    return "yes" if flag else "no"
