"""Energies of outputs on torch: a term linear in y with the scores of a network, and a term of y alone.

E(x, y) = −⟨s(x), y⟩ + G(y) + R(y) with G(y) = ⟨w, softplus(Cy + b)⟩, which learns the dependence between the parts of
an output. R keeps relaxed outputs inside their range: minus the entropy for labels in [0, 1], ½|y|² for numbers.
Without G the minimum is at σ(s(x)) or at s(x), the prediction of the network alone.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Protocol

import numpy as np
import torch
from torch.nn import functional

from psilearn.utils import Samples
from psilearn_lab.arrays import Array, iter_blocks
from psilearn_lab.neural.perceptron import Perceptron

INFERENCE_ROWS = 4096  # outputs that are inferred together


class GlobalTerm(torch.nn.Module):
    """The term G(y) = ⟨w, softplus(Cy + b)⟩ for rows y (n, L)."""

    def __init__(self, outputs: int, hidden: int) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(outputs, hidden)
        self.outer = torch.nn.Linear(hidden, 1, bias=False)
        with torch.no_grad():
            self.outer.weight.mul_(0.1)  # start close to the network alone

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        """Return G(y), shape (n,)."""
        value: torch.Tensor = self.outer(functional.softplus(self.inner(y)))[:, 0]
        return value

    def gradient(self, y: torch.Tensor) -> torch.Tensor:
        """Return ∇G(y) = Cᵀ(w ∘ σ(Cy + b)), shape (n, L), without a graph."""
        with torch.no_grad():
            return (torch.sigmoid(self.inner(y)) * self.outer.weight[0]) @ self.inner.weight


class OutputSpace(Protocol):
    """A space of relaxed outputs with its regularizer R, margin Δ and descent steps."""

    def regularizer(self, y: torch.Tensor) -> torch.Tensor:
        """Return R(y), shape (n,)."""

    def margin(self, y: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Return Δ(y, y*), shape (n,)."""

    def margin_gradient(self, y: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Return ∇Δ with respect to y, shape (n, L)."""

    def initial_state(self, scores: torch.Tensor) -> torch.Tensor:
        """Return the state from which the descent starts: the prediction of the network alone."""

    def to_output(self, state: torch.Tensor) -> torch.Tensor:
        """Return y for a state of the descent."""

    def step(self, state: torch.Tensor, target: torch.Tensor, rate: float) -> torch.Tensor:
        """Return the state after a step of length ``rate`` toward the target s − ∇G(y)."""


class LabelSpace:
    """Relaxed labels in [0, 1]ᴸ with entropic mirror descent, which is a damped mean-field iteration.

    With t = logit y and R minus the entropy, a step of length η down E is t ← (1 − η)t + η(s − ∇G(y)).
    """

    def regularizer(self, y: torch.Tensor) -> torch.Tensor:
        """Return R(y) = Σ y log y + (1 − y) log(1 − y), which is 0 for labels 0 and 1; shape (n,)."""
        inside = y.clamp(1e-7, 1 - 1e-7)
        return (inside * inside.log() + (1 - inside) * (1 - inside).log()).sum(dim=1)

    def margin(self, y: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Return Δ(y, y*) = Σ y(1 − y*) + (1 − y)y*, the number of labels that differ; shape (n,)."""
        return (y + truth - 2 * y * truth).sum(dim=1)

    def margin_gradient(self, y: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Return ∇Δ = 1 − 2y*."""
        return 1 - 2 * truth

    def initial_state(self, scores: torch.Tensor) -> torch.Tensor:
        """Return t = s, the logits of the network alone."""
        return scores.clone()

    def to_output(self, state: torch.Tensor) -> torch.Tensor:
        """Return y = σ(t)."""
        return torch.sigmoid(state)

    def step(self, state: torch.Tensor, target: torch.Tensor, rate: float) -> torch.Tensor:
        """Return t after a step toward s − ∇G."""
        return (1 - rate) * state + rate * target


class NumberSpace:
    """Numbers within the range of the training outputs: projected gradient descent, y ← (1 − η)y + η(s − ∇G(y))."""

    def __init__(self, low: torch.Tensor, high: torch.Tensor) -> None:
        self.low, self.high = low, high  # (L,)

    def regularizer(self, y: torch.Tensor) -> torch.Tensor:
        """Return R(y) = ½|y|², shape (n,)."""
        return 0.5 * y.square().sum(dim=1)

    def margin(self, y: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Return Δ(y, y*) = ¼|y − y*|², with half the curvature of R, so that E − Δ still has a minimum; shape (n,)."""
        return 0.25 * (y - truth).square().sum(dim=1)

    def margin_gradient(self, y: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Return ∇Δ = ½(y − y*)."""
        return 0.5 * (y - truth)

    def initial_state(self, scores: torch.Tensor) -> torch.Tensor:
        """Return the prediction of the network, within the range."""
        return self.to_output(scores)

    def to_output(self, state: torch.Tensor) -> torch.Tensor:
        """Return y within the range."""
        return torch.minimum(torch.maximum(state, self.low), self.high)

    def step(self, state: torch.Tensor, target: torch.Tensor, rate: float) -> torch.Tensor:
        """Return y after a step toward s − ∇G, projected onto the range."""
        return self.to_output((1 - rate) * state + rate * target)


def compute_energy(scores: torch.Tensor, y: torch.Tensor, term: GlobalTerm, space: OutputSpace) -> torch.Tensor:
    """Return E(x, y) for rows of scores s(x) and of y, shape (n,)."""
    value: torch.Tensor = term(y) - (scores * y).sum(dim=1) + space.regularizer(y)
    return value


def infer(
    scores: torch.Tensor,
    term: GlobalTerm,
    space: OutputSpace,
    steps: int,
    rate: float,
    truth: torch.Tensor | None = None,
    curve: list[float] | None = None,
) -> torch.Tensor:
    """Return a y of low energy for each row of scores (n, L), by gradient descent from the prediction of the network.

    With the truth (n, L), E(x, y) − Δ(y, truth) is minimized instead: loss-augmented inference. The mean of the
    minimized function before each step and at the end is appended to ``curve``.
    """
    with torch.no_grad():
        scores = scores.detach()
        state = space.initial_state(scores)
        for i in range(steps + 1):
            y = space.to_output(state)
            if curve is not None:
                value = compute_energy(scores, y, term, space) - (0 if truth is None else space.margin(y, truth))
                curve.append(float(value.mean()))
            if i == steps:
                break
            target = scores - term.gradient(y)
            if truth is not None:
                target = target + space.margin_gradient(y, truth)
            state = space.step(state, target, rate)
    return y


def hinge_loss(
    scores: torch.Tensor, truth: torch.Tensor, y: torch.Tensor, term: GlobalTerm, space: OutputSpace
) -> torch.Tensor:
    """Return the structured hinge loss max(0, Δ(y, y*) − E(x, y) + E(x, y*)) of each row, where y* is the truth."""
    violation = space.margin(y, truth) - compute_energy(scores, y, term, space)
    return (violation + compute_energy(scores, truth, term, space)).clamp(min=0)


def evaluate_term(
    term: GlobalTerm,
    network: Perceptron,
    C: Samples,
    extra: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> Array:
    """Return G(y), plus ``extra(y)`` if given, for outputs y in the units of the network; float64 (n,), by blocks.

    The computation is in double precision: equal candidates must have equal costs at every place of a block.
    """
    exact = deepcopy(term).double()
    rows = network.target_rows(C, torch.float64)
    values = np.empty(len(rows))
    with torch.no_grad():
        for part in iter_blocks(len(rows), 1, INFERENCE_ROWS):
            y = rows[part]
            values[part] = (exact(y) + (0 if extra is None else extra(y))).cpu().numpy()
    return values


class ValueNetwork(torch.nn.Module):
    """The value v(x, y) = σ(⟨s(x), y⟩ + G(y) + v₀) in [0, 1], an estimate of the quality of y for x."""

    def __init__(self, network: torch.nn.Module, outputs: int, hidden: int) -> None:
        super().__init__()
        self.network = network  # s
        self.term = GlobalTerm(outputs, hidden)  # G
        self.offset = torch.nn.Parameter(torch.zeros(()))  # v₀

    def logit(self, scores: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return ⟨s, y⟩ + G(y) + v₀ for rows of scores and of y, shape (n,)."""
        value: torch.Tensor = (scores * y).sum(dim=1) + self.term(y) + self.offset
        return value

    def ascend(self, scores: torch.Tensor, steps: int, rate: float) -> torch.Tensor:
        """Return labels in [0, 1] of high value, by projected gradient ascent on v from the empty label set."""
        with torch.no_grad():
            y = torch.zeros_like(scores)
            for _ in range(steps):
                v = torch.sigmoid(self.logit(scores, y))[:, None]
                y = (y + rate * v * (1 - v) * (scores + self.term.gradient(y))).clamp(0, 1)
        return y

    def perturb(self, scores: torch.Tensor, start: torch.Tensor, quality: torch.Tensor, rate: float) -> torch.Tensor:
        """Return labels whose value is less accurate than that of ``start``: a step up its cross-entropy loss.

        ``quality`` (n,) is the target of the value at ``start``.
        """
        with torch.no_grad():
            v = torch.sigmoid(self.logit(scores, start))
            return (start + rate * (v - quality)[:, None] * (scores + self.term.gradient(start))).clamp(0, 1)


def relaxed_f1(y: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Return 2Σmin/(Σmin + Σmax) of rows, which is F1 if y holds 0 and 1; 1 for two empty rows."""
    common, either = torch.minimum(y, truth).sum(dim=1), torch.maximum(y, truth).sum(dim=1)
    return torch.where(either > 0, 2 * common / (common + either).clamp(min=1e-12), torch.ones_like(common))
