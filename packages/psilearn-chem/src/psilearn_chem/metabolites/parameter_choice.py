"""Choice of parameters by the decoded validation loss: held-out spectra are ranked against their candidate molecules.

The squared error in the output space is cheaper, but prefers much more ridge than ranking does: within a candidate set
all molecules have the same formula, and the direction of the prediction matters, not its length. So settings are
compared by the output-kernel loss of the nearest candidate.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold

from psilearn import IOKR, IOKRCV, OEL, OELCV, Landmarks
from psilearn.decoding import PerExampleCandidates
from psilearn.kernels import Aligned, Gaussian, GaussianTanimoto, Kernel, Precomputed, uniform, weighted
from psilearn.utils import Index
from psilearn_chem.metabolites.queries import LabeledSpectra
from psilearn_chem.molecules.fingerprints import Bits
from psilearn_chem.spectra import Spectrum
from psilearn_chem.spectrum_kernels import FEATURES, ProbabilityProduct
from psilearn_chem.subformula_kernels import FORMULAS, SubformulaKernel

COMBINATIONS = ("uniform", "alignf")
POWERS = (0.0, 0.5)  # of intensities, in kernels on formulas: counted, and weighted by square roots


@dataclass(frozen=True)
class Mixture:
    """How kernels on spectra are combined: their weights, and a Gaussian kernel over the distances of their sum."""

    combination: str = "uniform"  # or "alignf": weights that are aligned with the output kernel on training data
    gamma: float | None = 0.5  # None for the sum itself
    formulas: bool = False  # whether the kernels on formulas are parts, beside those on peaks and losses

    def __post_init__(self) -> None:
        if self.combination not in COMBINATIONS:
            raise ValueError(f"combination must be one of {', '.join(COMBINATIONS)}; got {self.combination!r}.")

    def __str__(self) -> str:
        parts = " with formulas" if self.formulas else ""
        return f"{self.combination}{parts}, {'linear' if self.gamma is None else f'γ={self.gamma:g}'}"

    def combine(self, kernels: Sequence[Kernel], output_kernel: Kernel) -> Kernel:
        """Return one kernel, which learns its weights in ``fit`` if they are to be aligned."""
        mean = Aligned(list(kernels), output_kernel) if self.combination == "alignf" else uniform(kernels)
        return self._widen(mean)

    def weight(self, kernels: Sequence[Kernel], weights: Sequence[float]) -> Kernel:
        """Return the same kernel with weights that are known; kernels of weight 0 are left out."""
        used = [(kernel, weight) for kernel, weight in zip(kernels, weights, strict=True) if weight]
        return self._widen(weighted(*map(list, zip(*used, strict=True))))

    def _widen(self, mean: Kernel) -> Kernel:
        return mean if self.gamma is None else Gaussian(gamma=self.gamma, base=mean)


def list_mixtures(gammas: Sequence[float | None], *, formulas: bool) -> list[Mixture]:
    """Return the mixtures that are compared: all γ without formulas and, with ``formulas``, the γ below 1 with them."""
    without = [Mixture(combination, gamma) for combination in COMBINATIONS for gamma in gammas]
    return without + [replace(m, formulas=True) for m in without if formulas and m.gamma is not None and m.gamma < 1]


def list_kernels(width: float = 0.005, unit: str = "Da", *, formulas: bool = False) -> list[Kernel]:
    """Return the normalized kernels on peaks and losses and, with ``formulas``, on formulas of fragments and losses."""
    parts: list[Kernel] = [ProbabilityProduct(of, width=width, unit=unit) for of in FEATURES]
    if formulas:
        parts += [SubformulaKernel(of, power) for of in FORMULAS for power in POWERS]
    return [part.normalized() for part in parts]


@dataclass(frozen=True)
class SpectrumSimilarity:
    """Normalized kernels on peaks, neutral losses and their formulas, and their matrices over n training spectra.

    Cost: all pairs of close peaks, and 2 ms per spectrum for formulas. Memory: n² numbers per kernel.
    """

    kernels: Sequence[Kernel]  # on spectra
    matrices: Sequence[NDArray[np.float64]]  # each (n, n)

    @classmethod
    def of(
        cls, spectra: Sequence[Spectrum], width: float = 0.005, unit: str = "Da", *, formulas: bool = False
    ) -> SpectrumSimilarity:
        """Compare peaks and neutral losses of all spectra; with ``formulas``, also those of fragments and losses."""
        kernels = list_kernels(width, unit, formulas=formulas)
        matrices = [np.asarray(kernel.gram(spectra, remedy="Train on fewer spectra.")) for kernel in kernels]
        return cls(kernels, matrices)

    def on_rows(self, mixture: Mixture, output_kernel: Kernel) -> Kernel:
        """Return a mixture as a kernel on the row numbers 0, …, n−1 of the spectra."""
        return mixture.combine(self._parts(mixture), output_kernel)

    def weights(self, mixture: Mixture, outputs: NDArray[np.uint8], output_kernel: Kernel) -> list[float]:
        """Return the weights of a mixture that is fitted to all spectra and their outputs, one per kernel."""
        parts = self._parts(mixture)
        unused = [0.0] * (len(self.kernels) - len(parts))
        if mixture.combination == "uniform":
            return [1 / len(parts)] * len(parts) + unused
        aligned = Aligned(parts, output_kernel).fit(np.arange(len(outputs)), outputs)
        return [float(weight) for weight in aligned.weights_] + unused

    def _parts(self, mixture: Mixture) -> list[Kernel]:
        """Return the kernels of a mixture as kernels on row numbers; those on peaks and losses are first."""
        matrices = self.matrices if mixture.formulas else self.matrices[: len(FEATURES)]
        return [Precomputed(matrix) for matrix in matrices]


N_SPLITS = 4
MIN_MIXTURE_HELD_OUT = 1500  # held-out spectra that suffice to compare mixtures, the longest part of a training
MAX_VALIDATION_CANDIDATES = 300  # candidates of a held-out spectrum, drawn at random
OUTPUT_KERNEL = GaussianTanimoto(packed=True)  # on fingerprints

Report = Callable[[str], object]  # is called with a description of each step


@dataclass(frozen=True)
class Grid:
    """The values that are compared: IOKR chooses the mixture, and with it the learned embeddings choose λ, p and c."""

    mixtures: Sequence[Mixture] = tuple(list_mixtures((None, 0.25, 0.5, 1.0), formulas=True))
    alphas: Sequence[float] = (3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
    factors: Sequence[float] = (0.1, 1.0)  # multiples of the λ of IOKR that the learned embeddings compare
    sizes: Sequence[int] = (50, 100, 200, 400, 800, 1200, 1600, 2000)  # p
    supervisions: Sequence[float] = (0.25, 0.75)  # c with unlabeled molecules; without them it is 1
    extra_landmarks: int = 1000  # unlabeled molecules that span the output coordinates with all labeled ones

    def landmarks(self, n_labeled: int) -> Landmarks:
        """Return all labeled outputs and some others as landmarks."""
        return Landmarks(n_labeled + self.extra_landmarks, "labeled")


GRID = Grid()


@dataclass(frozen=True)
class Setting:
    """The parameters that are chosen; c and p are None if every direction is kept (IOKR)."""

    mixture: Mixture
    alpha: float
    validation_loss: float
    supervision: float | None = None
    n_components: int | None = None

    def make_model(self, kernel: Kernel, n_labeled: int, grid: Grid, device: Any = None) -> IOKR | OEL:
        """Return the estimator with these parameters and an input kernel."""
        if self.supervision is None:
            return IOKR(kernel, OUTPUT_KERNEL, alpha=self.alpha, device=device)
        return OEL(
            kernel,
            OUTPUT_KERNEL,
            alpha=self.alpha,
            n_components=self.n_components,
            supervision=self.supervision,
            output_landmarks=None if self.supervision == 1 else grid.landmarks(n_labeled),
            device=device,
        )


@dataclass(frozen=True)
class ParameterChoice:
    """A cross-validation of all settings on the same splits, in which spectra of one molecule stay together.

    Parameters
    ----------
    labeled : LabeledSpectra
        The training spectra.
    similarity : SpectrumSimilarity
        Their kernel matrices.
    groups : ndarray of shape (n,)
        The number of the molecule of each spectrum.
    seed : int
        The random seed of the splits and of the candidates that are kept.
    report : callable
        Is called with a description of each step.
    grid : Grid
        The values that are compared.
    device : str, torch.device or None
        The torch device.
    """

    labeled: LabeledSpectra
    similarity: SpectrumSimilarity
    groups: Index
    seed: int
    report: Report
    grid: Grid = GRID
    device: Any = None

    @property
    def _options(self) -> dict[str, Any]:
        return {"scoring": "loss", "refit": False, "dtype": "float32", "device": self.device}

    def choose(self, method: str, unlabeled: Bits | None) -> Setting:
        """Return the setting with the smallest validation loss for "iokr", "oel0" or "oel"."""
        candidates = PerExampleCandidates(self.labeled.thin(MAX_VALIDATION_CANDIDATES, self.seed))
        setting, kernel = self._choose_mixture(candidates)
        if method == "iokr":
            return setting
        return self._choose_embedding(setting, kernel, candidates, unlabeled if method == "oel" else None)

    def _choose_mixture(self, candidates: PerExampleCandidates) -> tuple[Setting, Kernel]:
        """Compare mixtures and λ of IOKR."""
        kernels = [self.similarity.on_rows(mixture, OUTPUT_KERNEL) for mixture in self.grid.mixtures]
        search = IOKRCV(kernels, OUTPUT_KERNEL, alphas=self.grid.alphas, cv=self.mixture_splits(), **self._options)
        self._fit(search, candidates, None)
        best = search.best_params_
        searched = zip(self.grid.mixtures, search.grid_["input_kernel"], strict=True)
        mixture = next(mixture for mixture, kernel in searched if kernel is best["input_kernel"])
        return Setting(mixture, best["alpha"], -search.best_score_), best["input_kernel"]

    def _choose_embedding(
        self, iokr: Setting, kernel: Kernel, candidates: PerExampleCandidates, unlabeled: Bits | None
    ) -> Setting:
        """Compare λ, c and p of OEL with the mixture that IOKR chose."""
        splits = self.splits()
        n_molecules = min(len(np.unique(self.groups[train])) for train, _ in splits)
        n_training = max(len(train) for train, _ in splits)
        search = OELCV(
            kernel,
            OUTPUT_KERNEL,
            alphas=[iokr.alpha * factor for factor in self.grid.factors],
            n_components=[p for p in self.grid.sizes if p <= n_molecules] or n_molecules,
            supervisions=1.0 if unlabeled is None else self.grid.supervisions,
            output_landmarks=None if unlabeled is None else self.grid.landmarks(n_training),
            cv=splits,
            **self._options,
        )
        self._fit(search, candidates, unlabeled)
        best = search.best_params_
        return replace(
            iokr,
            alpha=best["alpha"],
            validation_loss=-search.best_score_,
            supervision=best["supervision"],
            n_components=best["n_components"],
        )

    def mixture_splits(self) -> list[tuple[Index, Index]]:
        """Return the splits that compare mixtures: the first ones that hold out enough spectra, or all of them."""
        splits = self.splits()
        held_out = np.cumsum([len(held) for _, held in splits])
        return splits[: 1 + int(np.searchsorted(held_out, MIN_MIXTURE_HELD_OUT))]

    def splits(self) -> list[tuple[Index, Index]]:
        """Return the training and the held-out spectra of each split."""
        splitter = GroupKFold(N_SPLITS, shuffle=True, random_state=self.seed)
        return list(splitter.split(self.groups, groups=self.groups))

    def _fit(self, search: IOKRCV | OELCV, candidates: PerExampleCandidates, unlabeled: Bits | None) -> None:
        self.report(f"{type(search).__name__} on {len(search.cv)} splits of {len(self.labeled)} spectra")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The best .* of its grid", UserWarning)  # reported below
            search.fit(np.arange(len(self.labeled)), self.labeled.bits, unlabeled, candidates)
        for edge in search.edges_:
            self.report(f"the best {edge}")
