"""Predictions of a fitted model: from embedded inputs to candidates and positions of the truth."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from psilearn._backend import Compute
from psilearn._distributed import is_dask
from psilearn._utils import validation
from psilearn._utils.estimators import fitted_snapshot
from psilearn._utils.samples import Samples, check_collection, n_samples
from psilearn.decoding import RankedCandidates, TopK, ranked_candidates
from psilearn.estimators.dask_inputs import require_memory
from psilearn.estimators.lazy_prediction import lazy_predictions, lazy_top_k
from psilearn.estimators.mean_prediction import MeanPredictor
from psilearn.metrics import TruthPositions, kernel_loss


class OutputKernelPredictor(MeanPredictor):
    """The methods of a fitted model that predict."""

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


def _iterate_active(items: Iterator[RankedCandidates], compute: Compute) -> Iterator[RankedCandidates]:
    """Yield the items; each is computed with torch prepared, and the caller's code runs without it."""
    while True:
        with compute.active():
            item = next(items, None)
        if item is None:
            return
        yield item
