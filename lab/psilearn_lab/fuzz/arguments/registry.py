"""The registry of valid calls, and the public names that it leaves out, with the reasons."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

import psilearn
from psilearn_lab.fuzz.arguments.attempts import Call
from psilearn_lab.fuzz.arguments.chem_calls import chem_calls
from psilearn_lab.fuzz.arguments.core_calls import core_calls
from psilearn_lab.fuzz.arguments.kernel_calls import kernel_calls
from psilearn_lab.fuzz.arguments.model_calls import model_calls

RECORD = "a record of results, which the library makes"
ABSTRACT = "an abstract class; its subclasses have entries"
LAYER = "a contract between two layers of the library; its callers validate"
LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(
        [
            "Algorithm1",
            "ClusterLostError",
            "Bound",
            "Choice",
            "Decay",
            "PredictionSets",
            "RankedCandidates",
            "Suggestion",
            "EditedOutputs",
            "TopK",
            "TruthPositions",
            "FingerprintTable",
            "MoleculeList",
            "Problem",
            "Ranking",
            "SpectrumReadResult",
            "Table",
        ],
        RECORD,
    ),
    **dict.fromkeys(
        ["Baseline", "Candidates", "FeatureKernel", "GraphKernel", "Kernel", "RankingKernel", "RowKernel"], ABSTRACT
    ),
    **dict.fromkeys(
        [
            "AllLabelSets",
            "AllRankings",
            "ConsistentLabelSets",
            "StringBeam",
            "ListableLabelSets",
            "NearLabelSets",
            "Embedding",
            "KernelRegression",
            "KernelRidge",
            "KnownOutputs",
            "NystromPath",
            "NystromRidge",
            "OutputCoordinates",
            "OutputStream",
            "PathDecoder",
            "RidgePath",
            "SklearnRegression",
            "SklearnRegressor",
        ],
        LAYER,
    ),
    **dict.fromkeys(
        [
            "load_bibtex",
            "load_bookmarks",
            "load_corel5k",
            "load_delicious",
            "load_eurlex4k",
            "load_mediamill",
            "load_qm9",
            "load_usps",
            "data_home",
        ],
        "takes no arguments",
    ),
    **dict.fromkeys(
        ["Limits", "ServedIdentifier", "ServedModel", "create_app"],
        "the service; hostile requests are sent to it instead",
    ),
    "GraKeLKernel": "an adapter of a package that is not installed for the fuzz runs",
    "GlobalAlignment": "compiles for seconds, and its package is optional",
    "TIES": "a constant",
}


@cache
def public_calls() -> tuple[Call, ...]:
    """Return all registered calls."""
    return (*kernel_calls(), *core_calls(), *model_calls(), *chem_calls())


def public_names() -> Iterator[str]:
    """Yield the public names of the library without experiments and commands, which take options and not objects."""
    for module in walk_packages(psilearn.__path__, "psilearn."):
        parts = module.name.split(".")[1:]
        if any(part.startswith("_") for part in parts) or parts[:2] == ["app", "cli"]:
            continue
        found = import_module(module.name)
        for name in getattr(found, "__all__", ()):
            if not inspect.ismodule(getattr(found, name)):
                yield name


def registered_names() -> set[str]:
    """Return the names of the classes and functions that have a call, or a method that has one."""
    return {part for call in public_calls() for part in call.name.split(" ")[0].split(".")}
