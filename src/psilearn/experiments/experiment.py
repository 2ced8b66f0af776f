"""What an experiment is: parts, each with its sizes and grids as plain data and one function that runs it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from psilearn.experiments.record import Row

Say = Callable[[str], None]


@dataclass(frozen=True)
class Context:
    """What a part is given to run with."""

    config: Mapping[str, Any]  # sizes and grids
    seed: int
    jobs: int | None
    say: Say  # what is being done
    scratch: Path | None = None  # where finished steps of an unfinished part are kept

    @property
    def draws(self) -> bool:
        """Whether pictures can be drawn: matplotlib is an extra."""
        return find_spec("matplotlib") is not None

    def remember(self, name: str, compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Return named arrays: those that an interrupted run of this part left behind, else computed now and kept."""
        place = None if self.scratch is None else self.scratch / f"{name}.npz"
        if place is not None and place.is_file():
            try:
                with np.load(place, allow_pickle=False) as arrays:
                    return {key: arrays[key] for key in arrays.files}
            except (OSError, ValueError, EOFError, BadZipFile):
                self.say(f"{name} is damaged and computed anew")
        made: dict[str, Any] = {key: np.asarray(value) for key, value in compute().items()}
        if place is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            draft = place.with_suffix(".unfinished.npz")
            np.savez_compressed(draft, **made)
            draft.replace(place)
        return made


@dataclass
class Outcome:
    """What a part returns: rows, remarks, and matplotlib figures by name with a caption."""

    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    figures: dict[str, tuple[Any, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """One unit of work that is finished or not: usually one dataset.

    ``config`` must be plain data (numbers, strings, lists, dicts): it is kept with the result, and a part whose config
    changed is computed anew. ``quick`` replaces some of it where a shorter run is wanted: mostly a ``trial``, on too
    little data to be judged.
    """

    name: str
    title: str
    run: Callable[[Context], Outcome]
    config: Mapping[str, Any]
    quick: Mapping[str, Any]
    trial: bool = True

    def __post_init__(self) -> None:
        _check_name(self.name, "part")


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper."""

    name: str
    title: str
    source: str  # which table or figure
    protocol: str  # how the figures are obtained
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        _check_name(self.name, "whole experiment")
        names = [part.name for part in self.parts]
        if len(set(names)) < len(names):
            raise ValueError(f"The parts of {self.name} must have different names; got {', '.join(names)}.")


def _check_name(name: str, what: str) -> None:
    """A name is also that of a file or folder."""
    if not re.fullmatch(r"[\w-]+", name):
        raise ValueError(f"The name of a {what} must consist of letters, digits, _ and -; got {name!r}.")
