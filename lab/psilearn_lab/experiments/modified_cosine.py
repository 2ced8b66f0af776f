"""The modified cosine of two spectra, the usual similarity of a library search."""

from __future__ import annotations

import numpy as np

from psilearn.utils import Index
from psilearn_chem import Spectrum
from psilearn_lab.experiments.experiment import Array

TOLERANCE = 0.01  # Da


def modified_cosine(a: Spectrum, b: Spectrum, power: float = 0.5) -> float:
    """Return the cosine over pairs of peaks at the same m/z, or at the same distance from the precursor.

    Each peak has at most one partner; the pairs with the highest products are chosen first. Intensities are raised to
    ``power``.
    """
    heights = a.intensity**power, b.intensity**power
    shift = (a.precursor_mz or 0.0) - (b.precursor_mz or 0.0)
    left, right = _find_pairs(a.mz, b.mz)
    if abs(shift) > TOLERANCE:
        shifted = _find_pairs(a.mz, b.mz + shift)
        left, right = np.append(left, shifted[0]), np.append(right, shifted[1])
    products = heights[0][left] * heights[1][right]
    used_left, used_right, total = set(), set(), 0.0
    for pair in np.argsort(-products, kind="stable"):
        i, j = int(left[pair]), int(right[pair])
        if i not in used_left and j not in used_right:
            used_left.add(i)
            used_right.add(j)
            total += float(products[pair])
    return total / float(np.linalg.norm(heights[0]) * np.linalg.norm(heights[1]))


def _find_pairs(left: Array, right: Array) -> tuple[Index, Index]:
    """Return the indices of all pairs of ascending positions within the tolerance."""
    first = np.searchsorted(right, left - TOLERANCE)
    counts = np.searchsorted(right, left + TOLERANCE, side="right") - first
    i = np.repeat(np.arange(len(left)), counts)
    offsets = np.arange(len(i)) - np.repeat(np.cumsum(counts) - counts, counts)
    return i, np.repeat(first, counts) + offsets
