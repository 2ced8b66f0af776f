"""The tags by which estimators tell scikit-learn what they take."""

from __future__ import annotations

from typing import Any


def declare_sparse_inputs_and_outputs(tags: Any) -> Any:
    """Return the tags with sparse inputs, and required outputs of several columns."""
    tags.input_tags.sparse = True
    tags.target_tags.required = True
    tags.target_tags.multi_output = True
    return tags
