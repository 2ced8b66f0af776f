"""Spectra as SVG elements: one line per peak, and the peaks that support a molecule marked."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psilearn_chem.spectra import Spectrum

MAX_LABELS = 6  # peaks whose m/z is written
LABEL_WIDTH = 52.0  # pixels
WIDTH, HEIGHT, MARGIN = 560, 240, 34  # of the drawn spectrum, in pixels
FLOOR = HEIGHT - MARGIN


class _Scale(NamedTuple):
    """Where peaks are drawn."""

    low: float  # m/z at the left margin
    high: float  # m/z at the right margin
    x: NDArray[np.float64]  # (k,)  of each peak
    y: NDArray[np.float64]  # (k,)  of the top of each peak

    def at(self, mz: float) -> float:
        return MARGIN + (mz - self.low) * (WIDTH - 2 * MARGIN) / (self.high - self.low)


def draw_spectrum(spectrum: Spectrum, identifier: str = "") -> str:
    """Return the spectrum as an SVG element, the highest peaks labeled with their m/z.

    With an identifier, the peaks of the element can be drawn again by :func:`draw_support`.
    """
    scale = _scale(spectrum)
    x, y = scale.x, scale.y
    labels = "".join(_format_label(x[i], y[i] - 4, f"{spectrum.mz[i]:.3f}") for i in _choose_labels(x, y))
    ticks = "".join(
        _format_label(scale.at(value), FLOOR + 16, f"{value:g}") for value in _choose_ticks(scale.low, scale.high)
    )
    precursor = ""
    if spectrum.precursor_mz is not None:
        precursor = f'<path class="precursor" d="M{scale.at(spectrum.precursor_mz):.1f} {FLOOR}V{MARGIN}"/>'
    highest = max(float(spectrum.mz.max()), spectrum.precursor_mz or 0.0)
    name = escape(f"mass spectrum, m/z {scale.low:.1f} to {highest:.1f}, {len(spectrum)} peaks", quote=True)
    attribute = f' id="{escape(identifier, quote=True)}"' if identifier else ""
    return (
        f'<svg class="spectrum" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">{precursor}'
        f'<path class="axis" d="M{MARGIN} {FLOOR}H{WIDTH - MARGIN}"/>'
        f'<path class="peaks"{attribute} d="{_draw_peaks(scale)}"/>{labels}{ticks}'
        f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - 4}" text-anchor="end">m/z</text></svg>'
    )


def draw_support(spectrum: Spectrum, supporting: NDArray[np.bool_], identifier: str) -> str:
    """Return a small spectrum in which some peaks are marked; the others are those of an element of the same page."""
    scale = _scale(spectrum)
    marked = _Scale(scale.low, scale.high, scale.x[supporting], scale.y[supporting])
    name = f"the spectrum, {int(supporting.sum())} of its {len(spectrum)} peaks marked"
    return (
        f'<svg class="support" viewBox="{MARGIN} {MARGIN - 4} {WIDTH - 2 * MARGIN} {FLOOR - MARGIN + 6}" role="img" '
        f'aria-label="{name}"><use href="#{escape(identifier, quote=True)}"/>'
        f'<path class="marked" d="{_draw_peaks(marked)}"/></svg>'
    )


def _scale(spectrum: Spectrum) -> _Scale:
    low, high = float(spectrum.mz.min()), float(max(spectrum.mz.max(), spectrum.precursor_mz or 0.0))
    high = max(high, low + 1.0)
    x = MARGIN + (spectrum.mz - low) * (WIDTH - 2 * MARGIN) / (high - low)
    return _Scale(low, high, x, FLOOR - (FLOOR - MARGIN) * spectrum.intensity / spectrum.intensity.max())


def _draw_peaks(scale: _Scale) -> str:
    return " ".join(f"M{x:.1f} {FLOOR}V{y:.1f}" for x, y in zip(scale.x, scale.y, strict=True))


def _format_label(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{text}</text>'


def _choose_labels(x: NDArray[np.float64], y: NDArray[np.float64]) -> list[int]:
    """Return the highest peaks (smallest y) whose labels do not overlap, highest first."""
    chosen: list[int] = []
    for i in np.argsort(y, kind="stable"):
        if len(chosen) < MAX_LABELS and all(abs(x[i] - x[j]) > LABEL_WIDTH for j in chosen):
            chosen.append(int(i))
    return chosen


def _choose_ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers between two numbers."""
    step = 10 ** np.floor(np.log10((high - low) / 2))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= 6)
    return [float(value) for value in np.arange(np.ceil(low / step) * step, high + 1e-9, step)]
