"""What the three searches share: score the whole grid, fit the best setting on all data, and predict with it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from joblib import delayed, effective_n_jobs
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from psilearn._backend import Compute, map_in_streams, resolve_compute
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.estimators import declare_sparse_inputs_and_outputs, publish
from psilearn._utils.progress import show_progress, track
from psilearn._utils.samples import Samples
from psilearn._utils.worker_processes import run_parallel, uses_dask
from psilearn.conformal import PredictionSets
from psilearn.decoding import RankedCandidates, SharedCandidates, TopK
from psilearn.estimators.base import OutputKernelRegression
from psilearn.metrics import TruthPositions
from psilearn.model_selection import grids
from psilearn.model_selection.choice import Choice, best_row, results_table, rows_where
from psilearn.model_selection.grids import PathGrid
from psilearn.model_selection.scoring import as_scorings
from psilearn.model_selection.search_memory import fit_sizes, require_search_memory, sizes_of
from psilearn.model_selection.search_problem import SearchProblem, check_problem, uses_leave_one_out
from psilearn.model_selection.split_outputs import (
    ExactOutputPath,
    LandmarkOutputPath,
    OutputPath,
    SearchedOutputs,
)
from psilearn.model_selection.split_scores import SplitTask, scores_on_dask


class PathSearch(BaseEstimator):
    """The fit of the searches, which differ in the grid of c and p and in the estimator.

    A subclass defines ``_estimator``, whose parameters are the axes of the grid, and ``_subspace_grid``.
    """

    _estimator: Any
    best_params_: dict[str, Any]
    best_estimator_: OutputKernelRegression

    def __init__(
        self,
        input_kernels: Any,
        output_kernels: Any,
        *,
        alphas: Any,
        input_landmarks: Any,
        output_landmarks: Any,
        cv: Any,
        scoring: Any,
        candidates: Any,
        one_standard_error: bool,
        refit: bool,
        n_jobs: int | None,
        verbose: int,
        random_state: Any,
        dtype: Any,
        device: Any,
    ) -> None:
        self.input_kernels = input_kernels
        self.output_kernels = output_kernels
        self.alphas = alphas
        self.input_landmarks = input_landmarks
        self.output_landmarks = output_landmarks
        self.cv = cv
        self.scoring = scoring
        self.candidates = candidates
        self.one_standard_error = one_standard_error
        self.refit = refit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.dtype = dtype
        self.device = device

    def fit(self, X: Samples, y: Samples, unlabeled: Any = None, candidates: Any = None, groups: Any = None) -> Self:
        """Score every setting of the grid on every split, and fit the best setting on all data if ``refit=True``.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        y : array (1-D or 2-D), CSR matrix or sequence of n outputs
            The outputs.
        unlabeled : collection, path or iterable of batches, default=None
            Outputs without inputs, in the form of y, as a path to a .npy or .parquet file, or as an iterator of
            batches. All of them are used in every split. In KDE, and in OEL with supervision below 1, they replace y in
            the moment of the outputs. They also become default candidates if they are in memory, or if there are no
            ``output_landmarks``.
        candidates : collection, Candidates or list of collections, default=None
            The candidates of decoded scores: one set for all examples, or one set per example of X as a list of n
            collections or as :class:`~psilearn.decoding.PerExampleCandidates`. They are validated but not used with
            ``scoring="mse"``, and predictions do not use them unless they are passed again. A rule, "known", "near",
            "all" or an object such as ``AllLabelSets(max_labels=5)``, has the same effect as the parameter
            ``candidates``, also on predictions. Without either of them, each split decodes to the known outputs of its
            model, or to all rankings if the output kernel compares rankings.
        groups : array of shape (n,), default=None
            The group of each example, for splitters that keep groups together.

        Returns
        -------
        estimator
            The fitted search itself.

        See Also
        --------
        best_where : The best of some of the settings.
        predict : Predict with the best estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> from psilearn.kernels import Gaussian
        >>> X = np.linspace(0, 1, 30).reshape(-1, 1)
        >>> search = IOKRCV(Gaussian(5.0), Gaussian(1.0), alphas=[1e-6, 1e-4, 1e-2, 1.0], cv=3)
        >>> search.fit(X, np.hstack([X, X**2])).best_params_["alpha"]
        1e-06
        """
        compute = self._resolve_compute(X, y, unlabeled)
        with compute.active(), show_progress(self.verbose):
            problem = check_problem(self, X, y, unlabeled, candidates, groups)
            self._require_memory(problem, compute)
            paths = self._make_output_paths(problem, compute)
            grid = self._make_path_grid(problem, paths)
            tasks = self._make_tasks(problem, paths, grid, compute)
            scores = self._run(tasks, compute)
            compute.free_large_cache()
        search = copy(self)
        search._store_results(problem, paths, grid, scores)
        del paths, tasks  # the coordinates of the outputs, before the final fit computes its own
        search._choose()
        search._fit_best(X, y, problem)
        return publish(self, search)  # an error before this leaves the state of an earlier fit unchanged

    def best_where(self, scoring: str = "score", **fixed: Any) -> Choice:
        """Return the best of the settings that have the given values, by the rule that chose ``best_params_``.

        Parameters
        ----------
        scoring : str, default="score"
            The name of the score that chooses, if there are several. By default the first one.
        **fixed : values or lists of values
            Parameters by their names in ``best_params_``: one value of the grid, or a list for any of its values.
            Kernels are equal if their class and their parameters are. Without any, the best of all settings.

        Returns
        -------
        Choice
            The best setting, with ``params``, ``score``, ``index`` and the ``edges`` of the parameters that are not
            fixed to one value.

        See Also
        --------
        fit : Computes the scores.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OELCV
        >>> from psilearn.kernels import Gaussian
        >>> X = np.linspace(0, 1, 30).reshape(-1, 1)
        >>> search = OELCV(Gaussian(5.0), Gaussian(1.0), alphas=1e-4, n_components=1, supervisions=[0.0, 1.0], cv=3)
        >>> search.fit(X, np.hstack([X, X**2])).best_where(supervision=0.0).params["supervision"]
        0.0
        """
        check_is_fitted(self, "cv_results_")
        if not isinstance(scoring, str):
            raise TypeError(f"scoring must be the name of a score; got {scoring!r:.80}.")
        if scoring == as_scorings(self.scoring)[0].name:
            scoring = "score"
        if f"mean_test_{scoring}" not in self.cv_results_:
            raise ValueError(f"scoring={scoring!r} was not computed; this search has scoring={self.scoring!r}.")
        index = best_row(self.cv_results_, scoring, rows_where(self.grid_, fixed), self.one_standard_error)
        params = self.cv_results_["params"][index]
        searched = {
            name: values for name, values in self.grid_.items() if len(grids.as_list(fixed.get(name, values), name)) > 1
        }
        edges = grids.find_edges(searched, params, max(self.ranks_))
        return Choice(dict(params), float(self.cv_results_[f"mean_test_{scoring}"][index]), index, edges)

    def predict(self, X: Samples, candidates: Any = None) -> Samples:
        """Predict the nearest candidate of each input with the best estimator.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        candidates : collection, Candidates or list of collections, default=None
            One set for all inputs, as a collection of outputs or embedded by :meth:`candidate_set`; or one set per
            input, as a list of n collections or as :class:`~psilearn.decoding.PerExampleCandidates`; or "known", "near"
            or "all", as in :meth:`psilearn.OEL.predict`. By default those that the search chose, if its parameter
            ``candidates`` is given; else the distinct known outputs, or all rankings if the output kernel compares
            rankings.

        Returns
        -------
        array, CSR matrix or sequence of n outputs
            The predictions, in the form of the candidates.

        See Also
        --------
        predict_topk : The k nearest candidates with distances.
        predict_set : Conformal sets of candidates.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> search = IOKRCV(alphas=1e-4, cv=2).fit(X, np.hstack([X, X**2]))
        >>> search.predict([[0.0]], candidates=[[0.0, 0.0], [1.0, 1.0]])
        array([[0., 0.]])
        """
        return self._best().predict(X, self._chosen(candidates))

    def predict_topk(self, X: Samples, k: int = 10, candidates: Any = None) -> TopK:
        """Find the k nearest candidates of each input with the best estimator.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        k : int, default=10
            The number of candidates per input, at most the size of the (largest) candidate set.
        candidates : collection, Candidates or list of collections, default=None
            The candidates, as in :meth:`predict`.

        Returns
        -------
        TopK
            ``indices`` and ``distances`` of shape (n, k), ``margins``, ``nearest`` and ``outputs``.

        See Also
        --------
        predict : The nearest candidate only.
        rank_candidates : All candidates of each input, with positions and conformal membership.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> search = IOKRCV(alphas=1e-4, cv=2).fit(X, np.hstack([X, X**2]))
        >>> search.predict_topk([[0.0]], k=2).indices
        array([[0, 1]])
        """
        return self._best().predict_topk(X, k, self._chosen(candidates))

    def predict_mean(self, X: Samples) -> Array:
        """Predict the output whose feature is nearest to the prediction of the best estimator among all outputs.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.

        Returns
        -------
        ndarray of shape (n, d) or (n,)
            The predicted rows of numbers, in float64.

        See Also
        --------
        psilearn.OEL.predict_mean : Which output kernels allow it, and how it is computed.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> from psilearn.kernels import Gaussian, Linear
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> IOKRCV(Gaussian(5.0), Linear(), alphas=1e-6, cv=2).fit(X, X).predict_mean([[0.51]]).round(3)
        array([[0.51]])
        """
        return self._best().predict_mean(X)

    def rank_candidates(
        self,
        X: Samples,
        candidates: Any = None,
        *,
        k: int | None = None,
        ties: str = "expected",
        coverage: float | None = None,
    ) -> Iterator[RankedCandidates]:
        """Rank all candidates of each input with the best estimator, nearest first.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        candidates : collection, Candidates or list of collections, default=None
            The candidates, as in :meth:`predict`.
        k : int, default=None
            How many candidates per input are returned. None returns all of them.
        ties : {"expected", "optimistic", "pessimistic"}, default="expected"
            The position of candidates at the same distance: the mean of their positions, the first or the last one.
        coverage : float, default=None
            If given, each result says which candidates belong to the conformal set with this coverage. The search must
            be calibrated.

        Returns
        -------
        iterator of RankedCandidates
            Indices, distances, margins, positions and conformal membership of the candidates of each input.

        See Also
        --------
        predict_topk : The k nearest candidates as arrays.
        predict_set : The conformal sets alone.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> search = IOKRCV(alphas=1e-4, cv=2).fit(X, np.hstack([X, X**2]))
        >>> next(search.rank_candidates([[0.0]], [[1.0, 1.0], [0.0, 0.0]])).indices
        array([1, 0])
        """
        return self._best().rank_candidates(X, self._chosen(candidates), k=k, ties=ties, coverage=coverage)

    def truth_positions(self, X: Samples, y: Samples, candidates: Any = None) -> TruthPositions:
        """Find the position of the true output of each input among its distinct candidates, by the best estimator.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        y : array, CSR matrix or sequence of n outputs
            The true outputs.
        candidates : collection, Candidates or list of collections, default=None
            The candidates, as in :meth:`predict`.

        Returns
        -------
        TruthPositions
            How many candidates are nearer than the truth and how many are tied with it.

        See Also
        --------
        psilearn.metrics.top_k_accuracy : The share of examples whose truth is among the k nearest candidates.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> Y = np.hstack([X, X**2])
        >>> IOKRCV(alphas=1e-4, cv=2).fit(X, Y).truth_positions(X[:1], Y[:1]).nearer
        array([0.])
        """
        return self._best().truth_positions(X, y, self._chosen(candidates))

    def calibrate(self, X: Samples, y: Samples, candidates: Any = None) -> Self:
        """Calibrate conformal sets of the best estimator on examples that ``fit`` has not seen.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs. At least coverage/(1 − coverage) examples are needed for a set that is smaller than all
            candidates.
        y : array, CSR matrix or sequence of n outputs
            The true outputs.
        candidates : collection, Candidates or list of collections, default=None
            Candidates of the kind that ``predict_set`` will be given. A true output that is not among them counts as
            infinitely far.

        Returns
        -------
        estimator
            The search itself.

        See Also
        --------
        predict_set : Conformal sets of new inputs.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 40).reshape(-1, 1)
        >>> Y = np.hstack([X, X**2])
        >>> search = IOKRCV(alphas=1e-4, cv=2).fit(X[::2], Y[::2])
        >>> search.calibrate(X[1::2], Y[1::2], candidates=Y).best_estimator_.calibration_scores_.shape
        (20,)
        """
        self._best().calibrate(X, y, self._chosen(candidates))
        return self

    def predict_set(self, X: Samples, coverage: float = 0.9, candidates: Any = None) -> PredictionSets:
        """Predict for each input a set of candidates that contains the true output with probability ``coverage``.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        coverage : float, default=0.9
            The probability, in [0, 1].
        candidates : collection, Candidates or list of collections, default=None
            The candidates, as in :meth:`predict`.

        Returns
        -------
        PredictionSets
            ``indices``, ``distances``, ``sizes`` and ``outputs`` of the sets.

        See Also
        --------
        calibrate : Must be called before.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 40).reshape(-1, 1)
        >>> Y = np.hstack([X, X**2])
        >>> search = IOKRCV(alphas=1e-4, cv=2).fit(X[::2], Y[::2]).calibrate(X[1::2], Y[1::2], candidates=Y)
        >>> len(search.predict_set(X[:3], coverage=0.8, candidates=Y).outputs)
        3
        """
        return self._best().predict_set(X, coverage, self._chosen(candidates))

    def score(self, X: Samples, y: Samples, candidates: Any = None) -> float:
        """Compute the (first) score of ``scoring`` of the best estimator on examples; higher is better.

        With ``scoring="mse"`` it is minus the mean of |G*z(x) − ψ(y)|², the error of the predicted embedding. A decoded
        metric is that of the predictions, and "top_k" is the share of true outputs among the k nearest candidates.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.
        y : array, CSR matrix or sequence of n outputs
            The true outputs.
        candidates : collection, Candidates or list of collections, default=None
            The candidates of decoded scores, as in :meth:`predict`.

        Returns
        -------
        float
            The score.

        See Also
        --------
        psilearn.OEL.score : Minus the mean output-kernel loss of the predictions.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> Y = np.hstack([X, X**2])
        >>> IOKRCV(alphas=1e-4, cv=2, scoring="top_1").fit(X, Y).score(X, Y)
        1.0
        """
        return as_scorings(self.scoring)[0].of_model(self._best(), X, y, self._chosen(candidates))

    def candidate_set(
        self, outputs: Samples, path: str | Path | None = None, *, dtype: DTypeLike | None = None
    ) -> SharedCandidates:
        """Embed candidates once with the best estimator, for many calls of ``predict`` and ``predict_topk``.

        Parameters
        ----------
        outputs : array, CSR matrix or sequence of c outputs
            The candidates.
        path : str or Path, default=None
            A new folder that stores the embedded candidates. They are memory-mapped, so that c·p numbers are never in
            memory. None keeps them in memory.
        dtype : {"float64", "float32"}, default=None
            Precision of the embeddings in the folder. None stores them as they are computed.

        Returns
        -------
        SharedCandidates
            The embedded candidates.

        See Also
        --------
        predict : Takes them as ``candidates``.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import IOKRCV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> search = IOKRCV(alphas=1e-4, cv=2).fit(X, np.hstack([X, X**2]))
        >>> len(search.candidate_set([[0.0, 0.0], [1.0, 1.0]]))
        2
        """
        return self._best().candidate_set(outputs, path, dtype=dtype)

    def embed(self, X: Samples) -> Array:
        """Compute the predicted embedding z(x) of inputs with the best estimator.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
            The inputs.

        Returns
        -------
        array of shape (n, p)
            The predicted embeddings, a tensor if X is one.

        See Also
        --------
        transform_outputs : The embedding of outputs in the same space.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import KDECV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> KDECV(alphas=1e-4, n_components=3, cv=2).fit(X, np.hstack([X, X**2])).embed(X[:2]).shape
        (2, 3)
        """
        return self._best().embed(X)

    def transform_outputs(self, Y: Samples) -> Array:
        """Compute the learned embedding g(y) of outputs with the best estimator.

        Parameters
        ----------
        Y : array, CSR matrix or sequence of n outputs
            The outputs.

        Returns
        -------
        array of shape (n, p)
            The embedded outputs, a tensor if Y is one.

        See Also
        --------
        embed : The predicted embedding of inputs in the same space.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import KDECV
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> search = KDECV(alphas=1e-4, n_components=3, cv=2).fit(X, np.hstack([X, X**2]))
        >>> search.transform_outputs([[0.5, 0.25]]).shape
        (1, 3)
        """
        return self._best().transform_outputs(Y)

    def _subspace_grid(self) -> tuple[list[float], list[int] | None]:
        """Return the grid of c, and that of p: empty for the default, None to keep every direction."""
        raise TypeError(f"{type(self).__name__} must implement _subspace_grid.")

    def _resolve_compute(self, *arrays: Any) -> Compute:
        """Return where to compute; raise if several processes would have to share a device."""
        validation.check_precision(self.dtype, "dtype")
        validation.check_n_jobs(self.n_jobs)
        validation.check_verbose(self.verbose, "verbose")
        compute = resolve_compute("float64", self.device, *arrays)
        if compute.device is not None and self.n_jobs not in (None, 1):
            raise ValueError(
                f"n_jobs={self.n_jobs!r} starts processes, which cannot share {compute.device}: use n_jobs=None."
            )
        return compute

    def _require_memory(self, problem: SearchProblem, compute: Compute) -> None:
        """Raise MemoryError before a search that needs more memory than there is."""
        n_jobs = 1 if compute.device is not None else min(effective_n_jobs(self.n_jobs), len(problem.splits))
        fit = fit_sizes(problem, Compute.of(self.dtype).itemsize)
        sizes = sizes_of(problem, fit, n_jobs, self.refit, uses_leave_one_out(self.cv))
        require_search_memory(sizes, problem, compute)

    def _make_output_paths(self, problem: SearchProblem, compute: Compute) -> list[list[OutputPath]]:
        """Return the coordinates of the outputs for each output kernel."""
        paths: list[list[OutputPath]] = []
        for kernel in problem.output_kernels:
            outputs = SearchedOutputs.of(kernel, problem.Y, problem.known, problem.knows_unlabeled)
            if problem.output_landmarks is None:
                exact = ExactOutputPath(outputs, problem.supervisions, compute)
                exact.diagonalize(max(problem.sizes) if problem.sizes else None)
                paths.append([exact])
            else:
                alpha = problem.alphas[len(problem.alphas) // 2]  # for leverage scores
                arguments = problem.supervisions, problem.unlabeled, problem.output_landmarks, alpha, compute
                paths.append([*LandmarkOutputPath.of(outputs, *arguments)])
        return paths

    def _make_path_grid(self, problem: SearchProblem, paths: list[list[OutputPath]]) -> PathGrid:
        """Return the grid of λ, c and p; the default of p depends on the spectrum with the first output kernel."""
        sizes = problem.sizes
        if sizes is not None and not sizes:
            sizes = grids.default_sizes(problem.n, paths[0][0].spectrum())
        for kernel, rank in zip(problem.output_kernels, _ranks(paths), strict=True):
            if sizes and sizes[-1] > rank:
                message = f"n_components={sizes[-1]} exceeds the rank of the outputs with {kernel!r}: {rank} are used."
                warnings.warn(message, UserWarning, stacklevel=3)
        return PathGrid(problem.alphas, problem.supervisions, sizes)

    def _make_tasks(
        self, problem: SearchProblem, paths: list[list[OutputPath]], grid: PathGrid, compute: Compute
    ) -> list[SplitTask]:
        """Return one task per split, or one per split and input kernel if several processes share them."""
        groups = [problem.input_kernels]
        if compute.device is None and effective_n_jobs(self.n_jobs) > 1:
            groups = [[kernel] for kernel in problem.input_kernels]
        return [
            SplitTask(
                paths,
                kernels,
                problem.X,
                problem.Y,
                train,
                held,
                problem.scorings,
                problem.candidates,
                grid,
                compute,
                Compute.of(self.dtype, compute.device),
                problem.input_landmarks,
                uses_leave_one_out(self.cv),
            )
            for train, held in problem.splits
            for kernels in groups
        ]

    def _run(self, tasks: list[SplitTask], compute: Compute) -> Array:
        """Return the scores of all tasks, computed in parallel if requested, of shape (splits × input kernels, …).

        joblib shares large arrays between processes and limits the threads of BLAS. With joblib's backend "dask", tasks
        run on the workers of the default client, and the data are sent once.
        """
        if uses_dask() and compute.device is None and self.n_jobs != 1:
            return np.concatenate(scores_on_dask(tasks))
        if compute.on_gpu and all(task.is_small_on_device() for task in tasks):
            tasks = [replace(task, input_kernels=[kernel]) for task in tasks for kernel in task.input_kernels]
            results = map_in_streams(SplitTask.scores, tasks, compute.device)
        else:
            n_jobs = self.n_jobs if compute.device is None else 1  # whatever a surrounding parallel_config sets
            results = run_parallel((delayed(task.scores)() for task in tasks), n_jobs)
        return np.concatenate(list(track(results, f"{type(self).__name__}: splits", total=len(tasks))))

    def _store_results(
        self, problem: SearchProblem, paths: list[list[OutputPath]], grid: PathGrid, scores: Array
    ) -> None:
        """Set ``grid_``, ``cv_results_`` and ``ranks_``."""
        n_splits, n_inputs, n_outputs = len(problem.splits), len(problem.input_kernels), len(problem.output_kernels)
        # splits, input kernels, output kernels, λ, c, p and candidates, scorings → scorings, settings, splits
        scores = scores.reshape(n_splits, n_inputs, n_outputs, -1, len(problem.scorings))
        tables = scores.transpose(4, 2, 1, 3, 0).reshape(len(problem.scorings), -1, n_splits)
        axes: dict[str, list[Any]] = {
            "output_kernel": problem.output_kernels,
            "input_kernel": problem.input_kernels,
            "alpha": list(grid.alphas),
            "supervision": list(grid.supervisions),
            "n_components": list(grid.sizes or []),
        }
        parameters = self._estimator().get_params()
        self.grid_ = {name: values for name, values in axes.items() if name in parameters}
        if problem.candidate_rules:
            self.grid_["candidates"] = list(problem.candidate_rules)
        named = {"score": tables[0]}  # the one that chooses
        if isinstance(self.scoring, list | tuple):
            named |= {scoring.name: table for scoring, table in zip(problem.scorings, tables, strict=True)}
        self.cv_results_ = results_table(self.grid_, named)
        self.ranks_ = _ranks(paths)

    def _choose(self) -> None:
        """Set the best setting, and warn if it lies at the edge of the grid."""
        best = self.best_where()
        self.best_params_, self.best_score_, self.best_index_ = best.params, best.score, best.index
        self.edges_ = best.edges
        for edge in self.edges_:
            warnings.warn(f"The best {edge}. Extend the grid to values beyond it.", UserWarning, stacklevel=3)

    def _fit_best(self, X: Samples, y: Samples, problem: SearchProblem) -> None:
        """Fit the best setting on all data, and copy the number and the names of the columns of X from it."""
        for name in ("best_estimator_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if not self.refit:
            return
        params = {name: value for name, value in self.best_params_.items() if name != "candidates"}
        best = self._estimator(**self._estimator_parameters(), **params)
        unlabeled = None if problem.unlabeled is None else problem.unlabeled.for_fit()
        self.best_estimator_ = best.fit(X, y, unlabeled=unlabeled)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))

    def _estimator_parameters(self) -> dict[str, Any]:
        """Return the parameters of the estimator that are not searched."""
        names = ("input_landmarks", "output_landmarks", "dtype", "device")
        return {name: getattr(self, name) for name in names}

    def _chosen(self, candidates: Any) -> Any:
        """Return the given candidates, or else the name of those that the search chose, if it did."""
        return self.best_params_.get("candidates") if candidates is None else candidates

    def _best(self) -> OutputKernelRegression:
        check_is_fitted(self, "cv_results_")
        best = getattr(self, "best_estimator_", None)
        if best is None:
            raise NotFittedError(
                f"This {type(self).__name__} was searched with refit=False, so it has scores but no model: build one "
                f"from best_params_, or search with refit=True."
            )
        return best

    def __sklearn_tags__(self) -> Any:
        return declare_sparse_inputs_and_outputs(super().__sklearn_tags__())


def _ranks(paths: list[list[OutputPath]]) -> list[int]:
    """Return the largest p that exists for each output kernel."""
    return [max(path.rank for path in group) for group in paths]
