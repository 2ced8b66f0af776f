"""The parts of the HTML report of rankings: the frame of a page, and the section of a spectrum with its molecules.

Pages need neither scripts nor a network.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

from psilearn import __version__
from psilearn_chem.metabolites.peak_support import find_support
from psilearn_chem.metabolites.rank import Ranking
from psilearn_chem.metabolites.spectrum_drawing import draw_spectrum, draw_support
from psilearn_chem.metabolites.spectrum_fields import feature_id, retention_seconds
from psilearn_chem.molecules import CandidateLibrary
from psilearn_chem.molecules.smiles import draw_svg

MAX_STRUCTURES = 6  # per spectrum


def format_page(title: str, header: str, main: str) -> str:
    """Return a complete page; the parts are HTML, the title is text."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<p class="eyebrow">psilearn {escape(__version__)}</p>
<h1>{escape(title)}</h1>
{header}</header>
<main>
{main}</main>
</body>
</html>
"""


def is_by_mass(ranking: Ranking) -> bool:
    """Return whether candidates of several formulas may be among those of a spectrum."""
    return ranking.how.startswith("mass ")


def format_section(ranking: Ranking, library: CandidateLibrary, number: int) -> str:
    """Return the part of a page about one spectrum."""
    spectrum = ranking.spectrum
    feature, seconds = feature_id(spectrum), retention_seconds(spectrum)
    facts = [
        f"feature {feature}" if feature else "",
        f"precursor m/z {spectrum.precursor_mz:.4f}" if spectrum.precursor_mz is not None else "",
        spectrum.adduct or "",
        f"{seconds} s" if seconds else "",
        f"{len(spectrum)} peaks",
        f"{ranking.n_candidates:,} candidates of {ranking.how}",
        f"{ranking.set_size:,} in the conformal set" if ranking.set_size is not None else "",
        "its coverage is not promised" if ranking.set_size is not None and is_by_mass(ranking) else "",
    ]
    rows = [int(row) for row in ranking.rows[:MAX_STRUCTURES]]
    molecules = zip(library.get_smiles(rows), library.get_names(rows), library.get_formulas(rows), strict=True)
    cards = "".join(_format_card(ranking, i, f"p{number}", *molecule) for i, molecule in enumerate(molecules))
    return f"""<section id="s{number}">
<h2>{escape(spectrum.name or f"spectrum {number}")}</h2>
<p class="facts">{escape(" · ".join(fact for fact in facts if fact))}</p>
<div class="pair">
<figure>{draw_spectrum(spectrum, f"p{number}")}</figure>
<ol>
{cards}</ol>
</div>
</section>
"""


def _format_card(ranking: Ranking, i: int, peaks: str, smiles: str, name: str, formula: str) -> str:
    """Return the structure of the i-th ranked molecule with its rank, distance and the peaks that support it."""
    score = _format_score(ranking, i)
    title = f"<b>{escape(name)}</b> " if name else ""
    picture = draw_svg(smiles) or "<p>(cannot be drawn)</p>"
    attribute = ' class="in-set"' if ranking.in_set[i] else ""
    spectrum = ranking.spectrum
    supporting = find_support(spectrum, smiles, formula)
    share = float(spectrum.intensity[supporting].sum() / spectrum.intensity.sum())
    return f"""<li{attribute}>
{picture}
<p>rank {ranking.ranks[i]:g} · {score}</p>
<p>{title}{escape(formula)}{" · trained on" if ranking.trained_on[i] else ""}</p>
{draw_support(spectrum, supporting, peaks)}
<p>explains {int(supporting.sum())} peaks, {share:.0%} of the intensity</p>
<p><code>{escape(smiles)}</code></p>
</li>
"""


def _format_score(ranking: Ranking, i: int) -> str:
    """Return the probability of the i-th molecule, or its distance and how much farther the next one is."""
    if ranking.probabilities is not None:
        return f"probability {ranking.probabilities[i]:.3f} · distance {ranking.distances[i]:.4f}"
    margin = "" if np.isinf(ranking.margins[i]) else f", next {ranking.margins[i]:+.4f}"
    return f"distance {ranking.distances[i]:.4f}{margin}"
