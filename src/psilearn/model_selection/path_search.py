"""What the searches share: score the whole grid, choose, refit the best."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from rich.progress import track
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from psilearn._backend import computing, device_for, release, working_device
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples, n_samples
from psilearn.decoding import CandidateSets, Ranks, TopK, as_candidates
from psilearn.decoding.all_rankings import LISTED, has_all_rankings
from psilearn.embedding import KnownOutputs
from psilearn.estimators.output_kernel_regression import check_outputs_of_fit
from psilearn.kernels.blocks import checked
from psilearn.model_selection import grids
from psilearn.model_selection.choice import Choice, best_row, results_table, rows_where
from psilearn.model_selection.scoring import Scoring, as_scorings
from psilearn.model_selection.split_scores import OutputSide, Task
from psilearn.rankings import all_rankings


class PathSearch(BaseEstimator):
    """What the three searches share; they differ in the grid and in the estimator."""

    def __init__(
        self,
        input_kernels: Any,
        output_kernels: Any,
        alphas: Any,
        cv: Any,
        scoring: Any,
        one_standard_error: bool,
        refit: bool,
        n_jobs: int | None,
        verbose: int,
        random_state: Any,
        device: Any,
    ) -> None:
        self.input_kernels = input_kernels
        self.output_kernels = output_kernels
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.refit = refit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.device = device

    def fit(
        self, X: Samples, y: Samples, unlabeled: Samples | None = None, candidates: Any = None, groups: Any = None
    ) -> Self:
        """Score every setting of the grid on every split, and fit the best on all data (unless ``refit=False``).

        Parameters
        ----------
        X, y, unlabeled :
            as in :meth:`psilearn.OEL.fit`. Unlabeled outputs serve in every split.
        candidates : collection, list of collections or CandidateSets, optional
            what decoded scores decode to: one set for all, or one an example of X. By default each split decodes to
            the outputs that its model knows, or to all rankings with a kernel of rankings. Not used by
            ``scoring="mse"``.
        groups : array (n,), optional
            for splitters that keep groups of examples together.
        """
        device = device_for(self.device, X, y, unlabeled)
        if device is not None and self.n_jobs not in (None, 1):
            raise ValueError(f"n_jobs={self.n_jobs!r} starts processes, which cannot share {device}: use n_jobs=None.")
        with computing(np.float64, device):
            self._search(X, y, unlabeled, candidates, groups)
        release(device)
        self.__dict__.pop("best_estimator_", None)  # of an earlier fit
        if not self.refit:
            return self
        best = self._estimator(device=self.device, **self.best_params_)
        self.best_estimator_ = best.fit(X, y, unlabeled=unlabeled)
        if hasattr(self.best_estimator_, "n_features_in_"):
            self.n_features_in_ = self.best_estimator_.n_features_in_
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_
        return self

    def _search(self, X: Samples, y: Samples, unlabeled: Any, candidates: Any, groups: Any) -> None:
        """Score the grid and choose."""
        scorings = as_scorings(self.scoring)
        input_kernels = (
            grids.default_input_kernels(X)
            if self.input_kernels is None
            else grids.kernels(self.input_kernels, "input_kernels")
        )
        output_kernels = grids.kernels(self.output_kernels, "output_kernels")
        narrow = next((scoring.name for scoring in scorings if scoring.of_one_kernel), None)
        if narrow and len(output_kernels) > 1:
            raise ValueError(
                f'scoring="{narrow}" is measured in the space of the output kernel, so {len(output_kernels)} '
                f'output kernels cannot be compared by it: use a decoded metric such as "f1", or one output kernel.'
            )
        checked_X = X
        for kernel in input_kernels:
            checked_X = checked(kernel, X, "X", allow_1d=False)
        n = n_samples(checked_X)
        Y, stream = check_outputs_of_fit(type(self).__name__, output_kernels[0], y, unlabeled, n)
        U = None if stream is None else stream.collect()
        alphas = (
            grids.default_alphas(n)
            if self.alphas is None
            else grids.numbers(self.alphas, "alphas", validation.check_positive)
        )
        supervisions, sizes = self._subspace_grid()
        if grids.leaves_one_out(self.cv) and (groups is not None or self.one_standard_error):
            raise ValueError(
                'cv="loo" leaves single examples out and has no standard error: with groups or one_standard_error=True '
                "use splits, such as GroupKFold() or cv=5."
            )
        splits = grids.splits_of(self.cv, Y, groups, self.random_state)
        known = KnownOutputs.of(Y, U)
        if sizes:
            grids.check_components(
                sizes, n_samples(known.outputs), f"there are {n_samples(known.outputs)} known outputs"
            )
        given = None
        if any(scoring.decodes for scoring in scorings):
            given = self._check_candidates(candidates, output_kernels[0], known.outputs, n)
            if given is None:
                given = self._default_candidates(scorings, output_kernels, Y)

        outputs, own_sizes = [], bool(sizes)
        for kernel in output_kernels:
            side = OutputSide(kernel.fit(Y), known, U is not None, supervisions)
            if sizes and own_sizes:
                grids.check_components(sizes, side.rank, f"the outputs span {side.rank} dimensions by {kernel!r}")
            side.turn(max(sizes) if sizes and own_sizes else None)
            if sizes is not None and not sizes:
                sizes = grids.default_n_components(n, side.spectrum())  # later kernels of lower rank are cut there
            outputs.append(side)
        tasks = [
            Task(outputs, kernel_x, checked_X, Y, train, held, scorings, given, grids.leaves_one_out(self.cv))
            for kernel_x, (train, held) in product(input_kernels, splits)
        ]
        scores = self._run(tasks, alphas, supervisions, sizes)
        # (input kernels, splits, output kernels, λ, c and p, scorings) → scorings × settings × splits
        shape = len(input_kernels), len(splits), len(output_kernels), -1, len(scorings)
        tables = scores.reshape(shape).transpose(4, 2, 0, 3, 1).reshape(len(scorings), -1, len(splits))
        grid: dict[str, list[Any]] = {
            "output_kernel": output_kernels,
            "input_kernel": input_kernels,
            "alpha": alphas,
            "supervision": supervisions,
            "n_components": sizes or [],
        }
        self.grid_ = {name: values for name, values in grid.items() if name in self._estimator().get_params()}
        named = {"score": tables[0]}  # the one that chooses
        if isinstance(self.scoring, list | tuple):
            named |= {scoring.name: table for scoring, table in zip(scorings, tables, strict=True)}
        self.cv_results_ = results_table(self.grid_, named)
        self.ranks_ = [side.rank for side in outputs]
        best = self.best_where()
        self.best_params_, self.best_score_, self.best_index_ = best.params, best.score, best.index
        self.edges_ = best.edges
        for edge in self.edges_:
            warnings.warn(f"The best {edge}. Extend the grid to values beyond it.", UserWarning, stacklevel=3)

    def _run(self, tasks: list[Task], alphas: list[float], supervisions: list[float], sizes: list[int] | None) -> Array:
        """Evaluate the tasks, in parallel where asked; joblib shares large arrays and limits BLAS threads."""
        n_jobs = self.n_jobs if working_device() is None else 1  # whatever a surrounding parallel_config says
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        results = parallel(delayed(task.scores)(alphas, supervisions, sizes) for task in tasks)
        if self.verbose:
            results = track(results, f"{type(self).__name__}: kernels × splits", total=len(tasks))
        return np.stack(list(results))

    def best_where(self, scoring: str = "score", **fixed: Any) -> Choice:
        """Return the best of the settings that have these values, by the rule that chose ``best_params_``.

        Parameters
        ----------
        scoring : str
            where there are several scorings, the name of the one that chooses; by default the first.
        **fixed :
            parameters by their names in ``best_params_``, each one value of its grid or a list of them: any of these.
            Kernels count as equal where their kind and their parameters are. Without any, the best of all.

        Returns
        -------
        Choice
            with ``params``, ``score``, ``index`` (the row of ``cv_results_``) and ``edges``, those of the parameters
            that were not fixed to one value. ``search.best_where(supervision=0.0).params`` is what KDECV would choose.
        """
        check_is_fitted(self, "cv_results_")
        if scoring == as_scorings(self.scoring)[0].name:
            scoring = "score"
        if f"mean_test_{scoring}" not in self.cv_results_:
            raise ValueError(f"scoring={scoring!r} was not computed; this search has scoring={self.scoring!r}.")
        index = best_row(self.cv_results_, scoring, rows_where(self.grid_, fixed), self.one_standard_error)
        params = self.cv_results_["params"][index]
        searched = {
            name: values for name, values in self.grid_.items() if len(grids.as_list(fixed.get(name, values), name)) > 1
        }
        edges = grids.edges_of(searched, params, max(self.ranks_))
        return Choice(dict(params), float(self.cv_results_[f"mean_test_{scoring}"][index]), index, edges)

    def _check_candidates(self, candidates: Any, kernel: Any, known: Samples, n: int) -> Any:
        if candidates is None:
            return None
        candidates = as_candidates(candidates, known)

        def of_kernel(outputs: Samples, name: str) -> Samples:
            outputs = checked(kernel, outputs, name)
            if hasattr(outputs, "shape") == hasattr(known, "shape"):  # a list of rows may stand for an array
                kernel.check_alike(outputs, name, known, "the known outputs")
            return outputs

        return (
            candidates.checked(of_kernel, n)
            if isinstance(candidates, CandidateSets)
            else of_kernel(candidates, "candidates")
        )

    def _default_candidates(self, scorings: list[Scoring], kernels: list[Any], Y: Samples) -> Samples | None:
        """Return all rankings where they must be listed, else None: what each split knows or searches."""
        of_rankings = [has_all_rankings(kernel) for kernel in kernels]
        if grids.leaves_one_out(self.cv) and not all(of_rankings):
            raise ValueError(
                'cv="loo" with a decoded scoring needs candidates: the known outputs would hold the one that is left '
                'out. Give candidates, use scoring="mse", or splits such as cv=5.'
            )
        top = next((scoring.name for scoring in scorings if scoring.top_k is not None), None)
        if top is None or not any(of_rankings):
            return None
        if not all(of_rankings) or kernels[0].n_items(Y) > LISTED:
            raise ValueError(
                f"scoring={top!r} counts the candidates nearer than the truth, and all rankings are listed up to "
                f"{LISTED} items and for kernels of rankings alone: give candidates."
            )
        kernels[0].check_full(Y, "y")
        return kernels[0].in_form_of(Y, all_rankings(kernels[0].n_items(Y)))

    _estimator: Any = None  # its parameters are the axes of the grid; the others have one value

    def _subspace_grid(self) -> tuple[list[float], list[int] | None]:
        """Return the grid of c, and that of p: empty for the default, None where everything is kept."""
        raise NotImplementedError

    def predict(self, X: Samples, candidates: Any = None) -> Samples:
        """Predict with the best estimator; see :meth:`psilearn.OEL.predict`."""
        return self._best().predict(X, candidates)

    def predict_topk(self, X: Samples, k: int = 10, candidates: Any = None) -> TopK:
        """Return the k nearest candidates; see :meth:`psilearn.OEL.predict_topk`."""
        return self._best().predict_topk(X, k, candidates)

    def rank(self, X: Samples, y: Samples, candidates: Any = None) -> Ranks:
        """Return the rank of the truth; see :meth:`psilearn.OEL.rank`."""
        return self._best().rank(X, y, candidates)

    def embed(self, X: Samples) -> Array:
        """Return z(x) of the best estimator."""
        return self._best().embed(X)

    def transform_outputs(self, Y: Samples) -> Array:
        """Return g(y) of the best estimator."""
        return self._best().transform_outputs(Y)

    def score(self, X: Samples, y: Samples, candidates: Any = None) -> float:
        """Return minus the mean output-kernel loss of the best estimator's predictions."""
        return self._best().score(X, y, candidates)

    def _best(self) -> Any:
        check_is_fitted(self, "cv_results_")
        if not hasattr(self, "best_estimator_"):
            raise NotFittedError(
                f"This {type(self).__name__} was searched with refit=False, so it has scores and no model: build one "
                f"from best_params_, or search with refit=True."
            )
        return self.best_estimator_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
