"""Choosing λ, p, c and the kernels by validation, along paths: OELCV, KDECV and IOKRCV.

One eigendecomposition of K_x serves every λ (or a Cholesky factor each, where that is sooner), one set of eigenvectors
every p, and c changes only weights in a problem that is nearly solved already.
"""

from psilearn.model_selection.searches import IOKRCV, KDECV, OELCV

__all__ = ["IOKRCV", "KDECV", "OELCV"]
