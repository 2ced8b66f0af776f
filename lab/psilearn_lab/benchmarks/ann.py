"""Approximate search next to exact search: recall@10, seconds per query and seconds to build, on real molecules.

The candidates are molecules of the metabolite library, embedded in p = 200 dimensions by OEL with a Tanimoto kernel on
Morgan fingerprints; the queries are predictions for spectra that were not used to fit it. The library has 552,680
molecules; ``python -m psilearn_lab.benchmarks.ann N`` takes N of them at random.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

import numpy as np

from psilearn import OEL
from psilearn.decoding import ApproximateCandidates, SharedCandidates
from psilearn.kernels import Tanimoto
from psilearn_chem import ProbabilityProduct
from psilearn_chem.molecules import Fingerprints
from psilearn_lab.benchmarks.measurement import Figures, Run
from psilearn_lab.datasets import load

NEEDS = ("metabolites/spectra.parquet", "metabolites/candidates.parquet", "metabolites/unlabelled.parquet")
K = 10
RECALLS = (0.9, 0.95, 0.99)
LANDMARKS, P = 1000, 200


def embed_library(n_molecules: int, n_spectra: int, p: int) -> tuple[SharedCandidates, Any]:
    """Return embedded molecules and the predicted embeddings of spectra that were not used for the fit."""
    data = load("metabolites")
    fingerprints = Fingerprints(("morgan",))
    rng = np.random.default_rng(0)
    known = rng.permutation(len(data.spectra))[:n_spectra]
    spectra = [data.spectra[i] for i in known]
    targets = compute_bits(fingerprints, [spectrum.smiles for spectrum in spectra])
    smiles = [*data.candidates.smiles, *data.unlabeled.smiles]
    library = compute_bits(fingerprints, [smiles[i] for i in rng.permutation(len(smiles))[:n_molecules]])
    half = n_spectra // 2
    model = OEL(
        ProbabilityProduct(width=0.005).normalized(),
        Tanimoto(packed=True),
        alpha=1e-3,
        n_components=p,
        output_landmarks=min(LANDMARKS, half),
        dtype="float32",
    ).fit(spectra[:half], targets[:half], unlabeled=library[: 5 * LANDMARKS])
    return model.candidate_set(library), model.embed(spectra[half:])


def compute_bits(fingerprints: Fingerprints, smiles: list[str]) -> Any:
    """Return packed fingerprints, one row per molecule."""
    return np.concatenate([chunk.bits for chunk in fingerprints.iter_chunks(smiles)])


def compare(candidates: SharedCandidates, Z: Any) -> list[Figures]:
    """Return recall and seconds of exact and of approximate searches of the second half of the queries."""
    half = len(Z) // 2
    start = perf_counter()
    candidates.nearest(Z[half:], K)
    rows: list[Figures] = [{"route": "exact", "recall": 1.0, "search": (perf_counter() - start) / (len(Z) - half)}]
    for kind in ("ivf", "hnsw"):
        for recall in RECALLS:
            start = perf_counter()
            found = ApproximateCandidates.of(candidates, Z, k=K, kind=kind, min_recall=recall, verbose=False)
            built = perf_counter() - start
            start = perf_counter()
            found.nearest(Z[half:], K)
            seconds = (perf_counter() - start) / (len(Z) - half)
            rows.append(
                {"route": f"{kind}, {recall:g} asked for", "recall": found.recall, "search": seconds, "build": built}
            )
    return rows


def measure(run: Run, n_molecules: int | None = None) -> Figures:
    """Print and return recalls and seconds."""
    n, n_spectra, p = run.select((552_680, 2000, P), (1500, 200, 20))
    candidates, Z = embed_library(n_molecules or n, n_spectra, p)
    rows = compare(candidates, Z)
    exact = rows[0]["search"]
    table = [
        [row["route"], row["recall"], 1e3 * row["search"], exact / row["search"], row.get("build", 0.0)] for row in rows
    ]
    title = f"{len(candidates):,} candidates, p = {p}, {len(Z) - len(Z) // 2} queries"
    run.show_table(title, ["route", f"recall@{K}", "ms per query", "times faster", "build and tuning s"], table)
    met = all(row["recall"] >= float(row["route"].split()[1]) - 0.02 for row in rows[1:])
    run.check_claim("the recall on held-out queries is within 0.02 of what was asked for", met, str(table[1][1]))
    return {"n": len(candidates), "p": p, "rows": rows}


if __name__ == "__main__":
    measure(Run(repeats=1), int(sys.argv[1]))
