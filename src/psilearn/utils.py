"""Functions for packages that build on psilearn: collections of inputs and outputs, validation, files, progress."""

from psilearn._utils import validation
from psilearn._utils.csr_parts import make_csr
from psilearn._utils.estimator_tags import declare_sparse_inputs_and_outputs
from psilearn._utils.files import (
    OutputFile,
    create_folder,
    draft_of,
    open_text_atomically,
    sync_file,
    to_json_value,
    write_atomically,
)
from psilearn._utils.fitted_state import fitted_snapshot, publish, unfitted_copy
from psilearn._utils.holdout import ErrorMetric, Pairs, hold_out
from psilearn._utils.missing_packages import MissingDependencyError, explain_missing
from psilearn._utils.progress import observe_steps, show_progress, stage, track
from psilearn._utils.rank_checks import check_ranks
from psilearn._utils.reading import (
    MAX_EXPANSION,
    convert_read_errors,
    decompressed_limit,
    raise_for_document_type,
    read_array,
    read_npz,
    require_regular_file,
)
from psilearn._utils.samples import Index, Samples, concat, describe_shape, distinct, match, n_columns, n_samples, take
from psilearn._utils.validation import RandomStateLike
from psilearn._utils.worker_processes import run_parallel

__all__ = [
    "MAX_EXPANSION",
    "ErrorMetric",
    "Index",
    "MissingDependencyError",
    "OutputFile",
    "Pairs",
    "RandomStateLike",
    "Samples",
    "check_ranks",
    "concat",
    "convert_read_errors",
    "create_folder",
    "declare_sparse_inputs_and_outputs",
    "decompressed_limit",
    "describe_shape",
    "distinct",
    "draft_of",
    "explain_missing",
    "fitted_snapshot",
    "hold_out",
    "make_csr",
    "match",
    "n_columns",
    "n_samples",
    "observe_steps",
    "open_text_atomically",
    "publish",
    "raise_for_document_type",
    "read_array",
    "read_npz",
    "require_regular_file",
    "run_parallel",
    "show_progress",
    "stage",
    "sync_file",
    "take",
    "to_json_value",
    "track",
    "unfitted_copy",
    "validation",
    "write_atomically",
]
