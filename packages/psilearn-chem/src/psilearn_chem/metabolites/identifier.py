"""The estimator from spectra to molecules of a library."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from psilearn import IOKR, OEL
from psilearn.io import load_with_notes, save_model
from psilearn.utils import fitted_snapshot, publish, unfitted_copy, validation
from psilearn_chem.metabolites.labeled_spectra import find_labeled
from psilearn_chem.metabolites.library_search import LibrarySearch
from psilearn_chem.metabolites.model_fitting import FitOptions, fit_model
from psilearn_chem.metabolites.parameter_choice import Report
from psilearn_chem.metabolites.saved_identifier import KIND, check_model, decode_second_stage, notes_of
from psilearn_chem.molecules import CandidateLibrary, Fingerprints
from psilearn_chem.spectra import Problem, Spectrum

METHODS = ("iokr", "oel0", "oel")
ERRORS = ("raise", "skip")


class MetaboliteIdentifier(LibrarySearch):
    """Identification of molecules from tandem mass spectra, by ranking the molecules of a library.

    The input kernel, λ, p and c are chosen by the decoded loss in a four-fold cross-validation, in which every held-out
    spectrum is compared with the molecules of its formula in the library; spectra of the same molecule stay together.

    Cost of a fit, measured when 8 input kernels were compared: about 20 s for 300 spectra and 8 minutes for 3000 on one
    core. Now 12 are compared, four of them with formulas. Memory: about 24 matrices of n² numbers.

    Parameters
    ----------
    method : {"oel", "oel0", "iokr"}, default="oel"
        Output Embedding Learning with molecules of the library that have no spectrum ("oel") or without them ("oel0"),
        or Input Output Kernel Regression, which learns no embedding ("iokr").
    n_unlabeled : int, default=10000
        The number of molecules, drawn from the library, from which the method "oel" learns its embedding.
    calibration : float, default=0.1
        The fraction of the molecules that is held back to calibrate conformal sets, with one spectrum each; in [0, 1).
        With 0 there are no conformal sets. n molecules allow a coverage of at most n/(n+1).
    second_stage : bool, default=True
        Whether to rank by probabilities that combine the distance in the output space with reference spectra, the
        molecules of similar spectra, fragments and a prior of molecules. They are learned from out-of-fold rankings of
        the training spectra, and kept only if they find more true molecules there than distances do.
    errors : {"raise", "skip"}, default="raise"
        Whether a training spectrum that cannot be used raises an error, or is skipped and listed in ``problems_``.
    random_state : int, default=0
        The random seed.
    verbose : int, default=0
        1 prints the steps of a fit to stderr.
    device : {"cpu", "cuda"}, torch.device or None, default=None
        The torch device that computes. None computes with NumPy.

    Attributes
    ----------
    model_ : IOKR or OEL
        The fitted and calibrated estimator on spectra and fingerprints.
    fingerprints_ : Fingerprints
        The fingerprints that describe molecules.
    adducts_ : tuple of str
        The adducts of the training spectra. Where none is stated, it is found by formula and precursor, among the
        common ones.
    polarities_ : tuple of str
        The polarities of these adducts, "positive" or "negative" or both. Spectra of another polarity are rejected.
    second_stage_ : object or None
        The fitted second stage; None if it was not requested or not kept.
    training_ : dict
        The training data and the parameters that were chosen, as plain data.
    problems_ : list of Problem
        The training spectra that were skipped.

    See Also
    --------
    train : The same as a function.
    rank_spectra : Rank the candidates of spectra.
    CandidateLibrary : A library of molecules.

    Examples
    --------
    >>> from psilearn_chem import CandidateLibrary, MetaboliteIdentifier, read_spectra
    >>> library = CandidateLibrary.open("library")  # doctest: +SKIP
    >>> identifier = MetaboliteIdentifier().fit(read_spectra("known.mgf").spectra, library)  # doctest: +SKIP
    >>> identifier.predict(read_spectra("mine.mgf").spectra, library)  # doctest: +SKIP
    ['CCO']
    """

    def __init__(
        self,
        *,
        method: str = "oel",
        n_unlabeled: int = 10_000,
        calibration: float = 0.1,
        second_stage: bool = True,
        errors: str = "raise",
        random_state: int = 0,
        verbose: int = 0,
        device: Any = None,
    ) -> None:
        self.method = method
        self.n_unlabeled = n_unlabeled
        self.calibration = calibration
        self.second_stage = second_stage
        self.errors = errors
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def fit(self, spectra: Sequence[Spectrum], library: CandidateLibrary, y: Sequence[str] | None = None) -> Self:
        """Learn to find molecules from spectra whose molecules are known.

        Parameters
        ----------
        spectra : sequence of n Spectrum
            The training spectra, with precursor m/z, and with SMILES unless ``y`` is given.
        library : CandidateLibrary
            The library with the candidates of the training spectra.
        y : sequence of n str, default=None
            The SMILES of the molecules. By default those of the spectra.

        Returns
        -------
        MetaboliteIdentifier
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If a spectrum cannot be used and ``errors="raise"``, or if there are too few molecules.

        See Also
        --------
        rank : Rank the candidates of new spectra.

        Examples
        --------
        >>> from psilearn_chem import CandidateLibrary, MetaboliteIdentifier, read_spectra
        >>> library = CandidateLibrary.open("library")  # doctest: +SKIP
        >>> MetaboliteIdentifier().fit(read_spectra("known.mgf").spectra, library)  # doctest: +SKIP
        MetaboliteIdentifier()
        """
        return self._fit(spectra, library, y, _print_step if self.verbose else _ignore_step)

    def _fit(
        self, spectra: Sequence[Spectrum], library: CandidateLibrary, y: Sequence[str] | None, report: Report
    ) -> Self:
        options = self._check_options(report)
        if y is not None:
            spectra = [replace(spectrum, smiles=smiles) for spectrum, smiles in zip(spectra, y, strict=True)]
        report("fingerprints of the training molecules")
        labeled, problems = find_labeled(spectra, library)
        if problems and self.errors == "raise":
            raise ValueError(f"{problems[0]}: it cannot be used for training.")
        if not len(labeled):
            raise ValueError("No spectrum can be used for training: each needs a readable SMILES and a precursor.")
        fitted = fit_model(labeled, library, options)
        identifier = unfitted_copy(self)
        identifier._store(fitted.model, library.fingerprints, labeled.adducts, fitted.training, problems)
        identifier.second_stage_ = fitted.second_stage
        return publish(self, identifier)

    def _check_options(self, report: Report) -> FitOptions:
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}; got {self.method!r}.")
        if self.errors not in ERRORS:
            raise ValueError(f"errors must be one of {', '.join(ERRORS)}; got {self.errors!r}.")
        n_unlabeled = validation.check_count(self.n_unlabeled, "n_unlabeled")
        calibration = validation.check_fraction(self.calibration, "calibration")
        if calibration == 1:
            raise ValueError(f"calibration must be below 1; got {self.calibration!r}.")
        seed = validation.check_index(self.random_state, "random_state")
        second_stage = validation.check_bool(self.second_stage, "second_stage")
        return FitOptions(self.method, n_unlabeled, calibration, seed, self.device, report, second_stage)

    def _store(
        self,
        model: IOKR | OEL,
        fingerprints: Fingerprints,
        adducts: tuple[str, ...],
        training: dict[str, Any],
        problems: list[Problem],
    ) -> None:
        self.model_ = model
        self.fingerprints_ = fingerprints
        self.adducts_ = adducts
        self.training_ = training
        self.problems_ = problems
        self.second_stage_ = None

    @classmethod
    def from_model(
        cls,
        model: IOKR | OEL,
        fingerprints: Fingerprints,
        adducts: tuple[str, ...] = (),
        training: dict[str, Any] | None = None,
        **parameters: Any,
    ) -> MetaboliteIdentifier:
        """Return an identifier with an estimator that is fitted already.

        Parameters
        ----------
        model : IOKR or OEL
            A fitted estimator on spectra and fingerprints.
        fingerprints : Fingerprints
            The fingerprints that it was fitted on.
        adducts : tuple of str, default=()
            The adducts of the training spectra. With the empty tuple, all adducts are accepted.
        training : dict, default=None
            A description of the training as plain data.
        **parameters : dict
            Parameters of the constructor.

        Returns
        -------
        MetaboliteIdentifier
            The fitted identifier.

        See Also
        --------
        fit : Choose the parameters of the estimator and fit it.

        Examples
        --------
        >>> from psilearn import IOKR
        >>> from psilearn_chem import Fingerprints, MetaboliteIdentifier, Spectrum, spectrum_kernel
        >>> from psilearn.kernels import Tanimoto
        >>> spectra = [Spectrum([29.0, mz], [1.0, 1.0], precursor_mz=47.0491) for mz in (31.0, 33.0)]
        >>> fingerprints = Fingerprints()
        >>> model = IOKR(spectrum_kernel(), Tanimoto(packed=True)).fit(spectra, fingerprints(["CCO", "COC"]).bits)
        >>> MetaboliteIdentifier.from_model(model, fingerprints).adducts_
        ()
        """
        if not isinstance(adducts, list | tuple) or not all(isinstance(adduct, str) for adduct in adducts):
            raise TypeError(f"adducts must be a tuple of text such as '[M+H]+'; got {adducts!r:.80}.")
        if training is not None and not isinstance(training, dict):
            raise TypeError(f"training must be a dict or None; got {training!r:.80}.")
        identifier = cls(**parameters)
        identifier._store(model, fingerprints, tuple(adducts), dict(training or {}), [])
        return identifier

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save the fitted model in one file, as :func:`psilearn.save_model` does.

        Parameters
        ----------
        path : str or Path
            The file.
        overwrite : bool, default=False
            Whether to replace a saved model at this path. Until the new one is complete, the old one is kept.

        See Also
        --------
        load : Load a saved model.

        Examples
        --------
        >>> from psilearn_chem import CandidateLibrary, MetaboliteIdentifier, read_spectra
        >>> library = CandidateLibrary.open("library")  # doctest: +SKIP
        >>> MetaboliteIdentifier().fit(read_spectra("known.mgf").spectra, library).save("model")  # doctest: +SKIP
        """
        fitted = fitted_snapshot(self, "model_")
        save_model(fitted.model_, path, notes=notes_of(fitted), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> MetaboliteIdentifier:
        """Load a saved model; no code is executed.

        Parameters
        ----------
        path : str or Path
            The file of the model.

        Returns
        -------
        MetaboliteIdentifier
            The fitted identifier.

        Raises
        ------
        ValueError
            If the file is not a model for metabolites, or is damaged.

        See Also
        --------
        save : Save a fitted model.

        Examples
        --------
        >>> from psilearn_chem import MetaboliteIdentifier
        >>> MetaboliteIdentifier.load("model").adducts_  # doctest: +SKIP
        ('[M+H]+',)
        """
        estimator, notes = load_with_notes(path)
        try:
            if notes["kind"] != KIND:
                raise ValueError(f"its kind is {notes['kind']!r:.80}")
            fingerprints = Fingerprints(tuple(notes["fingerprints"]))
            adducts = tuple(str(adduct) for adduct in notes["adducts"])
            training, parameters = dict(notes["training"]), dict(notes["parameters"])
            model = check_model(estimator, fingerprints)
            identifier = cls.from_model(model, fingerprints, adducts, training, **parameters)
            identifier.second_stage_ = decode_second_stage(notes.get("second_stage"), model)
            identifier._check_options(_ignore_step)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            message = f"{path} is not a model for metabolites: {type(error).__name__}: {error}"
            raise ValueError(message) from error
        return identifier


def _print_step(text: str) -> None:
    print(text, file=sys.stderr)


def _ignore_step(text: str) -> None:
    pass
