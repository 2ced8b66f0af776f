"""A reader or loader to fuzz, and one attempt with it: a clear error, an accepted input, or a defect."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from psilearn_lab.fuzz.folders import mutate_folder
from psilearn_lab.fuzz.mutations import mutate_bytes
from psilearn_lab.fuzz.trees import Special, Tree

CLEAR, ACCEPTED, DEFECT = "clear error", "accepted", "defect"
SPECIAL_RATE = 0.005  # inputs in which a file is a pipe, a link or a folder


@dataclass(frozen=True)
class Target:
    """A reader or loader.

    ``write_seeds`` fills a folder with one folder per valid input. ``read`` is given the folder of an input, and
    ``use`` what it returned. ``is_folder`` says that the folder itself is what is loaded; else the reader opens its
    files.
    """

    name: str
    write_seeds: Callable[[Path], None]
    read: Callable[[Path], Any]
    use: Callable[[Any], object] | None = None
    is_folder: bool = False
    tokens: tuple[bytes, ...] = ()
    argument: str = ""  # the argument by which values of the file are named in messages
    prepare: Callable[[], object] | None = None  # called once in the child process

    def accepted_names(self, folder: Path, tree: Tree) -> tuple[str, ...]:
        """Return the names of which a clear error contains one."""
        names = (folder.name,) if self.is_folder else tuple(tree)
        return (*names, self.argument) if self.argument else names

    def mutate(self, seeds: list[Tree], rng: Random) -> Tree:
        """Return a damaged input."""
        tree = dict(rng.choice(seeds))
        if self.is_folder:
            return mutate_folder(tree, rng, seeds)
        name = rng.choice(sorted(tree))
        content = tree[name]
        if rng.random() < SPECIAL_RATE:
            tree[name] = rng.choice(list(Special))
        elif isinstance(content, bytes):
            tree[name] = mutate_bytes(content, rng, self.tokens)
        return tree


@dataclass(frozen=True)
class Result:
    """The result of one attempt; ``place`` is where in the code a defect was raised."""

    kind: str
    reason: str = ""
    place: str = ""


def attempt(target: Target, folder: Path, names: tuple[str, ...]) -> Result:
    """Read an input and use what was read.

    A clear error is a ValueError or an OSError whose message contains one of the names. What was read may be rejected
    with a ValueError or a TypeError when it is used.
    """
    try:
        value = target.read(folder)
    except (ValueError, OSError) as error:
        if any(name in str(error) for name in names):
            return Result(CLEAR)
        return _describe_defect("the message does not name the file", error)
    except Exception as error:
        return _describe_defect("undocumented exception", error)
    if target.use is not None:
        try:
            target.use(value)
        except (ValueError, TypeError):
            pass
        except Exception as error:
            return _describe_defect("undocumented exception in use", error)
    return Result(ACCEPTED)


def _describe_defect(what: str, error: Exception) -> Result:
    frames = traceback.extract_tb(error.__traceback__)
    place = next((frame for frame in reversed(frames) if "psilearn" in frame.filename), frames[-1])
    reason = f"{what}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return Result(DEFECT, reason, f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}")
