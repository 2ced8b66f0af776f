"""Energies of outputs on torch: a term linear in y with a network's scores, and a term of y alone.

E(x, y) = −⟨s(x), y⟩ + G(y) + R(y) with G(y) = ⟨w, softplus(Cy + b)⟩, which learns how the parts of an output go
together. R keeps relaxed outputs inside: minus the entropy for labels in [0, 1], ½|y|² for numbers. Without G the
minimum is at σ(s(x)) or at s(x), what the network alone predicts.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from psilearn._backend import row_blocks
from psilearn._linalg import Array
from psilearn._utils.samples import Samples
from psilearn.neural.perceptron import Perceptron

BLOCK = 4096  # rows that are taken together


class GlobalTerm(torch.nn.Module):
    """G(y) = ⟨w, softplus(Cy + b)⟩ for rows y (n, L)."""

    def __init__(self, outputs: int, hidden: int) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(outputs, hidden)
        self.outer = torch.nn.Linear(hidden, 1, bias=False)
        with torch.no_grad():
            self.outer.weight.mul_(0.1)  # start near the network alone

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        """Return G(y), shape (n,)."""
        value: torch.Tensor = self.outer(functional.softplus(self.inner(y)))[:, 0]
        return value

    def slope(self, y: torch.Tensor) -> torch.Tensor:
        """Return ∇G(y) = Cᵀ(w ∘ σ(Cy + b)), shape (n, L), without a graph."""
        with torch.no_grad():
            return (torch.sigmoid(self.inner(y)) * self.outer.weight[0]) @ self.inner.weight


class LabelSpace:
    """Relaxed labels in [0, 1]ᴸ: entropic mirror descent, which is a damped mean-field iteration.

    With t = logit y and R minus the entropy, a step of length η down E is t ← (1 − η)t + η(s − ∇G(y)).
    """

    def neutral(self, y: torch.Tensor) -> torch.Tensor:
        """Return R(y) = Σ y log y + (1 − y) log(1 − y), 0 at labels that are certain; shape (n,)."""
        inside = y.clamp(1e-7, 1 - 1e-7)
        return (inside * inside.log() + (1 - inside) * (1 - inside).log()).sum(dim=1)

    def margin(self, y: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Return Δ(y, y*) = Σ y(1 − y*) + (1 − y)y*, the number of labels that differ; shape (n,)."""
        return (y + truth - 2 * y * truth).sum(dim=1)

    def margin_slope(self, y: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Return ∇Δ = 1 − 2y*."""
        return 1 - 2 * truth

    def start(self, scores: torch.Tensor) -> Any:
        """Return the point that descent starts from: what the network alone predicts."""
        return scores.clone()

    def point(self, state: Any) -> torch.Tensor:
        """Return y from what descent moves, t."""
        return torch.sigmoid(state)

    def step(self, state: Any, downhill: torch.Tensor, rate: float) -> Any:
        """Move towards t = s − ∇G, given as ``downhill``."""
        return (1 - rate) * state + rate * downhill


class NumberSpace:
    """Numbers within the range of the training outputs: projected gradient descent, y ← (1 − η)y + η(s − ∇G(y))."""

    def __init__(self, low: torch.Tensor, high: torch.Tensor) -> None:
        self.low, self.high = low, high  # (L,)

    def neutral(self, y: torch.Tensor) -> torch.Tensor:
        """Return R(y) = ½|y|², shape (n,)."""
        return 0.5 * y.square().sum(dim=1)

    def margin(self, y: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Return Δ(y, y*) = ¼|y − y*|², half as curved as R: augmented by it the energy still has a minimum."""
        return 0.25 * (y - truth).square().sum(dim=1)

    def margin_slope(self, y: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Return ∇Δ = ½(y − y*)."""
        return 0.5 * (y - truth)

    def start(self, scores: torch.Tensor) -> Any:
        """Return the network's prediction, within the range."""
        return self.point(scores)

    def point(self, state: Any) -> torch.Tensor:
        """Return y within the range."""
        return torch.minimum(torch.maximum(state, self.low), self.high)

    def step(self, state: Any, downhill: torch.Tensor, rate: float) -> Any:
        """Move towards s − ∇G, given as ``downhill``, and back into the range."""
        return self.point((1 - rate) * state + rate * downhill)


def energy(scores: torch.Tensor, y: torch.Tensor, term: GlobalTerm, space: Any) -> torch.Tensor:
    """Return E(x, y) for rows of scores s(x) and of y, shape (n,)."""
    value: torch.Tensor = term(y) - (scores * y).sum(dim=1) + space.neutral(y)
    return value


def infer(
    scores: torch.Tensor,
    term: GlobalTerm,
    space: Any,
    steps: int,
    rate: float,
    truth: torch.Tensor | None = None,
    curve: list[float] | None = None,
) -> torch.Tensor:
    """Return a y of low energy for each row of scores, by gradient descent from what the network alone predicts.

    Parameters
    ----------
    scores : tensor (n, L)
    term, space : of the energy
    steps, rate : how many steps and how long
    truth : tensor (n, L), optional
        make E(x, y) − Δ(y, truth) low instead: loss-augmented inference.
    curve : list, optional
        is given the mean of what is made low, before each step and at the end.
    """
    with torch.no_grad():
        scores = scores.detach()
        state = space.start(scores)
        for done in range(steps + 1):
            y = space.point(state)
            if curve is not None:
                value = energy(scores, y, term, space) - (0 if truth is None else space.margin(y, truth))
                curve.append(float(value.mean()))
            if done == steps:
                break
            downhill = scores - term.slope(y)
            if truth is not None:
                downhill = downhill + space.margin_slope(y, truth)
            state = space.step(state, downhill, rate)
    return y


def hinge(scores: torch.Tensor, truth: torch.Tensor, y: torch.Tensor, term: GlobalTerm, space: Any) -> torch.Tensor:
    """Return the structured hinge loss max(0, Δ(y, y*) − E(x, y) + E(x, y*)) of each row, y* the truth."""
    gap = space.margin(y, truth) - energy(scores, y, term, space) + energy(scores, truth, term, space)
    return gap.clamp(min=0)


def values_of(term: GlobalTerm, network: Perceptron, C: Samples, extra: Any = None) -> Array:
    """Return G(y), and ``extra(y)`` where given, for outputs as the network gives them; float64 (n,), by blocks.

    In double precision: equal candidates must cost the same wherever they stand in a block.
    """
    exact = deepcopy(term).double()
    rows = network.targets(C, torch.float64)
    found = np.empty(len(rows))
    with torch.no_grad():
        for part in row_blocks(len(rows), 1, BLOCK):
            y = rows[part]
            found[part] = (exact(y) + (0 if extra is None else extra(y))).cpu().numpy()
    return found


class Value(torch.nn.Module):
    """v(x, y) = σ(⟨s(x), y⟩ + G(y) + v₀), between 0 and 1: how good y is thought to be for x."""

    def __init__(self, network: torch.nn.Module, outputs: int, hidden: int) -> None:
        super().__init__()
        self.network = network  # s
        self.term = GlobalTerm(outputs, hidden)  # G
        self.offset = torch.nn.Parameter(torch.zeros(()))

    def logit(self, scores: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return ⟨s, y⟩ + G(y) + v₀ for rows of scores and of y, shape (n,)."""
        value: torch.Tensor = (scores * y).sum(dim=1) + self.term(y) + self.offset
        return value

    def climb(self, scores: torch.Tensor, steps: int, rate: float) -> torch.Tensor:
        """Return labels in [0, 1] of high value: gradient ascent on v from no labels, projected."""
        with torch.no_grad():
            y = torch.zeros_like(scores)
            for _ in range(steps):
                v = torch.sigmoid(self.logit(scores, y))[:, None]
                y = (y + rate * v * (1 - v) * (scores + self.term.slope(y))).clamp(0, 1)
        return y

    def adversary(self, scores: torch.Tensor, start: torch.Tensor, quality: torch.Tensor, rate: float) -> torch.Tensor:
        """Return labels that v misjudges more than ``start``: a step up the cross-entropy of v and its quality (n,)."""
        with torch.no_grad():
            v = torch.sigmoid(self.logit(scores, start))
            return (start + rate * (v - quality)[:, None] * (scores + self.term.slope(start))).clamp(0, 1)


def relaxed_f1(y: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Return 2Σmin/(Σmin + Σmax) of rows, the F1 where y is 0 or 1; 1 for two that are empty."""
    common, either = torch.minimum(y, truth).sum(dim=1), torch.maximum(y, truth).sum(dim=1)
    return torch.where(either > 0, 2 * common / (common + either).clamp(min=1e-12), torch.ones_like(common))
