"""Choice of the parameters of one fold: inner splits of the training spectra, each ranked against its candidates.

The squared error in the output space prefers much more ridge than ranking does: all candidates of a spectrum have the
same formula, and the direction of a prediction matters, not its length. Settings are therefore compared by the
output-kernel loss of the nearest candidate.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

import numpy as np
from sklearn.model_selection import KFold

from psilearn import IOKR, IOKRCV, OEL, OELCV, Landmarks
from psilearn.decoding import Candidates
from psilearn.kernels import Aligned, Gaussian, Kernel
from psilearn.utils import Index
from psilearn_chem.metabolites.parameter_choice import Mixture, list_mixtures
from psilearn_chem.molecules.fingerprints import Bits
from psilearn_lab.experiments.experiment import Config, Context, Log
from psilearn_lab.experiments.metabolite_task import Task


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
            list_mixtures(config["gammas"], formulas=config["formulas"]),
            config["alphas"],
            config["factors"],
            [p for p in config["sizes"] if p <= n_inner] or [n_inner],
            [c for c in config["supervisions"] if c < 1],
        )


@dataclass(frozen=True)
class InnerValidation:
    """Searches on inner splits of the training spectra of one fold, with few candidates per spectrum."""

    task: Task
    train: Index
    context: Context
    log: Log

    @cached_property
    def n_inner(self) -> int:
        """The number of spectra of the smallest inner training set."""
        return len(self.train) - -(-len(self.train) // self.context.config["inner"])

    @cached_property
    def grid(self) -> Grid:
        """The settings that are compared."""
        return Grid.of(self.context.config, self.n_inner)

    @cached_property
    def candidates(self) -> Candidates:
        """The candidates of the training spectra."""
        return self.task.few_candidates_of(self.train, self.context.config["select_candidates"], self.context.seed)

    def choose(self, unlabeled: Bits) -> Choice:
        """Return the best setting of each method; OEL is compared with these unlabeled molecules."""
        start = perf_counter()
        iokr = self._choose_iokr()
        oel_0, oel = self._choose_embeddings(iokr, unlabeled)
        return Choice(iokr, oel_0, oel, self.grid, perf_counter() - start)

    def _choose_iokr(self) -> Setting:
        """Compare mixtures and λ of IOKR."""
        mixtures = self.grid.mixtures
        kernels = [self.task.make_kernel(mixture) for mixture in mixtures]
        self.log(f"choosing among {len(kernels)} input kernels and {len(self.grid.alphas)} values of λ with IOKR")
        search = IOKRCV(kernels, self.task.output_kernel, alphas=self.grid.alphas)
        self._fit(search)
        best = search.best_params_
        return Setting(mixtures[search.grid_["input_kernel"].index(best["input_kernel"])], best["alpha"])

    def _choose_embeddings(self, iokr: Setting, unlabeled: Bits) -> tuple[Setting, Setting]:
        """Compare λ, p and c with the mixture that IOKR chose; return the best setting of OEL₀ and that of OEL."""
        self.log(f"choosing λ, p and c with the input kernel {iokr.mixture}")
        search = OELCV(
            self.task.make_kernel(iokr.mixture),
            self.task.output_kernel,
            alphas=[iokr.alpha * factor for factor in self.grid.factors],
            n_components=self.grid.sizes,
            supervisions=[*self.grid.supervisions, 1.0],
            output_landmarks=labeled_landmarks(self.n_inner, self.context.config),
        )
        self._fit(search, unlabeled)
        best = [search.best_where(supervision=c).params for c in (1.0, list(self.grid.supervisions))]
        oel_0, oel = (Setting(iokr.mixture, p["alpha"], p["supervision"], p["n_components"]) for p in best)
        return oel_0, oel

    def _fit(self, search: IOKRCV | OELCV, unlabeled: Bits | None = None) -> None:
        splits = KFold(self.context.config["inner"], shuffle=True, random_state=self.context.seed)
        search.set_params(cv=splits, scoring="loss", refit=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about edges: the report lists those of each method
            search.fit(self.train, self.task.outputs[self.train], unlabeled, self.candidates)


def labeled_landmarks(n_labeled: int, config: Config) -> Landmarks:
    """Return all labeled molecules and some unlabeled ones as landmarks."""
    return Landmarks(n_labeled + config["extra_landmarks"], "labeled")
