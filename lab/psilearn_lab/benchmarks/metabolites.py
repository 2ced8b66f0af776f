"""Training of a model for metabolites with its second stage, and ranking with an embedded library.

All 3942 spectra train with the default parameters, and 500 of them are ranked among all candidates of their formulas.
Seconds depend on the number of candidates and peaks, not on whether the molecule is known. Then the command ranks
20,000 spectra: those of the dataset, repeated under other names, with a library of their molecules and 2000 of the
candidates, and a model that is trained on 200 spectra and calibrated on 100 others.
"""

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import typer
from sklearn.utils import Bunch

from psilearn import OEL
from psilearn.decoding import PerExampleCandidates
from psilearn.kernels import GaussianTanimoto
from psilearn_chem import spectrum_kernel
from psilearn_chem.commands import rank_candidates
from psilearn_chem.metabolites import MetaboliteIdentifier, Ranking
from psilearn_chem.molecules import CandidateLibrary, MoleculeList
from psilearn_chem.spectra import Spectrum
from psilearn_lab.benchmarks.measurement import Clock, Figures, Run, run_in_child
from psilearn_lab.datasets import load

NEEDS = ("metabolites/spectra.parquet", "metabolites/candidates.parquet", "metabolites/unlabelled.parquet")
MAX_MINUTES = 15
MAX_MILLISECONDS = 20
MAX_BYTES = 10**9


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


def measure_stream(run: Run) -> Figures:
    """Print seconds and memory of the command, and return the figures."""
    n_spectra, n_train, size, p = run.select((20_000, 200, 2_000, 100), (120, 60, 600, 20))
    data = load("metabolites")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _prepare(data, folder, n_train, size, p)
        _write_mgf(data.spectra, folder / "spectra.mgf", n_spectra)
        figures = run_in_child("metabolites", "rank_file", folder=name)
    peak = figures["peak_bytes"]
    rows = [
        ["ms per spectrum", 1000 * figures["seconds"] / n_spectra],
        ["peak MB", peak / 1e6],
        ["MB after the imports", figures["baseline_bytes"] / 1e6],
        ["report MB", figures["report_bytes"] / 1e6],
        ["files of the report", figures["pages"]],
    ]
    run.show_table(f"{n_spectra:,} spectra, table and report", ["figure", "value"], rows)
    run.check_claim(f"ranking {n_spectra:,} spectra needs under 1 GB", peak < MAX_BYTES, f"{peak / 1e6:.0f} MB")
    return figures


def rank_file(folder: str) -> Figures:
    """Rank the spectra of the folder with the command, in this process."""
    path = Path(folder)
    start = perf_counter()
    with contextlib.suppress(typer.Exit):  # status 1: spectra without candidate in the library
        rank_candidates(path / "spectra.mgf", path / "model", path / "lib", path / "r.csv", path / "r.html")
    seconds = perf_counter() - start
    pages = [path / "r.html", *path.glob("r-pages/*.html")]
    return {"seconds": seconds, "report_bytes": sum(page.stat().st_size for page in pages), "pages": len(pages)}


def _prepare(data: Bunch, folder: Path, n: int, size: int, p: int) -> None:
    """Build and embed a library, and save a calibrated model."""
    spectra: list[Spectrum] = data.spectra
    smiles = [str(spectrum.smiles) for spectrum in spectra]
    molecules = MoleculeList([*smiles, *data.candidates.smiles[:size]], [""] * (len(smiles) + size))
    library = CandidateLibrary.build(molecules, folder / "lib", n_jobs=-1)
    bits = library.fingerprints(smiles[: n + n // 2]).bits
    model = OEL(spectrum_kernel(0.5), GaussianTanimoto(packed=True), alpha=3e-5, n_components=p, supervision=1.0)
    model.fit(spectra[:n], bits[:n])
    held_out = spectra[n : n + n // 2]
    sets = [library.bits[library.find_formula(str(spectrum.formula))] for spectrum in held_out]
    model.calibrate(held_out, bits[n:], PerExampleCandidates(sets))
    library.embedded(model, build=True)
    MetaboliteIdentifier.from_model(model, library.fingerprints, ("[M+H]+",)).save(folder / "model")


def _write_mgf(spectra: Sequence[Spectrum], path: Path, n: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for i in range(n):
            file.writelines(_format_mgf(spectra[i % len(spectra)], i))


def _format_mgf(spectrum: Spectrum, number: int) -> Iterator[str]:
    yield f"BEGIN IONS\nFEATURE_ID={number}\nTITLE=spectrum {number}\nPEPMASS={spectrum.precursor_mz}\n"
    yield f"RTINSECONDS={number / 10}\nADDUCT=[M+H]+\nFORMULA={spectrum.formula}\n"
    for mz, intensity in zip(spectrum.mz, spectrum.intensity, strict=True):
        yield f"{mz:.5f} {intensity:.5f}\n"
    yield "END IONS\n\n"
