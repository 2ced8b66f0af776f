"""The systems that the paper compares with, and the first choices of a practitioner, with one interface.

``fit(X, y)``, ``predict(X, candidates=None)``, ``predict_soft``, ``predict_topk``, ``truth_positions``, ``costs`` and
``score`` for outputs that are vectors: label sets as 0/1 rows, or numbers. If every training row has at least one
label, so has every prediction. Networks need torch (``pip install psilearn[torch]``) and import it when they are
fitted.
"""

from psilearn.baselines.baseline import Baseline
from psilearn.baselines.chains import ECC
from psilearn.baselines.dvn import DVN
from psilearn.baselines.expected_f1 import maximize_expected_f1
from psilearn.baselines.gfm import GFM
from psilearn.baselines.least_squares import KRR, RRR
from psilearn.baselines.logistic import LR
from psilearn.baselines.low_rank import PRLR
from psilearn.baselines.neighbours import KNN
from psilearn.baselines.networks import NN
from psilearn.baselines.partial_least_squares import PLS
from psilearn.baselines.spen import SPEN
from psilearn.baselines.thresholds import apply_threshold, best_label_thresholds, best_threshold

__all__ = [
    "DVN",
    "ECC",
    "GFM",
    "KNN",
    "KRR",
    "LR",
    "NN",
    "PLS",
    "PRLR",
    "RRR",
    "SPEN",
    "Baseline",
    "apply_threshold",
    "best_label_thresholds",
    "best_threshold",
    "maximize_expected_f1",
]
