"""Predictions of a search: those of the estimator that was fitted with the best setting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from psilearn._linalg import Array
from psilearn._utils.samples import Samples
from psilearn.conformal import PredictionSets
from psilearn.decoding import RankedCandidates, TopK
from psilearn.metrics import TruthPositions
from psilearn.model_selection.best_embedding import BestEstimatorEmbedding
from psilearn.model_selection.scoring import as_scorings


class BestEstimatorPredictions(BestEstimatorEmbedding):
    """The methods of a fitted search that use ``best_estimator_``."""

    scoring: Any
    best_params_: dict[str, Any]

    def predict(self, X: Samples, candidates: Any = None) -> Samples:
        """Predict the nearest candidate of each input with the best estimator.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        candidates : collection, Candidates or list of collections, default=None
            One set for all inputs, as a collection of outputs or embedded by :meth:`candidate_set`; or one set per
            input, as a list of n collections or as :class:`~psilearn.decoding.PerExampleCandidates`; or "known", "near"
            or "all", as in :meth:`psilearn.OEL.predict`. By default those that the search chose, if its parameter
            ``candidates`` is given; else the distinct known outputs, or all rankings if the output kernel compares
            rankings.

        Returns
        -------
        array, CSR matrix or sequence of n outputs
            The predictions, in the form of the candidates.

        See Also
        --------
        predict_topk : The k nearest candidates with distances.
        predict_set : Conformal sets of candidates.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> search = IOKRCV(alphas=1e-4, cv=2).fit(X, np.hstack([X, X**2]))
        >>> search.predict([[0.0]], candidates=[[0.0, 0.0], [1.0, 1.0]])
        array([[0., 0.]])
        """
        return self._best().predict(X, self._chosen(candidates))

    def predict_topk(self, X: Samples, k: int = 10, candidates: Any = None) -> TopK:
        """Find the k nearest candidates of each input with the best estimator.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        k : int, default=10
            The number of candidates per input, at most the size of the (largest) candidate set.
        candidates : collection, Candidates or list of collections, default=None
            The candidates, as in :meth:`predict`.

        Returns
        -------
        TopK
            ``indices`` and ``distances`` of shape (n, k), ``margins``, ``nearest`` and ``outputs``.

        See Also
        --------
        predict : The nearest candidate only.
        rank_candidates : All candidates of each input, with positions and conformal membership.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> search = IOKRCV(alphas=1e-4, cv=2).fit(X, np.hstack([X, X**2]))
        >>> search.predict_topk([[0.0]], k=2).indices
        array([[0, 1]])
        """
        return self._best().predict_topk(X, k, self._chosen(candidates))

    def predict_mean(self, X: Samples) -> Array:
        """Predict the output whose feature is nearest to the prediction of the best estimator among all outputs.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.

        Returns
        -------
        ndarray of shape (n, d) or (n,)
            The predicted rows of numbers, in float64.

        See Also
        --------
        psilearn.OEL.predict_mean : Which output kernels allow it, and how it is computed.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> from psilearn.kernels import Gaussian, Linear
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> IOKRCV(Gaussian(5.0), Linear(), alphas=1e-6, cv=2).fit(X, X).predict_mean([[0.51]]).round(3)
        array([[0.51]])
        """
        return self._best().predict_mean(X)

    def rank_candidates(
        self,
        X: Samples,
        candidates: Any = None,
        *,
        k: int | None = None,
        ties: str = "expected",
        coverage: float | None = None,
    ) -> Iterator[RankedCandidates]:
        """Rank all candidates of each input with the best estimator, nearest first.

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
            If given, each result says which candidates belong to the conformal set with this coverage. The search must
            be calibrated.

        Returns
        -------
        iterator of RankedCandidates
            Indices, distances, margins, positions and conformal membership of the candidates of each input.

        See Also
        --------
        predict_topk : The k nearest candidates as arrays.
        predict_set : The conformal sets alone.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> search = IOKRCV(alphas=1e-4, cv=2).fit(X, np.hstack([X, X**2]))
        >>> next(search.rank_candidates([[0.0]], [[1.0, 1.0], [0.0, 0.0]])).indices
        array([1, 0])
        """
        return self._best().rank_candidates(X, self._chosen(candidates), k=k, ties=ties, coverage=coverage)

    def truth_positions(self, X: Samples, y: Samples, candidates: Any = None) -> TruthPositions:
        """Find the position of the true output of each input among its distinct candidates, by the best estimator.

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
            How many candidates are nearer than the truth and how many are tied with it.

        See Also
        --------
        psilearn.metrics.top_k_accuracy : The share of examples whose truth is among the k nearest candidates.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> Y = np.hstack([X, X**2])
        >>> IOKRCV(alphas=1e-4, cv=2).fit(X, Y).truth_positions(X[:1], Y[:1]).nearer
        array([0.])
        """
        return self._best().truth_positions(X, y, self._chosen(candidates))

    def calibrate(self, X: Samples, y: Samples, candidates: Any = None) -> Self:
        """Calibrate conformal sets of the best estimator on examples that ``fit`` has not seen.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs. At least coverage/(1 − coverage) examples are needed for a set that is smaller than all
            candidates.
        y : array, CSR matrix or sequence of n outputs
            The true outputs.
        candidates : collection, Candidates or list of collections, default=None
            Candidates of the kind that ``predict_set`` will be given. A true output that is not among them counts as
            infinitely far.

        Returns
        -------
        estimator
            The search itself.

        See Also
        --------
        predict_set : Conformal sets of new inputs.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 40).reshape(-1, 1)
        >>> Y = np.hstack([X, X**2])
        >>> search = IOKRCV(alphas=1e-4, cv=2).fit(X[::2], Y[::2])
        >>> search.calibrate(X[1::2], Y[1::2], candidates=Y).best_estimator_.calibration_scores_.shape
        (20,)
        """
        self._best().calibrate(X, y, self._chosen(candidates))
        return self

    def predict_set(self, X: Samples, coverage: float = 0.9, candidates: Any = None) -> PredictionSets:
        """Predict for each input a set of candidates that contains the true output with probability ``coverage``.

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
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 40).reshape(-1, 1)
        >>> Y = np.hstack([X, X**2])
        >>> search = IOKRCV(alphas=1e-4, cv=2).fit(X[::2], Y[::2]).calibrate(X[1::2], Y[1::2], candidates=Y)
        >>> len(search.predict_set(X[:3], coverage=0.8, candidates=Y).outputs)
        3
        """
        return self._best().predict_set(X, coverage, self._chosen(candidates))

    def score(self, X: Samples, y: Samples, candidates: Any = None) -> float:
        """Compute the (first) score of ``scoring`` of the best estimator on examples; higher is better.

        With ``scoring="mse"`` it is minus the mean of |G*z(x) − ψ(y)|², the error of the predicted embedding. A decoded
        metric is that of the predictions, and "top_k" is the share of true outputs among the k nearest candidates.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        y : array, CSR matrix or sequence of n outputs
            The true outputs.
        candidates : collection, Candidates or list of collections, default=None
            The candidates of decoded scores, as in :meth:`predict`.

        Returns
        -------
        float
            The score.

        See Also
        --------
        psilearn.OEL.score : Minus the mean output-kernel loss of the predictions.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> Y = np.hstack([X, X**2])
        >>> IOKRCV(alphas=1e-4, cv=2, scoring="top_1").fit(X, Y).score(X, Y)
        1.0
        """
        return as_scorings(self.scoring)[0].of_model(self._best(), X, y, self._chosen(candidates))

    def _chosen(self, candidates: Any) -> Any:
        """Return the given candidates, or else the name of those that the search chose, if it did."""
        return self.best_params_.get("candidates") if candidates is None else candidates
