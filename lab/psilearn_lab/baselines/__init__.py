"""The systems that the paper compares with, and the first choices of a practitioner, with one interface.

``fit(X, y)``, ``predict(X, candidates=None)``, ``predict_soft``, ``predict_topk``, ``truth_positions``, ``costs`` and
``score`` for outputs that are vectors: label sets as 0/1 rows, or numbers. If every training row has at least one
label, so has every prediction. Networks need torch (``pip install psilearn[torch]``) and import it when they are
fitted.
"""

from psilearn_lab.baselines.baseline import Baseline
from psilearn_lab.baselines.chains import ECC
from psilearn_lab.baselines.dvn import DVN
from psilearn_lab.baselines.expected_f1 import maximize_expected_f1
from psilearn_lab.baselines.gfm import GFM
from psilearn_lab.baselines.least_squares import KRR, RRR
from psilearn_lab.baselines.logistic import LR
from psilearn_lab.baselines.low_rank import PRLR
from psilearn_lab.baselines.neighbours import KNN
from psilearn_lab.baselines.networks import NN
from psilearn_lab.baselines.partial_least_squares import PLS
from psilearn_lab.baselines.spen import SPEN
from psilearn_lab.baselines.thresholds import apply_threshold, best_label_thresholds, best_threshold

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
