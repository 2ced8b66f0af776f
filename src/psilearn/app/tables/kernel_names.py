"""Kernels by their names on the command line, such as ``gaussian`` and ``gaussian:0.5``."""

from __future__ import annotations

from collections.abc import Callable

from psilearn.kernels import (
    Dice,
    Gaussian,
    GaussianTanimoto,
    Hamming,
    Kemeny,
    Kernel,
    Laplacian,
    Lehmer,
    Linear,
    Polynomial,
    Tanimoto,
)

KERNELS: dict[str, Callable[[], Kernel]] = {
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "linear": Linear,
    "cosine": lambda: Linear().normalized(),
    "gaussian-cosine": lambda: Gaussian(base=Linear().normalized()),
    "polynomial": Polynomial,
    "dice": Dice,
    "tanimoto": Tanimoto,
    "gaussian-tanimoto": GaussianTanimoto,
    "kemeny": Kemeny,
    "hamming": Hamming,
    "lehmer": Lehmer,
}
WITH_WIDTH = ("gaussian", "laplacian", "gaussian-cosine")  # may be followed by γ


def make_kernel(text: str, option: str) -> Kernel:
    """Return the kernel of a name, or of a name and its parameter γ: ``gaussian:0.5``."""
    name, _, gamma = text.strip().partition(":")
    if name not in KERNELS or (gamma and name not in WITH_WIDTH):
        listed = ", ".join(KERNELS)
        raise ValueError(
            f"{option}: there is no kernel {text!r}; the kernels are {listed}, and gaussian:0.5 for γ = 0.5."
        )
    kernel = KERNELS[name]()
    if not gamma:
        return kernel
    try:
        return kernel.set_params(gamma=float(gamma))
    except ValueError as error:
        raise ValueError(f"{option}: γ in {text!r} must be a number.") from error


def make_kernels(texts: list[str] | None, option: str) -> list[Kernel] | None:
    """Return the kernels of several names, each also with commas; None if there are none."""
    names = [name for text in texts or () for name in text.split(",")]
    return [make_kernel(name, option) for name in names] or None
