"""Metrics of strings and sequences of tokens, by their edit distance."""

from __future__ import annotations

import numpy as np

from psilearn._utils.samples import Samples
from psilearn.kernels.string.edit_distances import paired_edit_distances
from psilearn.kernels.string.tokens import check_strings
from psilearn.metrics.mean import Mean, check_same_length


def edit_distance(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean number of insertions, deletions and substitutions between true and predicted strings.

    Needs rapidfuzz: ``pip install 'psilearn[strings]'``.

    Parameters
    ----------
    Y_true : sequence of n strings or sequences of tokens
        The true strings.
    Y_pred : sequence of n strings or sequences of tokens
        The predicted strings.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error.

    See Also
    --------
    edit_similarity : The same relative to the length of the longer string.

    Examples
    --------
    >>> from psilearn.metrics import edit_distance
    >>> edit_distance(["tea", "cat"], ["tee", "cats"])  # doctest: +SKIP
    1.0000 ± 0.0000
    """
    check_same_length(Y_true, Y_pred)
    return Mean(paired_edit_distances(check_strings(Y_true, "Y_true"), check_strings(Y_pred, "Y_pred")))


def edit_similarity(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean of 1 − d/m, where d is the edit distance and m the length of the longer string.

    Needs rapidfuzz: ``pip install 'psilearn[strings]'``.

    Parameters
    ----------
    Y_true : sequence of n strings or sequences of tokens
        The true strings.
    Y_pred : sequence of n strings or sequences of tokens
        The predicted strings.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error: 1 for equal strings, 0 for strings without a common token.

    See Also
    --------
    edit_distance : The number of edits.

    Examples
    --------
    >>> from psilearn.metrics import edit_similarity
    >>> edit_similarity(["tea", "cat"], ["tee", "cats"])  # doctest: +SKIP
    0.7083 ± 0.0417
    """
    distances = edit_distance(Y_true, Y_pred).values
    longest = [max(len(a), len(b)) for a, b in zip(Y_true, Y_pred, strict=True)]
    return Mean(1 - distances / np.array(longest))
