"""What makes a setting good: the closed-form squared error, or any metric of decoded predictions. Higher is better."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from psilearn import metrics
from psilearn._utils.samples import Samples
from psilearn.kernels import Kernel

NAMES = (
    '"mse", "loss", "f1", "hamming", "kendall_tau", "spearman_rho", "pairwise_accuracy", "top_1" (or another k), '
    "or a function (y_true, y_pred) → float"
)


@dataclass(frozen=True)
class Scoring:
    """A score, and what it must be computed from."""

    name: str
    top_k: int | None = None  # rank of the truth among the candidates, not the nearest candidate
    metric: Callable[[Samples, Samples, Kernel], float] | None = None  # of (y, ŷ, output kernel)
    of_one_kernel: bool = False  # measured in the output kernel's own space

    @property
    def decodes(self) -> bool:
        """Whether candidates are searched at all."""
        return self.metric is not None or self.top_k is not None


def as_scorings(scoring: Any) -> list[Scoring]:
    """Return what a user's ``scoring``, one or several, means; the first of them chooses."""
    if not isinstance(scoring, list | tuple):
        return [as_scoring(scoring)]
    scorings = [as_scoring(one) for one in scoring]
    names = [one.name for one in scorings]
    if not names or len(set(names)) < len(names) or "score" in names:
        raise ValueError(f"scoring must name each score once, and none of them 'score'; got {names}.")
    return scorings


def as_scoring(scoring: Any) -> Scoring:
    """Return what a user's ``scoring`` means."""
    named = {
        "mse": Scoring("mse", of_one_kernel=True),
        "loss": Scoring("loss", metric=lambda y, p, k: -metrics.kernel_loss(y, p, k), of_one_kernel=True),
        "f1": Scoring("f1", metric=lambda y, p, k: metrics.f1_score(y, p)),
        "hamming": Scoring("hamming", metric=lambda y, p, k: -metrics.hamming_loss(y, p)),
        "kendall_tau": Scoring("kendall_tau", metric=lambda y, p, k: metrics.kendall_tau(y, p)),
        "spearman_rho": Scoring("spearman_rho", metric=lambda y, p, k: metrics.spearman_rho(y, p)),
        "pairwise_accuracy": Scoring("pairwise_accuracy", metric=lambda y, p, k: metrics.pairwise_accuracy(y, p)),
    }
    if callable(scoring):
        return Scoring(getattr(scoring, "__name__", "score"), metric=lambda y, p, k: scoring(y, p))
    if isinstance(scoring, str) and scoring in named:
        return named[scoring]
    top = re.fullmatch(r"top_([1-9]\d*)", scoring) if isinstance(scoring, str) else None
    if top:
        return Scoring(scoring, top_k=int(top[1]))
    raise ValueError(f"scoring must be one of {NAMES}; got {scoring!r}.")
