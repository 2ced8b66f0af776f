"""Metabolites: the kernel of spectra beside the double loop over peaks, fingerprints, and ranking of candidates."""

import math
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Clock, Run, in_turns, slope
from psilearn import OEL
from psilearn._linalg import Array
from psilearn.chem import ProbabilityProduct, load_metabolites, spectrum_kernel
from psilearn.chem.metabolites import MetaboliteIdentifier, rank_spectra
from psilearn.chem.molecules import CandidateLibrary, MoleculeList
from psilearn.chem.spectra import Spectrum
from psilearn.kernels import GaussianTanimoto

NEEDS = ("metabolites/spectra.parquet", "metabolites/candidates.parquet", "metabolites/unlabelled.parquet")
WIDTH = 0.005


def double_loop(A: list[Spectrum], B: list[Spectrum]) -> Array:
    """Return the kernel on peaks by the sum over all pairs of them, in plain Python."""
    K = np.empty((len(A), len(B)))
    for i, a in enumerate(A):
        left = list(zip(a.mz.tolist(), np.sqrt(a.intensity).tolist(), strict=True))
        for j, b in enumerate(B):
            right = list(zip(b.mz.tolist(), np.sqrt(b.intensity).tolist(), strict=True))
            K[i, j] = sum(v * w * math.exp(-((m - n) ** 2) / (4 * WIDTH**2)) for m, v in left for n, w in right)
    return K


def one_pair_at_a_time(A: list[Spectrum], B: list[Spectrum]) -> Array:
    """Return the same with all pairs of peaks of two spectra in one array."""
    K = np.empty((len(A), len(B)))
    for i, a in enumerate(A):
        for j, b in enumerate(B):
            near = np.exp(-((a.mz[:, None] - b.mz) ** 2) / (4 * WIDTH**2))
            K[i, j] = np.sqrt(a.intensity) @ near @ np.sqrt(b.intensity)
    return K


def timed(work: Any, clock: Clock) -> Any:
    """Run one turn."""
    with clock("seconds"):
        return work()


def measure(run: Run) -> dict[str, Any]:
    """Print the seconds of every step, check that the routes agree, and return the figures."""
    data = load_metabolites()
    return {"kernel": _kernel(run, data.spectra), "library": _ranking(run, data)}


def _kernel(run: Run, spectra: list[Spectrum]) -> dict[str, Any]:
    kernel = ProbabilityProduct(width=WIDTH)
    few = spectra[: run.size(120, 8)]
    methods = {
        "psilearn": partial(timed, lambda: kernel(few, few)),
        "one pair of spectra at a time": partial(timed, lambda: one_pair_at_a_time(few, few)),
        "double loop": partial(timed, lambda: double_loop(few, few)),
    }
    measured = in_turns(methods, run.repeats)
    for one in measured.values():
        assert np.allclose(one.result, measured["psilearn"].result, rtol=1e-10), "the routes disagree"
    seconds = {name: one.seconds["seconds"] for name, one in measured.items()}
    rows = [[name, value, value / seconds["psilearn"]] for name, value in seconds.items()]
    run.table(f"kernel on peaks, {len(few)} × {len(few)} spectra", ["route", "seconds", "times psilearn's"], rows)
    sizes = run.size([500, 1000, 2000, len(spectra)], [20, 40])
    whole = spectrum_kernel(width=WIDTH)
    growth = [in_turns({"K": partial(timed, lambda n=n: whole(spectra[:n]))}, 1)["K"].seconds["seconds"] for n in sizes]
    run.table("peaks and losses, n × n", ["n", "seconds"], [[str(n), s] for n, s in zip(sizes, growth, strict=True)])
    run.curves["kernel of spectra"] = {"n × n": list(zip(sizes, growth, strict=True))}
    ratio = seconds["double loop"] / seconds["psilearn"]
    run.claim("the kernel on peaks at least 50 times as fast as the double loop", ratio >= 50, f"{ratio:.0f} times")
    run.claim(f"the kernel of {sizes[-1]} spectra under 60 s", growth[-1] < 60, f"{growth[-1]:.1f} s")
    return {
        "seconds": seconds,
        "growth": dict(zip(map(str, sizes), growth, strict=True)),
        "slope": slope(sizes, growth),
    }


def _ranking(run: Run, data: Any) -> dict[str, Any]:
    """Build a library of some molecules, fit an OEL₀ without any choice of parameters, and rank."""
    n, size, p = run.size((1500, 40_000, 400), (60, 600, 20))
    queries = data.spectra[n : n + run.size(500, 20)]
    formulas = {spectrum.formula for spectrum in data.spectra}
    own = [s.smiles for s in data.spectra]
    listed = MoleculeList([*own, *data.candidates.smiles[:size]], [""] * (len(own) + size))
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        with clock("build"):
            library = CandidateLibrary.build(listed, Path(folder, "lib"), n_jobs=-1)
        Y = library.fingerprints(own[:n]).bits
        model = OEL(spectrum_kernel(0.5), GaussianTanimoto(packed=True), 3e-5, p, 1.0).fit(data.spectra[:n], Y)
        identifier = MetaboliteIdentifier(model, library.fingerprints, ("[M+H]+",))
        for stage in ("rank by kernel values", "rank by embeddings"):
            with clock(stage):
                found = list(rank_spectra(identifier, queries, library))
            if stage == "rank by kernel values":
                with clock("embed"):
                    library.embedded(model, build=True)
        count = float(np.mean([ranking.n_candidates for ranking in found]))
    each = {
        "build, ms a molecule": 1000 * clock.seconds["build"] / len(listed.smiles),
        "embed, ms a molecule": 1000 * clock.seconds["embed"] / len(library),
        "rank by kernel values, ms a spectrum": 1000 * clock.seconds["rank by kernel values"] / len(queries),
        "rank by embeddings, ms a spectrum": 1000 * clock.seconds["rank by embeddings"] / len(queries),
    }
    title = (
        f"{len(library):,} molecules ({len(formulas):,} formulas asked for), n={n}, p={p}, {count:.0f} candidates each"
    )
    run.table(title, ["step", "ms"], [[name, value] for name, value in each.items()])
    slowest = each["rank by embeddings, ms a spectrum"]
    run.claim("ranking a spectrum against its candidates under 20 ms", slowest < 20, f"{slowest:.1f} ms")
    return {**each, "candidates": count}
