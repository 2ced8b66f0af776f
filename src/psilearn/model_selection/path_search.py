"""The fit that the three searches share: score the whole grid, choose the best setting, fit it on all data."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from joblib import delayed, effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from psilearn._backend import Compute, map_in_streams, resolve_compute
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.estimators import publish
from psilearn._utils.progress import show_progress, track
from psilearn._utils.samples import Samples
from psilearn._utils.worker_processes import run_parallel, uses_dask
from psilearn.model_selection import grids
from psilearn.model_selection.best_estimator import BestEstimatorPredictions
from psilearn.model_selection.choice import Choice, best_row, results_table, rows_where
from psilearn.model_selection.grids import PathGrid
from psilearn.model_selection.scoring import as_scorings
from psilearn.model_selection.search_memory import fit_sizes, require_search_memory, sizes_of
from psilearn.model_selection.search_problem import SearchProblem, check_problem
from psilearn.model_selection.split_outputs import (
    ExactOutputPath,
    LandmarkOutputPath,
    OutputPath,
    SearchedOutputs,
)
from psilearn.model_selection.split_scores import SplitTask, scores_on_dask
from psilearn.model_selection.splits import uses_leave_one_out


class PathSearch(BestEstimatorPredictions):
    """The fit of the searches, which differ in the grid of c and p and in the estimator.

    A subclass defines ``_estimator``, whose parameters are the axes of the grid, and ``_subspace_grid``.
    """

    _estimator: Any

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

    def _subspace_grid(self) -> tuple[list[float], list[int] | None]:
        """Return the grid of c, and that of p: empty for the default, None to keep every direction."""
        raise TypeError(f"{type(self).__name__} must implement _subspace_grid.")

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


def _ranks(paths: list[list[OutputPath]]) -> list[int]:
    """Return the largest p that exists for each output kernel."""
    return [max(path.rank for path in group) for group in paths]
