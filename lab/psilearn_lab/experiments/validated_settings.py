"""Validation errors of a baseline for all settings of a block, in the form that the widening of grids takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from psilearn.utils import Samples
from psilearn_lab.baselines import Baseline
from psilearn_lab.experiments.widening import Axis, Block, Scores, Setting, values_of

MakeBaseline = Callable[[Mapping[str, Any]], Baseline]


def validate_block(
    make: MakeBaseline,
    axes: Sequence[Axis],
    block: Block,
    known: Scores,
    option: Mapping[str, Any],
    X: Samples,
    Y: Samples,
    log: Callable[[str], None],
) -> Scores:
    """Return minus the error on the held-out rows of all settings of a block, without those whose score is known.

    ``make`` returns a baseline with given parameters. The values of the parameter that it chooses itself are passed to
    it as a list; if that parameter has no axis, the smallest error counts.
    """
    tuned = make({}).tuned_parameter
    scores: Scores = {}
    for settings in _group_settings(axes, block, known, tuned):
        values = values_of(axes, settings[0])
        described = {**option, **{name: value for name, value in values.items() if name != tuned}}
        log(", ".join(f"{name} = {value}" for name, value in described.items()))
        listed = {tuned: [values_of(axes, setting)[tuned] for setting in settings]} if tuned in values else {}
        errors = make({**option, **values, **listed}).validate(X, Y)
        found = errors if listed else errors.min(keepdims=True)
        scores.update({setting: -float(error) for setting, error in zip(settings, found, strict=True)})
    return scores


def _group_settings(axes: Sequence[Axis], block: Block, known: Scores, tuned: str) -> list[list[Setting]]:
    """Return the settings of a block that are not known, in groups that differ in the tuned parameter only."""
    groups: dict[Setting, list[Setting]] = {}
    for setting in product(*(block[axis.name] for axis in axes)):
        others = tuple(p for axis, p in zip(axes, setting, strict=True) if axis.name != tuned)
        if setting not in known:
            groups.setdefault(others, []).append(setting)
    return list(groups.values())
