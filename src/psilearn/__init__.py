"""psilearn: structured prediction with output kernels.

Regress the embedding ψ(y) of a structured output in a kernel space, then return the candidate whose embedding is
nearest. Importing the package loads nothing heavy: each public name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psilearn.decoding import CandidateSet, CandidateSets
    from psilearn.estimators import IOKR, KDE, OEL
    from psilearn.io import load_model, save_model
    from psilearn.landmarks import Landmarks
    from psilearn.model_selection import IOKRCV, KDECV, OELCV

__version__ = "0.1.0"
__all__ = [
    "IOKR",
    "IOKRCV",
    "KDE",
    "KDECV",
    "OEL",
    "OELCV",
    "CandidateSet",
    "CandidateSets",
    "Landmarks",
    "__version__",
    "load_model",
    "save_model",
]

_MODULE_OF = {
    "IOKR": "psilearn.estimators",
    "KDE": "psilearn.estimators",
    "OEL": "psilearn.estimators",
    "IOKRCV": "psilearn.model_selection",
    "KDECV": "psilearn.model_selection",
    "OELCV": "psilearn.model_selection",
    "CandidateSet": "psilearn.decoding",
    "CandidateSets": "psilearn.decoding",
    "Landmarks": "psilearn.landmarks",
    "load_model": "psilearn.io",
    "save_model": "psilearn.io",
}
_SUBPACKAGES = {
    "baselines",
    "chem",
    "conformal",
    "datasets",
    "decoding",
    "embedding",
    "estimators",
    "experiments",
    "io",
    "kernels",
    "landmarks",
    "memory",
    "metrics",
    "model_selection",
    "neural",
    "plotting",
    "rankings",
    "regression",
    "theory",
}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    if name in _SUBPACKAGES:
        return import_module(f"psilearn.{name}")
    raise AttributeError(f"module 'psilearn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBPACKAGES])
