"""Training of a model for metabolites as one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from psilearn_chem.metabolites.identifier import MetaboliteIdentifier
from psilearn_chem.molecules import CandidateLibrary
from psilearn_chem.spectra import Problem, Spectrum


def train(
    spectra: Sequence[Spectrum],
    library: CandidateLibrary,
    *,
    method: str = "oel",
    unlabeled: int = 10_000,
    calibration: float = 0.1,
    second_stage: bool = True,
    seed: int = 0,
    say: Callable[[str], None] = lambda _: None,
    on_problem: Callable[[Problem], None] | None = None,
) -> MetaboliteIdentifier:
    """Train a model on spectra of known molecules.

    It is :meth:`MetaboliteIdentifier.fit` with functions that are called while it runs.

    Parameters
    ----------
    spectra : sequence of Spectrum
        The training spectra, with SMILES and precursor m/z.
    library : CandidateLibrary
        The library with the candidates of the training spectra.
    method : {"oel", "oel0", "iokr"}, default="oel"
        Output Embedding Learning with molecules of the library that have no spectrum ("oel") or without them ("oel0"),
        or Input Output Kernel Regression ("iokr").
    unlabeled : int, default=10000
        The number of molecules, drawn from the library, from which the method "oel" learns its embedding.
    calibration : float, default=0.1
        The fraction of the molecules that is held back to calibrate conformal sets, with one spectrum each; in [0, 1).
    second_stage : bool, default=True
        Whether to rank by probabilities of a second stage, which is learned from out-of-fold rankings and kept only if
        it finds more true molecules there.
    seed : int, default=0
        The random seed.
    say : callable, default=lambda _: None
        Is called with a description of each step.
    on_problem : callable, default=None
        Is called with each spectrum that cannot be used. By default the first such spectrum raises an error.

    Returns
    -------
    MetaboliteIdentifier
        The fitted model.

    Raises
    ------
    ValueError
        If a spectrum cannot be used and ``on_problem`` is None, or if there are too few molecules.

    See Also
    --------
    MetaboliteIdentifier : The estimator.
    rank_spectra : Rank the candidates of spectra.

    Examples
    --------
    >>> from psilearn_chem import CandidateLibrary, read_spectra, train
    >>> library = CandidateLibrary.open("library")  # doctest: +SKIP
    >>> train(read_spectra("known.mgf").spectra, library, say=print).save("model")  # doctest: +SKIP
    """
    identifier = MetaboliteIdentifier(
        method=method,
        n_unlabeled=unlabeled,
        calibration=calibration,
        second_stage=second_stage,
        errors="raise" if on_problem is None else "skip",
        random_state=seed,
    )
    identifier._fit(spectra, library, None, say)
    if on_problem is not None:
        for problem in identifier.problems_:
            on_problem(problem)
    return identifier
