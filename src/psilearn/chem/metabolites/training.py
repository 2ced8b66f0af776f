"""Training of a model for metabolites: parameters by validation, conformal sets by spectra that are held back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GroupKFold, GroupShuffleSplit

from psilearn._utils import validation
from psilearn._utils.samples import Index, distinct, match
from psilearn.chem.metabolites.identifier import MetaboliteIdentifier
from psilearn.chem.metabolites.parameter_choice import (
    Examples,
    Grid,
    Setting,
    fitted,
    validate_embeddings,
    validate_iokr,
)
from psilearn.chem.metabolites.queries import check_precursor
from psilearn.chem.metabolites.similarity import COMBINATIONS, Mixture, SpectrumSimilarity
from psilearn.chem.molecules import Adduct, CandidateLibrary, Formula
from psilearn.chem.spectra import Problem, Spectrum
from psilearn.decoding import CandidateSets
from psilearn.kernels import GaussianTanimoto

METHODS = ("iokr", "oel0", "oel")
SPLITS = 4
GRID = Grid(
    mixtures=[Mixture(combination, gamma) for combination in COMBINATIONS for gamma in (None, 0.25, 0.5, 1.0)],
    alphas=(3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3),
    factors=(0.1, 1.0),
    sizes=(50, 100, 200, 400, 800, 1200, 1600, 2000),
    supervisions=(0.25, 0.75, 1.0),
    extra_landmarks=1000,
)
SELECT_UNLABELED = 5000  # unlabeled molecules that take part in the choice of parameters
SELECT_CANDIDATES = 300  # candidates of a held-out spectrum at the most, drawn at random


class Labeled(NamedTuple):
    """Spectra with the fingerprints of their molecules, and the molecules of the library that each may be."""

    spectra: list[Spectrum]
    bits: Any  # (n, b)
    sets: list[Any]  # fingerprints of the candidates, the own one among them
    truth: Index  # (n,)  its place
    in_library: Any  # (n,) bool: whether the library holds it


def train(
    spectra: Sequence[Spectrum],
    library: CandidateLibrary,
    *,
    method: str = "oel",
    unlabeled: int = 10_000,
    calibration: float = 0.1,
    seed: int = 0,
    say: Callable[[str], None] = lambda _: None,
    on_problem: Callable[[Problem], None] | None = None,
) -> MetaboliteIdentifier:
    """Learn to find molecules from spectra whose molecules are known.

    The input kernel, λ, p and c are chosen by the decoded loss in a four-fold cross-validation, in which every held-out
    spectrum is compared with the molecules of its formula in the library; spectra of one molecule stay together.

    Cost: 20 s for 300 spectra and 8 minutes for 3000 on one core; memory: about 20 matrices of n² numbers.

    Parameters
    ----------
    spectra : list of Spectrum
        with SMILES; spectra without, or with SMILES that cannot be read, are problems.
    library : CandidateLibrary
    method : "oel", "oel0" or "iokr"
        Output Embedding Learning with molecules of the library that have no spectrum, without them, or plain IOKR.
    unlabeled : int
        how many molecules, drawn from the library, method "oel" learns its embedding from.
    calibration : float in [0, 1)
        the part of molecules that is held back to calibrate conformal sets, by one spectrum each; 0: none, and no
        sets. n molecules can promise a coverage of n/(n+1) at the most.
    seed : int
        of what is drawn at random.
    say : function
        is told what is being done.
    on_problem : function, optional
        is told of each spectrum that cannot be used; without it the first one is an error.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    validation.check_count(unlabeled, "unlabeled")
    if not 0 <= validation.check_fraction(calibration, "calibration") < 1:
        raise ValueError(f"calibration must be below 1; got {calibration!r}.")
    say("fingerprints of the training molecules")
    labeled = _labeled(spectra, library, on_problem)
    groups = distinct(labeled.bits).inverse
    _require_molecules(groups)
    fitting, held = np.arange(len(groups)), np.arange(0)
    if calibration > 0:
        splitter = GroupShuffleSplit(1, test_size=calibration, random_state=seed)
        fitting, held = next(splitter.split(groups, groups=groups))
        _require_molecules(groups[fitting])
    say(f"kernels of {len(fitting)} spectra")
    similarity = SpectrumSimilarity.of([labeled.spectra[i] for i in fitting])
    examples = Examples(
        similarity,
        labeled.bits[fitting],
        CandidateSets([labeled.sets[i] for i in fitting]),
        labeled.truth[fitting],
        GaussianTanimoto(packed=True),
    )
    setting, loss = _choose(examples, groups[fitting], method, unlabeled, library, seed, say)
    weights = examples.mixed(setting.mixture, np.arange(len(fitting)))[1]
    say("fitting")
    kernel = similarity.on_spectra(weights, setting.mixture.gamma)
    X, Y = [labeled.spectra[i] for i in fitting], labeled.bits[fitting]
    others = _drawn(library, unlabeled, seed) if method == "oel" else None
    model = fitted(kernel, examples.kernel, X, Y, setting, others, GRID.extra_landmarks)
    known = _one_a_molecule(held[labeled.in_library[held]], groups, seed)
    if len(known):
        say(f"calibrating on {len(known)} spectra")
        model.calibrate(
            [labeled.spectra[i] for i in known], labeled.bits[known], CandidateSets([labeled.sets[i] for i in known])
        )
    adducts = sorted({str(Adduct.parse(s.adduct)) for s in labeled.spectra if s.adduct is not None})
    training = {
        "spectra": len(fitting),
        "calibration_spectra": len(known),
        "molecules": len(np.unique(groups[fitting])),
        "method": method,
        "input_kernel": str(setting.mixture),
        "weights": [float(weight) for weight in weights],
        "alpha": setting.alpha,
        "n_components": setting.n_components,
        "supervision": setting.supervision,
        "unlabeled": unlabeled if method == "oel" else 0,
        "validation_loss": loss,
        "library_sha256": library.hash,
        "seed": seed,
    }
    return MetaboliteIdentifier(model, library.fingerprints, tuple(adducts), training)


