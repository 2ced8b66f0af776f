"""Kernel Dependency Estimation: the leading directions of the outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psilearn.estimators.base import LearnedEmbeddingRegression
from psilearn.kernels import Kernel
from psilearn.landmarks import Landmarks


class KDE(LearnedEmbeddingRegression):
    """Kernel Dependency Estimation: regression onto the leading kernel principal components of the outputs.

    G spans the p leading eigenvectors of 1/m Σⱼ ψ(yⱼ)ψ(yⱼ)ᵀ (not centered), over the unlabeled outputs, or over Y if
    there are none. The inputs have no influence on G: KDE is :class:`OEL` with ``supervision=0``.

    Fit costs as much as that of :class:`IOKR` for d distinct outputs (labeled and unlabeled), and the leading p
    eigenvectors of an (r, r) moment; with output landmarks mr² flops for m unlabeled outputs and one batch in memory.
    Decoding costs p flops per candidate.

    Parameters
    ----------
    input_kernel : Kernel, callable or None, default=None
        The kernel k_x on inputs: a kernel of :mod:`psilearn.kernels` or a function k(a, b). None is a Gaussian kernel
        with the median width.
    output_kernel : Kernel, callable or None, default=None
        The kernel k on outputs. None chooses by the kind of y: Dice for rows of zeros and ones, Kemeny for rankings, a
        Gaussian kernel with the median width for other outputs. Choose the kernel that corresponds to your metric.
    alpha : float, default=1e-4
        The ridge parameter λ of the paper: the regression solves with K_x + n·λ·I. It is not used with a
        ``regressor``, except by leverage scores of output landmarks.
    n_components : int or None, default=None
        The dimension p of the embedding, at most the rank of the moment. None keeps the whole rank.
    input_landmarks : int, Landmarks or None, default=None
        None is exact and stores n² numbers. With q landmarks (an int: drawn at random) the regression is restricted to
        their span (Nyström), in one streaming pass over X, for n up to millions. It is exact if q = n.
    output_landmarks : int, Landmarks or None, default=None
        None spans every distinct output and stores d² numbers for d of them. With r landmarks (an int: chosen by
        randomly pivoted Cholesky) outputs are streamed in the coordinates of their span, which is exact if the
        landmarks span all outputs; ``approximation_error_`` measures the difference.
    dtype : {"float64", "float32", "tf32"}, default="float64"
        The precision of kernel blocks, embeddings and predictions. Sums over many rows and factorizations are always
        float64. float32 needs half the memory and time for what is streamed, and requires λ well above 1e-7. "tf32" is
        float32, and preselects candidates on the tensor cores of a GPU with factors of 11 bits: the answers are those
        of float32, because preselected candidates are compared again.
    verbose : int, default=0
        1 shows a progress bar on stderr for steps that take longer than a second.
    regressor : scikit-learn regressor or None, default=None
        A regressor of several targets that replaces kernel ridge regression: a clone of it is fitted on X and the
        coordinates Ψ(Y) (n, r) of the outputs, and it alone validates X (texts for a pipeline that takes them, NaN if
        it accepts them). ``input_kernel`` and ``input_landmarks`` must then be None.
    device : {"cpu", "cuda"}, torch.device or None, default=None
        The torch device that computes (``pip install 'psilearn[torch]'``). None computes with NumPy, or on the device
        of tensors that are passed instead of arrays. Arrays in give arrays out, tensors in give tensors out, and fitted
        attributes are arrays, so that a model can be saved and used elsewhere after ``set_params(device=...)``.
        Kernels that do not support torch are computed with NumPy, and their blocks are moved.

    Attributes
    ----------
    regression_ : Regression
        The fitted regression x ↦ z(x): :class:`~psilearn.regression.KernelRegression` with ``kernel``, ``anchors`` (the
        training inputs or landmarks) and ``coefficients``, or :class:`~psilearn.regression.SklearnRegression`.
    embedding_ : Embedding
        The output embedding y ↦ g(y).
    candidates_ : SharedCandidates
        The distinct known outputs, labeled ones first: the default candidates.
    output_kernel_ : Kernel
        The fitted output kernel.
    n_components_ : int
        The dimension p of the embedding. At most the rank of the moment.
    eigenvalues_ : ndarray of shape (p,)
        The eigenvalues of the moment, descending.
    approximation_error_ : float
        The share 1 − Σ|φ(y)|²/Σk(y, y) of the outputs that the output landmarks do not span; 0 without landmarks.
    input_approximation_error_ : float
        The same share of the inputs for the input landmarks.
    calibration_scores_ : ndarray of shape (n,)
        The conformal scores found by :meth:`calibrate`.
    n_features_in_ : int
        The number of columns of X, if X has rows.

    See Also
    --------
    OEL : Uses the fitted values of the regression too.
    KDECV : Chooses λ, p and the kernels by validation.

    References
    ----------
    Weston, Chapelle, Elisseeff, Schölkopf and Vapnik, *Kernel Dependency Estimation*, NIPS 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import KDE
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> KDE(n_components=3).fit(X, np.hstack([X, X**2])).embed(X[:2]).shape
    (2, 3)
    """

    def __init__(
        self,
        input_kernel: Kernel | Callable[[Any, Any], float] | None = None,
        output_kernel: Kernel | Callable[[Any, Any], float] | None = None,
        *,
        alpha: float = 1e-4,
        n_components: int | None = None,
        input_landmarks: int | Landmarks | None = None,
        output_landmarks: int | Landmarks | None = None,
        dtype: Any = "float64",
        verbose: int = 0,
        regressor: Any = None,
        device: Any = None,
    ) -> None:
        self.input_kernel = input_kernel
        self.output_kernel = output_kernel
        self.alpha = alpha
        self.n_components = n_components
        self.input_landmarks = input_landmarks
        self.output_landmarks = output_landmarks
        self.dtype = dtype
        self.verbose = verbose
        self.regressor = regressor
        self.device = device

    @property
    def _supervision(self) -> float | None:
        return 0.0
