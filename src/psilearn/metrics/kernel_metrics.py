"""The loss of an output kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psilearn._utils.samples import Samples
from psilearn.kernels import Kernel, as_kernel
from psilearn.metrics.mean import Mean, check_same_length


def kernel_loss(Y_true: Samples, Y_pred: Samples, kernel: Kernel | Callable[[Any, Any], float]) -> Mean:
    """Return the mean squared distance of true and predicted outputs in the space of a kernel.

    The distance is |ψ(y) − ψ(ŷ)|² = k(y,y) + k(ŷ,ŷ) − 2k(y,ŷ), the loss that output kernel regression minimizes.

    Parameters
    ----------
    Y_true : collection of n outputs
        The true outputs, in any form that the kernel accepts.
    Y_pred : collection of n outputs
        The predicted outputs, in the same form.
    kernel : Kernel or callable
        The output kernel, or a function k(y, ŷ) of two outputs.

    Returns
    -------
    Mean
        The mean of the distances, with its standard error.

    See Also
    --------
    f1_score : For label sets; the loss of the kernel ``Dice`` is 2 − 2·F1.
    kendall_tau : For rankings; the loss of the kernel ``Kemeny`` on full rankings is 2 − 2τ.

    Examples
    --------
    >>> from psilearn.kernels import Linear
    >>> from psilearn.metrics import kernel_loss
    >>> kernel_loss([[0.0, 0.0], [1.0, 1.0]], [[0.0, 2.0], [1.0, 1.0]], Linear())
    2.0000 ± 2.0000
    """
    check_same_length(Y_true, Y_pred)
    if kernel is None:
        raise TypeError("kernel must be a kernel of psilearn.kernels or a function k(a, b); got None.")
    if not isinstance(kernel, Kernel):
        kernel = as_kernel(kernel, "kernel")
    truth, predicted = kernel.check(Y_true, "Y_true"), kernel.check(Y_pred, "Y_pred")
    return Mean(kernel.paired_squared_distances(truth, predicted))
