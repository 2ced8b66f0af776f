"""A trained model from spectra to molecules, with what must be known to use it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psilearn.chem.molecules import CandidateLibrary, Fingerprints
from psilearn.io import load_model, read_notes, save_model

KIND = "psilearn.chem.metabolites"


@dataclass(frozen=True)
class MetaboliteIdentifier:
    """A fitted and calibrated estimator on spectra and fingerprints.

    ``train`` makes it, ``rank_spectra`` uses it. It is saved as a folder with a JSON manifest and arrays; opening one
    executes nothing.
    """

    model: Any  # IOKR or OEL
    fingerprints: Fingerprints
    adducts: tuple[str, ...]  # of the training spectra
    training: dict[str, Any] = field(default_factory=dict)  # what it was trained on and what was chosen, as plain data

    def save(self, path: str | Path) -> None:
        """Write the model into a new folder."""
        notes = {
            "kind": KIND,
            "fingerprints": list(self.fingerprints.kinds),
            "adducts": list(self.adducts),
            "training": self.training,
        }
        save_model(self.model, path, notes=notes)

    @classmethod
    def load(cls, path: str | Path) -> MetaboliteIdentifier:
        """Open a saved model.

        Raises
        ------
        ValueError
            where the folder holds no model for metabolites, or a damaged one.
        """
        notes = read_notes(path)
        try:
            if notes["kind"] != KIND:
                raise ValueError(f"its kind is {notes['kind']!r}")
            fingerprints = Fingerprints(tuple(notes["fingerprints"]))
            adducts = tuple(str(adduct) for adduct in notes["adducts"])
            training = dict(notes["training"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is no model for metabolites: {type(error).__name__}: {error}") from error
        return cls(load_model(path), fingerprints, adducts, training)

    def require(self, library: CandidateLibrary) -> None:
        """Refuse a library whose fingerprints are not those that the model was trained on."""
        if library.fingerprints != self.fingerprints:
            raise ValueError(
                f"The model was trained on the fingerprints {'+'.join(self.fingerprints.kinds)}, the library "
                f"{library.path} holds {'+'.join(library.fingerprints.kinds)}: build a library with "
                f"--fingerprints {','.join(self.fingerprints.kinds)}."
            )
