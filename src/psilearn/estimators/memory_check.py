"""The check before a fit: its peak memory against what is available, and numbers of landmarks that would fit."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np

from psilearn._backend import NUMPY, Compute
from psilearn._utils.samples import Samples, collection_bytes, n_samples, take
from psilearn.embedding import OutputCoordinates
from psilearn.estimators.fit_memory import FitMemory, FitSizes, fit_memory
from psilearn.kernels import Kernel
from psilearn.landmarks.selection import Landmarks

LANDMARK_NUMBERS = (20_000, 10_000, 5000, 3000, 2000, 1000, 500, 300, 200, 100, 50, 20, 10)  # that are suggested
MAX_PROBED = 1000  # outputs whose rank is computed
STEPS = {
    "outputs": "the coordinates of the outputs",
    "regression": "the regression",
    "directions": "the directions of the embedding",
    "candidates": "the embedded outputs",
}


def require_fit_memory(sizes: FitSizes, kernel: Kernel, outputs: Samples, compute: Compute) -> None:
    """Raise MemoryError before a fit whose peak exceeds the available memory.

    The rank of the outputs is not known yet. If the fit fits only with a low rank, the rank of a sample decides whether
    to start it. A GPU is not considered: what does not fit there is reported when it occurs.
    """
    free = None if compute.on_gpu else compute.available_bytes()
    if free is None or fit_memory(sizes).peak <= free:
        return
    if sizes.output_landmarks is None:
        sizes = replace(sizes, rank=probable_rank(kernel, outputs, sizes.n_spanned, free))
    _require(fit_memory(sizes).peak, fit_memory(sizes), sizes, free, compute)


def require_remaining_memory(sizes: FitSizes, compute: Compute) -> None:
    """Raise MemoryError after the output side, whose rank is known now, if the rest of the fit does not fit."""
    free = None if compute.on_gpu else compute.available_bytes()
    memory = fit_memory(sizes)
    if free is not None:
        _require(memory.after_outputs - memory.kept_outputs, memory, sizes, free, compute)


def _require(needed: int, memory: FitMemory, sizes: FitSizes, free: int, compute: Compute) -> None:
    if needed <= free:
        return
    step = max(STEPS, key=lambda name: getattr(memory, name))
    shape = (
        f"n = {sizes.n:,} pairs, d = {sizes.d:,} distinct outputs, q = {sizes.q:,}, r = {sizes.rank:,}, p = {sizes.p:,}"
    )
    compute.require_bytes(needed, f"This fit ({shape}), in {STEPS[step]},", suggestion(sizes, free))


def suggestion(sizes: FitSizes, free: int) -> str:
    """Return numbers of landmarks and the precision with which the fit would fit into the available memory."""
    options = []
    for number in LANDMARK_NUMBERS:
        reduced = with_landmarks(sizes, number)
        if reduced != sizes and fit_memory(reduced).peak <= free:
            options.append(f"{_changes(sizes, reduced)}: {fit_memory(reduced).peak:,} bytes")
            break
    single = fit_memory(replace(sizes, itemsize=4)).peak
    if not sizes.is_single and single <= free:
        options.append(f'set dtype="float32": {single:,} bytes')
    if not options:
        return (
            "No number of landmarks is enough: lower n_components, give unlabeled outputs as a path or an iterator "
            "(these are not stored), or use a machine with more memory."
        )
    sentence = ", or ".join(options)
    return f"{sentence[0].upper()}{sentence[1:]}."


def with_landmarks(sizes: FitSizes, number: int) -> FitSizes:
    """Return the sizes with at most this number of landmarks on each side."""
    if sizes.q > number and not sizes.has_regressor:
        method = "uniform" if sizes.input_landmarks is None else sizes.input_landmarks.method
        sizes = replace(sizes, input_landmarks=Landmarks(number, method))
    if (sizes.n_spanned if sizes.output_landmarks is None else sizes.rank) > number:
        method = "pivoted" if sizes.output_landmarks is None else sizes.output_landmarks.method
        sizes = replace(sizes, output_landmarks=Landmarks(number, method), rank=min(sizes.rank, number))
    return replace(sizes, without_coordinates=sizes.without_coordinates and sizes.may_skip_coordinates)


def _changes(before: FitSizes, after: FitSizes) -> str:
    changes = []
    for name in ("input_landmarks", "output_landmarks"):
        old, new = getattr(before, name), getattr(after, name)
        if new is not old:
            changes.append(f"set {name}={new.n}" if old is None else f"lower {name} to {new.n}")
    return " and ".join(changes)


def probable_rank(kernel: Kernel, outputs: Samples, n: int, free: int | None = None, compute: Compute = NUMPY) -> int:
    """Return the rank of a sample of the outputs if that is not full, else the number of outputs."""
    size = min(n, MAX_PROBED) if free is None else min(n, MAX_PROBED, isqrt(free // 64))
    if size < 2:
        return n
    sample = take(outputs, np.linspace(0, n - 1, size).astype(np.intp))
    rank = OutputCoordinates(kernel, sample, compute).rank
    return n if rank == size else rank


def row_bytes(outputs: Any) -> int:
    """Return the mean size of an output in bytes; 0 if it is not known."""
    return collection_bytes(outputs) // max(1, n_samples(outputs))
