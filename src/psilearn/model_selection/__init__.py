"""Choice of λ, p, c and the kernels by validation, along paths: OELCV, KDECV and IOKRCV.

One eigendecomposition of K_x serves every λ (or one Cholesky factor per λ, if that is faster), one set of eigenvectors
every p, and c only changes weights in a problem that is nearly solved already.
"""

from psilearn.model_selection.choice import Choice
from psilearn.model_selection.iokrcv import IOKRCV
from psilearn.model_selection.kdecv import KDECV
from psilearn.model_selection.oelcv import OELCV

__all__ = ["IOKRCV", "KDECV", "OELCV", "Choice"]
