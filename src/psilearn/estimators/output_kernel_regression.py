"""The fit that IOKR, KDE and OEL share: regression, output coordinates, directions, candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from psilearn._backend import Compute, find_device
from psilearn._distributed import ChunkedRows
from psilearn._linalg import Array, Subspace
from psilearn._utils import validation
from psilearn._utils.estimators import fitted_snapshot, publish, unfitted_copy
from psilearn._utils.progress import step
from psilearn._utils.samples import Samples, describe_shape, is_empty, n_columns, n_samples
from psilearn.decoding import SharedCandidates
from psilearn.embedding import Embedding, OutputStream
from psilearn.embedding.output_sides import LandmarkOutputs, OutputSide
from psilearn.estimators.dask_inputs import convert_dask, require_landmarks
from psilearn.estimators.fit_plan import FitPlan
from psilearn.estimators.prediction import OutputKernelPredictor
from psilearn.kernels import Kernel, as_kernel, as_output_kernel
from psilearn.landmarks.selection import Landmarks, as_landmarks
from psilearn.regression import KernelRidge, NystromRidge, SklearnRegressor
from psilearn.regression.kernel_regression import Regression, Regressor
from psilearn.regression.sklearn_regressor import check_inputs, check_regressor

Continuation = tuple[LandmarkOutputs, Regression | None] | None  # what partial_fit continues from


class OutputKernelRegression(OutputKernelPredictor):
    """Regression of output embeddings: the estimators differ in the directions of the output space that they keep.

    A subclass defines ``_supervision``: None keeps every direction (IOKR); a number c in [0, 1] keeps the leading
    directions of the mixed moment M_c (KDE: c = 0).
    """

    input_kernel: Any
    output_kernel: Any
    alpha: float
    n_components: int | None = None
    input_landmarks: int | Landmarks | None
    output_landmarks: int | Landmarks | None
    regressor: Any
    _continuation: Continuation = None  # of partial_fit; not part of a saved model

    @property
    def _supervision(self) -> float | None:
        """The weight c of the fitted values in the mixed moment, or None to keep every direction."""
        raise TypeError(f"{type(self).__name__} must define _supervision.")

    def fit(self, X: Samples, y: Samples, unlabeled: Any = None) -> Self:
        """Fit the model to pairs (xᵢ, yᵢ) and to further outputs without inputs.

        Parameters
        ----------
        X : array, CSR matrix, sequence or Dask collection of n inputs
            The inputs.
        y : array (1-D or 2-D), CSR matrix, sequence or Dask collection of n outputs
            The outputs.
        unlabeled : collection, Dask collection, path or iterable of batches, default=None
            Outputs without inputs: in the form of y, as a path to a .npy or .parquet file, or as an iterator of
            batches. In KDE, and in OEL with supervision below 1, they replace y in the moment 1/m Σ ψ(yⱼ)ψ(yⱼ)ᵀ of the
            outputs, so they should be a representative sample. With ``output_landmarks`` they are read once, batch by
            batch. Without ``output_landmarks``, all of them are stored.

        Returns
        -------
        estimator
            The fitted model itself.

        See Also
        --------
        predict : Predict outputs of new inputs.

        Notes
        -----
        The distinct outputs y become the default candidates of predictions. Without ``output_landmarks``, the distinct
        unlabeled outputs are added to them. With ``output_landmarks``, unlabeled outputs are added if they are given as
        an array, a CSR matrix or a list in memory, but not if they are given as a memory-mapped array, a Dask
        collection, a path or an iterator.

        Dask arrays, data frames and bags require landmarks on both sides, and the same row chunks of X and y. The fit
        runs at once, on the default client of ``distributed`` if there is one and in threads otherwise. The fitted
        attributes are NumPy arrays, equal to those of a fit to the same data in memory up to rounding, and exactly the
        same for the same chunks. If the distinct outputs y do not fit into ``working_memory``, a sample of them becomes
        the default candidates, with a warning.

        Searches of scikit-learn, such as ``GridSearchCV``, split a fit parameter together with X if both have the same
        number of rows. If there are exactly as many unlabeled outputs as inputs, only the rows of the training split
        are then passed to ``fit``. :class:`~psilearn.OELCV` always uses all unlabeled outputs.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> OEL(n_components=3).fit(X, np.hstack([X, X**2])).n_components_
        3
        """
        plan = self._check_parameters()
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        X, y, unlabeled = convert_dask(X, y, unlabeled)
        require_landmarks(X, unlabeled, plan.input_landmarks, plan.output_landmarks, self.regressor)
        with self._computing(X, y, unlabeled) as compute:
            kernel = as_output_kernel(self.output_kernel, y)
            inputs, input_kernel = self._check_inputs(X)
            Y, stream = check_fit_outputs(kernel, y, unlabeled, n_samples(inputs))
            kernel.fit(Y)
            psi = plan.output_side(kernel, Y, stream, compute)
            regressor = self._make_regressor(plan, input_kernel, inputs, Y, compute).fit(inputs)
            regression = regressor.regress(psi.labeled, with_moment=plan.uses_fitted_values)
            continuation, regression = _prepare_partial_fit(plan, psi.for_partial_fit(), regression)
            fitted = _FittedEmbedding.of(psi, regression, plan.subspace(psi, regression, compute), compute)
            model = unfitted_copy(self)
            model.output_kernel_ = kernel
            model.input_approximation_error_ = regression.approximation_error
            model._store(fitted, continuation)
            if n_columns(inputs) is not None:
                header = getattr(X, "header", None)  # of data frames in chunks
                columns = X if header is None else header
                validate_data(model, columns, skip_check_array=True)  # stores the number and the names of the columns
            compute.free_large_cache()
        return publish(self, model)

    def _check_parameters(self) -> FitPlan:
        """Validate the parameters except dtype, and return those that determine the steps of a fit."""
        find_device(self.device)
        validation.check_verbose(self.verbose, "verbose")
        if self.regressor is not None:
            check_regressor(self.regressor, input_kernel=self.input_kernel, input_landmarks=self.input_landmarks)
        if self.n_components is not None:
            validation.check_count(self.n_components, "n_components")
        return FitPlan(
            alpha=validation.check_regularization(self.alpha, "alpha"),
            n_components=self.n_components,
            supervision=self._supervision,
            input_landmarks=as_landmarks(self.input_landmarks, "input_landmarks", "uniform"),
            output_landmarks=as_landmarks(self.output_landmarks, "output_landmarks", "pivoted"),
            has_regressor=self.regressor is not None,
        )

    def _check_inputs(self, X: Samples) -> tuple[Samples, Kernel | None]:
        """Return validated inputs and a copy of the input kernel, which is None with a regressor."""
        if self.regressor is not None:
            return check_inputs(X), None
        kernel = as_kernel(self.input_kernel, "input_kernel")
        return kernel.check(X, "X", allow_1d=False), kernel

    def _make_regressor(
        self, plan: FitPlan, kernel: Kernel | None, X: Samples, Y: Samples, compute: Compute
    ) -> Regressor:
        if kernel is None:
            return SklearnRegressor(self.regressor)
        kernel.fit(X, Y)
        if plan.input_landmarks is None:
            return KernelRidge(kernel, plan.alpha, compute)
        validate = isinstance(X, ChunkedRows)  # chunks are validated by the workers that have them, other inputs before
        return NystromRidge(kernel, plan.alpha, plan.input_landmarks, compute, validate=validate)

    def _store(self, fitted: _FittedEmbedding, continuation: Continuation) -> None:
        self.regression_ = fitted.regression
        self.embedding_ = fitted.embedding
        self.candidates_ = fitted.candidates
        self.eigenvalues_ = fitted.eigenvalues
        self.n_components_ = fitted.embedding.n_components
        self.approximation_error_ = fitted.approximation_error
        self._continuation = continuation


def _prepare_partial_fit(
    plan: FitPlan, outputs: LandmarkOutputs | None, regression: Regression
) -> tuple[Continuation, Regression]:
    """Return what ``partial_fit`` continues from, or None, and the regression in a compact form if it is kept."""
    if outputs is None or not plan.uses_unlabeled:
        return None if outputs is None else (outputs, None), regression
    regression = regression.compact()
    return (outputs, regression), regression


def _has_output_landmarks(estimator: Any) -> bool:
    if estimator.output_landmarks is None:
        raise AttributeError("partial_fit requires output_landmarks: without them every output is stored.")
    return True


class LearnedEmbeddingRegression(OutputKernelRegression):
    """An estimator that keeps the leading directions of a moment, and can update them with further outputs."""

    @available_if(_has_output_landmarks)
    def partial_fit(self, unlabeled: Any) -> Self:
        """Update the embedding with further unlabeled outputs, as if ``fit`` had seen them too.

        The landmarks and the regression stay as they are; ``approximation_error_`` measures how well the landmarks span
        the outputs seen since. If ``fit`` saw no unlabeled outputs, these replace y in the moment. Requires
        ``output_landmarks``. Cost: m·r kernel values, 2m·r² flops and the leading eigenvectors of an (r, r) matrix.

        Parameters
        ----------
        unlabeled : collection, path or iterable of batches
            Further outputs, as in :meth:`fit`.

        Returns
        -------
        estimator
            The updated model itself.

        See Also
        --------
        fit : The first fit.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> Y = np.hstack([X, X**2])
        >>> model = OEL(n_components=2, output_landmarks=5).fit(X[:10], Y[:10])
        >>> len(model.partial_fit(Y[10:]).candidates_)
        20
        """
        model = fitted_snapshot(self)
        if model._continuation is None:
            raise ValueError(
                "This model was fitted without output_landmarks, or was loaded: saved models do not keep what "
                "partial_fit needs; fit it again."
            )
        plan = model._check_parameters()
        outputs, regression = model._continuation
        if plan.uses_unlabeled == (regression is None) or (
            regression is not None and plan.uses_fitted_values == (regression.moment is None)
        ):
            raise ValueError("supervision has changed since fit in a way that requires a new fit.")
        with model._computing(unlabeled) as compute:
            stream = OutputStream(unlabeled, model.output_kernel_, outputs.outputs, like_name="the known outputs")
            outputs = outputs.with_unlabeled(stream, compute)
            if regression is None:  # fully supervised: only the candidates change
                candidates = _known_candidates(outputs, model.embedding_, model.embedding_(outputs.outputs, compute))
                error = outputs.approximation_error
                fitted = _FittedEmbedding(model.regression_, model.embedding_, candidates, model.eigenvalues_, error)
            else:
                subspace = plan.subspace(outputs, regression, compute)
                fitted = _FittedEmbedding.of(outputs, regression, subspace, compute)
            model._store(fitted, (outputs.for_partial_fit(), regression))
            if hasattr(model, "calibration_scores_"):
                del model.calibration_scores_  # of the embedding before
        return publish(self, model)


@dataclass(frozen=True)
class _FittedEmbedding:
    """The part of a fitted model that depends on the chosen directions."""

    regression: Regression
    embedding: Embedding
    candidates: SharedCandidates
    eigenvalues: Array
    approximation_error: float

    @classmethod
    def of(cls, psi: OutputSide, regression: Regression, subspace: Subspace, compute: Compute) -> _FittedEmbedding:
        """Restrict the regression and the known outputs to the directions."""
        with step("embedding"):
            rotated = regression.rotate(psi.rotation(subspace), compute)
            embedding = psi.embedding(subspace.directions)
            candidates = _known_candidates(psi, embedding, psi.embed_known(subspace, embedding))
        return cls(rotated, embedding, candidates, subspace.eigenvalues, psi.approximation_error)


def _known_candidates(psi: OutputSide, embedding: Embedding, g: Array) -> SharedCandidates:
    """Return the distinct known outputs, embedded: the default candidates."""
    return SharedCandidates(psi.outputs, embedding, embedding.kernel.diag(psi.outputs), g)


def check_outputs(kernel: Kernel, y: Samples) -> Samples:
    """Return validated outputs; an error names the kernel."""
    try:
        return kernel.check(y, "y")
    except (TypeError, ValueError) as error:
        name = type(kernel).__name__
        if name in str(error):
            raise
        raise type(error)(f"y cannot be used with {name}: {error}") from error


def check_fit_outputs(kernel: Kernel, y: Samples, unlabeled: Any, n_inputs: int) -> tuple[Samples, OutputStream | None]:
    """Return the validated outputs, one per input, and the unlabeled outputs (None if there are none)."""
    Y = check_outputs(kernel, y)
    if n_samples(Y) != n_inputs:
        raise ValueError(
            f"X and y must have one row per example: X has {n_inputs}, y has {n_samples(Y)} ({describe_shape(Y)})."
        )
    if unlabeled is None or is_empty(unlabeled):
        return Y, None
    return Y, OutputStream(unlabeled, kernel, Y)
