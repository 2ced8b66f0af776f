"""OELCV, KDECV and IOKRCV: search the whole grid, refit the best."""

from __future__ import annotations

from itertools import product
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from rich.progress import track
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from psilearn import checks
from psilearn.decode import CandidateSets, Ranks, TopK, as_candidates
from psilearn.embed import KnownOutputs
from psilearn.embed.path import SMALL
from psilearn.estimators import IOKR, KDE, OEL
from psilearn.estimators.base import check_outputs_of_fit
from psilearn.linalg import Array
from psilearn.model_selection import grids
from psilearn.model_selection.evaluate import OutputSide, Task
from psilearn.model_selection.scoring import as_scoring
from psilearn.samples import Samples, n_samples


class _PathSearch(BaseEstimator):
    """What the three searches share; they differ in the grid and in the estimator."""

    def __init__(
        self,
        input_kernels: Any,
        output_kernels: Any,
        alphas: Any,
        cv: Any,
        scoring: Any,
        one_standard_error: bool,
        n_jobs: int | None,
        verbose: int,
        random_state: Any,
    ) -> None:
        self.input_kernels = input_kernels
        self.output_kernels = output_kernels
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(
        self, X: Samples, y: Samples, unlabeled: Samples | None = None, candidates: Any = None, groups: Any = None
    ) -> Self:
        """Score every setting of the grid on every split, and fit the best on all data.

        Parameters
        ----------
        X, y, unlabeled :
            as in :meth:`psilearn.OEL.fit`. Unlabeled outputs serve in every split.
        candidates : collection, list of collections or CandidateSets, optional
            what decoded scores decode to: one set for all, or one an example of X. By default each split decodes to
            the outputs that its model knows. Not used by ``scoring="mse"``.
        groups : array (n,), optional
            for splitters that keep groups of examples together.
        """
        scoring = as_scoring(self.scoring)
        input_kernels = (
            grids.default_input_kernels(X)
            if self.input_kernels is None
            else grids.kernels(self.input_kernels, "input_kernels")
        )
        output_kernels = grids.kernels(self.output_kernels, "output_kernels")
        if scoring.of_one_kernel and len(output_kernels) > 1:
            raise ValueError(
                f'scoring="{scoring.name}" is measured in the space of the output kernel, so {len(output_kernels)} '
                f'output kernels cannot be compared by it: use a decoded metric such as "f1", or one output kernel.'
            )
        checked_X = X
        for kernel in input_kernels:
            checked_X = kernel.check(X, "X", allow_1d=False)
        n = n_samples(checked_X)
        Y, stream = check_outputs_of_fit(type(self).__name__, output_kernels[0], y, unlabeled, n)
        U = None if stream is None else stream.collect()
        alphas = (
            grids.default_alphas(n) if self.alphas is None else grids.numbers(self.alphas, "alphas", checks.positive)
        )
        supervisions, sizes = self._subspace_grid()
        splits = grids.splits_of(self.cv, Y, groups, self.random_state)
        known = KnownOutputs.of(Y, U)
        if sizes:
            grids.check_components(
                sizes, n_samples(known.outputs), f"there are {n_samples(known.outputs)} known outputs"
            )
        given = self._check_candidates(candidates, output_kernels[0], known.outputs, n) if scoring.decodes else None

        scores, rank, own_sizes = [], 0, bool(sizes)
        for kernel in output_kernels:
            outputs = OutputSide(kernel.fit(Y), known, U is not None, supervisions)
            rank = max(rank, outputs.rank)
            if sizes and own_sizes:
                grids.check_components(sizes, outputs.rank, f"the outputs span {outputs.rank} dimensions by {kernel!r}")
            outputs.turn()
            if sizes is not None and not sizes:
                sizes = grids.default_n_components(n, outputs.spectrum())  # later kernels of lower rank are cut there
            tasks = [
                Task(outputs, kernel_x, checked_X, Y, train, held, scoring, given)
                for kernel_x, (train, held) in product(input_kernels, splits)
            ]
            scores.append(self._run(tasks, alphas, supervisions, sizes))
        # (output kernels, input kernels, splits, λ, c, p) → settings × splits
        table = np.stack(scores).reshape(len(output_kernels), len(input_kernels), len(splits), len(alphas), -1)
        table = np.moveaxis(table, 2, -1).reshape(-1, len(splits))
        grid: dict[str, list[Any]] = {
            "output_kernel": output_kernels,
            "input_kernel": input_kernels,
            "alpha": alphas,
        }
        if sizes is not None:
            grid |= {"supervision": list(supervisions), "n_components": list(sizes)}
        self._choose(grid, table)
        grids.warn_of_edges(
            {name: values for name, values in grid.items() if name in self.best_params_},
            self.best_params_,
            {"supervision": (0.0, 1.0), "n_components": (1, rank)},
        )
        self.best_estimator_ = self._estimator(**self.best_params_).fit(X, y, unlabeled=unlabeled)
        if hasattr(self.best_estimator_, "n_features_in_"):
            self.n_features_in_ = self.best_estimator_.n_features_in_
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_
        return self

    def _run(self, tasks: list[Task], alphas: list[float], supervisions: list[float], sizes: list[int] | None) -> Array:
        """Evaluate the tasks, in parallel where asked; joblib shares large arrays and limits BLAS threads.

        Small eigenproblems are solved sooner by one BLAS thread than by several.
        """
        with threadpool_limits(1 if tasks[0].outputs.rank <= SMALL else None):
            parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
            results = parallel(delayed(task.scores)(alphas, supervisions, sizes) for task in tasks)
            if self.verbose:
                results = track(results, f"{type(self).__name__}: kernels × splits", total=len(tasks))
            return np.stack(list(results))

    def _choose(self, grid: dict[str, list[Any]], table: Array) -> None:
        """Fill ``cv_results_`` and name the best setting; a tie goes to the simpler model."""
        settings = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        names = [name for name in grid if name not in self._fixed]
        mean, std = table.mean(axis=1), table.std(axis=1)
        if not np.isfinite(mean).all():
            raise ValueError(f"The score is not finite for the setting {settings[int(np.argmin(np.isfinite(mean)))]}.")
        error = table.std(axis=1, ddof=1) / np.sqrt(table.shape[1]) if table.shape[1] > 1 else np.zeros_like(mean)
        best = int(np.argmax(mean))
        slack = error[best] if self.one_standard_error else 1e-12 * abs(mean[best])
        good = np.flatnonzero(mean >= mean[best] - slack)
        # simpler: fewer components, then more ridge, then the better score
        self.best_index_ = int(
            min(good, key=lambda i: (settings[i].get("n_components", 0), -settings[i]["alpha"], -mean[i]))
        )
        self.best_params_ = {name: settings[self.best_index_][name] for name in names}
        self.best_score_ = float(mean[self.best_index_])
        results: dict[str, Any] = {"params": [{name: s[name] for name in names} for s in settings]}
        results |= {f"param_{name}": _column([s[name] for s in settings]) for name in names}
        results |= {f"split{j}_test_score": table[:, j] for j in range(table.shape[1])}
        order = np.unique(-mean, return_inverse=True)[1]
        results |= {"mean_test_score": mean, "std_test_score": std, "rank_test_score": order.ravel() + 1}
        self.cv_results_ = results

    def _check_candidates(self, candidates: Any, kernel: Any, known: Samples, n: int) -> Any:
        if candidates is None:
            return None
        candidates = as_candidates(candidates, known)
        if isinstance(candidates, CandidateSets):
            return candidates.checked(kernel.check, n)
        return kernel.check(candidates, "candidates")

    _fixed: tuple[str, ...] = ()  # grid axes of one value that the estimator has no parameter for
    _estimator: Any = None

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
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def _column(values: list[Any]) -> Any:
    """Return an array of numbers, or of objects where they are none."""
    if isinstance(values[0], int | float):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


