"""The peak memory of a fit, of a prediction and of a search, in addition to the data, as formulas.

Every fit and every search compares these formulas with the available memory before it starts, and raises a MemoryError
that suggests numbers of landmarks if it does not suffice.

With n inputs, d distinct outputs of rank r, q input landmarks and r output landmarks, p components, blocks of s bytes
per number (8 in float64, 4 in float32) and blocks within ``working_memory`` W, in bytes:

======================  ==================================================  =========================
step of a fit           peak                                                what remains
======================  ==================================================  =========================
outputs, exact          8 d² + 8 d·r                                        8 d·r + 8 r²
outputs, Gram matrix    9 d², if r = d > 2500, 20p < d and c < 1            8 d²
outputs, landmarks      the larger of 4·r·N + 2400·N, N = max(4r, 10⁴),     8 r² for the landmarks and
                        while they are chosen, and what remains + a block   8 r² per moment; 12 r² if
                        of at most W/3                                      s = 4
regression, exact       8 n² + 16 n·r, + 8 n·r if c > 0                     8 n·r, 16 n·r if c > 0
regression, landmarks   16 q² (24 q² if s = 4) + 24 q·r, or + 8 q·r and     8 q² + 16 q·r, or 8 q·r +
                        a block of at most W                                8 r² with output landmarks
directions, dense       16 r² + 8 r·p, or 32 r² if r ≤ 1000 or 2p > r
directions, iterated    152·r·b + 24·(12b)² with b = p + max(10, p/10), if
                        r > 2500 and 20p < r; r + n instead of r with the
                        Gram matrix
candidates              8 d·p (s·d·p and a block of at most W with
                        landmarks) + 16 r·p + 8 n·p or 8 q·p
======================  ==================================================  =========================

The steps follow one another, each in addition to what the steps before it keep: the peak is the largest of these sums.
Nothing grows with n·q, with the number of unlabeled outputs or with the number of candidates that are searched, except
for what is kept on purpose. If c < 1, there is one moment of the labeled outputs, and one of the unlabeled outputs if
there are any; c is ``supervision``. IOKR has no directions and p = r. Where the Gram matrix of the outputs is used
without coordinates, the number of distinct labeled outputs takes the place of r in the regression.

A prediction of N inputs with k candidates each takes s·N·p and the larger of a block of at most W/3 and 24·N·k + 16·N +
8 per candidate + a block of at most W.

A search keeps 8 d·r + 8 r² per output kernel, and as much again if there are unlabeled outputs. A split of n' training
and q' held-out pairs takes 24 n'² for the eigenvectors of K_x, or 8 n'² + 8 q'·n' + 24 n'·r + 16 r² afterwards;
without unlabeled outputs 8 d·r + 8 r² more per output kernel, with decoded scores 8 (d + r)·r more. With few λ and
outputs of a low rank it takes 16 n'² + 8 q'·n' + 24 n'·r instead, with q input landmarks 40 q² + 8 q·r or 16 q² + 8
q'·q + 24 q·r afterwards. Each process of ``n_jobs`` computes one split at a
time.

A ``regressor`` instead of kernel ridge regression receives targets of 8 n·r bytes and, where OEL uses them, returns as
many out-of-fold values; its own memory, in a fit and for a block of predictions, is not known. Freed blocks of less
than 32 MB may stay with the process. ``python -m psilearn_lab.benchmarks memory`` compares the formulas with measured
peaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from psilearn._utils import validation
from psilearn.estimators.fit_memory import FitSizes, PredictionSizes, fit_memory, prediction_memory
from psilearn.landmarks.selection import Landmarks, as_landmarks
from psilearn.model_selection.grids import MAX_COMPONENTS
from psilearn.model_selection.search_memory import SearchSizes, search_memory

MAX_KERNELS = 1_000_000
__all__ = ["fit_bytes", "predict_bytes", "search_bytes"]


def fit_bytes(
    n: int,
    d: int,
    *,
    input_landmarks: int | Landmarks | None = None,
    output_landmarks: int | Landmarks | None = None,
    n_components: int | None = None,
    supervision: float | None = 0.5,
    dtype: Any = "float64",
    rank: int | None = None,
    n_labeled: int | None = None,
    unlabeled: bool = False,
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
    supervision : float or None, default=0.5
        The parameter c of OEL; 0 for KDE, None for IOKR.
    dtype : {"float64", "float32", "tf32"}, default="float64"
        The precision of the estimator.
    rank : int or None, default=None
        The rank of the output kernel on the outputs, if it is lower than their number: the number of columns for a
        linear kernel, K(K−1)/2 for rankings of K items.
    n_labeled : int or None, default=None
        The number of distinct labeled outputs. By default the smaller one of n and d.
    unlabeled : bool, default=False
        Whether there are unlabeled outputs besides those counted in d: in a file or from an iterator.

    Returns
    -------
    int
        The number of bytes.

    See Also
    --------
    predict_bytes : The memory of a prediction.
    search_bytes : The memory of a search.

    Examples
    --------
    A million pairs with 5000 input landmarks and 1000 output landmarks, in gigabytes:

    >>> from psilearn.memory import fit_bytes
    >>> round(fit_bytes(10**6, 10**6, input_landmarks=5000, output_landmarks=1000, n_components=100) / 1e9, 1)
    1.0
    """
    arguments = input_landmarks, output_landmarks, n_components, supervision, dtype, rank, n_labeled, unlabeled
    sizes = _fit_sizes(n, d, *arguments)
    return fit_memory(replace(sizes, without_coordinates=sizes.may_skip_coordinates)).peak


