"""Fuzzing by atheris, which looks for inputs that reach new code; it is optional (pip install atheris)."""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from random import Random

from psilearn_lab.fuzz.folders import mutate_folder
from psilearn_lab.fuzz.target import DEFECT, Target, attempt
from psilearn_lab.fuzz.trees import Tree, write_tree
from psilearn_lab.fuzz.worker import INPUT_FOLDER, read_seeds


def run_atheris(target: Target, random_seed: int) -> int:
    """Run a target in this process until a defect is found, or atheris is stopped."""
    try:
        atheris = importlib.import_module("atheris")
    except ImportError:
        print("atheris is not installed: run without --atheris, or pip install atheris.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="psilearn-fuzz-") as work:
        (Path(work) / "seeds").mkdir()
        target.write_seeds(Path(work) / "seeds")
        seeds = read_seeds(Path(work) / "seeds")

        def test_one_input(data: bytes) -> None:
            tree = make_tree(target, seeds, data)
            write_tree(Path(work) / INPUT_FOLDER, tree)
            folder = Path(work) / INPUT_FOLDER
            result = attempt(target, folder, target.accepted_names(folder, tree))
            if result.kind == DEFECT:
                raise AssertionError(result.reason)

        corpus = Path(work) / "corpus"
        corpus.mkdir()
        for i, seed in enumerate(seeds):
            content = seed[sorted(seed)[0]]
            (corpus / str(i)).write_bytes(content if isinstance(content, bytes) else b"")
        atheris.instrument_all()
        atheris.Setup([sys.argv[0], f"-seed={random_seed + 1}", str(corpus)], test_one_input)
        atheris.Fuzz()
    return 0


def make_tree(target: Target, seeds: list[Tree], data: bytes) -> Tree:
    """Return an input: the bytes are the first file of a reader, or the source of random changes of a folder."""
    if target.is_folder:
        return mutate_folder(dict(seeds[0]), Random(data), seeds)
    return {**seeds[0], sorted(seeds[0])[0]: data}