class OELCV(_PathSearch):
    """Output Embedding Learning with λ, p, c and the kernels chosen by validation.

    The scores are those of fitting :class:`~psilearn.OEL` anew for every setting and split, at a small part of the
    cost: K_x is decomposed once a kernel and split, every p comes from one set of eigenvectors, and for each λ and c
    those are found by a few steps from their neighbours' (residual 1e-6). Memory: three matrices of d·r numbers for d
    distinct known outputs of rank r.

    Parameters
    ----------
    input_kernels : kernel or list of kernels, optional
        default: Gaussian kernels of five widths around the median heuristic.
    output_kernels : kernel or list of kernels, optional
        default: a Gaussian kernel with the median width, taken once from all of y. Several can be compared by a
        decoded metric only.
    alphas : float or list, optional
        λ; default: from 1e-5/√n to 10/√n.
    n_components : int or list, optional
        p; default: a logarithmic grid up to the rank or 400, with the theory's suggestion.
    supervisions : float or list, optional
        c; default 0, 0.2, …, 1.
    cv : int, splitter or iterable of splits, optional
        default: five random splits, 80 % training and 20 % validation, as in the paper.
    scoring : str or callable
        "mse", the default, is minus the mean of |G*Gĥ(x) − ψ(y)|², in closed form. Decoded metrics, higher better:
        "loss" (minus the output-kernel loss), "f1", "hamming" (minus the loss), "kendall_tau", "top_1" (or "top_5", …),
        or a function (y_true, y_pred) → float.
    one_standard_error : bool
        choose the simplest setting within one standard error of the best; simpler is fewer components, then more ridge.
    n_jobs : int, optional
        processes over kernels and splits.
    verbose : bool or int
        show a progress bar.
    random_state : int, RandomState or None
        of the default splits.

    Attributes
    ----------
    best_estimator_ : OEL
        fitted on all data with ``best_params_``.
    best_params_, best_score_, best_index_ :
        the chosen setting; its mean score; its row of ``cv_results_``.
    cv_results_ : dict of arrays
        ``param_*``, ``split*_test_score``, ``mean_test_score``, ``std_test_score``, ``rank_test_score``; ready for
        ``pandas.DataFrame``.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import OELCV
    >>> from psilearn.kernels import Gaussian
    >>> X = np.linspace(0, 1, 60).reshape(-1, 1)
    >>> Y = np.hstack([np.sin(6 * X), np.cos(6 * X)])
    >>> search = OELCV(input_kernels=[Gaussian(g) for g in (1.0, 10.0, 100.0)], output_kernels=Gaussian(1.0),
    ...                alphas=[1e-8, 1e-6, 1e-4, 1e-2], n_components=[2, 4, 8], supervisions=[0.0, 0.5, 1.0],
    ...                random_state=0).fit(X, Y)
    >>> len(search.cv_results_["params"])
    108
    >>> search.best_params_["n_components"]
    8
    """

    _estimator = OEL

    def __init__(
        self,
        input_kernels: Any = None,
        output_kernels: Any = None,
        alphas: Any = None,
        n_components: Any = None,
        supervisions: Any = None,
        cv: Any = None,
        scoring: Any = "mse",
        one_standard_error: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            input_kernels, output_kernels, alphas, cv, scoring, one_standard_error, n_jobs, verbose, random_state
        )
        self.n_components = n_components
        self.supervisions = supervisions

    def _subspace_grid(self) -> tuple[list[float], list[int] | None]:
        supervisions = grids.SUPERVISIONS if self.supervisions is None else self.supervisions
        return grids.numbers(supervisions, "supervisions", checks.fraction), _sizes(self.n_components)


