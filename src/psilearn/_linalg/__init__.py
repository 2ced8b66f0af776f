"""Linear algebra on NumPy arrays and torch tensors, without kernels and estimators.

The library solves three problems: a shifted positive definite system (ridge regression), a rank-revealing factorization
of a Gram matrix (coordinates), and the leading eigenvectors of a second moment (the learned embedding). LAPACK is used
for arrays, torch for tensors.
"""

from psilearn._linalg.array_ops import (
    Array,
    add_to_diagonal,
    argsmallest,
    clip_above,
    clip_negative,
    nonzero_pairs,
    row_products,
)
from psilearn._linalg.block_krylov import MAX_DEPTH, block_krylov_eigh
from psilearn._linalg.cholesky import (
    INDEFINITE,
    SINGLE,
    NotPositiveSemidefiniteError,
    PivotedCholesky,
    ShiftedCholesky,
    SpanningCholesky,
    pivoted_cholesky,
    shifted_factor,
    solve_both,
    solve_lower,
    solve_transposed,
    spanning_cholesky,
)
from psilearn._linalg.eigen import FULL_SOLVER_ORDER, dense_top_eigh, eigh, is_iterated, top_eigh
from psilearn._linalg.mixed_gram import MixedGram
from psilearn._linalg.moments import GramSum, Moment, Subspace, mixed_moment, mixing_weights
from psilearn._linalg.split_products import (
    HALF_ERROR,
    SPLIT_ERROR,
    SPLIT_UNDERFLOW,
    HalfMatrix,
    Offsets,
    SplitMatrix,
    block_copies,
    has_half_units,
    is_split_faster,
    matmul,
    multiply_halves,
    row_inner_products,
    squared_column_norms,
)
from psilearn._linalg.split_triangle import SplitTriangle

__all__ = [
    "FULL_SOLVER_ORDER",
    "HALF_ERROR",
    "INDEFINITE",
    "MAX_DEPTH",
    "SINGLE",
    "SPLIT_ERROR",
    "SPLIT_UNDERFLOW",
    "Array",
    "GramSum",
    "HalfMatrix",
    "MixedGram",
    "Moment",
    "NotPositiveSemidefiniteError",
    "Offsets",
    "PivotedCholesky",
    "ShiftedCholesky",
    "SpanningCholesky",
    "SplitMatrix",
    "SplitTriangle",
    "Subspace",
    "add_to_diagonal",
    "argsmallest",
    "block_copies",
    "block_krylov_eigh",
    "clip_above",
    "clip_negative",
    "dense_top_eigh",
    "eigh",
    "has_half_units",
    "is_iterated",
    "is_split_faster",
    "matmul",
    "mixed_moment",
    "mixing_weights",
    "multiply_halves",
    "nonzero_pairs",
    "pivoted_cholesky",
    "row_inner_products",
    "row_products",
    "shifted_factor",
    "solve_both",
    "solve_lower",
    "solve_transposed",
    "spanning_cholesky",
    "squared_column_norms",
    "top_eigh",
]
