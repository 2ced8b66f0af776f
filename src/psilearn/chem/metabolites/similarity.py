"""Similarity of spectra from several kernels: their matrices are computed once, and combined in many ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psilearn._backend import on_host
from psilearn._linalg import Array
from psilearn._utils.samples import Index
from psilearn.chem.spectra import Spectrum
from psilearn.chem.spectrum_kernels import ProbabilityProduct
from psilearn.kernels import Gaussian, Kernel, Precomputed, weighted
from psilearn.kernels.blocks import gram
from psilearn.kernels.combine import alignf_weights, centred

COMBINATIONS = ("uniform", "alignf")


@dataclass(frozen=True)
class Mixture:
    """How kernels on spectra become one: weights, and a Gaussian over the distance of their sum."""

    combination: str = "uniform"  # or "alignf": weights aligned with the output kernel on training data
    gamma: float | None = 0.5  # None: the sum itself

    def __str__(self) -> str:
        return f"{self.combination}, {'linear' if self.gamma is None else f'γ={self.gamma:g}'}"


@dataclass(frozen=True)
class SpectrumSimilarity:
    """Normalised kernels on spectra and their matrices over n of them.

    Cost: the pairs of peaks within reach; memory: a matrix of n² numbers for each kernel.
    """

    kernels: Sequence[Kernel]
    matrices: Sequence[Array]  # each (n, n)

    @classmethod
    def of(cls, spectra: Sequence[Spectrum], width: float = 0.005, unit: str = "Da") -> SpectrumSimilarity:
        """Compare peaks and neutral losses of all spectra."""
        kernels = [ProbabilityProduct(of, width=width, unit=unit).normalized() for of in ("peaks", "losses")]
        remedy = "Train on fewer spectra."
        with on_host():
            return cls(kernels, [gram(kernel, spectra, "input_kernel", remedy) for kernel in kernels])

    def weights(self, combination: str, train: Index, outputs: Array | None = None) -> Array:
        """Return the weight of each kernel, summing to one; of "alignf" by the output kernel matrix of the training."""
        if combination not in COMBINATIONS:
            raise ValueError(f"combination must be one of {', '.join(COMBINATIONS)}; got {combination!r}.")
        if combination == "uniform" or outputs is None:
            return np.full(len(self.kernels), 1 / len(self.kernels))
        blocks = [centred(matrix[np.ix_(train, train)]) for matrix in self.matrices]
        return alignf_weights(blocks, centred(outputs.copy()))

    def on_indices(self, weights: Array, gamma: float | None) -> Kernel:
        """Return the kernel on the numbers of the spectra 0 … n−1."""
        total = weights[0] * self.matrices[0]
        for weight, matrix in zip(weights[1:], self.matrices[1:], strict=True):
            total += weight * matrix
        return _over(Precomputed(total), gamma)

    def on_spectra(self, weights: Array, gamma: float | None) -> Kernel:
        """Return the same kernel on spectra, new ones too."""
        return _over(weighted(self.kernels, weights), gamma)


def _over(mean: Kernel, gamma: float | None) -> Kernel:
    return mean if gamma is None else Gaussian(gamma=gamma, base=mean)