def _require_molecules(groups: Index) -> None:
    if len(np.unique(groups)) < 2 * SPLITS:
        raise ValueError(
            f"{len(np.unique(groups))} different molecules are too few to train on: at least {2 * SPLITS} are needed "
            f"beside those that are held back for calibration."
        )


def _one_a_molecule(rows: Index, groups: Index, seed: int) -> Index:
    """Return one spectrum of each molecule, drawn at random: spectra of one molecule are no independent witnesses."""
    shuffled = np.random.default_rng(seed).permutation(rows)
    return np.sort(shuffled[np.unique(groups[shuffled], return_index=True)[1]])


def _labeled(
    spectra: Sequence[Spectrum], library: CandidateLibrary, on_problem: Callable[[Problem], None] | None
) -> Labeled:
    """Return the spectra that can be learnt from."""
    made = library.fingerprints([spectrum.smiles or "" for spectrum in spectra])
    kept, sets, truth, in_library = [], [], [], []
    for i, (spectrum, formula) in enumerate(zip(spectra, made.formulas, strict=True)):
        why = _fault(spectrum, formula)
        if why is not None:
            problem = Problem(spectrum.name or f"spectrum {i + 1}", why)
            if on_problem is None:
                raise ValueError(f"{problem}: it cannot be learnt from.")
            on_problem(problem)
            continue
        candidates, own = library.bits[library.find_formula(formula)], made.bits[i : i + 1]
        place = int(match(own, candidates)[0]) if len(candidates) else -1
        kept.append(i)
        in_library.append(place >= 0)
        sets.append(candidates if place >= 0 else np.concatenate([candidates, own]))
        truth.append(place if place >= 0 else len(candidates))
    if not kept:
        raise ValueError("No spectrum can be learnt from: each needs a SMILES that can be read and a precursor.")
    return Labeled([spectra[i] for i in kept], made.bits[kept], sets, np.array(truth), np.array(in_library))


def _fault(spectrum: Spectrum, formula: str) -> str | None:
    """Say why a spectrum cannot be learnt from, or None; ``formula`` is that of its SMILES."""
    if not formula:
        return f"its SMILES {spectrum.smiles!r} cannot be read" if spectrum.smiles else "it has no SMILES"
    if spectrum.precursor_mz is None:
        return "it has no precursor_mz"
    try:
        if spectrum.formula is not None and str(Formula.parse(spectrum.formula)) != formula:
            return f"its formula is {spectrum.formula}, but its SMILES is of {formula}"
        check_precursor(spectrum, Formula.parse(formula))
    except ValueError as error:
        return str(error)
    return None


def _choose(
    examples: Examples,
    groups: Index,
    method: str,
    unlabeled: int,
    library: CandidateLibrary,
    seed: int,
    say: Callable[[str], None],
) -> tuple[Setting, float]:
    """Return the setting with the least validation loss, and that loss."""
    examples = examples.thinned(SELECT_CANDIDATES, seed)
    splits = list(GroupKFold(SPLITS, shuffle=True, random_state=seed).split(groups, groups=groups))
    iokr = validate_iokr(examples, GRID, splits, say)
    setting = iokr.best(None)
    if method == "iokr":
        return setting, iokr.mean(setting)
    most = min(len(np.unique(groups[fitting])) for fitting, _ in splits)
    sizes = [p for p in GRID.sizes if p <= most] or [most]
    supervisions = [c for c in GRID.supervisions if (c == 1) == (method == "oel0")]
    some = _drawn(library, min(unlabeled, SELECT_UNLABELED), seed) if method == "oel" else None
    grid = replace(GRID, sizes=sizes, supervisions=supervisions)
    embeddings = validate_embeddings(examples, grid, setting, some, splits, say)
    best = embeddings.best(*supervisions)
    return best, embeddings.mean(best)


def _drawn(library: CandidateLibrary, m: int, seed: int) -> Any:
    """Return the fingerprints of m molecules of the library, drawn at random, (m, b)."""
    rng = np.random.default_rng(seed)
    return library.bits[np.sort(rng.choice(len(library), min(m, len(library)), replace=False))]
