"""What a fitted model computes: predictions, conformal sets, positions of the truth, embedded inputs and outputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from psilearn._backend import Compute, is_tensor, iter_blocks, like_input, resolve_compute, to_numpy
from psilearn._distributed import is_dask
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.estimators import declare_sparse_inputs_and_outputs, fitted_snapshot, publish
from psilearn._utils.progress import show_progress
from psilearn._utils.samples import Samples, check_collection, n_columns, n_samples
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
from psilearn.embedding import Embedding
from psilearn.estimators.dask_inputs import (
    lazy_embeddings,
    lazy_predictions,
    lazy_top_k,
    require_embedded,
    require_memory,
)
from psilearn.kernels import Kernel, has_pre_image, pre_image
from psilearn.metrics import TruthPositions, kernel_loss
from psilearn.regression.kernel_regression import Regression


class OutputKernelPredictor(BaseEstimator):
    """The methods of a fitted model.

    A subclass sets ``regression_``, ``embedding_``, ``candidates_``, ``output_kernel_`` and ``n_components_``.
    """

    dtype: Any
    device: Any
    verbose: int
    regression_: Regression
    embedding_: Embedding
    candidates_: SharedCandidates
    output_kernel_: Kernel
    n_components_: int

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

    def _threshold(self, coverage: float) -> float:
        if not hasattr(self, "calibration_scores_"):
            raise NotFittedError(
                "Conformal sets require a calibrated model: call calibrate(X, y) with examples that fit has not seen."
            )
        return threshold(self.calibration_scores_, coverage)

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

    def __sklearn_tags__(self) -> Any:
        return declare_sparse_inputs_and_outputs(super().__sklearn_tags__())


def _iterate_active(items: Iterator[RankedCandidates], compute: Compute) -> Iterator[RankedCandidates]:
    """Yield the items; each is computed with torch prepared, and the caller's code runs without it."""
    while True:
        with compute.active():
            item = next(items, None)
        if item is None:
            return
        yield item