class KDECV(_PathSearch):
    """Kernel Dependency Estimation with λ, p and the kernels chosen by validation: :class:`OELCV` with c = 0.

    Parameters and attributes as in :class:`OELCV`, without ``supervisions``.
    """

    _estimator = KDE
    _fixed = ("supervision",)

    def __init__(
        self,
        input_kernels: Any = None,
        output_kernels: Any = None,
        alphas: Any = None,
        n_components: Any = None,
        cv: Any = None,
        scoring: Any = "mse",
        one_standard_error: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            input_kernels, output_kernels, alphas, cv, scoring, one_standard_error, n_jobs, verbose, random_state
        )
        self.n_components = n_components

    def _subspace_grid(self) -> tuple[list[float], list[int] | None]:
        return [0.0], _sizes(self.n_components)


class IOKRCV(_PathSearch):
    """Input Output Kernel Regression with λ and the kernels chosen by validation.

    Parameters and attributes as in :class:`OELCV`, without ``n_components`` and ``supervisions``.
    """

    _estimator = IOKR

    def __init__(
        self,
        input_kernels: Any = None,
        output_kernels: Any = None,
        alphas: Any = None,
        cv: Any = None,
        scoring: Any = "mse",
        one_standard_error: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            input_kernels, output_kernels, alphas, cv, scoring, one_standard_error, n_jobs, verbose, random_state
        )

    def _subspace_grid(self) -> tuple[list[float], list[int] | None]:
        return [1.0], None


def _sizes(n_components: Any) -> list[int]:
    return [] if n_components is None else grids.numbers(n_components, "n_components", checks.count)
