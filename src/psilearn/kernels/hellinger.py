"""Histograms and distributions: the Hellinger kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import tensor_to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Samples
from psilearn.kernels.feature_kernel import FeatureKernel
from psilearn.kernels.inner_products import combine_rows
from psilearn.kernels.row_kernel import check_rows


class Hellinger(FeatureKernel):
    """The Hellinger kernel k(a, b) = Σᵢ √(aᵢ bᵢ) of histograms, also called Bhattacharyya coefficient.

    Rows are divided by their totals, so k(a, a) = 1, and the squared distance is twice the squared Hellinger distance
    of the distributions. The pre-image of w = Σ_l c_l √a_l is the distribution proportional to max(w, 0)²; where w has
    no positive entry, all mass is in its largest one.

    See Also
    --------
    Curves : Functions on a grid.
    psilearn.OEL.predict_mean : The predicted distribution.

    Examples
    --------
    >>> from psilearn.kernels import Hellinger
    >>> Hellinger()([[1, 1, 0]], [[2, 2, 0], [0, 1, 3]]).round(4)
    array([[1.    , 0.3536]])
    """

    normalize = False
    base = None
    _has_pre_image = True

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        rows = check_rows(A, name, "must be histograms, one row per distribution", accept_sparse="csr")
        host = tensor_to_numpy(rows)
        if host.shape[1] and host.min() < 0:
            raise ValueError(f"{name} must be histograms, but it contains the negative number {host.min():.6g}.")
        empty = np.asarray(host.sum(axis=1)).ravel() == 0
        if empty.any():
            raise ValueError(f"{name} in row {int(np.argmax(empty))} is an empty histogram: its total is 0. Remove it.")
        return rows

    def _features(self, A: Any) -> Any:
        rows = tensor_to_numpy(A)
        totals = np.asarray(rows.sum(axis=1, dtype=np.float64)).ravel()
        if not sparse.issparse(rows):
            return np.sqrt(rows / totals[:, None])
        roots = rows.astype(np.float64)
        roots.data = np.sqrt(roots.data / np.repeat(totals, np.diff(roots.indptr)))
        return roots

    def _key(self, A: Any) -> Any:
        return None

    def _pre_image(self, A: Any, weights: Array) -> Array:
        roots = combine_rows(self._features(A), weights)
        positive = np.maximum(roots, 0)
        only_largest = roots == roots.max(axis=1, keepdims=True)
        positive = np.where((positive > 0).any(axis=1, keepdims=True), positive, _first_of_each_row(only_largest))
        positive /= positive.max(axis=1, keepdims=True)  # squares neither overflow nor vanish
        squares = positive**2
        return np.asarray(squares / squares.sum(axis=1, keepdims=True))


def _first_of_each_row(mask: Any) -> Array:
    """Return 1 at the first True entry of each row, and 0 elsewhere."""
    ones = np.zeros(mask.shape)
    ones[np.arange(len(mask)), mask.argmax(axis=1)] = 1
    return ones