def _fit_sizes(
    n: int,
    d: int,
    input_landmarks: Any,
    output_landmarks: Any,
    n_components: int | None,
    supervision: float | None,
    dtype: Any,
    rank: int | None,
    n_labeled: int | None,
    unlabeled: bool,
) -> FitSizes:
    """Validate the sizes of a fit."""
    validation.check_bool(unlabeled, "unlabeled")
    n, d = validation.check_count(n, "n"), validation.check_count(d, "d")
    n_labeled = min(n, d) if n_labeled is None else validation.check_count(n_labeled, "n_labeled")
    outputs = as_landmarks(output_landmarks, "output_landmarks", "pivoted")
    c = None if supervision is None else validation.check_fraction(supervision, "supervision")
    largest = d if c is not None and c < 1 else n_labeled
    if outputs is not None:
        largest = outputs.n if unlabeled else min(outputs.n, largest)
    return FitSizes(
        n=n,
        d=d,
        n_labeled=n_labeled,
        rank=largest if rank is None else min(validation.check_count(rank, "rank"), largest),
        n_components=None if n_components is None else validation.check_count(n_components, "n_components"),
        supervision=c,
        input_landmarks=as_landmarks(input_landmarks, "input_landmarks", "uniform"),
        output_landmarks=outputs,
        itemsize=validation.check_precision(dtype, "dtype").itemsize,
        has_unlabeled=validation.check_bool(unlabeled, "unlabeled") or d > n_labeled,
    )


