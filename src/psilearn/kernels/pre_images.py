"""Pre-images in closed form: the object whose feature is nearest to a combination of features."""

from __future__ import annotations

from typing import Any

import numpy as np

from psilearn._backend import tensor_to_numpy
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples, n_samples
from psilearn.kernels.kernel import Kernel


def has_pre_image(kernel: Kernel) -> bool:
    """Return whether a kernel has pre-images in closed form.

    Parameters
    ----------
    kernel : Kernel
        The kernel.

    Returns
    -------
    bool
        True for Linear, Curves and Hellinger, and for multiples of them.

    See Also
    --------
    pre_image : Compute pre-images.

    Examples
    --------
    >>> from psilearn.kernels import Gaussian, Linear, has_pre_image
    >>> has_pre_image(2 * Linear()), has_pre_image(Gaussian())
    (True, False)
    """
    return isinstance(kernel, Kernel) and bool(kernel._has_pre_image)


def pre_image(kernel: Kernel, A: Samples, weights: Any) -> Array:
    """Return the objects y that minimize |Σ_l w_l ψ(a_l) − ψ(y)|², one for each row of weights.

    The minimum is over all objects of the kernel: all rows of numbers for Linear, all histograms for Hellinger.

    Parameters
    ----------
    kernel : Kernel
        A kernel with pre-images in closed form.
    A : array or CSR matrix of shape (r, d), or array of shape (r,)
        The objects a_l.
    weights : array of shape (q, r)
        The weights w.

    Returns
    -------
    ndarray of shape (q, d) or (q,)
        The pre-images, in float64.

    Raises
    ------
    TypeError
        If the kernel has no pre-images in closed form.

    See Also
    --------
    has_pre_image : Whether a kernel has pre-images in closed form.
    psilearn.OEL.predict_mean : The pre-images of predictions.

    Examples
    --------
    >>> from psilearn.kernels import Hellinger, Linear, pre_image
    >>> pre_image(Linear(), [[0.0, 2.0], [4.0, 0.0]], [[0.5, 0.5]])
    array([[2., 1.]])
    >>> pre_image(Hellinger(), [[1.0, 0.0], [0.0, 1.0]], [[3.0, 4.0]])
    array([[0.36, 0.64]])
    """
    if not has_pre_image(kernel):
        raise TypeError(
            f"kernel={kernel!r} has no pre-images in closed form. Linear, Curves and Hellinger have them; with other "
            f"kernels predict the nearest of candidates."
        )
    A = tensor_to_numpy(kernel.check(A, "A"))
    W = validation.check_array_of_numbers(tensor_to_numpy(weights), "weights", ndim=2)
    if W.shape[1] != n_samples(A):
        raise ValueError(
            f"weights has {W.shape[1]} columns, but A has {n_samples(A)} objects: give one weight per object."
        )
    return np.asarray(kernel._pre_image(A, W))
