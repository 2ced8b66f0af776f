"""What is searched: grids from the user or from the data, checked before anything long begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit, check_cv

from psilearn._linalg import Array
from psilearn._utils.samples import Index, Samples, n_samples
from psilearn.kernels import Gaussian, Kernel, as_kernel
from psilearn.theory import fit_decay, suggest

WIDTH_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # around the median heuristic
ALPHA_POWERS = tuple(np.arange(-5, 1.5, 0.5))  # λ = 10^power / √n: the corollary's choice and below it
SUPERVISIONS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
MAX_COMPONENTS = 400  # the largest p of a default grid
N_COMPONENTS = 12  # how many p a default grid has


def as_list(values: Any, name: str) -> list[Any]:
    """Return a grid as a list: one value is a grid of one; an empty one is refused."""
    if isinstance(values, str) or not hasattr(values, "__iter__") or isinstance(values, Kernel):
        values = [values]
    values = list(values)
    if not values:
        raise ValueError(f"{name} is an empty grid: give at least one value, or None for the default.")
    return values


def numbers(values: Any, name: str, check: Callable[[Any, str], Any]) -> list[Any]:
    """Return a grid of numbers, checked one by one, ascending and without repetition."""
    return sorted({check(value, f"each value of {name}") for value in as_list(values, name)})


def kernels(values: Any, name: str) -> list[Kernel]:
    """Return a grid of kernels, each an own copy."""
    return [as_kernel(value, f"each value of {name}") for value in as_list(values, name)]


def default_input_kernels(X: Samples) -> list[Kernel]:
    """Return Gaussian kernels whose widths lie around the median heuristic."""
    median = Gaussian().fit(Gaussian().check(X, "X", allow_1d=False)).gamma_
    return [Gaussian(gamma=median * factor) for factor in WIDTH_FACTORS]


def default_alphas(n: int) -> list[float]:
    """Return λ from 1e-5/√n to 10/√n; the theory's choice, 1/√n, is one of them."""
    return [float(10**power / np.sqrt(n)) for power in ALPHA_POWERS]


def default_n_components(n: int, eigenvalues: Array) -> list[int]:
    """Return p on a logarithmic grid up to the rank or 400, and the theory's ⌈n^(1/2r)⌉ where the spectrum decays."""
    rank = max(1, len(eigenvalues))
    grid = set(np.geomspace(min(2, rank), min(rank, MAX_COMPONENTS), N_COMPONENTS).round().astype(int).tolist())
    with suppress(ValueError):  # no polynomial decay, no suggestion
        grid.add(min(rank, suggest(n, fit_decay(eigenvalues)).n_components))
    return sorted(grid)


def leaves_one_out(cv: Any) -> bool:
    """Return whether the closed-form leave-one-out takes the place of splits."""
    if isinstance(cv, str) and cv != "loo":
        raise ValueError(f'cv must be an integer, a splitter, an iterable of splits, "loo" or None; got {cv!r}.')
    return isinstance(cv, str)


def splits_of(cv: Any, y: Samples, groups: Any, random_state: Any) -> list[tuple[Index, Index]]:
    """Return the training and validation indices of each split; the paper's five random 80/20 splits by default."""
    n = n_samples(y)
    if leaves_one_out(cv):
        if n < 2:
            raise ValueError(f'cv="loo" needs at least 2 examples; got {n}.')
        return [(np.arange(n), np.arange(n))]
    splitter = ShuffleSplit(5, test_size=0.2, random_state=random_state) if cv is None else check_cv(cv)
    labels = y if isinstance(y, np.ndarray) else None  # stratified splitters look at them
    pairs = splitter.split(np.zeros((n, 1)), labels, groups)
    splits = [(_indices(a), _indices(b)) for a, b in pairs]
    if not splits:
        raise ValueError("cv gives no split.")
    for i, (train, held) in enumerate(splits):
        if not len(train) or not len(held):
            raise ValueError(
                f"Split {i} of cv has {len(train)} training and {len(held)} validation examples: both sides need one."
            )
        everything = np.concatenate([train, held])
        if everything.min() < 0 or everything.max() >= n:
            raise ValueError(
                f"Split {i} of cv names examples {everything.min()} to {everything.max()}; they go from 0 to {n - 1}."
            )
    return splits


def _indices(side: Any) -> Index:
    """Return one side of a split as indices; scikit-learn allows masks too."""
    side = np.asarray(side)
    if side.dtype == bool:
        side = np.flatnonzero(side)
    if side.ndim != 1 or (side.size and not np.issubdtype(side.dtype, np.integer)):
        raise ValueError(f"A split of cv must hold integer indices or masks; got shape {side.shape}, {side.dtype}.")
    return side.astype(np.intp)


def edges_of(grid: dict[str, list[Any]], best: dict[str, Any], rank: int) -> list[str]:
    """Say of each parameter whose best value is the first or the last of its grid: "alpha = 1e-06 is the smallest…".

    Values that cannot go further are left out: c of 0 or 1, p of 1 or the rank.
    """
    limits = {"supervision": (0.0, 1.0), "n_components": (1, rank)}
    edges = []
    for name, values in grid.items():
        label, ordered, value = name, values, best[name]
        if isinstance(value, Kernel):
            parameter = _varying_parameter(values)
            if parameter is None:
                continue
            ordered, value = [k.get_params()[parameter] for k in values], value.get_params()[parameter]
            label = f"{name}__{parameter}"
        low, high = limits.get(name, (-np.inf, np.inf))
        if len(set(ordered)) > 1 and low < value < high and value in (min(ordered), max(ordered)):
            word = "smallest" if value == min(ordered) else "largest"
            edges.append(f"{label} = {value:g} is the {word} of its grid")
    return edges


def _varying_parameter(grid: Sequence[Kernel]) -> str | None:
    """Return the one numeric parameter in which kernels of one kind differ, or None."""
    if len({type(kernel) for kernel in grid}) > 1:
        return None
    params = [kernel.get_params() for kernel in grid]
    varying = [name for name in params[0] if len({repr(p.get(name)) for p in params}) > 1]
    numeric = len(varying) == 1 and all(isinstance(p.get(varying[0]), Real) for p in params)
    return varying[0] if numeric else None


def check_components(grid: Sequence[int], rank: int, what: str) -> None:
    """Refuse p beyond the rank of the output space."""
    if grid[-1] > rank:
        raise ValueError(
            f"n_components goes up to {grid[-1]}, but {what}: no embedding has more dimensions. Give smaller values, "
            f"or None for a grid up to the rank."
        )
