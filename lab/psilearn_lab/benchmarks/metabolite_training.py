"""Training of a model for metabolites with its second stage, and ranking with an embedded library.

All 3942 spectra train with the default parameters, and 500 of them are ranked among all candidates of their formulas.
Seconds depend on the number of candidates and peaks, not on whether the molecule is known.
"""

import tempfile
from pathlib import Path
from time import process_time

import numpy as np

from psilearn_chem.metabolites import MetaboliteIdentifier, Ranking
from psilearn_chem.molecules import CandidateLibrary, MoleculeList
from psilearn_lab.benchmarks.measurement import Clock, Figures, Run
from psilearn_lab.datasets import load

NEEDS = ("metabolites/spectra.parquet", "metabolites/candidates.parquet", "metabolites/unlabelled.parquet")
MAX_MINUTES = 15
MAX_MILLISECONDS = 20


def measure(run: Run) -> Figures:
    """Print the seconds of each step, and return the figures."""
    n, size, n_queries = run.select((None, None, 500), (80, 600, 20))
    data = load("metabolites")
    spectra = data.spectra[:n]
    candidates = MoleculeList(
        [*(spectrum.smiles for spectrum in spectra), *data.candidates.smiles[:size]],
        [""] * (len(spectra) + len(data.candidates.smiles[:size])),
    )
    clock, queries = Clock(), spectra[:: max(1, len(spectra) // n_queries)][:n_queries]
    with tempfile.TemporaryDirectory() as folder:
        with clock("build"):
            library = CandidateLibrary.build(candidates, Path(folder, "lib"), n_jobs=-1)
        start = process_time()
        with clock("train"):
            identifier = MetaboliteIdentifier(verbose=1).fit(spectra, library)
        training_cpu = process_time() - start
        with clock("embed"):
            library.embedded(identifier.model_, build=True)
        start = process_time()
        with clock("rank"):
            rankings = [item for item in identifier.rank(queries, library) if isinstance(item, Ranking)]
        ranking_cpu = process_time() - start
    each = 1000 * clock.seconds["rank"] / len(queries)
    figures = {
        **{f"{name}, s": seconds for name, seconds in clock.seconds.items()},
        "train, CPU s": training_cpu,
        "rank, ms per spectrum": each,
        "rank, CPU ms per spectrum": 1000 * ranking_cpu / len(queries),
        "candidates per spectrum": float(np.mean([ranking.n_candidates for ranking in rankings])),
        "second stage": float(identifier.second_stage_ is not None),
    }
    title = f"{len(spectra)} training spectra, {len(candidates.smiles):,} candidates"
    run.show_table(title, ["figure", "value"], [[name, value] for name, value in figures.items()])
    minutes = clock.seconds["train"] / 60
    run.check_claim(f"training takes under {MAX_MINUTES} minutes", minutes < MAX_MINUTES, f"{minutes:.1f} minutes")
    run.check_claim(
        f"ranking takes under {MAX_MILLISECONDS} ms per spectrum", each < MAX_MILLISECONDS, f"{each:.1f} ms"
    )
    return figures
