"""psilearn: structured prediction with output kernels.

Regress the embedding ψ(y) of a structured output in a kernel space, then return the candidate whose embedding is
nearest. The estimators are :class:`IOKR`, :class:`KDE` and :class:`OEL`; :class:`IOKRCV`, :class:`KDECV` and
:class:`OELCV` choose their hyper-parameters by cross-validation.

``import psilearn`` is enough to reach every public name, for example ``psilearn.kernels.Gaussian``. Each name and
subpackage is imported when it is first used, so importing the package itself loads neither NumPy nor scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psilearn import (
        conformal,
        decoding,
        embedding,
        estimators,
        io,
        kernels,
        landmarks,
        memory,
        metrics,
        model_selection,
        plotting,
        rankings,
        regression,
        theory,
        utils,
    )
    from psilearn._backend import computing
    from psilearn.decoding import Candidates, PerExampleCandidates, SharedCandidates
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
    "Candidates",
    "Landmarks",
    "PerExampleCandidates",
    "SharedCandidates",
    "__version__",
    "computing",
    "conformal",
    "decoding",
    "embedding",
    "estimators",
    "io",
    "kernels",
    "landmarks",
    "load_model",
    "memory",
    "metrics",
    "model_selection",
    "plotting",
    "rankings",
    "regression",
    "save_model",
    "theory",
    "utils",
]

_NAMES_BY_MODULE = {
    "psilearn._backend": ("computing",),
    "psilearn.decoding": ("Candidates", "PerExampleCandidates", "SharedCandidates"),
    "psilearn.estimators": ("IOKR", "KDE", "OEL"),
    "psilearn.io": ("load_model", "save_model"),
    "psilearn.landmarks": ("Landmarks",),
    "psilearn.model_selection": ("IOKRCV", "KDECV", "OELCV"),
}
_MODULE_BY_NAME = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name or subpackage when it is first used."""
    if name in _MODULE_BY_NAME:
        return getattr(import_module(_MODULE_BY_NAME[name]), name)
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names and subpackages."""
    return sorted(__all__)
