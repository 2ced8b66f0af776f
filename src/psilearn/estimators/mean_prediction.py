"""Predictions without candidates, for output kernels with pre-images in closed form."""

from __future__ import annotations

import numpy as np

from psilearn._backend import iter_blocks, to_numpy
from psilearn._linalg import Array
from psilearn._utils.estimators import fitted_snapshot
from psilearn._utils.samples import Samples, n_samples
from psilearn.estimators.conformal_model import ConformalModel
from psilearn.estimators.dask_inputs import require_memory
from psilearn.kernels import has_pre_image, pre_image


class MeanPredictor(ConformalModel):
    """A fitted model that predicts pre-images."""

    def predict_mean(self, X: Samples) -> Array:
        """Predict the output whose feature is nearest to the prediction among all outputs, without candidates.

        The prediction G*z(x) = Σ_l β_l ψ(s_l) is a combination of features of known outputs. If the output kernel has
        pre-images in closed form (:func:`psilearn.kernels.has_pre_image`), the nearest of all outputs is computed: with
        :class:`~psilearn.kernels.Linear` and :class:`~psilearn.kernels.Curves` the mean Σ_l β_l s_l itself, with
        :class:`~psilearn.kernels.Hellinger` a distribution.

        Cost: 2·n·r·(p + d) flops for r output landmarks with d columns.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.

        Returns
        -------
        ndarray of shape (n, d) or (n,)
            The predicted rows of numbers, in float64.

        Raises
        ------
        TypeError
            If the output kernel has no pre-images in closed form.

        See Also
        --------
        predict : The nearest of candidates, for every output kernel.
        psilearn.kernels.pre_image : The pre-images of combinations of features.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKR
        >>> from psilearn.kernels import Gaussian, Linear
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> IOKR(Gaussian(5.0), Linear(), alpha=1e-6).fit(X, np.hstack([X, X**2])).predict_mean([[0.51]]).round(3)
        array([[0.51, 0.26]])
        """
        require_memory("predict_mean", X=X)
        model = fitted_snapshot(self)
        embedding = model.embedding_
        if not has_pre_image(embedding.kernel):
            raise TypeError(
                f"predict_mean needs an output kernel with pre-images in closed form, such as Linear, Curves or "
                f"Hellinger; output_kernel is {embedding.kernel!r}. Use predict, with candidates."
            )
        with model._computing(X) as compute:
            Z = to_numpy(model._embed(X, compute)).astype(np.float64, copy=False)
        basis, r = to_numpy(embedding.basis).astype(np.float64, copy=False), n_samples(embedding.landmarks)
        if r == 0:  # all known outputs are 0
            return np.zeros((len(Z), *embedding.landmarks.shape[1:]))
        parts = [
            pre_image(embedding.kernel, embedding.landmarks, Z[rows] @ basis.T) for rows in iter_blocks(len(Z), 8 * r)
        ]
        return np.concatenate(parts)
