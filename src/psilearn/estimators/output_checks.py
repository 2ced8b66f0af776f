"""Validation of the outputs that are passed to a fit."""

from __future__ import annotations

from typing import Any

from psilearn._utils.samples import Samples, describe_shape, is_empty, n_samples
from psilearn.embedding import OutputStream
from psilearn.kernels import Kernel


def check_outputs(kernel: Kernel, y: Samples) -> Samples:
    """Return validated outputs; an error names the kernel."""
    try:
        return kernel.check(y, "y")
    except (TypeError, ValueError) as error:
        name = type(kernel).__name__
        if name in str(error):
            raise
        raise type(error)(f"y cannot be used with {name}: {error}") from error


def check_fit_outputs(kernel: Kernel, y: Samples, unlabeled: Any, n_inputs: int) -> tuple[Samples, OutputStream | None]:
    """Return the validated outputs, one per input, and the unlabeled outputs (None if there are none)."""
    Y = check_outputs(kernel, y)
    if n_samples(Y) != n_inputs:
        raise ValueError(
            f"X and y must have one row per example: X has {n_inputs}, y has {n_samples(Y)} ({describe_shape(Y)})."
        )
    if unlabeled is None or is_empty(unlabeled):
        return Y, None
    return Y, OutputStream(unlabeled, kernel, Y)
