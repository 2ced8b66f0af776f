"""Metabolites: the kernel of spectra next to a double loop over peaks, fingerprints, and ranking of candidates."""

import math
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from psilearn import OEL
from psilearn._linalg import Array
from psilearn.kernels import GaussianTanimoto
from psilearn_chem import ProbabilityProduct, spectrum_kernel
from psilearn_chem.metabolites import MetaboliteIdentifier, Ranking
from psilearn_chem.molecules import CandidateLibrary, MoleculeList
from psilearn_chem.spectra import Spectrum
from psilearn_chem.subformula_kernels import FormulaOptions
from psilearn_lab.benchmarks.measurement import Clock, Figures, Run, growth_exponent, time_in_turns, time_stage
from psilearn_lab.datasets import load

NEEDS = ("metabolites/spectra.parquet", "metabolites/candidates.parquet", "metabolites/unlabelled.parquet")
WIDTH = 0.005


def double_loop(A: list[Spectrum], B: list[Spectrum]) -> Array:
    """Return the kernel on peaks as a sum over all pairs of peaks, in pure Python."""
    K = np.empty((len(A), len(B)))
    for i, a in enumerate(A):
        left = list(zip(a.mz.tolist(), np.sqrt(a.intensity).tolist(), strict=True))
        for j, b in enumerate(B):
            right = list(zip(b.mz.tolist(), np.sqrt(b.intensity).tolist(), strict=True))
            K[i, j] = sum(v * w * math.exp(-((m - n) ** 2) / (4 * WIDTH**2)) for m, v in left for n, w in right)
    return K


def one_pair_at_a_time(A: list[Spectrum], B: list[Spectrum]) -> Array:
    """Return the kernel on peaks with one array of all pairs of peaks per pair of spectra."""
    K = np.empty((len(A), len(B)))
    for i, a in enumerate(A):
        for j, b in enumerate(B):
            near = np.exp(-((a.mz[:, None] - b.mz) ** 2) / (4 * WIDTH**2))
            K[i, j] = np.sqrt(a.intensity) @ near @ np.sqrt(b.intensity)
    return K


def measure(run: Run) -> Figures:
    """Print the seconds of every step, check that the routes agree, and return the figures."""
    data = load("metabolites")
    return {"kernel": _measure_kernel(run, data.spectra), "library": _measure_ranking(run, data)}


def _measure_kernel(run: Run, spectra: list[Spectrum]) -> Figures:
    """Compare the routes to the kernel on few spectra, and measure its growth."""
    kernel = ProbabilityProduct(width=WIDTH)
    few = spectra[: run.select(120, 8)]
    routes = {
        "psilearn": partial(kernel, few, few),
        "one pair of spectra at a time": partial(one_pair_at_a_time, few, few),
        "double loop": partial(double_loop, few, few),
    }
    timings = time_in_turns({name: partial(time_stage, route) for name, route in routes.items()}, run.repeats)
    for timing in timings.values():
        assert np.allclose(timing.result, timings["psilearn"].result, rtol=1e-10), "the routes disagree"
    seconds = {name: timing.seconds["seconds"] for name, timing in timings.items()}
    rows = [[name, value, value / seconds["psilearn"]] for name, value in seconds.items()]
    run.show_table(f"kernel on peaks, {len(few)} × {len(few)} spectra", ["route", "seconds", "ratio"], rows)
    sizes, growth = _measure_growth(run, spectra)
    explanation = _measure_explanation(run, spectra[: sizes[-1]])
    ratio = seconds["double loop"] / seconds["psilearn"]
    run.check_claim(
        "the kernel on peaks is at least 50 times as fast as the double loop", ratio >= 50, f"{ratio:.0f} times"
    )
    run.check_claim(f"the kernel of {sizes[-1]} spectra takes under 60 s", growth[-1] < 60, f"{growth[-1]:.1f} s")
    return {
        "seconds": seconds,
        "growth": dict(zip(map(str, sizes), growth, strict=True)),
        "slope": growth_exponent(sizes, growth),
        "explanation": explanation,
    }


