"""Grids of a search, from the user or from the data, validated before any long computation starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isclose
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.hashing import content_hash
from psilearn._utils.samples import Samples, n_columns
from psilearn.decoding import CANDIDATE_NAMES
from psilearn.decoding.label_sets.listable import ListableLabelSets
from psilearn.kernels import Gaussian, Kernel, Linear, as_kernel, as_output_kernel
from psilearn.theory import fit_decay, suggest

KernelLike: TypeAlias = Kernel | Callable[[Any, Any], float] | None
KernelGrid: TypeAlias = KernelLike | Sequence[KernelLike]
NumberGrid: TypeAlias = float | Sequence[float] | NDArray[Any] | None
SizeGrid: TypeAlias = int | Sequence[int] | NDArray[Any] | None

WIDTH_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # multiples of the median heuristic
NORMALIZED_WIDTH_FACTORS = (0.5, 1.0, 2.0)  # the same for rows of length 1, whose distances vary less
MIN_LENGTH_RATIO = 1.01  # of the longest and the shortest row, below which normalization changes nothing
ALPHA_POWERS = tuple(np.arange(-5, 1.5, 0.5))  # λ = 10^power / √n: the corollary's choice and smaller values
SUPERVISIONS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
MAX_COMPONENTS = 400  # the largest p of a default grid
N_DEFAULT_SIZES = 12  # how many p a default grid has


@dataclass(frozen=True)
class PathGrid:
    """The values of λ, c and p that are scored for each pair of kernels, each ascending."""

    alphas: Sequence[float]
    supervisions: Sequence[float]
    sizes: Sequence[int] | None  # p; None keeps every direction, as IOKR does

    @property
    def n_steps(self) -> int:
        """The number of pairs (λ, c), or of λ if every direction is kept."""
        return len(self.alphas) * (1 if self.sizes is None else len(self.supervisions))


def as_list(values: Any, name: str) -> list[Any]:
    """Return a grid as a list: one value is a grid of one; an empty grid is rejected."""
    is_single = isinstance(values, str | bytes | Kernel) or not hasattr(values, "__iter__")
    if is_single or getattr(values, "ndim", 1) == 0:
        values = [values]
    listed = validation.check_items(values, name, "a value or a sequence of values")
    if not listed:
        raise ValueError(f"{name} is an empty grid: give at least one value, or None for the default.")
    return listed


def number_grid(values: Any, name: str, check: Callable[[Any, str], Any]) -> list[Any]:
    """Return a grid of numbers, each validated, ascending and without repetition."""
    return sorted({check(value, f"each value of {name}") for value in as_list(values, name)})


def size_grid(n_components: Any) -> list[int]:
    """Return the grid of p; it is empty if the default is to be computed."""
    return [] if n_components is None else number_grid(n_components, "n_components", validation.check_count)


def input_kernel_grid(values: Any, X: Samples) -> list[Kernel]:
    """Return copies of the input kernels; by default Gaussian kernels with widths around the median heuristic.

    If rows are sparse or without negative entries, such as counts, their lengths often say more about the size of an
    object than about its kind: there are then also Gaussian kernels on the rows scaled to length 1.
    """
    if values is not None:
        return [as_kernel(value, "each value of input_kernels") for value in as_list(values, "input_kernels")]
    rows = Gaussian().check(X, "X", allow_1d=False)
    kernels: list[Kernel] = _gaussians(rows, None, WIDTH_FACTORS)
    if _may_normalize(rows):
        kernels += _gaussians(rows, Linear().normalized(), NORMALIZED_WIDTH_FACTORS)
    return kernels


def _gaussians(rows: Samples, base: Kernel | None, factors: Sequence[float]) -> list[Kernel]:
    """Return Gaussian kernels with multiples of the median width."""
    median = Gaussian(base=base).fit(rows).gamma_
    return [Gaussian(gamma=median * factor, base=base) for factor in factors]


def _may_normalize(rows: Samples) -> bool:
    """Return whether rows are sparse or without negative entries, and differ in length and in direction."""
    if n_columns(rows) == 1 or not (sparse.issparse(rows) or bool((rows >= 0).all())):
        return False
    squared = Linear().diag(rows)
    squared = squared[squared > 0]
    return len(squared) > 0 and bool(squared.max() > MIN_LENGTH_RATIO**2 * squared.min())


def output_kernel_grid(values: Any, y: Samples) -> list[Kernel]:
    """Return copies of the output kernels, where None chooses by the kind of y."""
    name = "each value of output_kernels"
    return [as_output_kernel(value, y, name) for value in as_list(values, "output_kernels")]


def alpha_grid(values: Any, n: int) -> list[float]:
    """Return the grid of λ; by default from 1e-5/√n to 10/√n, with 1/√n, the choice of the theory, among them."""
    if values is None:
        return [float(10**power / np.sqrt(n)) for power in ALPHA_POWERS]
    return number_grid(values, "alphas", validation.check_regularization)


def default_sizes(n: int, eigenvalues: Array) -> list[int]:
    """Return p on a logarithmic grid up to the rank or 400, and the theory's ⌈n^(1/2r)⌉ if the spectrum decays."""
    rank = max(1, len(eigenvalues))
    grid = set(np.geomspace(min(2, rank), min(rank, MAX_COMPONENTS), N_DEFAULT_SIZES).round().astype(int).tolist())
    with suppress(ValueError):  # without a polynomial decay there is no suggestion
        grid.add(min(rank, suggest(n, fit_decay(eigenvalues)).n_components))
    return sorted(grid)


