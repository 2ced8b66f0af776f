"""Functions for packages that build on psilearn: collections of inputs and outputs, validation, files, progress."""

from sklearn.utils import check_random_state

from psilearn._backend import MissingDependencyError, explain_missing
from psilearn._utils import validation
from psilearn._utils.estimators import declare_sparse_inputs_and_outputs, fitted_snapshot, publish, unfitted_copy
from psilearn._utils.files import (
    create_folder,
    draft_of,
    open_text_atomically,
    to_json_value,
    write_atomically,
)
from psilearn._utils.progress import observe_steps, show_progress, stage, track
from psilearn._utils.reading import (
    MAX_EXPANSION,
    convert_read_errors,
    decompressed_limit,
    raise_for_document_type,
    require_regular_file,
)
from psilearn._utils.samples import (
    Index,
    Samples,
    concat,
    distinct,
    match,
    n_columns,
    n_samples,
    take,
)
from psilearn._utils.validation import RandomStateLike
from psilearn._utils.worker_processes import each_thread, n_threads, run_parallel
from psilearn.rankings import check_ranks

__all__ = [
    "MAX_EXPANSION",
    "Index",
    "MissingDependencyError",
    "RandomStateLike",
    "Samples",
    "check_ranks",
    "concat",
    "convert_read_errors",
    "create_folder",
    "declare_sparse_inputs_and_outputs",
    "decompressed_limit",
    "distinct",
    "draft_of",
    "each_thread",
    "explain_missing",
    "fitted_snapshot",
    "hold_out",
    "match",
    "n_columns",
    "n_samples",
    "n_threads",
    "observe_steps",
    "open_text_atomically",
    "publish",
    "raise_for_document_type",
    "require_regular_file",
    "run_parallel",
    "show_progress",
    "stage",
    "take",
    "to_json_value",
    "track",
    "unfitted_copy",
    "validation",
    "write_atomically",
]


def hold_out(n: int, fraction: float, random_state: RandomStateLike) -> tuple[Index, Index]:
    """Return the indices of a random partition of n examples: for training and for validation, at least one each.

    The validation part has the size n·fraction, rounded.
    """
    if n < 2:
        raise ValueError(f"Validation needs at least 2 examples to learn from; X has {n} sample.")
    size = min(n - 1, max(1, round(n * fraction)))
    order = check_random_state(random_state).permutation(n)
    return order[size:], order[:size]
