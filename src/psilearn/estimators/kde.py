"""Kernel Dependency Estimation: the leading directions of the outputs."""

import warnings
from typing import Any, Self

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from psilearn._linalg.moments import MixedMoment, Subspace
from psilearn._utils import validation
from psilearn.embedding import LandmarkOutputs, OutputStream, SpannedOutputs
from psilearn.estimators.output_kernel_regression import OutputKernelRegression, known_candidates
from psilearn.regression import Regression


def _needs_output_landmarks(estimator: Any) -> bool:
    if estimator.output_landmarks is None:
        raise AttributeError("partial_fit needs output_landmarks: without them every output is held, and fit is exact.")
    return True


class KDE(OutputKernelRegression):
    """Kernel Dependency Estimation: regression onto the leading kernel principal components of the outputs.

    G spans the p leading eigenvectors of 1/m Σⱼ ψ(yⱼ)ψ(yⱼ)ᵀ (uncentred), over the unlabeled outputs, or over Y where
    there are none. The inputs play no part in choosing G: it is :class:`OEL` with ``supervision=0``.

    Fit costs what IOKR's does, for d distinct outputs (labeled and unlabeled), and the leading p eigenvectors of an (r,
    r) moment; with output landmarks mr² for m unlabeled outputs, one batch in memory. Decoding: p flops a candidate.

    Parameters
    ----------
    input_kernel, output_kernel, alpha, input_landmarks, output_landmarks, dtype, verbose, regressor, device :
        as in :class:`IOKR`.
    n_components : int or None
        p; None keeps the whole rank.

    Attributes
    ----------
    eigenvalues_ : array (p,)
        of the moment, descending.
    n_components_ : int
        p as used: at most the rank.
    Others as in :class:`IOKR`.

    References
    ----------
    Weston, Chapelle, Elisseeff, Schölkopf and Vapnik, *Kernel Dependency Estimation*, NIPS 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import KDE
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> KDE(n_components=3).fit(X, np.hstack([X, X**2])).embed(X[:2]).shape
    (2, 3)
    """

    def __init__(
        self,
        input_kernel: Any = None,
        output_kernel: Any = None,
        alpha: float = 1e-4,
        n_components: int | None = None,
        input_landmarks: Any = None,
        output_landmarks: Any = None,
        dtype: Any = "float64",
        verbose: int = 0,
        regressor: Any = None,
        device: Any = None,
    ) -> None:
        self.input_kernel = input_kernel
        self.output_kernel = output_kernel
        self.alpha = alpha
        self.n_components = n_components
        self.input_landmarks = input_landmarks
        self.output_landmarks = output_landmarks
        self.dtype = dtype
        self.verbose = verbose
        self.regressor = regressor
        self.device = device

    @available_if(_needs_output_landmarks)
    def partial_fit(self, unlabeled: Any) -> Self:
        """Take further unlabeled outputs into the embedding, as if ``fit`` had seen them too; needs output_landmarks.

        The landmarks and the regression stay as they are; ``approximation_error_`` says how well the landmarks span
        what has been seen since. Where ``fit`` saw no unlabeled outputs, these take the place of y in the moment. Cost:
        m·r kernel values, 2m·r² flops and the leading eigenvectors of an (r, r) matrix.

        Parameters
        ----------
        unlabeled : as in ``fit``
        """
        check_is_fitted(self)
        if self._continuation is None:
            raise ValueError("This model was fitted without output_landmarks: fit it again before partial_fit.")
        self._check_parameters()
        outputs, regression = self._continuation
        if self._looks_at_unlabeled() == (regression is None) or (
            regression is not None and self._looks_at_fitted_values() == (regression.moment is None)
        ):
            raise ValueError("supervision has changed since fit in a way that needs a new fit.")
        with self._numerics(unlabeled):
            stream = OutputStream(unlabeled, self.output_kernel_, outputs.outputs, like_name="the known outputs")
            outputs = outputs.with_unlabeled(stream)
            self.__dict__.pop("calibration_scores_", None)  # of the embedding before
            if regression is not None:
                self.__dict__.update(self._from_subspace(outputs, regression))
            else:  # fully supervised: only the candidates change
                self.candidates_ = known_candidates(outputs, None, self.embedding_)
                self.approximation_error_ = outputs.approximation_error
                self._continuation = (outputs.parked(), None)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_components is not None:
            validation.check_count(self.n_components, "n_components")

    def _looks_at_unlabeled(self) -> bool:
        return True

    def _choose_subspace(self, outputs: SpannedOutputs | LandmarkOutputs, regression: Regression) -> Subspace:
        return self._top(outputs.moment())

    def _top(self, moment: MixedMoment) -> Subspace:
        subspace = moment.top(self.n_components)
        rank = len(subspace.eigenvalues)
        if self.n_components is not None and rank < self.n_components:
            warnings.warn(
                f"n_components={self.n_components} is more than the rank of the output moment: {rank} components are "
                f"used.",
                UserWarning,
                stacklevel=5,
            )
        return subspace
