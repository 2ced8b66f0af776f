"""The paper's metabolite size: 7593-bit fingerprints, 10⁵ of them without inputs, p = 2000, and millions of candidates.

The fingerprints are artificial: noisy copies of random ones, one bit in eight set, packed. 4000 pairs,
Gaussian-Tanimoto outputs, 5000 output landmarks, float64; 1000 queries against candidates that are embedded during the
search. The seconds are compared with the time of the operations at the highest rates of the machine: products that
count common bits, products that embed and score, and the transfer of bytes to the device.
"""

from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from psilearn import OEL
from psilearn.kernels import Gaussian, GaussianTanimoto
from psilearn.utils import observe_steps
from psilearn_lab.benchmarks.measurement import Array, Figures, Run, StepProfile, show_profile

Bits = npt.NDArray[np.uint8]

N_BYTES = 950  # 7600 bits: 7593, filled up to full bytes
FULL: dict[str, Any] = {
    "n": 4000,
    "m": 100_000,
    "r": 5000,
    "p": 2000,
    "queries": 1000,
    "candidates": 6_400_000,
    "dtype": "float64",
}
CPU: dict[str, Any] = {
    "n": 1000,
    "m": 10_000,
    "r": 1000,
    "p": 300,
    "queries": 200,
    "candidates": 50_000,
    "dtype": "float32",
}
QUICK: dict[str, Any] = {"n": 80, "m": 200, "r": 60, "p": 20, "queries": 10, "candidates": 500, "dtype": "float64"}
CHUNK_ROWS = 200_000


def make_fingerprints(size: int, prototypes: Bits, seed: int) -> Bits:
    """Return packed fingerprints: prototypes with one bit in 64 changed."""
    rng = np.random.default_rng(seed)
    bits = np.empty((size, N_BYTES), dtype=np.uint8)
    for start in range(0, size, CHUNK_ROWS):
        part = bits[start : start + CHUNK_ROWS]
        changed = np.frombuffer(rng.bytes(part.size), dtype=np.uint8).reshape(part.shape)
        noise = np.uint8(1) << (changed & 7)  # one bit of a byte,
        noise[changed >= 32] = 0  # in one byte of eight
        np.bitwise_xor(prototypes[rng.integers(0, len(prototypes), len(part))], noise, out=part)
    return bits


def make_pairs(sizes: dict[str, Any]) -> tuple[Bits, Array, Bits]:
    """Return prototypes, and inputs and fingerprints of the pairs and the queries."""
    rng = np.random.default_rng(0)
    prototypes = np.packbits(rng.random((2000, 8 * N_BYTES)) < 0.125, axis=1)
    centers = rng.standard_normal((len(prototypes), 50))
    classes = rng.integers(0, len(prototypes), sizes["n"] + sizes["queries"])
    X = centers[classes] + 0.3 * rng.standard_normal((len(classes), 50))
    return prototypes, X, make_fingerprints(len(classes), prototypes, 1)


def make_model(sizes: dict[str, Any]) -> OEL:
    """Return the model, not fitted."""
    return OEL(
        Gaussian(0.01),
        GaussianTanimoto(packed=True),
        alpha=1e-5,
        n_components=sizes["p"],
        supervision=0.5,
        output_landmarks=sizes["r"],
        dtype=sizes["dtype"],
    )


def count_operations(sizes: dict[str, Any]) -> dict[str, tuple[str, float]]:
    """Return flops, or bytes, of embedding and searching, with the name of the rate that bounds each."""
    c, r, p, q = (sizes[name] for name in ("candidates", "r", "p", "queries"))
    return {
        "common bits: 2·c·r·7600": ("half", 2.0 * c * r * 8 * N_BYTES),
        "embedding: 2·c·r·p": (sizes["dtype"], 2.0 * c * r * p),
        "scores, two products: 4·q·c·p": ("half", 4.0 * q * c * p),
        "kernel values, about 12 passes": ("copy", 12.0 * c * r * (8 if sizes["dtype"] == "float64" else 4)),
        "candidates to the device": ("to device", float(c * N_BYTES)),
    }


def least_seconds(run: Run, sizes: dict[str, Any]) -> dict[str, float]:
    """Return the seconds of each step of the search at the highest rates of the machine, where they are known."""
    operations = count_operations(sizes).values()
    least = [amount / run.rates[name] if name in run.rates else 0.0 for name, amount in operations]
    bits, embedding, scores, passes, _ = least
    return {
        "kernel values with landmarks": bits + passes,
        "embedding of candidates": embedding,
        "bounds of scores": scores,
    }


def measure(run: Run) -> Figures:
    """Print and return the seconds of the fit and of the search, and the share of the highest rates."""
    sizes = run.select(FULL if run.device == "cuda" else CPU, QUICK)
    n = sizes["n"]
    prototypes, X, Y = make_pairs(sizes)
    model = make_model(sizes)
    unlabeled = make_fingerprints(sizes["m"], prototypes, 2)
    start = perf_counter()
    model.fit(X[:n], Y[:n], unlabeled=unlabeled)
    fit = perf_counter() - start
    del unlabeled
    candidates = make_fingerprints(sizes["candidates"], prototypes, 3)
    start = perf_counter()
    top = model.predict_topk(X[n:], 10, candidates=candidates)
    search = perf_counter() - start
    bound = _report(run, sizes, model.n_components_, fit, search)
    if run.profile:
        profile = StepProfile()
        start = perf_counter()
        with observe_steps(profile):
            model.predict_topk(X[n:], 10, candidates=candidates)
        steps = profile.with_rest(perf_counter() - start)
        show_profile(run, "the search by step", steps, least_seconds(run, sizes))
    distance = float(top.distances[:, 0].mean())
    return {"sizes": sizes, "fit": fit, "search": search, "floor": bound, "distance": distance}


def _report(run: Run, sizes: dict[str, Any], p: int, fit: float, search: float) -> float:
    """Print the seconds next to those at the highest rates; return the latter for the search."""
    rows, bound = [], 0.0
    for name, (rate_name, amount) in count_operations(sizes).items():
        rate = run.rates.get(rate_name)
        if rate:
            bound += amount / rate
            rows.append([name, f"{amount:.2e}", f"{rate / 1e12:.3g}", amount / rate])
    run.show_table("search at the highest rates", ["step", "operations", "10¹² per second", "seconds"], rows)
    run.log(
        f"fit {fit:.1f} s (n = {sizes['n']:,}, m = {sizes['m']:,}, r = {sizes['r']:,}, p = {p:,}); "
        f"{sizes['candidates']:,} candidates embedded and searched for {sizes['queries']:,} queries in {search:.1f} s, "
        f"{search / sizes['candidates'] * 1e6:.2f} µs per candidate; at the highest rates {bound:.1f} s, "
        f"{100 * bound / search:.0f} %"
    )
    if run.device == "cuda":
        run.check_claim("OEL fit with 10⁵ unlabeled fingerprints, p = 2000, under 15 s", fit < 15, f"{fit:.1f} s")
        run.check_claim("6.4 million candidates embedded and searched under 60 s", search < 60, f"{search:.1f} s")
    return bound
