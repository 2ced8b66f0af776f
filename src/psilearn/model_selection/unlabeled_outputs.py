"""Unlabeled outputs of a search, which every split reads."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

from psilearn._utils.samples import Samples
from psilearn.embedding import OutputStream
from psilearn.kernels import Kernel


@dataclass(frozen=True)
class UnlabeledOutputs:
    """Unlabeled outputs that can be read any number of times, once per split and for the final fit."""

    source: Any  # a collection or a path
    in_memory: Samples | None  # those that are default candidates
    is_iterator: bool  # whether the user gave an iterator, whose outputs are not default candidates

    @classmethod
    def of(cls, stream: OutputStream | None, source: Any, stores_all: bool) -> UnlabeledOutputs | None:
        """Read an iterator into memory; with ``stores_all`` every output becomes a default candidate."""
        if stream is None:
            return None
        is_iterator = not (isinstance(source, str | PathLike) or hasattr(source, "shape") or hasattr(source, "__len__"))
        if not is_iterator and not stores_all:
            return cls(source, stream.in_memory, is_iterator)
        outputs = stream.collect()
        if outputs is None:
            return None
        return cls(outputs if is_iterator else source, outputs if stores_all else stream.in_memory, is_iterator)

    def for_fit(self) -> Any:
        """Return the outputs in the form that the user gave."""
        return iter([self.source]) if self.is_iterator else self.source

    def stream(self, kernel: Kernel, Y: Samples) -> OutputStream:
        """Return a new stream of the outputs, as a fit on the labeled outputs Y reads them."""
        return OutputStream(self.for_fit(), kernel, Y)
