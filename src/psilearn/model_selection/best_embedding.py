"""The embedding of a search: that of the estimator that was fitted with the best setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from psilearn._linalg import Array
from psilearn._utils.estimators import declare_sparse_inputs_and_outputs
from psilearn._utils.samples import Samples
from psilearn.decoding import SharedCandidates
from psilearn.estimators.prediction import OutputKernelPredictor


class BestEstimatorEmbedding(BaseEstimator):
    """The methods of a fitted search that embed inputs, outputs and candidates with ``best_estimator_``."""

    best_estimator_: OutputKernelPredictor

    def candidate_set(
        self, outputs: Samples, path: str | Path | None = None, *, dtype: DTypeLike | None = None
    ) -> SharedCandidates:
        """Embed candidates once with the best estimator, for many calls of ``predict`` and ``predict_topk``.

        Parameters
        ----------
        outputs : array, CSR matrix or sequence of c outputs
            The candidates.
        path : str or Path, default=None
            A new folder that stores the embedded candidates. They are memory-mapped, so that c·p numbers are never in
            memory. None keeps them in memory.
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
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> search = IOKRCV(alphas=1e-4, cv=2).fit(X, np.hstack([X, X**2]))
        >>> len(search.candidate_set([[0.0, 0.0], [1.0, 1.0]]))
        2
        """
        return self._best().candidate_set(outputs, path, dtype=dtype)

    def embed(self, X: Samples) -> Array:
        """Compute the predicted embedding z(x) of inputs with the best estimator.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.

        Returns
        -------
        array of shape (n, p)
            The predicted embeddings, a tensor if X is one.

        See Also
        --------
        transform_outputs : The embedding of outputs in the same space.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import KDECV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> KDECV(alphas=1e-4, n_components=3, cv=2).fit(X, np.hstack([X, X**2])).embed(X[:2]).shape
        (2, 3)
        """
        return self._best().embed(X)

    def transform_outputs(self, Y: Samples) -> Array:
        """Compute the learned embedding g(y) of outputs with the best estimator.

        Parameters
        ----------
        Y : array, CSR matrix or sequence of n outputs
            The outputs.

        Returns
        -------
        array of shape (n, p)
            The embedded outputs, a tensor if Y is one.

        See Also
        --------
        embed : The predicted embedding of inputs in the same space.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import KDECV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> search = KDECV(alphas=1e-4, n_components=3, cv=2).fit(X, np.hstack([X, X**2]))
        >>> search.transform_outputs([[0.5, 0.25]]).shape
        (1, 3)
        """
        return self._best().transform_outputs(Y)

    def _best(self) -> OutputKernelPredictor:
        check_is_fitted(self, "cv_results_")
        best = getattr(self, "best_estimator_", None)
        if best is None:
            raise NotFittedError(
                f"This {type(self).__name__} was searched with refit=False, so it has scores but no model: build one "
                f"from best_params_, or search with refit=True."
            )
        return best

    def __sklearn_tags__(self) -> Any:
        return declare_sparse_inputs_and_outputs(super().__sklearn_tags__())
