"""The systems that the paper compares with, and what a practitioner would try first, behind one face.

``fit(X, y)``, ``predict(X, candidates=None)``, ``predict_soft``, ``predict_topk``, ``rank`` and ``score`` for outputs
that are vectors: labels as 0/1 rows, or numbers. Those that are networks need torch (``pip install psilearn[torch]``)
and import it when they are fitted.
"""

from psilearn.baselines.baseline import Baseline
from psilearn.baselines.dvn import DVN
from psilearn.baselines.least_squares import KRR, PLS, RRR
from psilearn.baselines.logistic import LR
from psilearn.baselines.low_rank import PRLR
from psilearn.baselines.neighbours import KNN
from psilearn.baselines.networks import NN
from psilearn.baselines.spen import SPEN
from psilearn.baselines.thresholds import best_threshold

__all__ = ["DVN", "KNN", "KRR", "LR", "NN", "PLS", "PRLR", "RRR", "SPEN", "Baseline", "best_threshold"]
