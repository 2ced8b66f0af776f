"""An HTML page that shows each spectrum next to its nearest molecules; it needs neither scripts nor a network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from psilearn import __version__
from psilearn._utils.files import write_atomically
from psilearn.chem.metabolites.rank import Ranking
from psilearn.chem.molecules import CandidateLibrary
from psilearn.chem.molecules.smiles import draw_svg
from psilearn.chem.spectra import Problem, Spectrum

MAX_STRUCTURES = 6  # per spectrum
MAX_LABELS = 6  # peaks whose m/z is written
LABEL_WIDTH = 52.0  # pixels
WIDTH, HEIGHT, MARGIN = 560, 240, 34  # of the drawn spectrum, in pixels


def write_page(
    rankings: Sequence[Ranking], problems: Sequence[Problem], library: CandidateLibrary, coverage: float, path: Path
) -> None:
    """Write rankings to an HTML page; if the write is interrupted, the previous file stays unchanged."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    items = "".join(f"<li><b>{escape(p.source)}</b>: {escape(p.reason)}</li>\n" for p in problems)
    not_ranked = f"<section><h2>Not ranked</h2>\n<ul>\n{items}</ul></section>\n" if problems else ""
    sections = "".join(_format_section(ranking, library, number) for number, ranking in enumerate(rankings, 1))
    is_calibrated = any(ranking.set_size is not None for ranking in rankings)
    sets = (
        f"A colored frame marks the conformal set: over many spectra like those of the calibration, it contains the "
        f"true molecule with probability {coverage:.0%} if that molecule is among the candidates."
        if is_calibrated
        else "The model was not calibrated, so no conformal sets are shown."
    )
    text = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Ranked molecules</title>
<style>
{style}</style>
</head>
<body>
<header>
<p class="eyebrow">psilearn {escape(__version__)}</p>
<h1>Ranked molecules</h1>
<p>{len(rankings)} spectra and a library of {len(library):,} molecules (sha256 {escape(library.hash[:16])}…).
Distances are squared distances in the output space; smaller is nearer. {sets}</p>
</header>
<main>
{sections}{not_ranked}</main>
</body>
</html>
"""
    write_atomically(path, text.encode())


def _format_section(ranking: Ranking, library: CandidateLibrary, number: int) -> str:
    """Return the part of the page about one spectrum."""
    spectrum = ranking.spectrum
    facts = [
        f"precursor m/z {spectrum.precursor_mz:.4f}" if spectrum.precursor_mz is not None else "",
        spectrum.adduct or "",
        f"{len(spectrum)} peaks",
        f"{ranking.n_candidates:,} candidates of {ranking.how}",
        f"{ranking.set_size:,} in the conformal set" if ranking.set_size is not None else "",
    ]
    rows = [int(row) for row in ranking.rows[:MAX_STRUCTURES]]
    molecules = zip(library.get_smiles(rows), library.get_names(rows), library.get_formulas(rows), strict=True)
    cards = "".join(_format_card(ranking, i, *molecule) for i, molecule in enumerate(molecules))
    return f"""<section id="s{number}">
<h2>{escape(spectrum.name or f"spectrum {number}")}</h2>
<p class="facts">{escape(" · ".join(fact for fact in facts if fact))}</p>
<div class="pair">
<figure>{draw_spectrum(spectrum)}</figure>
<ol>
{cards}</ol>
</div>
</section>
"""


def _format_card(ranking: Ranking, i: int, smiles: str, name: str, formula: str) -> str:
    """Return the structure of the i-th ranked molecule with its rank and distance."""
    margin = "" if np.isinf(ranking.margins[i]) else f", next {ranking.margins[i]:+.4f}"
    title = f"<b>{escape(name)}</b> " if name else ""
    picture = draw_svg(smiles) or "<p>(cannot be drawn)</p>"
    attribute = ' class="in-set"' if ranking.in_set[i] else ""
    return f"""<li{attribute}>
{picture}
<p>rank {ranking.ranks[i]:g} · distance {ranking.distances[i]:.4f}{margin}</p>
<p>{title}{escape(formula)}{" · trained on" if ranking.trained_on[i] else ""}</p>
<p><code>{escape(smiles)}</code></p>
</li>
"""


def draw_spectrum(spectrum: Spectrum) -> str:
    """Return the spectrum as an SVG element: one line per peak, the highest ones labeled with their m/z."""
    low, high = float(spectrum.mz.min()), float(max(spectrum.mz.max(), spectrum.precursor_mz or 0.0))
    span = max(high - low, 1.0)
    scale = (WIDTH - 2 * MARGIN) / span
    floor = HEIGHT - MARGIN
    x = MARGIN + (spectrum.mz - low) * scale
    y = floor - (floor - MARGIN) * spectrum.intensity / spectrum.intensity.max()
    sticks = " ".join(f"M{a:.1f} {floor}V{b:.1f}" for a, b in zip(x, y, strict=True))
    labels = "".join(_format_label(x[i], y[i] - 4, f"{spectrum.mz[i]:.3f}") for i in _choose_labels(x, y))
    ticks = "".join(
        _format_label(MARGIN + (value - low) * scale, floor + 16, f"{value:g}")
        for value in _choose_ticks(low, low + span)
    )
    precursor = ""
    if spectrum.precursor_mz is not None:
        precursor_x = MARGIN + (spectrum.precursor_mz - low) * scale
        precursor = f'<path class="precursor" d="M{precursor_x:.1f} {floor}V{MARGIN}"/>'
    name = escape(f"mass spectrum, m/z {low:.1f} to {high:.1f}, {len(spectrum)} peaks", quote=True)
    return (
        f'<svg class="spectrum" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">{precursor}'
        f'<path class="axis" d="M{MARGIN} {floor}H{WIDTH - MARGIN}"/><path class="peaks" d="{sticks}"/>{labels}{ticks}'
        f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - 4}" text-anchor="end">m/z</text></svg>'
    )


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
