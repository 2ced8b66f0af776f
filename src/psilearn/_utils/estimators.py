"""The state and the tags of estimators.

Threads see fitted attributes together: a fit replaces all of them at once, and a prediction reads a snapshot.

A fit works on a copy of the estimator and, when everything has succeeded, publishes its attributes by one assignment.
A method of a fitted model takes a snapshot first. So a model can be fitted again while other threads predict: each
answer is that of the model before or after, and an error in a fit changes nothing.
"""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

from sklearn.utils.validation import check_is_fitted

Estimator = TypeVar("Estimator", bound=Any)


def fitted_snapshot(model: Estimator, attribute: str | None = None) -> Estimator:
    """Return a shallow copy that a later fit does not change; raise NotFittedError if the model is not fitted."""
    snapshot = copy(model)
    check_is_fitted(snapshot, attribute)
    return snapshot


def unfitted_copy(model: Estimator) -> Estimator:
    """Return a shallow copy with the same parameters and without fitted attributes."""
    learner = copy(model)
    for name in [name for name in vars(learner) if name.endswith("_") and not name.startswith("_")]:
        delattr(learner, name)
    return learner


def publish(model: Estimator, fitted: Estimator) -> Estimator:
    """Replace all attributes of a model by those of a fitted copy, which must not be used afterwards."""
    model.__dict__ = fitted.__dict__
    return model


def declare_sparse_inputs_and_outputs(tags: Any) -> Any:
    """Return the tags with sparse inputs, and required outputs of several columns."""
    tags.input_tags.sparse = True
    tags.target_tags.required = True
    tags.target_tags.multi_output = True
    return tags