def _measure_explanation(run: Run, spectra: list[Spectrum]) -> Figures:
    """Explain all peaks by formulas; return the seconds and the explained shares, averages over spectra."""
    clock, options = Clock(), FormulaOptions("fragments", power=0.5, ppm=10.0, floor=0.002)
    with clock("seconds"):
        peaks = [options.annotate(spectrum).peaks for spectrum in spectra]
    each = list(zip(spectra, peaks, strict=True))
    intensity = [spectrum.intensity[explained].sum() / spectrum.intensity.sum() for spectrum, explained in each]
    figures = {
        "seconds": clock.seconds["seconds"],
        "explained peaks": float(np.mean([len(explained) / len(spectrum) for spectrum, explained in each])),
        "explained intensity": float(np.mean(intensity)),
    }
    rows = [[name, value] for name, value in figures.items()]
    run.show_table(f"formulas of the peaks of {len(spectra)} spectra", ["figure", "value"], rows)
    run.check_claim(
        f"explaining the peaks of {len(spectra)} spectra takes under 60 s",
        figures["seconds"] < 60,
        f"{figures['seconds']:.1f} s",
    )
    return figures


def _measure_growth(run: Run, spectra: list[Spectrum]) -> tuple[list[int], list[float]]:
    """Return numbers of spectra, and the seconds of the kernel on peaks and losses."""
    sizes = run.select([500, 1000, 2000, len(spectra)], [20, 40])
    kernel = spectrum_kernel(width=WIDTH)
    seconds = []
    for n in sizes:
        turn = partial(time_stage, partial(kernel, spectra[:n]))
        seconds.append(time_in_turns({"K": turn}, 1)["K"].seconds["seconds"])
    points = list(zip(sizes, seconds, strict=True))
    run.show_table("peaks and losses, n × n", ["n", "seconds"], [[str(n), s] for n, s in points])
    run.curves["kernel of spectra"] = {"n × n": points}
    return sizes, seconds


def _measure_ranking(run: Run, data: Bunch) -> Figures:
    """Build a library of some molecules, fit OEL₀ at fixed parameters, and rank."""
    n, size, p = run.select((1500, 40_000, 400), (60, 600, 20))
    spectra = data.spectra
    if run.quick:  # neighbors in this order are candidates of each other
        spectra = sorted(spectra, key=lambda spectrum: spectrum.formula)[: n + 20]
    queries = spectra[n : n + run.select(500, 20)]
    formulas = {spectrum.formula for spectrum in spectra}
    smiles = [spectrum.smiles for spectrum in spectra]
    molecules = MoleculeList([*smiles, *data.candidates.smiles[:size]], [""] * (len(smiles) + size))
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        with clock("build"):
            library = CandidateLibrary.build(molecules, Path(folder, "lib"), n_jobs=-1)
        Y = library.fingerprints(smiles[:n]).bits
        model = OEL(spectrum_kernel(0.5), GaussianTanimoto(packed=True), alpha=3e-5, n_components=p, supervision=1.0)
        model.fit(spectra[:n], Y)
        identifier = MetaboliteIdentifier.from_model(model, library.fingerprints, ("[M+H]+",))
        with clock("rank by kernel values"):
            list(identifier.rank(queries, library))
        with clock("embed"):
            library.embedded(model, build=True)
        with clock("rank by embeddings"):
            rankings = list(identifier.rank(queries, library))
        n_candidates = float(np.mean([ranking.n_candidates for ranking in rankings if isinstance(ranking, Ranking)]))
        n_molecules = len(library)
    milliseconds = {
        "build, ms per molecule": 1000 * clock.seconds["build"] / len(molecules.smiles),
        "embed, ms per molecule": 1000 * clock.seconds["embed"] / n_molecules,
        "rank by kernel values, ms per spectrum": 1000 * clock.seconds["rank by kernel values"] / len(queries),
        "rank by embeddings, ms per spectrum": 1000 * clock.seconds["rank by embeddings"] / len(queries),
    }
    title = f"{n_molecules:,} molecules, {len(formulas):,} formulas of spectra, n={n}, p={p}, "
    title += f"{n_candidates:.0f} candidates per spectrum"
    run.show_table(title, ["step", "ms"], [[name, value] for name, value in milliseconds.items()])
    each = milliseconds["rank by embeddings, ms per spectrum"]
    run.check_claim("ranking a spectrum against its candidates takes under 20 ms", each < 20, f"{each:.1f} ms")
    return {**milliseconds, "candidates": n_candidates}
