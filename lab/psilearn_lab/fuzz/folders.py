"""Random changes of a manifest folder, with or without a manifest that fits the changed files."""

from __future__ import annotations

from random import Random

from psilearn._utils.folder_writer import MANIFEST

from psilearn_lab.fuzz.mutations import mutate_bytes
from psilearn_lab.fuzz.reseal import reseal
from psilearn_lab.fuzz.structures import mutate_array, mutate_json
from psilearn_lab.fuzz.trees import Special, Tree

RESEALED_RATE = 0.7  # inputs whose sizes and checksums fit, so that the checks behind them are reached


def mutate_folder(tree: Tree, rng: Random, seeds: list[Tree]) -> Tree:
    """Return a folder in which files are changed, exchanged, missing, or no files."""
    if rng.random() < RESEALED_RATE:
        for _ in range(rng.choice((1, 1, 2))):
            _change_structure(tree, rng, seeds)
        return reseal(tree)
    name = rng.choice(sorted(tree))
    action, content = rng.randrange(12), tree[name]
    if action == 0:
        del tree[name]
    elif action == 1:
        other = rng.choice(sorted(tree))
        tree[name], tree[other] = tree[other], tree[name]
    elif action == 2:
        tree[name] = rng.choice(list(Special))
    elif action == 4 and "/" in name:  # the subfolder of the files
        folder = name.rpartition("/")[0]
        return {folder: rng.choice(list(Special)), **{k: v for k, v in tree.items() if not k.startswith(f"{folder}/")}}
    elif isinstance(content, bytes):
        tree[name] = content[: rng.randrange(len(content) + 1)] if action == 3 else mutate_bytes(content, rng)
    return tree


def _change_structure(tree: Tree, rng: Random, seeds: list[Tree]) -> None:
    """Change a file so that it stays readable, or exchange it for a similar one."""
    name = MANIFEST if rng.random() < 0.5 else rng.choice(sorted(tree))
    content = tree[name]
    if not isinstance(content, bytes):
        return
    similar = [other for seed in seeds for other in seed if other.rpartition(".")[2] == name.rpartition(".")[2]]
    action = rng.random()
    if action < 0.1:
        tree[name] = rng.choice(seeds).get(rng.choice(similar), content)
    elif action < 0.2 and name != MANIFEST:
        tree[name] = mutate_bytes(content, rng)
    elif name.endswith(".npy"):
        tree[name] = mutate_array(content, rng)
    elif name.endswith(".json"):
        tree[name] = mutate_json(content, rng)
    else:
        tree[name] = mutate_bytes(content, rng)
