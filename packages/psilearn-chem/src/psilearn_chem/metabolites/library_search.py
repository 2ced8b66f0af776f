"""The search of a library for the molecules of spectra, with a fitted model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sklearn.base import BaseEstimator

from psilearn import IOKR, OEL
from psilearn.utils import fitted_snapshot
from psilearn_chem.metabolites.polarity import polarities_of
from psilearn_chem.metabolites.queries import Query
from psilearn_chem.metabolites.rank import Ranker, Ranking
from psilearn_chem.metabolites.second_stage import SecondStage
from psilearn_chem.molecules import CandidateLibrary, Fingerprints
from psilearn_chem.spectra import Problem, Spectrum


class LibrarySearch(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type stubs
    """The methods of a fitted identifier that search a library.

    A subclass sets ``model_``, ``second_stage_``, ``fingerprints_`` and ``adducts_``.
    """

    model_: IOKR | OEL
    fingerprints_: Fingerprints
    adducts_: tuple[str, ...]
    second_stage_: SecondStage | None

    @property
    def polarities_(self) -> tuple[str, ...]:
        """The polarities of the adducts; empty if they are unknown."""
        return polarities_of(self.adducts_)

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
