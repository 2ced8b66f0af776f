"""The paper's metabolite size: 7593-bit fingerprints, 10⁵ of them without inputs, p = 2000, and millions of candidates.

Fingerprints are made up: noisy copies of random ones, one bit in eight set, packed. 4000 pairs, Gaussian-Tanimoto
outputs, 5000 output landmarks, float64; 1000 queries against candidates that are embedded while they are searched.
Beside the seconds stands what the operations would take at the ceilings of this machine: products that count common
bits, products that embed and score, and the bytes that must come to the device.
"""

from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.report import Run
from psilearn import OEL
from psilearn.kernels import Gaussian, GaussianTanimoto

BYTES = 950  # 7600 bits: 7593 and the rest of a byte
FULL = {"n": 4000, "m": 100_000, "r": 5000, "p": 2000, "queries": 1000, "candidates": 6_400_000, "dtype": "float64"}
CPU = {"n": 1000, "m": 10_000, "r": 1000, "p": 300, "queries": 200, "candidates": 50_000, "dtype": "float32"}
QUICK = {"n": 80, "m": 200, "r": 60, "p": 20, "queries": 10, "candidates": 500, "dtype": "float64"}
CHUNK = 200_000


def fingerprints(size: int, prototypes: Any, seed: int) -> Any:
    """Return so many packed fingerprints: prototypes, with one bit in 64 changed."""
    rng = np.random.default_rng(seed)
    bits = np.empty((size, BYTES), dtype=np.uint8)
    for start in range(0, size, CHUNK):
        part = bits[start : start + CHUNK]
        flips = rng.bytes(part.size)
        changed = np.frombuffer(flips, dtype=np.uint8).reshape(part.shape)
        noise = np.uint8(1) << (changed & 7)  # one bit of a byte,
        noise[changed >= 32] = 0  # in one byte of eight
        np.bitwise_xor(prototypes[rng.integers(0, len(prototypes), len(part))], noise, out=part)
    return bits


def operations(sizes: dict[str, Any]) -> dict[str, tuple[str, float]]:
    """Return flops, or bytes, of embedding and searching, with the ceiling that each is held against."""
    c, r, p, q = (sizes[name] for name in ("candidates", "r", "p", "queries"))
    return {
        "common bits: 2·c·r·7600": ("tf32", 2.0 * c * r * 8 * BYTES),
        "embedding: 2·c·r·p": (sizes["dtype"], 2.0 * c * r * p),
        "scores: 2·q·c·p": ("float32", 2.0 * q * c * p),
        "kernel values, about 12 passes": ("copy", 12.0 * c * r * (8 if sizes["dtype"] == "float64" else 4)),
        "candidates to the device": ("to device", float(c * BYTES)),
    }


def measure(run: Run) -> dict[str, Any]:
    """Print and return the seconds of the fit and of the search, and the share of the ceilings."""
    sizes = run.size(FULL if run.device == "cuda" else CPU, QUICK)
    rng = np.random.default_rng(0)
    prototypes = np.packbits(rng.random((2000, 8 * BYTES)) < 0.125, axis=1)
    centres = rng.standard_normal((len(prototypes), 50))
    which = rng.integers(0, len(prototypes), sizes["n"] + sizes["queries"])
    X = centres[which] + 0.3 * rng.standard_normal((len(which), 50))
    Y = fingerprints(len(which), prototypes, 1)
    U = fingerprints(sizes["m"], prototypes, 2)
    model = OEL(
        Gaussian(0.01),
        GaussianTanimoto(packed=True),
        1e-5,
        sizes["p"],
        supervision=0.5,
        output_landmarks=sizes["r"],
        dtype=sizes["dtype"],
    )
    n = sizes["n"]
    start = perf_counter()
    model.fit(X[:n], Y[:n], unlabeled=U)
    fit = perf_counter() - start
    del U
    C = fingerprints(sizes["candidates"], prototypes, 3)
    start = perf_counter()
    top = model.predict_topk(X[n:], 10, candidates=C)
    search = perf_counter() - start
    rates = {**run.gemm, "copy": run.copy, "to device": run.to_device}
    rows, floor = [], 0.0
    for name, (ceiling, amount) in operations(sizes).items():
        if rates.get(ceiling):
            seconds = amount / rates[ceiling]
            floor += seconds
            rows.append([name, f"{amount:.2e}", f"{rates[ceiling] / 1e12:.3g}", seconds])
    run.table("search at the ceilings", ["step", "operations", "10¹² a second", "seconds"], rows)
    run.say(
        f"fit {fit:.1f} s (n = {n:,}, m = {sizes['m']:,}, r = {sizes['r']:,}, p = {model.n_components_:,}); "
        f"{sizes['candidates']:,} candidates embedded and searched for {sizes['queries']:,} queries in {search:.1f} s, "
        f"{search / sizes['candidates'] * 1e6:.2f} µs a candidate; the ceilings allow {floor:.1f} s: "
        f"{100 * floor / search:.0f} %"
    )
    if run.device == "cuda":
        run.claim("OEL fit with 10⁵ unlabeled fingerprints, p = 2000, under 15 s", fit < 15, f"{fit:.1f} s")
        run.claim("6.4 million candidates embedded and searched under 60 s", search < 60, f"{search:.1f} s")
    return {"sizes": sizes, "fit": fit, "search": search, "floor": floor, "distance": float(top.distances[:, 0].mean())}
