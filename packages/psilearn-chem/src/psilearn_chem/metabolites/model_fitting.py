"""The fit of a model for metabolites: parameters by validation, conformal sets by spectra that are held back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from psilearn import IOKR, OEL
from psilearn.decoding import PerExampleCandidates
from psilearn.utils import Index, distinct
from psilearn_chem.metabolites.parameter_choice import (
    GRID,
    N_SPLITS,
    OUTPUT_KERNEL,
    ParameterChoice,
    Report,
    Setting,
    SpectrumSimilarity,
)
from psilearn_chem.metabolites.queries import LabeledSpectra
from psilearn_chem.metabolites.second_stage import SecondStage
from psilearn_chem.metabolites.second_stage_fit import OutOfFold, calibrate, fit_second_stage
from psilearn_chem.molecules import CandidateLibrary
from psilearn_chem.molecules.fingerprints import Bits

FittedModel: TypeAlias = tuple[IOKR | OEL, SecondStage | None, dict[str, Any]]
MAX_VALIDATION_UNLABELED = 5000  # unlabeled molecules that are used in the choice of parameters


@dataclass(frozen=True)
class FitOptions:
    """The parameters of a fit, validated."""

    method: str
    n_unlabeled: int
    calibration: float
    seed: int
    device: Any
    report: Report
    second_stage: bool = False


def fit_model(labeled: LabeledSpectra, library: CandidateLibrary, options: FitOptions) -> FittedModel:
    """Choose the parameters, fit and calibrate a model; return it, its second stage and a description of the fit."""
    groups = distinct(labeled.bits).inverse
    fitting, held = _split_for_calibration(groups, options.calibration, options.seed)
    training, groups_of_training = labeled.take(fitting), groups[fitting]
    options.report(f"kernels of {len(training)} spectra")
    similarity = SpectrumSimilarity.of(training.spectra, formulas=True)
    choice = ParameterChoice(
        training, similarity, groups_of_training, options.seed, options.report, GRID, options.device
    )
    unlabeled = _draw(library, options.n_unlabeled, options.seed) if options.method == "oel" else None
    n_drawn = min(options.n_unlabeled, MAX_VALIDATION_UNLABELED)
    drawn = None if unlabeled is None else _draw(library, n_drawn, options.seed)
    setting = choice.choose(options.method, drawn)
    options.report("final fit")
    weights = similarity.weights(setting.mixture, training.bits, OUTPUT_KERNEL)
    kernel = setting.mixture.weight(similarity.kernels, weights)
    model = setting.make_model(kernel, len(training), GRID, options.device)
    model.fit(training.spectra, training.bits, unlabeled=None if unlabeled is None else iter([unlabeled]))
    rows = _one_per_molecule(held[labeled.in_library[held]], groups, options.seed)
    chosen = labeled.take(rows)
    if len(rows):
        options.report(f"calibration on {len(rows)} spectra")
        model.calibrate(chosen.spectra, chosen.bits, PerExampleCandidates(chosen.sets))
    stage = _fit_second_stage(choice, setting, drawn, library, options)
    if stage is not None and len(rows):
        stage = calibrate(stage, model, chosen, training.spectra, library)
    description = {
        "spectra": len(training),
        "calibration_spectra": len(rows),
        "molecules": len(np.unique(groups_of_training)),
        "method": options.method,
        "input_kernel": str(setting.mixture),
        "weights": weights,
        "alpha": setting.alpha,
        "n_components": setting.n_components,
        "supervision": setting.supervision,
        "validation_loss": setting.validation_loss,
        "unlabeled": options.n_unlabeled if options.method == "oel" else 0,
        "library_sha256": library.hash,
        "seed": options.seed,
    }
    return model, stage, description


def _fit_second_stage(
    choice: ParameterChoice, setting: Setting, unlabeled: Bits | None, library: CandidateLibrary, options: FitOptions
) -> SecondStage | None:
    """Learn the second stage on the splits that the parameters were chosen on."""
    if not options.second_stage:
        return None

    def fit(rows: Index) -> IOKR | OEL:
        kernel = choice.similarity.on_rows(setting.mixture, OUTPUT_KERNEL)
        model = setting.make_model(kernel, len(rows), GRID, choice.device)
        return model.fit(rows, choice.labeled.bits[rows], unlabeled=None if unlabeled is None else iter([unlabeled]))

    mean = np.mean(choice.similarity.matrices[:2], axis=0)  # of the kernels on peaks and on neutral losses
    queries = OutOfFold(choice.labeled, mean, choice.groups, choice.splits(), fit, library, options.seed)
    return fit_second_stage(queries, options.report)


def _split_for_calibration(groups: Index, calibration: float, seed: int) -> tuple[Index, Index]:
    """Return the spectra of a fit and those held back; spectra of one molecule stay together."""
    _require_molecules(groups)
    if calibration == 0:
        return np.arange(len(groups)), np.arange(0)
    splitter = GroupShuffleSplit(1, test_size=calibration, random_state=seed)
    fitting, held = next(splitter.split(groups, groups=groups))
    _require_molecules(groups[fitting])
    return fitting, held


def _require_molecules(groups: Index) -> None:
    n_molecules = len(np.unique(groups))
    if n_molecules < 2 * N_SPLITS:
        raise ValueError(
            f"{n_molecules} different molecules are too few to train on: at least {2 * N_SPLITS} are needed besides "
            f"those that are held back for calibration."
        )


def _one_per_molecule(rows: Index, groups: Index, seed: int) -> Index:
    """Return one spectrum per molecule, drawn at random: spectra of the same molecule are not independent."""
    shuffled = np.random.default_rng(seed).permutation(rows)
    return np.sort(shuffled[np.unique(groups[shuffled], return_index=True)[1]])


def _draw(library: CandidateLibrary, n: int, seed: int) -> Bits:
    """Return the fingerprints of n molecules of the library, drawn at random, (n, b)."""
    rng = np.random.default_rng(seed)
    return np.asarray(library.bits[np.sort(rng.choice(len(library), min(n, len(library)), replace=False))])
