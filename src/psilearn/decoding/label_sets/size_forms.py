"""Kernels on label sets that depend on the common labels linearly once both sizes are known.

Such a kernel is k(y, s) = weight(|y|, |s|)·|y∩s| + constant(|y|, |s|):

- Dice: weight 2/(|y| + |s|), and constant 1 for two empty sets;
- Linear: weight 1. The squared distance |y − s|² of 0/1 rows is their Hamming distance;
- Normalized(Linear), the cosine: weight 1/√(|y||s|).

Multiples, sums and normalizations of such kernels are of this form too. Tanimoto and Gaussian kernels are not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from psilearn._linalg import Array
from psilearn.kernels import Dice, Kernel, Linear, Normalized, Scaled, Sum

SizeFunction = Callable[[Any, Any], Array]  # of sizes |y| and |s| that broadcast


@dataclass(frozen=True)
class SizeForm:
    """k(y, s) = weight(|y|, |s|)·|y∩s| + constant(|y|, |s|).

    If the form is *separable*, the constant is 0 and weight(|y|, |s|) is a product f(|y|)·u(|s|): then the order of the
    labels by their total weight is the same for every |y|.
    """

    weight: SizeFunction
    constant: SizeFunction
    separable: bool = False

    def squared_norms(self, sizes: Array) -> Array:
        """Return k(y, y) of sets of these sizes."""
        return self.weight(sizes, sizes) * sizes + self.constant(sizes, sizes)


def find_size_form(kernel: Kernel) -> SizeForm | None:
    """Return the form of a kernel, or None if it has none. Subclasses may differ from their base and have none."""
    simple = SIMPLE_FORMS.get(type(kernel))
    if simple is not None:
        return simple
    if type(kernel) is Scaled:
        return _scaled(find_size_form(kernel.kernel), float(kernel.scale))
    if type(kernel) is Normalized:
        return _normalized(find_size_form(kernel.kernel))
    if type(kernel) is Sum:
        return _sum(find_size_form(kernel.left), find_size_form(kernel.right))
    return None


def _zero(size: Array, other: Array) -> Array:
    return np.zeros(np.broadcast_shapes(np.shape(size), np.shape(other)))


def _one(size: Array, other: Array) -> Array:
    return 1.0 + _zero(size, other)


def _dice_weight(size: Array, other: Array) -> Array:
    return 2.0 / np.maximum(np.add(size, other), 1)


def _both_empty(size: Array, other: Array) -> Array:
    return (np.add(size, other) == 0).astype(np.float64)


SIMPLE_FORMS: dict[Any, SizeForm] = {
    Dice: SizeForm(_dice_weight, _both_empty),
    Linear: SizeForm(_one, _zero, separable=True),
}


def _scaled(form: SizeForm | None, scale: float) -> SizeForm | None:
    if form is None:
        return None
    inner = form
    return SizeForm(
        lambda size, other: scale * inner.weight(size, other),
        lambda size, other: scale * inner.constant(size, other),
        form.separable,
    )


def _normalized(form: SizeForm | None) -> SizeForm | None:
    if form is None:
        return None
    inner = form

    def inverse_length(sizes: Array) -> Array:
        norms = inner.squared_norms(np.asarray(sizes, dtype=np.float64))
        return np.where(norms > 0, 1 / np.sqrt(np.where(norms > 0, norms, 1)), 0.0)

    return SizeForm(
        lambda size, other: inner.weight(size, other) * inverse_length(size) * inverse_length(other),
        lambda size, other: inner.constant(size, other) * inverse_length(size) * inverse_length(other),
        form.separable,
    )


def _sum(left: SizeForm | None, right: SizeForm | None) -> SizeForm | None:
    if left is None or right is None:
        return None
    first, second = left, right
    return SizeForm(
        lambda size, other: first.weight(size, other) + second.weight(size, other),
        lambda size, other: first.constant(size, other) + second.constant(size, other),
    )
