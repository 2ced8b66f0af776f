"""Values of spectra that are needed again: those of single spectra, and kernel values of pairs of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from psilearn_chem.spectra.spectrum import Spectrum

Block = NDArray[np.float64]

_values: WeakKeyDictionary[Spectrum, dict[Hashable, Any]] = WeakKeyDictionary()
_shared: ContextVar[dict[Hashable, Block] | None] = ContextVar("shared blocks of kernels on spectra", default=None)


def remember(
    spectra: Sequence[Spectrum], key: Hashable, compute: Callable[[list[Spectrum]], Iterable[Any]]
) -> list[Any]:
    """Return one value per spectrum; those that are not known under the key are computed together."""
    known = [_values.setdefault(spectrum, {}) for spectrum in spectra]
    missing = [i for i, values in enumerate(known) if key not in values]
    if missing:
        for i, value in zip(missing, compute([spectra[i] for i in missing]), strict=True):
            known[i][key] = value
    return [values[key] for values in known]


@contextmanager
def share_blocks() -> Iterator[None]:
    """Keep blocks of kernels inside a ``with`` statement, for several kernels that have a part in common."""
    token = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(token)


def recall_block(A: Sequence[Spectrum], B: Sequence[Spectrum], key: Hashable, compute: Callable[[], Block]) -> Block:
    """Return a new array with the kernel values of all pairs; inside :func:`share_blocks` they are computed once."""
    blocks = _shared.get()
    if blocks is None:
        return compute()
    pairs = (key, tuple(A), tuple(B))
    if pairs not in blocks:
        blocks[pairs] = compute()
    return blocks[pairs].copy()
