"""Similarity of spectra by several kernels: their matrices are computed once and combined in several ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from psilearn.kernels import Aligned, Gaussian, Kernel, Precomputed, uniform, weighted
from psilearn_chem.spectra import Spectrum
from psilearn_chem.spectrum_kernels import FEATURES, ProbabilityProduct
from psilearn_chem.subformula_kernels import SubformulaKernel
from psilearn_chem.subformula_rows import FORMULAS

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
