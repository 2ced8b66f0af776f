"""What is saved of an identifier next to its estimator: notes on its fingerprints, adducts and training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psilearn import IOKR, OEL
from psilearn.kernels import Kernel
from psilearn.utils import match
from psilearn_chem.metabolites.second_stage import SecondStage
from psilearn_chem.molecules import Fingerprints

if TYPE_CHECKING:
    from psilearn_chem.metabolites.identifier import MetaboliteIdentifier

KIND = "psilearn_chem.metabolites"


def notes_of(fitted: MetaboliteIdentifier) -> dict[str, Any]:
    """Return the notes of the saved model of a fitted identifier."""
    notes = {
        "kind": KIND,
        "fingerprints": list(fitted.fingerprints_.kinds),
        "adducts": list(fitted.adducts_),
        "training": fitted.training_,
        "parameters": {**fitted.get_params(), "device": None},
    }
    if fitted.second_stage_ is not None:
        outputs = match(fitted.second_stage_.maker.references.bits, np.asarray(fitted.model_.candidates_.outputs))
        notes["second_stage"] = fitted.second_stage_.to_notes(outputs)
    return notes


def decode_second_stage(notes: Any, model: IOKR | OEL) -> SecondStage | None:
    """Return the second stage of the notes of a model; None if it has none, as models of version 0.1.0."""
    if notes is None:
        return None
    regression: Any = model.regression_
    return SecondStage.from_notes(notes, np.asarray(model.candidates_.outputs), list(regression.anchors))


def check_model(model: Any, fingerprints: Fingerprints) -> IOKR | OEL:
    """Return a loaded estimator; raise a ValueError if its outputs cannot be fingerprints of these kinds."""
    if not isinstance(model, IOKR | OEL):
        raise ValueError(f"its estimator is {type(model).__name__}")
    if not isinstance(getattr(model.regression_, "kernel", None), Kernel):
        raise ValueError("its regression has no kernel on spectra")
    outputs = np.asarray(model.candidates_.outputs)
    if outputs.dtype != np.uint8 or outputs.shape[1:] != (fingerprints.n_bytes,):
        raise ValueError(f"its outputs have shape {outputs.shape} and dtype {outputs.dtype}, unlike its fingerprints")
    return model
