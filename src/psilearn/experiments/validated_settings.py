"""Validation errors of a baseline for all settings of a block, in the form that the widening of grids takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from psilearn._utils.samples import Samples
from psilearn.baselines import Baseline
from psilearn.experiments.widening import Axis, Block, Scores

MakeBaseline = Callable[[Mapping[str, Any]], Baseline]


def validate_block(
    make: MakeBaseline,
    axes: Sequence[Axis],
    block: Block,
    option: Mapping[str, Any],
    X: Samples,
    Y: Samples,
    log: Callable[[str], None],
) -> Scores:
    """Return minus the error on the held-out rows of all settings of a block.

    ``make`` returns a baseline with given parameters. The values of the parameter that it chooses itself are passed to
    it as a list; if that parameter has no axis, the smallest error counts.
    """
    names = [axis.name for axis in axes]
    tuned = [axis for axis in axes if axis.name == make({}).tuned_parameter]
    others = [axis for axis in axes if axis not in tuned]
    scores: Scores = {}
    for positions in product(*(block[axis.name] for axis in others)):
        found = {axis.name: position for axis, position in zip(others, positions, strict=True)}
        values = {axis.name: axis.value(found[axis.name]) for axis in others}
        log(", ".join(f"{name} = {value}" for name, value in {**option, **values}.items()))
        listed = {axis.name: [axis.value(position) for position in block[axis.name]] for axis in tuned}
        errors = make({**option, **values, **listed}).validate(X, Y)
        if not tuned:
            scores[tuple(found[name] for name in names)] = -float(min(errors))
            continue
        for position, error in zip(block[tuned[0].name], errors, strict=True):
            setting = {**found, tuned[0].name: position}
            scores[tuple(setting[name] for name in names)] = -float(error)
    return scores