def is_same_value(a: Any, b: Any) -> bool:
    """Return whether two values of a grid are equal: numbers up to rounding, kernels by class and parameters."""
    if a is b:
        return True
    if isinstance(a, Real) and isinstance(b, Real):
        return isclose(a, b, rel_tol=1e-9)
    if type(a) is not type(b):
        return False
    if isinstance(a, Kernel):
        params, other_params = a.get_params(deep=False), b.get_params(deep=False)
        return all(is_same_value(value, other_params[name]) for name, value in params.items())
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(is_same_value, a, b))
    if hasattr(a, "shape"):  # the matrix of a precomputed kernel
        return content_hash(a) == content_hash(b)
    return bool(a == b)


def is_candidate_rule(value: Any) -> bool:
    """Return whether candidates are a rule that every split applies to the known outputs of its own model."""
    return isinstance(value, str | ListableLabelSets)


def candidate_grid(rules: Any, decodes: bool) -> list[str | ListableLabelSets]:
    """Return the rules of the candidates that are searched, an empty list for None."""
    if rules is None:
        return []
    values = [rules] if is_candidate_rule(rules) else as_list(rules, "candidates")
    names = [value for value in values if not isinstance(value, ListableLabelSets)]
    if not all(isinstance(name, str) and name in CANDIDATE_NAMES for name in names):
        raise ValueError(
            f"candidates must be one or several of {', '.join(map(repr, CANDIDATE_NAMES))} or objects such as "
            f"AllLabelSets(max_labels=5); got {rules!r}. Collections of outputs can be passed to fit, as the "
            f"candidates of decoded scores."
        )
    if len(set(names)) < len(names):
        raise ValueError(f"candidates={rules!r} contains a name twice.")
    if len(values) > 1 and not decodes:
        raise ValueError(
            f"candidates={rules!r} cannot be compared without decoding: choose a decoded metric as the (first) "
            f'scoring, such as scoring="f1".'
        )
    return values


def find_edges(grid: dict[str, list[Any]], best: dict[str, Any], rank: int) -> list[str]:
    """Describe each parameter whose best value is the first or the last of its grid: "alpha = 1e-06 is the smallest …".

    Values that cannot be extended are left out: c of 0 or 1, p of 1 or at least the rank.
    """
    limits = {"supervision": (0.0, 1.0), "n_components": (1, rank)}
    edges = []
    for name, values in grid.items():
        label, ordered, value = name, values, best[name]
        if name == "candidates":
            continue
        if isinstance(value, Kernel):
            parameter, kernels = _varying_parameter(value, values)
            if parameter is None:
                continue
            ordered, value = [k.get_params()[parameter] for k in kernels], value.get_params()[parameter]
            label = f"{name}__{parameter}"
        low, high = limits.get(name, (-np.inf, np.inf))
        if len(set(ordered)) > 1 and low < value < high and value in (min(ordered), max(ordered)):
            word = "smallest" if value == min(ordered) else "largest"
            edges.append(f"{label} = {value:g} is the {word} of its grid")
    return edges


def _varying_parameter(kernel: Kernel, kernels: Sequence[Kernel]) -> tuple[str | None, list[Kernel]]:
    """Return the only number in which a kernel differs from kernels that are otherwise equal, and these kernels.

    The name is None if there are no such kernels, or if they differ in several numbers.
    """
    params = kernel.get_params(deep=False)
    families = {}
    for name, value in params.items():
        if isinstance(value, Real) and not isinstance(value, bool):
            family = [other for other in kernels if _differs_only_in(name, kernel, other)]
            if len(family) > 1:
                families[name] = family
    return families.popitem() if len(families) == 1 else (None, [])


def _differs_only_in(name: str, kernel: Kernel, other: Kernel) -> bool:
    """Return whether two kernels of one class are equal except for a number of this name."""
    if type(kernel) is not type(other):
        return False
    params, other_params = kernel.get_params(deep=False), other.get_params(deep=False)
    same = all(is_same_value(value, other_params[key]) for key, value in params.items() if key != name)
    return same and isinstance(other_params[name], Real)
