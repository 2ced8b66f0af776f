"""Values of single spectra that kernels need again and again, kept as long as the spectrum is in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from psilearn.chem.spectra.spectrum import Spectrum

_values: WeakKeyDictionary[Spectrum, dict[Hashable, Any]] = WeakKeyDictionary()


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
