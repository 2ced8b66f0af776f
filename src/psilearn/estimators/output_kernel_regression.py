"""What the estimators share: they wire the rooms together, regress → embed → decode."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from psilearn._backend import (
    asarray,
    computing,
    computing_rows,
    device_for,
    find_device,
    in_form_of,
    is_tensor,
    release,
    to_host,
    working_device,
    working_dtype,
    zeros,
)
from psilearn._linalg import Array
from psilearn._linalg.moments import Subspace
from psilearn._utils import validation
from psilearn._utils.progress import show_progress
from psilearn._utils.samples import Samples, describe, is_empty, n_columns, n_samples
from psilearn.conformal import PredictionSets, scores_of_truth, sets_within, threshold
from psilearn.decoding import CandidateSet, CandidateSets, Ranks, TopK, as_candidates, nearest, rank_of_truth
from psilearn.decoding.all_rankings import AllRankings, has_all_rankings
from psilearn.embedding import Embedding, LandmarkOutputs, OutputStream, SpannedOutputs
from psilearn.kernels.blocks import checked, diagonal
from psilearn.kernels.kernel import Kernel, as_kernel
from psilearn.landmarks import as_landmarks
from psilearn.metrics import kernel_loss
from psilearn.regression import (
    EstimatorPredictor,
    EstimatorRegressor,
    KernelPredictor,
    KernelRidge,
    NystromRidge,
    Predictor,
    Regression,
    Regressor,
)
from psilearn.regression.sklearn_regressor import check_inputs, check_regressor

# Fitted attributes that some fits leave and others do not: those of the last fit must not outlive it.
STALE = (
    "n_features_in_",
    "feature_names_in_",
    "calibration_scores_",
    "input_kernel_",
    "X_fit_",
    "dual_coef_",
    "regressor_",
    "directions_",
)


class OutputKernelRegression(BaseEstimator):
    """What the three estimators share; they differ in ``_choose_subspace`` and in the outputs it looks at."""

    input_kernel: Any
    output_kernel: Any
    alpha: float
    input_landmarks: Any
    output_landmarks: Any
    dtype: Any
    verbose: int
    regressor: Any
    device: Any
    _continuation: tuple[LandmarkOutputs, Regression | None] | None

    def fit(self, X: Samples, y: Samples, unlabeled: Any = None) -> Self:
        """Learn from pairs (xᵢ, yᵢ) and from further outputs without inputs.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
        y : array (1-D or 2-D), CSR matrix or sequence of n outputs
        unlabeled : same form as y, path to a .npy or .parquet file, or iterator of batches; optional
            m ≥ 0 outputs of which the input is not known. In KDE, and in OEL below full supervision, they take the
            place of y in the outputs' moment 1/m Σ ψ(yⱼ)ψ(yⱼ)ᵀ, so give a sample that stands for the outputs, not a
            few odd ones. With ``output_landmarks`` they are read once, batch by batch; without, all of them are held.
            Outputs that are in memory (no memory-mapped array, path or iterator) also join the default candidates,
            as all do without ``output_landmarks``. (scikit-learn's searches cut a fit parameter that is exactly as
            long as X together with X; :class:`~psilearn.OELCV` does not.)
        """
        self._check_parameters()
        with self._numerics(X, y, unlabeled):
            given, kernel = X, as_kernel(self.output_kernel, "output_kernel")
            X, regressor = self._input_side(X)
            Y, stream = check_outputs_of_fit(type(self).__name__, kernel, y, unlabeled, n_samples(X))
            kernel.fit(Y)
            outputs = self._output_side(kernel, Y, stream)
            regression = regressor.fit(X).regress(outputs.labeled, self._looks_at_fitted_values())
            del regressor  # and with it the factor of K_x, n² numbers
            if isinstance(outputs, LandmarkOutputs):
                outputs.forget_labeled()
                if self._looks_at_unlabeled():
                    regression = regression.settled()  # kept for partial_fit
            fitted = self._from_subspace(outputs, regression)

            for stale in STALE:
                self.__dict__.pop(stale, None)
            if n_columns(X) is not None:
                validate_data(self, given, skip_check_array=True)  # remembers the number and the names of the columns
            self.output_kernel_ = kernel
            self.input_approximation_error_ = regression.approximation_error
            self.__dict__.update(fitted)
            del outputs, regression
            release(working_device())
        return self

    def _from_subspace(self, outputs: SpannedOutputs | LandmarkOutputs, regression: Regression) -> dict[str, Any]:
        """Return the fitted attributes that depend on the chosen directions V (r, p)."""
        eigenvalues, V = self._choose_subspace(outputs, regression)
        embedding = outputs.embedding(V)
        continuation = None
        if isinstance(outputs, LandmarkOutputs):
            continuation = outputs.parked(), regression.parked() if self._looks_at_unlabeled() else None
        return {
            "embedding_": embedding,
            "candidates_": known_candidates(outputs, V, embedding),
            "eigenvalues_": eigenvalues,
            "n_components_": embedding.n_components,
            "approximation_error_": outputs.approximation_error,
            "_continuation": continuation,
            **regression.attributes(V),
        }

    def embed(self, X: Samples) -> Array:
        """Return z(x) = Gĥ(x), the predicted embedding, shape (len(X), p); a tensor where X is one."""
        return in_form_of(X, self._embed(X))

    def _embed(self, X: Samples) -> Array:
        """Return z(x), where the work is done if there is room for it."""
        check_is_fitted(self)
        with self._numerics(X):
            predictor = self._predictor()
            given, X = X, predictor.check(X)
            if n_columns(X) is not None:
                validate_data(self, given, reset=False, skip_check_array=True)
            shape = n_samples(X), self.n_components_
            fits = computing_rows(working_dtype().itemsize * shape[1], shape[0]) == shape[0]
            Z = zeros(shape, working_dtype()) if fits else np.empty(shape, working_dtype())
            for rows, z in predictor.predictions(X):
                Z[rows] = asarray(z) if is_tensor(Z) else to_host(z)
            return Z

    def transform_outputs(self, Y: Samples) -> Array:
        """Return g(y) = Gψ(y), the learned embedding of outputs, shape (len(Y), p); a tensor where Y is one."""
        check_is_fitted(self)
        with self._numerics(Y):
            return in_form_of(Y, self.embedding_(self._check_outputs(Y, "Y")))

    def candidate_set(self, outputs: Samples, path: Any = None) -> CandidateSet:
        """Embed candidates once, for many calls of ``predict`` and ``predict_topk``.

        Parameters
        ----------
        outputs : c candidates, in the form of y
        path : folder, optional
            where to keep [g(y), k(y, y)] and the outputs, memory-mapped, instead of c·p numbers in memory;
            ``CandidateSet.load(path, model.embedding_)`` finds them again.
        """
        check_is_fitted(self)
        with self._numerics(outputs):
            return CandidateSet.build(self._check_outputs(outputs, "outputs"), self.embedding_, path)

    def predict(self, X: Samples, candidates: Any = None) -> Samples:
        """Return the nearest candidate of each input, in the form in which the candidates came.

        Parameters
        ----------
        X : inputs
        candidates : collection, CandidateSet, list of collections or CandidateSets, optional
            one set for all inputs (embedded already, with :meth:`candidate_set`), or one set an input; by default all
            rankings where the output kernel is one of rankings, else the distinct known outputs, ``candidates_``.
        """
        return self.predict_topk(X, 1, candidates).nearest

    def predict_topk(self, X: Samples, k: int = 10, candidates: Any = None) -> TopK:
        """Return the k nearest candidates of each input with squared distances in the output space.

        k is at most the number of candidates. Cost: 2·len(X)·c·p flops in float32 for c candidates, those in doubt
        again in float64, and for candidates that are given c·r kernel values and 2·c·r·p flops to embed them; memory:
        :func:`psilearn.memory.predict_bytes`. The nearest of all rankings comes from a solver of its own
        (:mod:`psilearn.decoding.all_rankings`); for k > 1 they are listed, which goes up to 8 items.
        """
        Z = self._embed(X)
        k = validation.check_count(k, "k")
        with self._numerics(X):
            if candidates is None and k == 1 and has_all_rankings(self.output_kernel_):
                found = AllRankings.of(self.embedding_, self.candidates_.outputs).nearest(to_host(Z))
            else:
                found = nearest(Z, self._prepare(candidates, len(Z)), self.embedding_, k)
        if is_tensor(X):
            return TopK(in_form_of(X, found.indices), in_form_of(X, found.distances), found.candidates)
        return found

    def rank(self, X: Samples, y: Samples, candidates: Any = None) -> Ranks:
        """Return where the true output of each input stands among its distinct candidates, ties counted apart."""
        Z, Y = self._embedded_pairs(X, y)
        if candidates is None and has_all_rankings(self.output_kernel_):
            self.output_kernel_.check_full(Y, "y")
        with self._numerics(X):
            ranks = rank_of_truth(Z, Y, self._prepare(candidates, len(Z)), self.embedding_)
        if np.isinf(ranks.nearer).all():
            warnings.warn("No true output of y is among its candidates: every rank is ∞.", UserWarning, stacklevel=2)
        return ranks

    def calibrate(self, X: Samples, y: Samples, candidates: Any = None) -> Self:
        """Learn from examples that ``fit`` has not seen where the true output may stand, for :meth:`predict_set`.

        Parameters
        ----------
        X, y : n examples
            at least coverage/(1 − coverage) of them are needed for a set that does not hold every candidate.
        candidates : as in ``predict``
            of the kind that ``predict_set`` will be given. A true output that is not among them counts as infinitely
            far, as it will be then.
        """
        Z, Y = self._embedded_pairs(X, y)
        if candidates is None and has_all_rankings(self.output_kernel_):
            self.output_kernel_.check_full(Y, "y")
        with self._numerics(X):
            scores = scores_of_truth(Z, Y, self._prepare(candidates, len(Z)), self.embedding_)
        if np.isinf(scores).all():
            raise ValueError("No true output of y is among its candidates: there is nothing to calibrate on.")
        self.calibration_scores_ = np.sort(scores)
        return self

    def predict_set(self, X: Samples, coverage: float = 0.9, candidates: Any = None) -> PredictionSets:
        """Return for each input a set of candidates that holds the true output with probability ``coverage``.

        It takes the nearest candidates up to a score of place and distance that calibration found to be enough: see
        :mod:`psilearn.conformal` for the score and the guarantee. Needs :meth:`calibrate`. Cost: as ``predict_topk``
        with all candidates.

        Parameters
        ----------
        X : inputs
        coverage : float in [0, 1]
        candidates : as in ``predict``
        """
        check_is_fitted(self)
        if not hasattr(self, "calibration_scores_"):
            raise NotFittedError(
                "predict_set needs a calibrated model: call calibrate(X, y) with examples that fit has not seen."
            )
        limit = threshold(self.calibration_scores_, coverage)
        Z = self._embed(X)
        with self._numerics(X):
            return sets_within(Z, self._prepare(candidates, len(Z)), self.embedding_, limit, float(coverage))

    def score(self, X: Samples, y: Samples, candidates: Any = None) -> float:
        """Return minus the mean output-kernel loss |ψ(ŷ) − ψ(y)|² of the predictions; higher is better.

        Measured in the model's own output kernel, it cannot compare models with different output kernels: for those
        use a metric, or ``make_scorer(kernel_loss, kernel=one, greater_is_better=False)``.
        """
        prediction = self.predict(X, candidates)
        return -float(kernel_loss(self._check_outputs(y, "y"), prediction, self.output_kernel_))

    def _check_parameters(self) -> None:
        validation.check_positive(self.alpha, "alpha")
        validation.check_precision(self.dtype, "dtype")
        find_device(self.device)
        as_landmarks(self.input_landmarks, "input_landmarks", "uniform")
        as_landmarks(self.output_landmarks, "output_landmarks", "pivoted")
        if self.regressor is not None:
            check_regressor(self.regressor, input_kernel=self.input_kernel, input_landmarks=self.input_landmarks)

    @contextmanager
    def _numerics(self, *given: Any) -> Iterator[None]:
        """Compute in the model's precision and on its device, or where tensors are that are given or were fitted on."""
        validation.check_precision(self.dtype, "dtype")
        known = self.candidates_.outputs if hasattr(self, "candidates_") else None
        device = device_for(self.device, *given, getattr(self, "X_fit_", None), known)
        with computing(self.dtype, device), show_progress(self.verbose):
            yield

    def _looks_at_unlabeled(self) -> bool:
        """Whether the coordinates must span the unlabeled outputs too."""
        return False

    def _looks_at_fitted_values(self) -> bool:
        """Whether the directions depend on the moment of the regression's fitted values."""
        return False

    def _output_side(self, kernel: Kernel, Y: Samples, stream: OutputStream | None) -> SpannedOutputs | LandmarkOutputs:
        landmarks = as_landmarks(self.output_landmarks, "output_landmarks", "pivoted")
        if landmarks is None:
            return SpannedOutputs(kernel, Y, stream, self._looks_at_unlabeled())
        return LandmarkOutputs(kernel, Y, stream, self._looks_at_unlabeled(), landmarks, float(self.alpha))

    def _input_side(self, X: Samples) -> tuple[Samples, Regressor]:
        """Return the inputs, checked, and the regression that is to be fitted on them."""
        if self.regressor is not None:
            return check_inputs(X), EstimatorRegressor(self.regressor)
        kernel = as_kernel(self.input_kernel, "input_kernel")
        X = checked(kernel, X, "X", allow_1d=False)
        kernel.fit(X)
        landmarks = as_landmarks(self.input_landmarks, "input_landmarks", "uniform")
        if landmarks is None:
            return X, KernelRidge(kernel, float(self.alpha))
        return X, NystromRidge(kernel, float(self.alpha), landmarks)

    def _predictor(self) -> Predictor:
        """Return x ↦ z(x) of the fitted model."""
        if hasattr(self, "regressor_"):
            return EstimatorPredictor(self.regressor_, self.directions_, self.n_components_)
        return KernelPredictor(self.input_kernel_, self.X_fit_, self.dual_coef_)

    def _choose_subspace(self, outputs: SpannedOutputs | LandmarkOutputs, regression: Regression) -> Subspace:
        raise NotImplementedError

    def _embedded_pairs(self, X: Samples, y: Samples) -> tuple[Array, Samples]:
        """Return z(x) and the checked true outputs, one an input."""
        Z = self._embed(X)
        Y = self._check_outputs(y, "y")
        if len(Z) != n_samples(Y):
            raise ValueError(f"X has {len(Z)} examples, y has {n_samples(Y)}.")
        return Z, Y

    def _check_outputs(self, Y: Samples, name: str) -> Samples:
        Y = checked(self.output_kernel_, Y, name)
        self.output_kernel_.check_alike(Y, name, self.candidates_.outputs, "the outputs that the model was fitted on")
        return Y

    def _prepare(self, candidates: Any, n_examples: int) -> CandidateSet | CandidateSets:
        if candidates is None:
            if has_all_rankings(self.output_kernel_):
                return AllRankings.of(self.embedding_, self.candidates_.outputs).listed(self.embedding_)
            return self.candidates_
        if isinstance(candidates, CandidateSet):
            candidates.require(self.embedding_)
            return candidates
        candidates = as_candidates(candidates, self.candidates_.outputs)
        if isinstance(candidates, CandidateSets):
            return candidates.checked(self._check_outputs, n_examples)
        candidates = self._check_outputs(candidates, "candidates")
        return CandidateSet(candidates, self.embedding_, diagonal(self.output_kernel_, candidates, "output_kernel"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def known_candidates(outputs: SpannedOutputs | LandmarkOutputs, V: Array | None, embedding: Embedding) -> CandidateSet:
    """Return the distinct known outputs, embedded: the default candidates."""
    norms = diagonal(embedding.kernel, outputs.outputs, "output_kernel")
    return CandidateSet(outputs.outputs, embedding, norms, outputs.embedded(V, embedding))


def check_outputs_of_fit(
    estimator: str, kernel: Kernel, y: Samples, unlabeled: Any, n_inputs: int
) -> tuple[Samples, OutputStream | None]:
    """Return the outputs as the kernel takes them, one an input, and the unlabeled outputs (None for none)."""
    if y is None:
        raise ValueError(f"{estimator} requires y to be passed, but the target y is None.")
    Y = checked(kernel, y, "y")
    if n_samples(Y) != n_inputs:
        raise ValueError(
            f"X and y must have one row an example: X has {n_inputs}, y has {n_samples(Y)} ({describe(Y)})."
        )
    if unlabeled is None or is_empty(unlabeled):
        return Y, None
    return Y, OutputStream(unlabeled, kernel, Y)
