"""The steps of a fit that the parameters of an estimator determine."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from psilearn._backend import Compute
from psilearn._distributed import ChunkedRows
from psilearn._linalg import Subspace
from psilearn._utils.progress import step
from psilearn._utils.samples import Samples, n_samples
from psilearn.embedding import KnownOutputs, OutputStream
from psilearn.embedding.coordinates import known_outputs_of
from psilearn.embedding.output_sides import ExactOutputs, GramOutputs, LandmarkOutputs, OutputSide
from psilearn.estimators.fit_memory import (
    FitSizes,
    probable_rank,
    require_fit_memory,
    require_remaining_memory,
    row_bytes,
)
from psilearn.kernels import Kernel
from psilearn.landmarks.selection import Landmarks, pool_size
from psilearn.regression.kernel_regression import Regression


@dataclass(frozen=True)
class FitPlan:
    """The validated parameters that determine the steps of a fit."""

    alpha: float
    n_components: int | None
    supervision: float | None  # c; None keeps every direction
    input_landmarks: Landmarks | None
    output_landmarks: Landmarks | None
    has_regressor: bool

    @property
    def uses_unlabeled(self) -> bool:
        """Whether the directions depend on the moment of the unlabeled outputs."""
        return self.supervision is not None and self.supervision < 1

    @property
    def uses_fitted_values(self) -> bool:
        """Whether the directions depend on the moment of the fitted values of the regression."""
        return self.supervision is not None and self.supervision > 0

    def output_side(self, kernel: Kernel, Y: Samples, unlabeled: OutputStream | None, compute: Compute) -> OutputSide:
        """Return exact output coordinates, or those of landmarks."""
        with step("distinct outputs"):
            known = self.known_outputs(Y, unlabeled)
        sizes = self.sizes(n_samples(Y), known, unlabeled, compute)
        sizes = replace(sizes, without_coordinates=skips_coordinates(kernel, known.outputs, sizes, compute))
        require_fit_memory(sizes, kernel, known.outputs, compute)
        if sizes.without_coordinates:
            return GramOutputs(kernel, known, compute)
        if self.output_landmarks is not None:
            arguments = unlabeled, self.uses_unlabeled, self.output_landmarks, self.alpha, compute
            return LandmarkOutputs(kernel, Y, known, *arguments)
        psi = ExactOutputs(kernel, known, self.uses_unlabeled, compute)
        require_remaining_memory(replace(sizes, rank=psi.rank), compute)
        return psi

    def known_outputs(self, Y: Samples, unlabeled: OutputStream | None) -> KnownOutputs:
        """Return the distinct outputs that the model keeps."""
        others = None
        if unlabeled is not None:
            others = unlabeled.collect() if self.output_landmarks is None else unlabeled.in_memory
        if not isinstance(Y, ChunkedRows):
            return KnownOutputs.of(Y, others)
        assert self.output_landmarks is not None  # required of chunks
        r, random_state = self.output_landmarks.n, self.output_landmarks.random_state
        p = r if self.n_components is None else min(r, self.n_components)
        known = known_outputs_of(Y, p, pool_size(r), random_state)
        return known if others is None else replace(known, outputs=KnownOutputs.of(known.outputs, others).outputs)

    def sizes(self, n: int, known: KnownOutputs, unlabeled: OutputStream | None, compute: Compute) -> FitSizes:
        """Return the sizes that determine the memory of the fit; the rank is a bound."""
        d, rank = n_samples(known.outputs), known.n_labeled
        if self.uses_unlabeled:
            rank = d
        if self.output_landmarks is not None:
            is_open = self.uses_unlabeled and unlabeled is not None and unlabeled.in_memory is None
            rank = self.output_landmarks.n if is_open else min(self.output_landmarks.n, rank)
        return FitSizes(
            n=n,
            d=d,
            n_labeled=known.n_labeled,
            rank=rank,
            n_components=self.n_components,
            supervision=self.supervision,
            input_landmarks=self.input_landmarks,
            output_landmarks=self.output_landmarks,
            itemsize=compute.itemsize,
            has_unlabeled=unlabeled is not None,
            row_bytes=row_bytes(known.outputs),
            has_regressor=self.has_regressor,
        )

    def subspace(self, psi: OutputSide, regression: Regression, compute: Compute) -> Subspace:
        """Return the leading directions of M_c, or all of them."""
        if self.supervision is None:
            return Subspace(np.empty(0), None)
        subspace = psi.leading_directions(regression.moment, self.supervision, self.n_components, compute)
        rank = len(subspace.eigenvalues)
        if self.n_components is not None and rank < self.n_components:
            message = f"n_components={self.n_components} exceeds the rank of the output moment: {rank} are used."
            warnings.warn(message, UserWarning, stacklevel=3)
        return subspace


def skips_coordinates(kernel: Kernel, outputs: Samples, sizes: FitSizes, compute: Compute) -> bool:
    """Return whether directions are found from the Gram matrix itself, without its factorization.

    This is faster if few directions are needed and the rank of the matrix is not far below its order, as the rank of a
    sample shows.
    """
    d = sizes.n_spanned
    return sizes.may_skip_coordinates and probable_rank(kernel, outputs, d, compute=compute) == d
