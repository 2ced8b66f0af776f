"""Conformal sets of a fitted model: calibration and prediction."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from psilearn._utils.estimators import fitted_snapshot, publish
from psilearn._utils.samples import Samples
from psilearn.conformal import PredictionSets, prediction_sets, scores_of_truth, threshold
from psilearn.estimators.dask_inputs import require_memory
from psilearn.estimators.fitted_model import FittedModel


class ConformalModel(FittedModel):
    """A fitted model that can be calibrated and then predicts conformal sets."""

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
