"""The estimator from spectra to molecules of a library."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator

from psilearn import IOKR, OEL
from psilearn.io import load_with_notes, save_model
from psilearn.kernels import Kernel
from psilearn.utils import fitted_snapshot, match, publish, unfitted_copy, validation
from psilearn_chem.metabolites.model_fitting import FitOptions, fit_model
from psilearn_chem.metabolites.parameter_choice import Report
from psilearn_chem.metabolites.queries import Query, find_labeled
from psilearn_chem.metabolites.ranking import Ranker, Ranking
from psilearn_chem.metabolites.second_stage import SecondStage
from psilearn_chem.molecules import CandidateLibrary, Fingerprints
from psilearn_chem.spectra import Problem, Spectrum

KIND = "psilearn_chem.metabolites"
METHODS = ("iokr", "oel0", "oel")
ERRORS = ("raise", "skip")


def notes_of(fitted: MetaboliteIdentifier) -> dict[str, Any]:
    """Return the notes of the saved model of a fitted identifier."""
    notes = {
        "kind": KIND,
        "fingerprints": list(fitted.fingerprints_.kinds),
        "adducts": list(fitted.adducts_),
        "training": fitted.training_,
        "parameters": {**fitted.get_params(), "device": None, "verbose": 0},
    }
    if fitted.second_stage_ is not None:
        outputs = match(fitted.second_stage_.maker.references.bits, np.asarray(fitted.model_.candidates_.outputs))
        notes["second_stage"] = fitted.second_stage_.to_notes(outputs)
    return notes


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


class MetaboliteIdentifier(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type stubs
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
        1 prints the steps of a fit and the seconds since its beginning to stderr.
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
        common ones. Spectra of another polarity than theirs are rejected.
    second_stage_ : object or None
        The fitted second stage; None if it was not requested or not kept.
    training_ : dict
        The training data and the parameters that were chosen, as plain data.
    problems_ : list of Problem
        The training spectra that were skipped.

    See Also
    --------
    CandidateLibrary : A library of molecules.

    Examples
    --------
    >>> from psilearn_chem import CandidateLibrary, MetaboliteIdentifier, read_spectra
    >>> library = CandidateLibrary.open("library")  # doctest: +SKIP
    >>> identifier = MetaboliteIdentifier().fit(read_spectra("known.mgf").spectra, library)  # doctest: +SKIP
    >>> identifier.predict(read_spectra("mine.mgf").spectra, library)  # doctest: +SKIP
    ['CCO']
    """

    second_stage_: SecondStage | None

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
        start = perf_counter()

        def report(text: str) -> None:
            if self.verbose:
                print(f"{perf_counter() - start:6.0f} s  {text}", file=sys.stderr)

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
        identifier.model_, identifier.second_stage_, identifier.training_ = fitted
        identifier.fingerprints_, identifier.adducts_ = library.fingerprints, labeled.adducts
        identifier.problems_ = problems
        return publish(self, identifier)

    def _check_options(self, report: Report) -> FitOptions:
        validation.check_option(self.method, METHODS, "method")
        validation.check_option(self.errors, ERRORS, "errors")
        n_unlabeled = validation.check_count(self.n_unlabeled, "n_unlabeled")
        calibration = validation.check_fraction(self.calibration, "calibration")
        if calibration == 1:
            raise ValueError(f"calibration must be below 1; got {self.calibration!r}.")
        seed = validation.check_index(self.random_state, "random_state")
        second_stage = validation.check_bool(self.second_stage, "second_stage")
        return FitOptions(self.method, n_unlabeled, calibration, seed, self.device, report, second_stage)

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
        identifier.model_, identifier.second_stage_, identifier.training_ = model, None, dict(training or {})
        identifier.fingerprints_, identifier.adducts_, identifier.problems_ = fingerprints, tuple(adducts), []
        return identifier

    def rank(
        self,
        spectra: Sequence[Spectrum] | Iterator[Spectrum],
        library: CandidateLibrary,
        *,
        k: int | None = 10,
        query: Query | None = None,
        coverage: float = 0.9,
        ties: str = "expected",
        whole_set: bool = False,
    ) -> Iterator[Ranking | Problem]:
        """Rank the candidate molecules of each spectrum.

        Cost: the kernel of each spectrum with the training spectra, and p flops per candidate if the library is
        embedded (:meth:`CandidateLibrary.embedded`), else r kernel values per candidate.

        Parameters
        ----------
        spectra : sequence or iterator of Spectrum
            The spectra. An iterator is read in batches while the result is iterated over.
        library : CandidateLibrary
            A library with the fingerprints of the model.
        k : int or None, default=10
            The number of molecules per spectrum. None returns all candidates.
        query : Query, default=None
            How candidates are found. By default by formula, else by mass within 10 ppm, for adducts of the training.
        coverage : float, default=0.9
            The coverage of the conformal sets: the probability that a set contains the true molecule, if it is among
            the candidates.
        ties : {"expected", "optimistic", "pessimistic"}, default="expected"
            The rank of molecules at the same distance, which fingerprints cannot distinguish: the mean of their
            positions, the first or the last one.
        whole_set : bool, default=False
            Whether a ranking also contains the molecules of the conformal set that are not among the first k.

        Returns
        -------
        iterator of Ranking or Problem
            For each spectrum its nearest molecules, or the reason why it cannot be ranked.

        See Also
        --------
        predict : The nearest molecule only.

        Examples
        --------
        >>> from psilearn_chem import CandidateLibrary, MetaboliteIdentifier, read_spectra
        >>> library, identifier = CandidateLibrary.open("library"), MetaboliteIdentifier.load("model")  # doctest: +SKIP
        >>> for ranking in identifier.rank(read_spectra("mine.mgf").spectra, library, k=5):  # doctest: +SKIP
        ...     print(ranking.spectrum.name, library.get_smiles(ranking.rows))
        """
        fitted = fitted_snapshot(self, "model_")
        fitted.check_library(library)
        query = Query(adducts=fitted.adducts_) if query is None else query
        return Ranker(fitted.model_, library, query, k, coverage, ties, whole_set, fitted.second_stage_).rank(spectra)

    def predict(
        self, spectra: Sequence[Spectrum], library: CandidateLibrary, *, query: Query | None = None
    ) -> list[str]:
        """Predict the SMILES of the nearest molecule of each spectrum.

        Parameters
        ----------
        spectra : sequence of Spectrum
            The spectra.
        library : CandidateLibrary
            A library with the fingerprints of the model.
        query : Query, default=None
            How candidates are found, as in :meth:`rank`.

        Returns
        -------
        list of str
            One SMILES per spectrum.

        Raises
        ------
        ValueError
            If a spectrum cannot be ranked.

        See Also
        --------
        rank : All candidates with distances, and problems instead of errors.

        Examples
        --------
        >>> from psilearn_chem import CandidateLibrary, MetaboliteIdentifier, read_spectra
        >>> library, identifier = CandidateLibrary.open("library"), MetaboliteIdentifier.load("model")  # doctest: +SKIP
        >>> identifier.predict(read_spectra("mine.mgf").spectra, library)  # doctest: +SKIP
        ['CCO']
        """
        rows = []
        for result in self.rank(spectra, library, k=1, query=query):
            if isinstance(result, Problem):
                raise ValueError(f"{result}. Use rank, which yields such problems and continues.")
            if not len(result.rows):
                raise ValueError(f"{result.spectrum.name!r}: the model finds no candidate at a finite distance.")
            rows.append(int(result.rows[0]))
        return library.get_smiles(rows)

    def check_library(self, library: CandidateLibrary) -> None:
        """Raise an error if a library has other fingerprints than those that the model was trained on.

        Parameters
        ----------
        library : CandidateLibrary
            The library.

        Raises
        ------
        ValueError
            If the fingerprints differ.

        See Also
        --------
        rank : Checks its library.

        Examples
        --------
        >>> from psilearn_chem import CandidateLibrary, MetaboliteIdentifier
        >>> MetaboliteIdentifier.load("model").check_library(CandidateLibrary.open("library"))  # doctest: +SKIP
        """
        fingerprints = fitted_snapshot(self, "model_").fingerprints_
        if not isinstance(library, CandidateLibrary):
            raise TypeError(f"library must be a CandidateLibrary; got {library!r:.80}.")
        if library.fingerprints != fingerprints:
            kinds = fingerprints.kinds
            raise ValueError(
                f"The model was trained on the fingerprints {'+'.join(kinds)}, but the library {library.path} has "
                f"{'+'.join(library.fingerprints.kinds)}: build a library with --fingerprints {','.join(kinds)}."
            )

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
            if notes.get("second_stage") is not None:
                outputs, anchors = np.asarray(model.candidates_.outputs), list(cast(Any, model.regression_).anchors)
                identifier.second_stage_ = SecondStage.from_notes(notes["second_stage"], outputs, anchors)
            identifier._check_options(str)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            reason = f"its notes have no {error}" if isinstance(error, KeyError) else error
            message = f"{path} is not a model for metabolites: {reason}"
            raise ValueError(message) from error
        return identifier
