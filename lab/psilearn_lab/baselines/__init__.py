"""The systems that the paper compares with, and the first choices of a practitioner, with one interface.

``fit(X, y)``, ``predict(X, candidates=None)``, ``predict_soft``, ``predict_topk``, ``truth_positions``, ``costs`` and
``score`` for outputs that are vectors: label sets as 0/1 rows, or numbers. If every training row has at least one
label, so has every prediction. torch is imported when a network is used.
"""

from typing import TYPE_CHECKING, Any

from psilearn_lab.baselines.baseline import Baseline
from psilearn_lab.baselines.chains import ECC
from psilearn_lab.baselines.gfm import GFM, maximize_expected_f1
from psilearn_lab.baselines.logistic import LR
from psilearn_lab.baselines.low_rank import PRLR
from psilearn_lab.baselines.regressions import KNN, KRR, PLS, RRR
from psilearn_lab.baselines.thresholds import apply_threshold, best_label_thresholds, best_threshold

if TYPE_CHECKING:
    from psilearn_lab.baselines.networks import DVN, NN, SPEN

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


def __getattr__(name: str) -> Any:
    """Import a network when it is used."""
    if name in ("DVN", "NN", "SPEN"):
        from psilearn_lab.baselines import networks

        return getattr(networks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
