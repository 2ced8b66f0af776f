"""What IOKR, KDE and OEL share: the fit, predictions, conformal sets, and embedded inputs and outputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from psilearn._backend import Compute, find_device, is_tensor, iter_blocks, like_input, resolve_compute, to_numpy
from psilearn._distributed import ChunkedRows, is_dask
from psilearn._linalg import Array, Subspace
from psilearn._utils import validation
from psilearn._utils.estimators import declare_sparse_inputs_and_outputs, fitted_snapshot, publish, unfitted_copy
from psilearn._utils.progress import show_progress, step
from psilearn._utils.samples import Samples, check_collection, describe_shape, is_empty, n_columns, n_samples
from psilearn.conformal import PredictionSets, prediction_sets, scores_of_truth, threshold
from psilearn.decoding import (
    Candidates,
    RankedCandidates,
    ShardedCandidates,
    SharedCandidates,
    TopK,
    as_candidates,
    ranked_candidates,
)
from psilearn.embedding import Embedding, OutputStream
from psilearn.embedding.output_sides import LandmarkOutputs, OutputSide
from psilearn.estimators.dask_inputs import (
    convert_dask,
    lazy_embeddings,
    lazy_predictions,
    lazy_top_k,
    require_embedded,
    require_landmarks,
    require_memory,
)
from psilearn.estimators.fit_plan import FitPlan
from psilearn.kernels import Kernel, as_kernel, as_output_kernel, has_pre_image, pre_image
from psilearn.landmarks.selection import Landmarks, as_landmarks
from psilearn.metrics import TruthPositions, kernel_loss
from psilearn.regression import KernelRidge, NystromRidge, SklearnRegressor
from psilearn.regression.kernel_regression import Regression, Regressor
from psilearn.regression.sklearn_regressor import check_inputs, check_regressor

Continuation = tuple[LandmarkOutputs, Regression | None] | None  # what partial_fit continues from


class OutputKernelRegression(BaseEstimator):
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
    dtype: Any
    device: Any
    verbose: int
    regression_: Regression
    embedding_: Embedding
    candidates_: SharedCandidates
    output_kernel_: Kernel
    n_components_: int

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

    def predict(self, X: Samples, candidates: Any = None) -> Samples:
        """Predict the nearest candidate of each input.

        Parameters
        ----------
        X : array, CSR matrix, sequence or Dask collection of n inputs
            The inputs.
        candidates : collection, Candidates, list of collections or {"known", "near", "all"}, default=None
            One set for all inputs, as a collection of outputs or embedded by :meth:`candidate_set`; or one set per
            input, as a list of n collections or as :class:`~psilearn.decoding.PerExampleCandidates`. "known" are the
            distinct known outputs ``candidates_``; "all" are all label sets or all rankings, among which the nearest
            is found exactly where the output kernel has a solver (:class:`~psilearn.decoding.AllLabelSets`,
            :class:`~psilearn.decoding.ConsistentLabelSets`, :class:`~psilearn.decoding.AllRankings`); "near" are the
            known label sets and those that differ from one of them by one label
            (:class:`~psilearn.decoding.NearLabelSets`). By default the known outputs, or all rankings
            if the output kernel compares rankings.

        Returns
        -------
        array, CSR matrix or sequence of n outputs
            The predictions, in the form of the candidates; a Dask array, computed chunk by chunk when it is needed,
            if X is a Dask collection.

        See Also
        --------
        predict_topk : The k nearest candidates with distances.
        predict_set : Conformal sets of candidates.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> OEL(n_components=3).fit(X, np.hstack([X, X**2])).predict([[0.0]], candidates=[[0.0, 0.0], [1.0, 1.0]])
        array([[0., 0.]])
        """
        if is_dask(X):
            return lazy_predictions(fitted_snapshot(self), X, candidates)
        return self.predict_topk(X, 1, candidates).nearest

    def predict_topk(self, X: Samples, k: int = 10, candidates: Any = None) -> TopK:
        """Find the k nearest candidates of each input with squared distances in the output space.

        Cost: 2·n·c·p flops in float32 for c candidates, those in doubt again in float64, and c·r kernel values and
        2·c·r·p flops to embed candidates that are not embedded yet. Memory: :func:`psilearn.memory.predict_bytes`. The
        nearest of all rankings is found by a solver; for k > 1 rankings are listed, up to 8 items. The nearest of all
        label sets are found by a solver for every k.

        Parameters
        ----------
        X : array, CSR matrix, sequence or Dask collection of n inputs
            The inputs.
        k : int, default=10
            The number of candidates per input, at most the size of the (largest) candidate set.
        candidates : collection, Candidates or list of collections, default=None
            The candidates, as in :meth:`predict`.

        Returns
        -------
        TopK
            ``indices`` and ``distances`` of shape (n, k), ``margins``, ``nearest`` and ``outputs``. All but the last
            are Dask arrays if X is a Dask collection.

        See Also
        --------
        predict : The nearest candidate only.
        rank_candidates : All candidates of each input, with positions and conformal membership.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> OEL(alpha=1e-8, n_components=6).fit(X, np.hstack([X, X**2])).predict_topk([[0.0]], k=2).indices
        array([[0, 1]])
        """
        model = fitted_snapshot(self)
        k = validation.check_count(k, "k")
        if is_dask(X):
            return lazy_top_k(model, X, k, candidates)
        with model._computing(X) as compute:
            Z = model._embed(X, compute)
            return model._candidates(candidates, len(Z)).nearest(Z, k, compute).like_input(X)

    def rank_candidates(
        self,
        X: Samples,
        candidates: Any = None,
        *,
        k: int | None = None,
        ties: str = "expected",
        coverage: float | None = None,
    ) -> Iterator[RankedCandidates]:
        """Rank all candidates of each input, nearest first.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        candidates : collection, Candidates or list of collections, default=None
            The candidates, as in :meth:`predict`.
        k : int, default=None
            How many candidates per input are returned. None returns all of them.
        ties : {"expected", "optimistic", "pessimistic"}, default="expected"
            The position of candidates at the same distance: the mean of their positions, the first or the last one.
        coverage : float, default=None
            If given, each result says which candidates belong to the conformal set with this coverage. The model must
            be calibrated.

        Returns
        -------
        iterator of RankedCandidates
            For each input the indices, distances, margins, positions and conformal membership of its candidates.

        See Also
        --------
        predict_topk : The k nearest candidates as arrays.
        predict_set : The conformal sets alone.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> model = OEL(n_components=3).fit(X, np.hstack([X, X**2]))
        >>> next(model.rank_candidates([[0.0]], [[1.0, 1.0], [0.0, 0.0]])).indices
        array([1, 0])
        """
        require_memory("rank_candidates", X=X)
        model = fitted_snapshot(self)
        limit = None if coverage is None else model._threshold(coverage)
        with model._computing(X) as compute:
            Z = model._embed(X, compute)
            prepared = model._candidates(candidates, len(Z))
        return _iterate_active(ranked_candidates(Z, prepared, compute, k=k, ties=ties, limit=limit), compute)

    def truth_positions(self, X: Samples, y: Samples, candidates: Any = None) -> TruthPositions:
        """Find the position of the true output of each input among its distinct candidates.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        y : array, CSR matrix or sequence of n outputs
            The true outputs.
        candidates : collection, Candidates or list of collections, default=None
            The candidates, as in :meth:`predict`.

        Returns
        -------
        TruthPositions
            How many candidates are nearer than the truth and how many are tied with it, for
            :func:`psilearn.metrics.top_k_accuracy`.

        See Also
        --------
        psilearn.metrics.top_k_accuracy : The share of examples whose truth is among the k nearest candidates.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> Y = np.hstack([X, X**2])
        >>> OEL(alpha=1e-8, n_components=6).fit(X, Y).truth_positions(X[:1], Y[:1]).nearer
        array([0.])
        """
        require_memory("truth_positions", X=X, y=y)
        model = fitted_snapshot(self)
        with model._computing(X) as compute:
            Z, Y = model._embed_pairs(X, y, compute)
            positions = model._candidates(candidates, len(Z)).truth_positions(Z, Y, compute)
        if np.isinf(positions.nearer).all():
            message = "No true output of y is among its candidates: every position is ∞."
            warnings.warn(message, UserWarning, stacklevel=2)
        return positions

    def score(self, X: Samples, y: Samples, candidates: Any = None) -> float:
        """Compute minus the mean output-kernel loss |ψ(ŷ) − ψ(y)|² of the predictions; higher is better.

        It is measured in the output kernel of the model and cannot compare models with different output kernels. For
        these use a metric, or ``make_scorer(kernel_loss, kernel=kernel, greater_is_better=False)``.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        y : array, CSR matrix or sequence of n outputs
            The true outputs.
        candidates : collection, Candidates or list of collections, default=None
            The candidates, as in :meth:`predict`.

        Returns
        -------
        float
            Minus the loss.

        See Also
        --------
        psilearn.metrics.kernel_loss : The loss with its standard error.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> bool(OEL(n_components=3).fit(X, np.hstack([X, X**2])).score(X, np.hstack([X, X**2])) > -0.1)
        True
        """
        require_memory("score", X=X, y=y)
        model = fitted_snapshot(self)
        truth = model._check_outputs(y, "y")
        n_inputs = check_collection(X, "X")
        if n_inputs != n_samples(truth):
            raise ValueError(f"X has {n_inputs} examples, y has {n_samples(truth)}.")
        return -float(kernel_loss(truth, model.predict(X, candidates), model.output_kernel_))

    def predict_mean(self, X: Samples) -> Array:
        """Predict the output whose feature is nearest to the prediction among all outputs, without candidates.

        The prediction G*z(x) = Σ_l β_l ψ(s_l) is a combination of features of known outputs. If the output kernel has
        pre-images in closed form (:func:`psilearn.kernels.has_pre_image`), the nearest of all outputs is computed: with
        :class:`~psilearn.kernels.Linear` and :class:`~psilearn.kernels.Curves` the mean Σ_l β_l s_l itself, with
        :class:`~psilearn.kernels.Hellinger` a distribution.

        Cost: 2·n·r·(p + d) flops for r output landmarks with d columns.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.

        Returns
        -------
        ndarray of shape (n, d) or (n,)
            The predicted rows of numbers, in float64.

        Raises
        ------
        TypeError
            If the output kernel has no pre-images in closed form.

        See Also
        --------
        predict : The nearest of candidates, for every output kernel.
        psilearn.kernels.pre_image : The pre-images of combinations of features.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKR
        >>> from psilearn.kernels import Gaussian, Linear
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> IOKR(Gaussian(5.0), Linear(), alpha=1e-6).fit(X, np.hstack([X, X**2])).predict_mean([[0.51]]).round(3)
        array([[0.51, 0.26]])
        """
        require_memory("predict_mean", X=X)
        model = fitted_snapshot(self)
        embedding = model.embedding_
        if not has_pre_image(embedding.kernel):
            raise TypeError(
                f"predict_mean needs an output kernel with pre-images in closed form, such as Linear, Curves or "
                f"Hellinger; output_kernel is {embedding.kernel!r}. Use predict, with candidates."
            )
        with model._computing(X) as compute:
            Z = to_numpy(model._embed(X, compute)).astype(np.float64, copy=False)
        basis, r = to_numpy(embedding.basis).astype(np.float64, copy=False), n_samples(embedding.landmarks)
        if r == 0:  # all known outputs are 0
            return np.zeros((len(Z), *embedding.landmarks.shape[1:]))
        parts = [
            pre_image(embedding.kernel, embedding.landmarks, Z[rows] @ basis.T) for rows in iter_blocks(len(Z), 8 * r)
        ]
        return np.concatenate(parts)

    def calibrate(self, X: Samples, y: Samples, candidates: Any = None) -> Self:
        """Calibrate conformal sets on examples that ``fit`` has not seen, for :meth:`predict_set`.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs of examples of which neither the input nor the output was passed to ``fit``, also not as an
            unlabeled output. At least coverage/(1 − coverage) examples are needed for a set that is smaller than all
            candidates.
        y : array, CSR matrix or sequence of n outputs
            The true outputs.
        candidates : collection, Candidates or list of collections, default=None
            Candidates of the kind that ``predict_set`` will be given. A true output that is not among them counts as
            infinitely far.

        Returns
        -------
        estimator
            The fitted and calibrated model itself.

        See Also
        --------
        predict_set : Conformal sets of new inputs.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> X = np.linspace(0, 1, 40).reshape(-1, 1)
        >>> Y = np.hstack([X, X**2])
        >>> model = OEL(n_components=3).fit(X[::2], Y[::2])
        >>> model.calibrate(X[1::2], Y[1::2], candidates=Y).calibration_scores_.shape
        (20,)
        """
        require_memory("calibrate", X=X, y=y)
        model = fitted_snapshot(self)
        with model._computing(X) as compute:
            Z, Y = model._embed_pairs(X, y, compute)
            scores = scores_of_truth(Z, Y, model._candidates(candidates, len(Z)), compute)
        if np.isinf(scores).all():
            raise ValueError("No true output of y is among its candidates: there is nothing to calibrate on.")
        model.calibration_scores_ = np.sort(scores)
        return publish(self, model)

    def predict_set(self, X: Samples, coverage: float = 0.9, candidates: Any = None) -> PredictionSets:
        """Predict for each input a set of candidates that contains the true output with probability ``coverage``.

        The probability holds if true outputs are among the candidates as often as in the calibration examples; a
        warning states if that is too rare for the requested coverage.

        The set consists of the nearest candidates up to a score of position and distance that calibration found to be
        sufficient: see :mod:`psilearn.conformal` for the score and the guarantee. Cost: as :meth:`predict_topk` with
        all candidates.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        coverage : float, default=0.9
            The probability, in [0, 1].
        candidates : collection, Candidates or list of collections, default=None
            The candidates, as in :meth:`predict`.

        Returns
        -------
        PredictionSets
            ``indices``, ``distances``, ``sizes`` and ``outputs`` of the sets.

        See Also
        --------
        calibrate : Must be called before.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> X = np.linspace(0, 1, 40).reshape(-1, 1)
        >>> Y = np.hstack([X, X**2])
        >>> model = OEL(n_components=3).fit(X[::2], Y[::2]).calibrate(X[1::2], Y[1::2], candidates=Y)
        >>> len(model.predict_set(X[:3], coverage=0.8, candidates=Y).outputs)
        3
        """
        require_memory("predict_set", X=X)
        model = fitted_snapshot(self)
        limit = model._threshold(coverage)
        if np.isinf(limit) and np.isinf(model.calibration_scores_[-1]):
            share = float(np.mean(np.isinf(model.calibration_scores_)))
            message = (
                f"The true output of {share:.0%} of the calibration examples was not among their candidates: a "
                f"coverage of {float(coverage):.0%} cannot be reached, and the sets contain every candidate."
            )
            warnings.warn(message, UserWarning, stacklevel=2)
        with model._computing(X) as compute:
            Z = model._embed(X, compute)
            return prediction_sets(Z, model._candidates(candidates, len(Z)), limit, float(coverage), compute)

    def embed(self, X: Samples) -> Array:
        """Compute the predicted embedding z(x) = Gĥ(x) of inputs.

        Parameters
        ----------
        X : array, CSR matrix, sequence or Dask collection of n inputs
            The inputs.

        Returns
        -------
        array of shape (n, p)
            The predicted embeddings, a tensor if X is one, and a Dask array if X is a Dask collection.

        See Also
        --------
        transform_outputs : The embedding of outputs in the same space.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> OEL(n_components=3).fit(X, np.hstack([X, X**2])).embed(X[:2]).shape
        (2, 3)
        """
        model = fitted_snapshot(self)
        if is_dask(X):
            return lazy_embeddings(model, "embed", X, "X")
        with model._computing(X) as compute:
            return like_input(X, model._embed(X, compute))

    def transform_outputs(self, Y: Samples) -> Array:
        """Compute the learned embedding g(y) = Gψ(y) of outputs.

        Parameters
        ----------
        Y : array, CSR matrix, sequence or Dask collection of n outputs
            The outputs.

        Returns
        -------
        array of shape (n, p)
            The embedded outputs, a tensor if Y is one, and a Dask array if Y is a Dask collection.

        See Also
        --------
        embed : The predicted embedding of inputs in the same space.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> OEL(n_components=3).fit(X, np.hstack([X, X**2])).transform_outputs([[0.5, 0.25]]).shape
        (1, 3)
        """
        model = fitted_snapshot(self)
        if is_dask(Y):
            return lazy_embeddings(model, "transform_outputs", Y, "Y")
        with model._computing(Y) as compute:
            return like_input(Y, model.embedding_(model._check_outputs(Y, "Y"), compute))

    def candidate_set(
        self, outputs: Samples, path: str | Path | None = None, *, dtype: DTypeLike | None = None
    ) -> SharedCandidates:
        """Embed candidates once, for many calls of ``predict`` and ``predict_topk``.

        Parameters
        ----------
        outputs : array, CSR matrix, sequence or Dask collection of c outputs
            The candidates, in the form of y.
        path : str or Path, default=None
            A new folder in which the embedded candidates and the outputs are stored. They are memory-mapped, so that
            c·p numbers are never in memory, and found again by
            ``SharedCandidates.load(path, model.embedding_)``. The chunks of a Dask collection, which requires a path,
            are written in parallel as shards, and found again by
            ``ShardedCandidates.open(path, model.embedding_)``; after an interruption the same call resumes the build.
        dtype : {"float64", "float32"}, default=None
            Precision of the embeddings in the folder. None stores them as they are computed.

        Returns
        -------
        SharedCandidates
            The embedded candidates.

        See Also
        --------
        predict : Takes them as ``candidates``.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> model = OEL(n_components=3).fit(X, np.hstack([X, X**2]))
        >>> len(model.candidate_set([[0.0, 0.0], [1.0, 1.0]]))
        2
        """
        model = fitted_snapshot(self)
        with model._computing(outputs) as compute:
            if is_dask(outputs):
                if path is None:
                    raise ValueError("Candidates of a Dask collection are written in shards: give a path.")
                return ShardedCandidates.build_chunks(outputs, model.embedding_, path, compute=compute, dtype=dtype)
            checked = model._check_outputs(outputs, "outputs")
            return SharedCandidates.build(checked, model.embedding_, path, dtype=dtype, compute=compute)

    def __sklearn_tags__(self) -> Any:
        return declare_sparse_inputs_and_outputs(super().__sklearn_tags__())

    @property
    def _supervision(self) -> float | None:
        """The weight c of the fitted values in the mixed moment, or None to keep every direction."""
        raise TypeError(f"{type(self).__name__} must define _supervision.")

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

    def _threshold(self, coverage: float) -> float:
        if not hasattr(self, "calibration_scores_"):
            raise NotFittedError(
                "A coverage requires a calibrated model: call calibrate(X, y) with examples that fit has not seen."
            )
        return threshold(self.calibration_scores_, coverage)

    @contextmanager
    def _computing(self, *arrays: Any) -> Iterator[Compute]:
        """Compute in the model's precision, on its device or on that of the tensors given now or to ``fit``."""
        if hasattr(self, "candidates_"):
            arrays = (*arrays, getattr(self.regression_, "anchors", None), self.candidates_.outputs)
        compute = resolve_compute(self.dtype, self.device, *arrays)
        with compute.active(), show_progress(self.verbose):
            yield compute

    def _embed(self, X: Samples, compute: Compute) -> Array:
        """Return z(x), (n, p), on the device if it fits there."""
        checked = self.regression_.check(X)
        if n_columns(checked) is not None:
            validate_data(self, X, reset=False, skip_check_array=True)
        n, p = n_samples(checked), self.n_components_
        if compute.block_rows(compute.itemsize * p, n) < n:
            Z = np.empty((n, p), compute.dtype)
        else:
            Z = compute.zeros((n, p), compute.dtype)
        for rows, block in self.regression_.predict_blocks(checked, compute):
            Z[rows] = compute.asarray(block) if is_tensor(Z) else to_numpy(block)
            del block  # before the next one is computed
        return Z

    def _embed_pairs(self, X: Samples, y: Samples, compute: Compute) -> tuple[Array, Samples]:
        """Return z(x) and the validated true outputs, one per input."""
        Z, Y = self._embed(X, compute), self._check_outputs(y, "y")
        if len(Z) != n_samples(Y):
            raise ValueError(f"X has {len(Z)} examples, y has {n_samples(Y)}.")
        return Z, Y

    def _check_outputs(self, Y: Samples, name: str) -> Samples:
        Y = self.output_kernel_.check(Y, name)
        known = self.candidates_.outputs
        self.output_kernel_.check_same_kind(Y, name, known, "the outputs that the model was fitted on")
        return Y

    def _candidates(self, candidates: Any, n_examples: int) -> Candidates:
        require_embedded(candidates)
        return as_candidates(candidates, self.candidates_, self._check_outputs, n_examples)


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


def _iterate_active(items: Iterator[RankedCandidates], compute: Compute) -> Iterator[RankedCandidates]:
    """Yield the items; each is computed with torch prepared, and the caller's code runs without it."""
    while True:
        with compute.active():
            item = next(items, None)
        if item is None:
            return
        yield item
