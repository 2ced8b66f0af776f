"""Files under attack: targets, their damaged and crafted inputs, and attempts with limits on time and memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

from psilearn_lab.fuzz.crafted import craft_files
from psilearn_lab.fuzz.harness import (
    ACCEPTED,
    CLEAR,
    DEFECT,
    Attempt,
    Result,
    Tally,
    defect_of,
    reset_peak,
    resident_bytes,
    run_attempts,
)
from psilearn_lab.fuzz.mutations import mutate_bytes

EXTRA_BYTES, EXTRA_SECONDS = 64 << 20, 1.0  # that any input may take
INPUT_FOLDER = "fuzzed-input"  # its name must not occur in messages by chance
SPECIAL_RATE = 0.005  # inputs in which a file is a pipe, a link or a folder


class Special(Enum):
    """What stands at the place of a file."""

    PIPE = "a pipe that nobody writes to"
    FOLDER = "an empty folder"
    BROKEN_LINK = "a link to a missing file"
    LINK = "a link to a file outside of the folder"


Tree = dict[str, bytes | Special]


@dataclass(frozen=True)
class Target:
    """A reader, valid inputs, and the limits that hold for any other input.

    ``seeds`` are folders of files; ``read`` is given the folder of an input, and ``use`` what it returned. An error is
    clear if it has one of the types in ``errors`` and names a file, or the folder if ``is_folder``, or ``argument``.
    """

    name: str
    seeds: Callable[[], Iterable[Tree]]
    read: Callable[[Path], Any]
    use: Callable[[Any], object] | None = None
    is_folder: bool = False
    tokens: tuple[bytes, ...] = ()
    argument: str = ""
    errors: tuple[type[Exception], ...] = (ValueError, OSError)
    memory: float = 4.0  # peak bytes per byte of the input
    time: float = 1e-5  # CPU seconds per byte of the input
    mutate: Callable[[Tree, Random, list[Tree]], Tree] | None = None  # of formats with checksums
    craft: Callable[[list[Tree], int], Iterable[Tree]] | None = None
    prepare: Callable[[], object] | None = None

    def change(self, seeds: list[Tree], rng: Random) -> Tree:
        """Return a damaged input."""
        tree = dict(rng.choice(seeds))
        name = rng.choice(sorted(tree))
        content = tree[name]
        if rng.random() < SPECIAL_RATE:
            tree[name] = rng.choice(list(Special))
        elif self.mutate is not None:
            return self.mutate(tree, rng, seeds)
        elif isinstance(content, bytes):
            tree[name] = mutate_bytes(content, rng, self.tokens)
        return tree

    def craft_inputs(self, seeds: list[Tree], size: int) -> Iterator[Tree]:
        """Yield inputs up to a size that try to cost more than their bytes."""
        if self.craft is not None:
            yield from self.craft(seeds, size)
            return
        for name, content in seeds[0].items():
            if isinstance(content, bytes):
                for crafted in craft_files(Path(name).suffix, content, self.tokens, size):
                    yield {**seeds[0], name: crafted}


class FileAttack:
    """The numbered inputs of a target, crafted ones first; each is determined by the random seed and its number."""

    def __init__(self, target: Target, seed: int, size: int, stored: Tree | None = None) -> None:
        self.target, self.seed, self.size, self.stored = target, seed, size, stored

    def __call__(self, folder: Path) -> Attempt:
        """Prepare the attempts of a child process; see :func:`run_attempts`."""
        if self.target.prepare is not None:
            self.target.prepare()
        place = folder / INPUT_FOLDER
        for i, seed in enumerate(self.seeds * 2):  # twice, because imports and caches do not belong to an input
            result = self._try(place, seed)
            if result.kind != ACCEPTED and i >= len(self.seeds):
                raise RuntimeError(f"seed {i % len(self.seeds)} of {self.target.name}: {result}")
        return lambda index: self._try(place, self[index])

    def __getitem__(self, index: int) -> Tree:
        if self.stored is not None:
            return self.stored
        if index < len(self.crafted):
            return self.crafted[index]
        return self.target.change(self.seeds, Random(f"{self.seed}:{self.target.name}:{index}"))

    @cached_property
    def seeds(self) -> list[Tree]:
        """The valid inputs."""
        return list(self.target.seeds())

    @cached_property
    def crafted(self) -> list[Tree]:
        """The crafted inputs."""
        return list(self.target.craft_inputs(self.seeds, self.size))

    def _try(self, folder: Path, tree: Tree) -> Result:
        """Read an input; a defect if it takes too much memory or time for its bytes."""
        target, n_bytes = self.target, sum(len(content) for content in tree.values() if isinstance(content, bytes))
        write_tree(folder, tree)
        reset_peak()
        before, start = resident_bytes(peak=True), process_time()
        result = attempt(target, folder, tree)
        grown, seconds = resident_bytes(peak=True) - before, process_time() - start
        if grown > target.memory * n_bytes + EXTRA_BYTES:
            return Result(DEFECT, f"memory: {grown:,} bytes for an input of {n_bytes:,} bytes", "memory")
        if seconds > target.time * n_bytes + EXTRA_SECONDS:
            return Result(DEFECT, f"time: {seconds:.1f} CPU seconds for an input of {n_bytes:,} bytes", "time")
        return result


def attempt(target: Target, folder: Path, tree: Tree) -> Result:
    """Read an input and use what was read, which may be rejected with a ValueError or a TypeError."""
    names = ((folder.name,) if target.is_folder or not tree else tuple(tree)) + (
        (target.argument,) if target.argument else ()
    )
    try:
        value = target.read(folder)
    except target.errors as error:
        if any(name in str(error) for name in names):
            return Result(CLEAR)
        return defect_of("the message does not name the file", error)
    except Exception as error:
        return defect_of("undocumented exception", error)
    try:
        if target.use is not None:
            target.use(value)
    except (ValueError, TypeError):
        pass
    except Exception as error:
        return defect_of("undocumented exception in use", error)
    return Result(ACCEPTED)


def attack(
    target: Target,
    seed: int = 0,
    *,
    runs: int = 10**12,
    seconds: float = float("inf"),
    first: int = 0,
    size: int = 1 << 20,
    failures: Path | None = None,
    stored: Tree | None = None,
    time_limit: float = 60.0,
) -> Tally:
    """Attack a target in child processes; inputs of new defects are stored in a folder."""
    tally, inputs = Tally(target.name, seed), FileAttack(target, seed, size, stored)

    def store(index: int) -> str:
        path = (failures or Path(tempfile.mkdtemp(prefix="psilearn-fuzz-failures-"))) / f"{target.name}-{seed}-{index}"
        write_tree(path, inputs[index])
        return f"input {index}: {path}"

    attempts = run_attempts(inputs, runs, first=first, seconds=seconds, time_limit=time_limit)
    for index, result in attempts:
        tally.add(result, lambda index=index: store(index))  # type: ignore[misc]
    return tally


def write_tree(folder: Path, tree: Tree) -> None:
    """Make a folder that contains exactly the files of a tree; the file that links lead to is next to the folder."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for name, content in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content is Special.PIPE:
            os.mkfifo(path)
        elif content is Special.FOLDER:
            path.mkdir()
        elif content is Special.BROKEN_LINK:
            path.symlink_to("missing")
        else:
            folder.with_name("linked").write_bytes(b"a file outside of the folder\n")
            path.symlink_to(folder.with_name("linked"))


def read_tree(folder: Path) -> Tree:
    """Return the files of a folder and of its subfolders, by their names relative to the folder."""
    tree: Tree = {}
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            tree[path.name] = Special.LINK if path.exists() else Special.BROKEN_LINK
        elif path.is_fifo():
            tree[path.name] = Special.PIPE
        elif not path.is_dir():
            tree[path.name] = path.read_bytes()
        elif any(path.iterdir()):
            tree.update({f"{path.name}/{name}": content for name, content in read_tree(path).items()})
        else:
            tree[path.name] = Special.FOLDER
    return tree


def written(write: Callable[[Path], object], name: str | None = None) -> Tree:
    """Return what a function writes: a file of a name, or the files of a folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name or "content")
        write(path)
        return read_tree(path if name is None and path.is_dir() else Path(folder))
