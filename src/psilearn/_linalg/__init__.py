"""Plain linear algebra, in NumPy and on tensors: no kernel, no estimator, no data.

Three problems carry the library: a shifted positive definite system (ridge), a rank-revealing factor of a Gram matrix
(coordinates) and the leading eigenvectors of a second-moment matrix (the learned embedding). Each is solved where the
matrix is: by LAPACK for arrays, by torch for tensors.
"""

from psilearn._linalg.array_ops import (
    Array,
    add_product,
    add_to_diagonal,
    at_most,
    least,
    non_negative,
    row_products,
    squared_norm,
    where_true,
)
from psilearn._linalg.cholesky import (
    INDEFINITE,
    SINGLE,
    NotPositiveSemidefiniteError,
    PivotedCholesky,
    ShiftedCholesky,
    SpanningCholesky,
    pivoted_cholesky,
    shifted_factor,
    solve_lower,
    solve_transposed,
    spanning_cholesky,
)
from psilearn._linalg.eigen import DENSE_LIMIT, block_krylov_eigh, dense_top_eigh, eigh, top_eigh

__all__ = [
    "DENSE_LIMIT",
    "INDEFINITE",
    "SINGLE",
    "Array",
    "NotPositiveSemidefiniteError",
    "PivotedCholesky",
    "ShiftedCholesky",
    "SpanningCholesky",
    "add_product",
    "add_to_diagonal",
    "at_most",
    "block_krylov_eigh",
    "dense_top_eigh",
    "eigh",
    "least",
    "non_negative",
    "pivoted_cholesky",
    "row_products",
    "shifted_factor",
    "solve_lower",
    "solve_transposed",
    "spanning_cholesky",
    "squared_norm",
    "top_eigh",
    "where_true",
]