def predict_bytes(
    n_queries: int,
    n_components: int,
    k: int = 1,
    dtype: Any = "float64",
    *,
    n_anchors: int = 10_000,
    n_candidates: int = 10_000,
    rank: int = 0,
) -> int:
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
    n_anchors : int, default=10000
        The number of training inputs, or of input landmarks.
    n_candidates : int, default=10000
        The number of candidates.
    rank : int, default=0
        The number of output landmarks, or the rank of the outputs, if the candidates are not embedded yet; 0 for the
        known outputs and for ``candidate_set``.

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
    29.1
    """
    counts = {"n_queries": n_queries, "n_components": n_components, "k": k, "n_anchors": n_anchors}
    for name, value in {**counts, "n_candidates": n_candidates}.items():
        validation.check_count(value, name)
    validation.check_index(rank, "rank")
    itemsize = validation.check_precision(dtype, "dtype").itemsize
    return prediction_memory(PredictionSizes(n_queries, n_components, k, itemsize, n_anchors, n_candidates, rank))


def search_bytes(
    n: int,
    d: int,
    *,
    n_alphas: int,
    supervisions: Sequence[float] | None = (0.5,),
    n_components: int | None = None,
    input_landmarks: int | Landmarks | None = None,
    output_landmarks: int | Landmarks | None = None,
    n_output_kernels: int = 1,
    validation_share: float = 0.2,
    leave_one_out: bool = False,
    decoded: bool = False,
    n_jobs: int = 1,
    refit: bool = True,
    dtype: Any = "float64",
    rank: int | None = None,
    n_labeled: int | None = None,
    unlabeled: bool = False,
) -> int:
    """Predict the peak memory of OELCV, KDECV or IOKRCV in bytes, in addition to the data.

    Parameters
    ----------
    n : int
        The number of labeled pairs.
    d : int
        The number of distinct outputs, labeled and (in memory) unlabeled.
    n_alphas : int
        The number of values of λ.
    supervisions : sequence of float or None, default=(0.5,)
        The values of c of OELCV; (0,) for KDECV, None for IOKRCV.
    n_components : int or None, default=None
        The largest p of the grid. None stands for the default grid, and for IOKRCV.
    input_landmarks : int, Landmarks or None, default=None
        The input landmarks of the search.
    output_landmarks : int, Landmarks or None, default=None
        The output landmarks of the search.
    n_output_kernels : int, default=1
        The number of output kernels.
    validation_share : float, default=0.2
        The share of the examples that a split holds out: 1/k for k folds.
    leave_one_out : bool, default=False
        Whether ``cv="loo"``.
    decoded : bool, default=False
        Whether a scoring decodes predictions: every scoring except "mse".
    n_jobs : int, default=1
        The number of processes.
    refit : bool, default=True
        Whether the best setting is fitted on all data.
    dtype : {"float64", "float32", "tf32"}, default="float64"
        The precision of the search.
    rank : int or None, default=None
        The rank of the outputs, as in :func:`fit_bytes`.
    n_labeled : int or None, default=None
        The number of distinct labeled outputs. By default the smaller one of n and d.
    unlabeled : bool, default=False
        Whether there are unlabeled outputs besides those counted in d: in a file or from an iterator.

    Returns
    -------
    int
        The number of bytes.

    See Also
    --------
    fit_bytes : The memory of one fit.

    Examples
    --------
    Ten thousand pairs with 2000 distinct outputs, in gigabytes:

    >>> from psilearn.memory import search_bytes
    >>> round(search_bytes(10_000, 2000, n_alphas=10, n_components=100) / 1e9, 1)
    1.7
    """
    for name, flag in {"leave_one_out": leave_one_out, "decoded": decoded, "refit": refit}.items():
        validation.check_bool(flag, name)
    values = None
    if supervisions is not None:
        if not isinstance(supervisions, Sequence | np.ndarray) or 0 in (np.size(supervisions), np.ndim(supervisions)):
            raise TypeError(f"supervisions must be a list of numbers in [0, 1] or None; got {supervisions!r:.80}.")
        values = [validation.check_fraction(c, "supervisions") for c in supervisions]
    arguments = output_landmarks, n_components, None if values is None else min(values), dtype, rank, n_labeled
    fit = _fit_sizes(n, d, input_landmarks, *arguments, unlabeled)
    share = validation.check_fraction(validation_share, "validation_share")
    n_held = n if leave_one_out else max(1, round(share * n))
    sizes = SearchSizes(
        fit,
        n if leave_one_out else n - n_held,
        n_held,
        validation.check_count(n_alphas, "n_alphas"),
        [1.0] if values is None else values,
        _check_list_length(n_output_kernels, "n_output_kernels"),
        None if values is None else (n_components or MAX_COMPONENTS),
        values is not None and n_components is None,
        decoded,
        leave_one_out,
        validation.check_count(n_jobs, "n_jobs"),
        refit,
    )
    return search_memory(sizes)


def _check_list_length(value: int, name: str) -> int:
    """Return a number of kernels, at most a million; raise an error about ``name`` for anything else."""
    if validation.check_count(value, name) > MAX_KERNELS:
        raise ValueError(f"{name} must be at most {MAX_KERNELS}; got {value!r}.")
    return value
