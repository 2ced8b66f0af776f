"""The Gaussian of the edit distance, made positive semi-definite by landmarks; edit distances by rapidfuzz."""

from __future__ import annotations

from typing import Any

import numpy as np

from psilearn._backend import explain_missing
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples, distinct, n_samples, take
from psilearn.kernels.feature_kernel import FeatureKernel
from psilearn.kernels.kernel import Kernel
from psilearn.kernels.string.tokens import check_strings

MIN_EIGENVALUE = 1e-6  # of the landmarks' matrix that is kept, relative to the largest
INSTALL = "Edit distances need rapidfuzz: pip install 'psilearn[strings]'."


class EditGaussian(FeatureKernel):
    """The Gaussian exp(−γ d²) of the edit distance d of strings, projected onto landmarks.

    exp(−γ d²) is not positive semi-definite in general, so it is not a kernel. With landmarks S and its matrix
    K = UΛUᵀ over them, features are φ(a) = Λ₊^(−½) U₊ᵀ e(a) with e(a) = exp(−γ d²(S, a)), where only eigenvalues above
    10⁻⁶ of the largest are kept. This is a kernel in any case, and equals exp(−γ d²) on the landmarks if K is positive
    definite. ``negative_share_`` tells how far K is from that. Needs rapidfuzz: ``pip install 'psilearn[strings]'``.

    Parameters
    ----------
    gamma : float or "median", default="median"
        The width γ. "median" is 1 / median d² over the landmarks.
    n_landmarks : int, default=200
        The number of landmarks, at most; they are distinct strings of those passed to ``fit``, drawn at random.
    random_state : int, RandomState or None, default=0
        The random seed of the landmarks.
    normalize : bool, default=True
        Whether features are divided by their Euclidean length: k(a, a) = 1.
    base : Kernel, default=None
        The kernel on the features. None stands for :class:`Linear`.

    Attributes
    ----------
    landmarks_ : sequence of str
        The landmarks.
    gamma_ : float
        The width.
    projection_ : ndarray of shape (r, m)
        The matrix U₊Λ₊^(−½).
    negative_share_ : float
        The sum of |λ| over the negative eigenvalues of K, relative to that over all of them.

    See Also
    --------
    Substrings : A kernel on strings that needs no landmarks.

    Examples
    --------
    >>> from psilearn.kernels import EditGaussian
    >>> kernel = EditGaussian(gamma=0.1).fit(["tea", "tee", "cat"])  # doctest: +SKIP
    >>> kernel(["tea"], ["tee", "cat"]).round(4)  # doctest: +SKIP
    array([[0.9048, 0.4066]])
    """

    def __init__(
        self,
        gamma: float | str = "median",
        *,
        n_landmarks: int = 200,
        random_state: Any = 0,
        normalize: bool = True,
        base: Kernel | None = None,
    ) -> None:
        self.gamma = gamma
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.normalize = normalize
        self.base = base

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        return check_strings(A, name)

    def _fit_features(self, A: Samples) -> None:
        n_landmarks = validation.check_count(self.n_landmarks, "n_landmarks")
        rng = validation.as_random_state(self.random_state)
        pool = take(A, np.sort(rng.permutation(n_samples(A))[: 4 * n_landmarks]))
        first = distinct(pool).first
        chosen = np.sort(first[rng.permutation(len(first))[:n_landmarks]])
        landmarks = take(pool, chosen)
        squares = edit_distances(landmarks, landmarks) ** 2
        self.gamma_ = self._find_width(squares)
        values, vectors = np.linalg.eigh(_gaussians(squares, self.gamma_))
        kept = values > MIN_EIGENVALUE * values[-1]
        self.landmarks_ = landmarks
        self.projection_ = vectors[:, kept] / np.sqrt(values[kept])
        self.negative_share_ = float(np.maximum(-values, 0).sum() / np.abs(values).sum())

    def _find_width(self, squares: Array) -> float:
        """Return γ: the parameter, or one over the median of positive squared distances."""
        if not isinstance(self.gamma, str):
            return validation.check_positive(self.gamma, "gamma")
        if self.gamma != "median":
            raise ValueError(f'gamma of EditGaussian must be a number > 0 or "median"; got {self.gamma!r}.')
        positive = squares[squares > 0]
        return float(1 / np.median(positive)) if positive.size else 1.0

    def _features(self, A: Any) -> Any:
        if not hasattr(self, "landmarks_"):
            raise ValueError("EditGaussian takes its landmarks from data: call fit(A) first.")
        return _gaussians(edit_distances(A, self.landmarks_) ** 2, self.gamma_) @ self.projection_


def _gaussians(squares: Array, gamma: float) -> Array:
    """Return exp(−γd²); it is 0 where γd² overflows."""
    with np.errstate(over="ignore"):
        return np.exp(-gamma * squares)


def edit_distances(A: Any, B: Any) -> Array:
    """Return the number of insertions, deletions and substitutions between all pairs of validated strings."""
    with explain_missing(INSTALL):
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cdist
    return np.asarray(cdist(_items(A), _items(B), scorer=Levenshtein.distance, dtype=np.int32), dtype=np.float64)


def paired_edit_distances(A: Any, B: Any) -> Array:
    """Return the edit distance of each pair of validated strings."""
    with explain_missing(INSTALL):
        from rapidfuzz.distance import Levenshtein
    pairs = zip(_items(A), _items(B), strict=True)
    return np.array([Levenshtein.distance(a, b) for a, b in pairs], dtype=np.float64)


def _items(A: Any) -> list[Any]:
    """Return strings as they are, and other sequences as lists of tokens."""
    return [item if isinstance(item, str) else list(item) for item in A]
