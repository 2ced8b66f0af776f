"""Input Output Kernel Regression: everything is kept."""

from typing import Any

import numpy as np

from psilearn._linalg.moments import Subspace
from psilearn.embedding import LandmarkOutputs, SpannedOutputs
from psilearn.estimators.output_kernel_regression import OutputKernelRegression
from psilearn.regression import Regression


class IOKR(OutputKernelRegression):
    """Input Output Kernel Regression: kernel ridge regression into the whole output space.

    ĥ(x) = Σᵢ αᵢ(x) ψ(yᵢ), α(x) = (K_x + nλI)⁻¹ k_x(X, x);   ŷ(x) = argmin_y |ĥ(x) − ψ(y)|².

    With a ``regressor`` ĥ is what that one learns from the pairs (xᵢ, ψ(yᵢ)) instead.

    Fit costs n³/3 + n²r + d²r flops for d distinct outputs of rank r; with q input landmarks 2nq² + 2nqr, with output
    landmarks r of them. :mod:`psilearn.memory` says how many bytes. Decoding: r flops a candidate.

    Parameters
    ----------
    input_kernel, output_kernel : Kernel, function k(a, b) or None
        None is a Gaussian kernel with the median width.
    alpha : float
        λ of the paper: the ridge is K_x + n·λ·I. With a ``regressor`` it plays no part on the input side; output
        landmarks that are chosen by leverage scores take it in any case.
    input_landmarks : None, int or Landmarks
        None is exact and holds n² numbers. q landmarks (an int: drawn at random): Nyström regression in their span, in
        one streaming pass over X, for n up to millions; exact where q = n.
    output_landmarks : None, int or Landmarks
        None spans every distinct output and holds d² numbers. r landmarks (an int: randomly pivoted Cholesky): outputs
        are streamed in the coordinates of their span; exact where the landmarks span all outputs, and
        ``approximation_error_`` says how far from that they are.
    dtype : "float64", "float32" or "tf32"
        of kernel blocks, embeddings and predictions. Sums over many rows and factorisations stay in float64. float32
        halves the memory and doubles the speed of what is streamed, and wants λ well above 1e-7. "tf32" is float32, and
        lets the matrix units of a GPU preselect candidates with factors of 11 bits: the answers are those of float32,
        for what is preselected is compared anew.
    verbose : int
        1 draws a bar of progress on stderr for what takes more than a second.
    regressor : scikit-learn regressor of several targets, optional
        ĥ in place of kernel ridge regression: a copy of it is fitted on X and the coordinates Ψ(Y) (n, r) of the
        outputs, and it alone judges X (texts for a pipeline that takes them, NaN where it allows them).
        ``input_kernel`` and ``input_landmarks`` must then be None.
    device : None, "cpu" or "cuda" (or "cuda:1", …)
        where to compute: None in NumPy, or where tensors are that are given in place of arrays; a name on that device
        of torch (``pip install 'psilearn[torch]'``). Arrays in, arrays out, and the fitted attributes are arrays, so
        that the model can be saved, and used on another device after ``set_params(device=...)``; tensors in, tensors
        out. Vector and set kernels, regression, embedding and decoding run there; other kernels in NumPy, their blocks
        are moved.

    Attributes
    ----------
    embedding_ : Embedding
        y ↦ g(y).
    approximation_error_, input_approximation_error_ : float
        1 − Σ|φ(y)|²/Σk(y, y), the share of the outputs seen, and of the inputs, that the landmarks do not span; 0 where
        there are none.
    candidates_ : CandidateSet
        the distinct known outputs, labeled first: the default candidates.
    dual_coef_ : array (n, p), or (q, p) with input landmarks
        z(x) = k_x(x, X_fit_) @ dual_coef_; as X_fit_ and input_kernel_ only without ``regressor``.
    X_fit_ : the training inputs, or the landmarks among them.
    regressor_ : the fitted copy of ``regressor``
        z(x) = regressor_.predict(x) @ directions_; only with ``regressor``, as directions_.
    directions_ : array (r, p) or None
        V, orthonormal columns; None for the identity, as in IOKR.
    n_components_ : int
        p: here the dimension that the training outputs span.
    eigenvalues_ : empty array; IOKR orders no directions.
    input_kernel_, output_kernel_ : Kernel
        fitted copies of the parameters.
    n_features_in_ : int
        width of X, where X has rows.

    References
    ----------
    Brouard, Szafranski and d'Alché-Buc, *Input Output Kernel Regression*, JMLR 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import IOKR
    >>> from psilearn.kernels import Dice, Gaussian
    >>> X = np.array([[0.0], [0.1], [1.0], [1.1]])
    >>> Y = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]])
    >>> IOKR(Gaussian(gamma=10.0), Dice(), alpha=1e-3).fit(X, Y).predict([[0.05], [1.2]])
    array([[1, 1, 0],
           [0, 1, 1]])

    A regression of scikit-learn's instead of a kernel on the inputs:

    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> IOKR(output_kernel=Dice(), regressor=KNeighborsRegressor(1)).fit(X, Y).predict([[0.05], [1.2]])
    array([[1, 1, 0],
           [0, 1, 1]])
    """

    def __init__(
        self,
        input_kernel: Any = None,
        output_kernel: Any = None,
        alpha: float = 1e-4,
        input_landmarks: Any = None,
        output_landmarks: Any = None,
        dtype: Any = "float64",
        verbose: int = 0,
        regressor: Any = None,
        device: Any = None,
    ) -> None:
        self.input_kernel = input_kernel
        self.output_kernel = output_kernel
        self.alpha = alpha
        self.input_landmarks = input_landmarks
        self.output_landmarks = output_landmarks
        self.dtype = dtype
        self.verbose = verbose
        self.regressor = regressor
        self.device = device

    def _choose_subspace(self, outputs: SpannedOutputs | LandmarkOutputs, regression: Regression) -> Subspace:
        return Subspace(np.empty(0), None)
