"""An HTML page of ranked molecules: each spectrum beside the structures that fit it best. No script, no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from psilearn import __version__
from psilearn._utils.files import write_atomically
from psilearn.chem.metabolites.rank import Ranking
from psilearn.chem.molecules import CandidateLibrary
from psilearn.chem.molecules.drawing import drawing
from psilearn.chem.spectra import Problem, Spectrum

SHOWN = 6  # structures a spectrum
WIDTH, HEIGHT, MARGIN = 560, 240, 34  # of the drawn spectrum


def write_page(
    rankings: Sequence[Ranking], problems: Sequence[Problem], library: CandidateLibrary, coverage: float, path: Path
) -> None:
    """Write the page; an interrupted write leaves the former one."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    listed = "".join(f"<li><b>{escape(p.where)}</b>: {escape(p.why)}</li>\n" for p in problems)
    missing = f"<section><h2>Not ranked</h2>\n<ul>\n{listed}</ul></section>\n" if problems else ""
    sections = "".join(_section(ranking, library, number) for number, ranking in enumerate(rankings, 1))
    calibrated = any(ranking.set_size is not None for ranking in rankings)
    trust = (
        f"A coloured frame marks the conformal set: over many spectra like those of the calibration it holds the true "
        f"molecule with probability {coverage:.0%}, if that molecule is among the candidates."
        if calibrated
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
<p>{len(rankings)} spectra against a library of {len(library):,} molecules (sha256 {escape(library.hash[:16])}…).
Distances are squared distances in the output space; smaller is nearer. {trust}</p>
</header>
<main>
{sections}{missing}</main>
</body>
</html>
"""
    write_atomically(path, text.encode())


def _section(ranking: Ranking, library: CandidateLibrary, number: int) -> str:
    spectrum = ranking.spectrum
    known = [
        f"precursor m/z {spectrum.precursor_mz:.4f}" if spectrum.precursor_mz is not None else "",
        spectrum.adduct or "",
        f"{len(spectrum)} peaks",
        f"{ranking.n_candidates:,} candidates of {ranking.how}",
        f"{ranking.set_size:,} in the conformal set" if ranking.set_size is not None else "",
    ]
    shown = [int(row) for row in ranking.rows[:SHOWN]]
    cards = "".join(
        _card(ranking, i, *texts)
        for i, texts in enumerate(
            zip(library.smiles(shown), library.names(shown), library.formulas_of(shown), strict=True)
        )
    )
    return f"""<section id="s{number}">
<h2>{escape(spectrum.name or f"spectrum {number}")}</h2>
<p class="facts">{escape(" · ".join(part for part in known if part))}</p>
<div class="pair">
<figure>{stick_plot(spectrum)}</figure>
<ol>
{cards}</ol>
</div>
</section>
"""


def _card(ranking: Ranking, i: int, smiles: str, name: str, formula: str) -> str:
    margin = "" if np.isinf(ranking.margins[i]) else f", next {ranking.margins[i]:+.4f}"
    title = f"<b>{escape(name)}</b> " if name else ""
    picture = drawing(smiles) or "<p>(cannot be drawn)</p>"
    inside = ' class="in-set"' if ranking.in_set[i] else ""
    return f"""<li{inside}>
{picture}
<p>rank {ranking.ranks[i]:g} · distance {ranking.distances[i]:.4f}{margin}</p>
<p>{title}{escape(formula)}{" · trained on" if ranking.trained_on[i] else ""}</p>
<p><code>{escape(smiles)}</code></p>
</li>
"""


def stick_plot(spectrum: Spectrum) -> str:
    """Return the spectrum as an SVG element: a line a peak, the highest ones with their m/z."""
    low, high = float(spectrum.mz.min()), float(max(spectrum.mz.max(), spectrum.precursor_mz or 0.0))
    span = max(high - low, 1.0)
    scale = (WIDTH - 2 * MARGIN) / span
    floor = HEIGHT - MARGIN
    x = MARGIN + (spectrum.mz - low) * scale
    y = floor - (floor - MARGIN) * spectrum.intensity / spectrum.intensity.max()
    sticks = " ".join(f"M{a:.1f} {floor}V{b:.1f}" for a, b in zip(x, y, strict=True))
    labels = "".join(
        f'<text x="{x[i]:.1f}" y="{y[i] - 4:.1f}" text-anchor="middle">{spectrum.mz[i]:.3f}</text>'
        for i in _apart(x, spectrum.intensity)
    )
    precursor = ""
    if spectrum.precursor_mz is not None:
        at = MARGIN + (spectrum.precursor_mz - low) * scale
        precursor = f'<path class="precursor" d="M{at:.1f} {floor}V{MARGIN}"/>'
    name = escape(f"mass spectrum, m/z {low:.1f} to {high:.1f}, {len(spectrum)} peaks", quote=True)
    ticks = "".join(
        f'<text x="{MARGIN + (value - low) * scale:.1f}" y="{floor + 16}" text-anchor="middle">{value:g}</text>'
        for value in _round_values(low, low + span)
    )
    return (
        f'<svg class="spectrum" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">{precursor}'
        f'<path class="axis" d="M{MARGIN} {floor}H{WIDTH - MARGIN}"/><path class="peaks" d="{sticks}"/>{labels}{ticks}'
        f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - 4}" text-anchor="end">m/z</text></svg>'
    )


def _apart(x: np.ndarray, height: np.ndarray, most: int = 6, gap: float = 52.0) -> list[int]:
    """Return the highest peaks whose labels do not overlap."""
    chosen: list[int] = []
    for i in np.argsort(-height, kind="stable"):
        if len(chosen) < most and all(abs(x[i] - x[j]) > gap for j in chosen):
            chosen.append(int(i))
    return chosen


def _round_values(low: float, high: float) -> list[float]:
    """Return about five round numbers between two others."""
    step = 10 ** np.floor(np.log10((high - low) / 2))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= 6)
    return [float(value) for value in np.arange(np.ceil(low / step) * step, high + 1e-9, step)]
