"""Output Embedding Learning: the leading directions of the mixed moment."""

from typing import Any

from psilearn._linalg.moments import Subspace
from psilearn._utils import validation
from psilearn.embedding import LandmarkOutputs, SpannedOutputs
from psilearn.estimators.kde import KDE
from psilearn.regression import Regression


class OEL(KDE):
    """Output Embedding Learning: learn a small output embedding that is easy to predict, jointly with the regression.

    G spans the p leading eigenvectors of the mixed moment

        M_c = c/n Σᵢ ĥ(xᵢ)ĥ(xᵢ)ᵀ + (1−c)/m Σⱼ ψ(yⱼ)ψ(yⱼ)ᵀ

    of the regression's fitted values ĥ(xᵢ) and of the outputs yⱼ, unlabeled ones where given, Y otherwise. The
    prediction is argmin_y |G*Gĥ(x) − ψ(y)|². The paper's OEL₀ is ``supervision=1``.

    Fit costs what KDE's does. Decoding costs p flops a candidate instead of IOKR's r, once candidates are embedded (r·p
    flops each, kept by :meth:`candidate_set`).

    Parameters
    ----------
    input_kernel, output_kernel, alpha, n_components, input_landmarks, output_landmarks, dtype, verbose, device :
        as in :class:`KDE`.
    supervision : float in [0, 1]
        c: 1 looks only at the fitted values ĥ(xᵢ), 0 only at the outputs ψ(yⱼ).
    regressor : scikit-learn regressor of several targets, optional
        as in :class:`IOKR`. A regressor that reproduces what it was trained on would make of ĥ(xᵢ) the outputs
        themselves, so M_c takes out-of-fold values: ĥ(xᵢ) is predicted by a copy that was fitted without the fold of
        pair i, one of five. With ``supervision`` > 0 the regressor is therefore fitted six times.

    Attributes
    ----------
    eigenvalues_ : array (p,)
        of M_c, descending.
    n_components_ : int
        p as used: at most the rank.
    Others as in :class:`IOKR`.

    References
    ----------
    Brogat-Motte, Rudi, Brouard, Rousu and d'Alché-Buc, *Learning Output Embeddings in Structured Prediction*.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import OEL
    >>> from psilearn.kernels import Gaussian
    >>> X = np.linspace(0, 1, 30).reshape(-1, 1)
    >>> Y = np.hstack([np.sin(6 * X), np.cos(6 * X)])
    >>> model = OEL(Gaussian(5.0), Gaussian(1.0), alpha=1e-6, n_components=8, supervision=0.5).fit(X, Y)
    >>> model.predict([[0.0]]).round(2)
    array([[0., 1.]])
    >>> model.predict_topk([[0.0]], k=2).indices
    array([[0, 1]])
    """

    def __init__(
        self,
        input_kernel: Any = None,
        output_kernel: Any = None,
        alpha: float = 1e-4,
        n_components: int | None = None,
        supervision: float = 0.5,
        input_landmarks: Any = None,
        output_landmarks: Any = None,
        dtype: Any = "float64",
        verbose: int = 0,
        regressor: Any = None,
        device: Any = None,
    ) -> None:
        super().__init__(
            input_kernel,
            output_kernel,
            alpha,
            n_components,
            input_landmarks,
            output_landmarks,
            dtype,
            verbose,
            regressor,
            device,
        )
        self.supervision = supervision

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_fraction(self.supervision, "supervision")

    def _looks_at_unlabeled(self) -> bool:
        return self.supervision < 1

    def _looks_at_fitted_values(self) -> bool:
        return self.supervision > 0

    def _choose_subspace(self, outputs: SpannedOutputs | LandmarkOutputs, regression: Regression) -> Subspace:
        c = float(self.supervision)
        if c == 0 or regression.moment is None:
            return super()._choose_subspace(outputs, regression)
        supervised = c * regression.moment
        return self._top(supervised if c == 1 else supervised + (1 - c) * outputs.moment())
