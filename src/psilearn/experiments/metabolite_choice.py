"""Choice of the parameters of one fold: inner splits of the training spectra, each ranked against its candidates.

The squared error in the output space prefers much more ridge than ranking does: all candidates of a spectrum have the
same formula, and the direction of a prediction matters, not its length. Settings are therefore compared by the
output-kernel loss of the nearest candidate.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from psilearn import IOKR, IOKRCV, OEL, OELCV, Landmarks
from psilearn._utils.samples import Index
from psilearn.decoding import PerExampleCandidates
from psilearn.experiments.experiment import Config, Context, Log
from psilearn.experiments.metabolite_task import Bits, Task
from psilearn.kernels import Aligned, Gaussian, Kernel, uniform

COMBINATIONS = ("uniform", "alignf")


@dataclass(frozen=True)
class Mixture:
    """One kernel from several: the kind of their weights, and a Gaussian over the distance of their sum."""

    combination: str  # "uniform", or "alignf" for weights aligned with the output kernel on training data
    gamma: float | None  # None for the sum itself

    def __str__(self) -> str:
        return f"{self.combination}, {'linear' if self.gamma is None else f'γ={self.gamma:g}'}"

    def make_kernel(self, kernels: Sequence[Kernel], output_kernel: Kernel) -> Kernel:
        """Return the kernel; it learns aligned weights when it is fitted."""
        total = Aligned(kernels, output_kernel) if self.combination == "alignf" else uniform(kernels)
        return total if self.gamma is None else Gaussian(self.gamma, total)


@dataclass(frozen=True)
class Setting:
    """The chosen parameters; c and p are None if everything is kept, as IOKR does."""

    mixture: Mixture
    alpha: float
    supervision: float | None = None
    n_components: int | None = None

    def describe(self, kernel: Kernel) -> str:
        """Return the setting as text, with the learned weights of its fitted input kernel."""
        parts = [str(self.mixture), f"λ={self.alpha:.2g}"]
        total = kernel.base if isinstance(kernel, Gaussian) else kernel
        if isinstance(total, Aligned):
            parts[0] += f" (weights {', '.join(f'{weight:.2f}' for weight in total.weights_)})"
        if self.supervision is not None:
            parts.append(f"p={self.n_components}")
        if self.supervision not in (None, 1):
            parts.append(f"c={self.supervision:g}")
        return ", ".join(parts)

    def make_model(
        self, kernel: Kernel, output_kernel: Kernel, output_landmarks: Landmarks | None = None
    ) -> IOKR | OEL:
        """Return the unfitted estimator."""
        if self.supervision is None:
            return IOKR(kernel, output_kernel, alpha=self.alpha)
        return OEL(
            kernel,
            output_kernel,
            alpha=self.alpha,
            n_components=self.n_components,
            supervision=self.supervision,
            output_landmarks=output_landmarks,
        )


@dataclass(frozen=True)
class Choice:
    """The best setting of each method on one training set, and what was compared."""

    iokr: Setting
    oel_0: Setting  # without unlabeled molecules
    oel: Setting
    grid: Grid
    seconds: float

    def describe_edges(self, setting: Setting) -> str:
        """Return which parameters are at an end of their grid, beyond which better values may exist."""
        factor, grid = setting.alpha / self.iokr.alpha, self.grid
        compared: dict[str, tuple[float | None, Sequence[float]]] = {
            "γ": (setting.mixture.gamma, [m.gamma for m in grid.mixtures if m.gamma is not None]),
            "λ": (setting.alpha, grid.alphas) if setting.supervision is None else (factor, grid.factors),
            "p": (setting.n_components, grid.sizes),
            "c": (setting.supervision, grid.supervisions),
        }
        edges = []
        for name, (value, values) in compared.items():
            matching = [v for v in values if value is not None and np.isclose(v, value)]
            if matching and len(set(values)) > 1 and matching[0] in (min(values), max(values)):
                edges.append(f"{name} at the {'low' if matching[0] == min(values) else 'high'} end")
        return ", ".join(edges)


@dataclass(frozen=True)
class Grid:
    """The settings that are compared: IOKR chooses the mixture, the learned embeddings λ, p and c with it."""

    mixtures: Sequence[Mixture]
    alphas: Sequence[float]
    factors: Sequence[float]  # multiples of IOKR's λ that the learned embeddings try
    sizes: Sequence[int]  # p
    supervisions: Sequence[float]  # c below 1; OEL₀ has c = 1

    @classmethod
    def of(cls, config: Config, n_inner: int) -> Grid:
        """Return the grid of a config; p is at most the number of spectra of an inner training set."""
        return cls(
            [Mixture(combination, gamma) for combination in COMBINATIONS for gamma in config["gammas"]],
            config["alphas"],
            config["factors"],
            [p for p in config["sizes"] if p <= n_inner] or [n_inner],
            [c for c in config["supervisions"] if c < 1],
        )


def choose_settings(task: Task, train: Index, unlabeled: Bits, context: Context, log: Log) -> Choice:
    """Compare the settings on inner splits, with few candidates per spectrum and these unlabeled molecules."""
    config = context.config
    start = perf_counter()
    Y = task.outputs[train]
    candidates = thin_candidates(task, config["select_candidates"], context.seed).restrict(train)
    n_inner = len(train) - -(-len(train) // config["inner"])
    grid = Grid.of(config, n_inner)
    kernels = [mixture.make_kernel(task.kernels, task.output_kernel) for mixture in grid.mixtures]
    options: dict[str, Any] = {
        "cv": KFold(config["inner"], shuffle=True, random_state=context.seed),
        "scoring": "loss",
        "refit": False,
    }
    log(f"choosing the input kernel and λ of IOKR among {len(kernels) * len(grid.alphas)} settings")
    iokr = IOKRCV(kernels, task.output_kernel, alphas=grid.alphas, **options)
    _run_search(iokr, train, Y, candidates=candidates)
    mixture = grid.mixtures[iokr.grid_["input_kernel"].index(iokr.best_params_["input_kernel"])]
    alpha = iokr.best_params_["alpha"]
    log(f"choosing λ, p and c of OEL with the kernel {mixture}")
    oel = OELCV(
        mixture.make_kernel(task.kernels, task.output_kernel),
        task.output_kernel,
        alphas=[alpha * factor for factor in grid.factors],
        n_components=grid.sizes,
        supervisions=[*grid.supervisions, 1.0],
        output_landmarks=labeled_landmarks(n_inner, config),
        **options,
    )
    _run_search(oel, train, Y, candidates=candidates, unlabeled=unlabeled)
    best_0, best = (oel.best_where(supervision=values).params for values in (1.0, list(grid.supervisions)))
    return Choice(
        Setting(mixture, alpha),
        _embedding_setting(mixture, best_0),
        _embedding_setting(mixture, best),
        grid,
        perf_counter() - start,
    )


def _embedding_setting(mixture: Mixture, params: dict[str, Any]) -> Setting:
    return Setting(mixture, params["alpha"], params["supervision"], params["n_components"])


def _run_search(search: IOKRCV | OELCV, X: Index, Y: Bits, **data: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about edges: the report lists those of each method
        search.fit(X, Y, **data)


def labeled_landmarks(n_labeled: int, config: Config) -> Landmarks:
    """Return all labeled molecules and some unlabeled ones as landmarks."""
    return Landmarks(n_labeled + config["extra_landmarks"], "labeled")


def thin_candidates(task: Task, limit: int, seed: int) -> PerExampleCandidates:
    """Return at most so many candidates of each spectrum, drawn at random, with its molecule among them."""
    rng = np.random.default_rng(seed)
    return PerExampleCandidates([*_iter_thinned(task, limit, rng)])


def _iter_thinned(task: Task, limit: int, rng: np.random.Generator) -> Iterable[Bits]:
    for candidates, truth in zip(task.sets, task.truth, strict=True):
        if len(candidates) <= limit:
            yield candidates
            continue
        others = np.setdiff1d(np.arange(len(candidates)), truth)
        yield candidates[np.append(np.sort(rng.choice(others, limit - 1, replace=False)), truth)]
