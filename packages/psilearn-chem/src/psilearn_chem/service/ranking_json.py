"""Ranked molecules as JSON: the numbers of the CSV table, the peaks, and which of them each formula explains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psilearn.app.serve.json_values import to_json_numbers
from psilearn_chem import CandidateLibrary, Problem, Ranking
from psilearn_chem.metabolites.spectrum_fields import feature_id
from psilearn_chem.molecules.subformulas import explain_peaks


def encode_rankings(
    rankings: Sequence[Ranking], problems: Sequence[Problem], library: CandidateLibrary, ppm: float
) -> dict[str, Any]:
    """Return all rankings of a job, in the order of its spectra."""
    return {
        "spectra": [encode_ranking(number, ranking, library, ppm) for number, ranking in enumerate(rankings, 1)],
        "problems": [{"source": problem.source, "reason": problem.reason} for problem in problems],
    }


def encode_ranking(number: int, ranking: Ranking, library: CandidateLibrary, ppm: float) -> dict[str, Any]:
    """Return one spectrum with its ranked molecules."""
    spectrum = ranking.spectrum
    candidates = _encode_candidates(ranking, library)
    formulas = dict.fromkeys(candidate["formula"] for candidate in candidates)
    return {
        "number": number,
        "name": spectrum.name,
        "feature_id": feature_id(spectrum),
        "retention_time": spectrum.metadata.get("retention_time"),
        "precursor_mz": spectrum.precursor_mz,
        "adduct": spectrum.adduct,
        "formula": spectrum.formula,
        "mz": spectrum.mz.tolist(),
        "intensity": spectrum.intensity.tolist(),
        "found_by": ranking.how,
        "n_candidates": ranking.n_candidates,
        "set_size": ranking.set_size,
        "confidence": ranking.confidence if ranking.n_candidates > 1 else None,  # the only one has no competitor
        "candidates": candidates,
        "explained": {formula: explain_peaks(spectrum.mz, formula, spectrum.adduct, ppm) for formula in formulas},
    }


def _encode_candidates(ranking: Ranking, library: CandidateLibrary) -> list[dict[str, Any]]:
    rows = [int(row) for row in ranking.rows]
    columns = {
        "row": rows,
        "rank": ranking.ranks.tolist(),
        "smiles": library.get_smiles(rows),
        "name": library.get_names(rows),
        "formula": library.get_formulas(rows),
        "distance": to_json_numbers(ranking.distances),
        "margin": to_json_numbers(ranking.margins),
        "p_value": [None] * len(rows) if ranking.p_values is None else to_json_numbers(ranking.p_values),
        "probability": [None] * len(rows) if ranking.probabilities is None else to_json_numbers(ranking.probabilities),
        "in_set": [None] * len(rows) if ranking.set_size is None else ranking.in_set.tolist(),
        "trained_on": ranking.trained_on.tolist(),
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
