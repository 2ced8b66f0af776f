"""The memory of a fit and of a prediction, in addition to the data, as formulas.

With n inputs, d distinct outputs, q input landmarks, r output landmarks (n and d without landmarks), p components,
blocks of s bytes per number (8 in float64, 4 in float32) and W bytes of ``working_memory``, in bytes:

======================  ===============================================================================
output side, exact      24 d²            Gram matrix, coordinates, triangle; 16 d² remain
output side, landmarks  48 r² + 16 r² if s = 4; while they are chosen 8·r·max(4r, 10⁴)
regression, exact       8 n² + 32 n·r    factor; targets, coefficients, fitted values, rotated coefficients
regression, landmarks   16 q² + 8 q² if s = 4, + 40 q·r + blocks of at most W
directions              40 r² if r ≤ 2500 or with landmarks, else 200 r·p; 16 n·r or 24 q·r remain
candidates              s·d·p + 100 d + a block of min(W, 3·s·r·8192)
prediction              s·N·p + 24·N·k   queries and results of N inputs, + 2 blocks of at most W
======================  ===============================================================================

The regression, the directions and the candidates are computed one after another, each in addition to what the output
side keeps: the peak is the largest of these sums. Nothing grows with n·q, with the number of unlabeled outputs or with
the number of candidates that are searched, except for what is kept on purpose.

A ``regressor`` instead of kernel ridge regression receives targets of 8 n·r bytes and, where OEL uses them, returns as
many out-of-fold values; its own memory, in a fit and for a block of predictions, is not known.
"""

from __future__ import annotations

from typing import Any

from psilearn._backend import working_bytes
from psilearn._linalg import DENSE_LIMIT
from psilearn._utils import validation
from psilearn.embedding.embedding import MAX_BLOCK_ROWS
from psilearn.landmarks.selection import Landmarks, as_landmarks, pool_size

__all__ = ["fit_bytes", "predict_bytes"]


def fit_bytes(
    n: int,
    d: int,
    *,
    input_landmarks: int | Landmarks | None = None,
    output_landmarks: int | Landmarks | None = None,
    n_components: int | None = None,
    dtype: Any = "float64",
) -> int:
    """Predict the peak memory of a fit in bytes, in addition to the data.

    Parameters
    ----------
    n : int
        The number of labeled pairs.
    d : int
        The number of distinct outputs, labeled and (in memory) unlabeled.
    input_landmarks : int, Landmarks or None, default=None
        The input landmarks of the estimator.
    output_landmarks : int, Landmarks or None, default=None
        The output landmarks of the estimator.
    n_components : int or None, default=None
        The number p of components of the estimator.
    dtype : {"float64", "float32", "tf32"}, default="float64"
        The precision of the estimator.

    Returns
    -------
    int
        The number of bytes.

    See Also
    --------
    predict_bytes : The memory of a prediction.

    Examples
    --------
    A million pairs with 5000 input landmarks and 1000 output landmarks, in gigabytes:

    >>> from psilearn.memory import fit_bytes
    >>> round(fit_bytes(10**6, 10**6, input_landmarks=5000, output_landmarks=1000, n_components=100) / 1e9, 1)
    1.3
    """
    n, d = validation.check_count(n, "n"), validation.check_count(d, "d")
    s = validation.check_precision(dtype, "dtype").itemsize
    single = 1 if s == 4 else 0
    inputs = as_landmarks(input_landmarks, "input_landmarks", "uniform")
    outputs = as_landmarks(output_landmarks, "output_landmarks", "pivoted")
    r = d if outputs is None else min(outputs.n, d)
    p = r if n_components is None else min(validation.check_count(n_components, "n_components"), r)
    if outputs is None:
        choosing, kept = 24 * d * d, 16 * d * d
    else:
        choosing, kept = 8 * r * pool_size(r), (48 + 16 * single) * r * r
    if inputs is None:
        regression, fitted = 8 * n * n + 32 * n * r, 16 * n * r
    else:
        q = min(inputs.n, n)
        block = min(working_bytes(), s * min(n, 4096) * (3 * q + 2 * r))
        regression, fitted = (16 + 8 * single) * q * q + 40 * q * r + block, 24 * q * r
    dense = r <= DENSE_LIMIT or outputs is not None
    directions = fitted + (40 * r * r if dense else 200 * r * p)
    candidates = s * d * p
    if outputs is not None:
        candidates += 100 * d + min(working_bytes(), 3 * s * r * min(d, MAX_BLOCK_ROWS))
    return max(choosing, kept + max(regression, directions, fitted + candidates))


def predict_bytes(n_queries: int, n_components: int, k: int = 1, dtype: Any = "float64") -> int:
    """Predict the peak memory of a prediction in bytes, in addition to the data, the model and embedded candidates.

    Parameters
    ----------
    n_queries : int
        The number of inputs.
    n_components : int
        The number p of components of the model.
    k : int, default=1
        The number of candidates per input.
    dtype : {"float64", "float32", "tf32"}, default="float64"
        The precision of the model.

    Returns
    -------
    int
        The number of bytes.

    See Also
    --------
    fit_bytes : The memory of a fit.

    Examples
    --------
    >>> from sklearn import config_context
    >>> from psilearn.memory import predict_bytes
    >>> with config_context(working_memory=64):
    ...     round(predict_bytes(10_000, 100, k=10) / 2**20, 1)
    137.9
    """
    s = validation.check_precision(dtype, "dtype").itemsize
    return s * n_queries * n_components + 24 * n_queries * k + 2 * working_bytes()
