"""OELCV, KDECV and IOKRCV: three grids and their estimators."""

from __future__ import annotations

from typing import Any

from psilearn._utils import validation
from psilearn.estimators import IOKR, KDE, OEL
from psilearn.model_selection import grids
from psilearn.model_selection.path_search import PathSearch


class OELCV(PathSearch):
    """Output Embedding Learning with λ, p, c and the kernels chosen by validation.

    The scores are those of fitting :class:`~psilearn.OEL` anew for every setting and split, at a small part of the
    cost: K_x is decomposed once an input kernel and split, whatever the number of output kernels (or factored for each
    λ, where these are few and the outputs span few dimensions); every p comes from one set of eigenvectors, and for
    each λ and c those are found by a few steps from their neighbours' (residual 1e-6). Memory: four matrices of d·r
    numbers for each output kernel, all held at once, for d distinct known outputs of rank r.

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
    cv : int, splitter, iterable of splits or "loo", optional
        default: five random splits, 80 % training and 20 % validation, as in the paper. "loo" leaves one example out at
        a time in closed form, at the price of one split: the regression, with the same ridge nλ, does not see it, but
        kernel widths and the directions of the embedding are learned with it, which flatters a small p where little can
        be predicted. There is then one score and no standard error.
    scoring : str, callable, or list of them
        "mse", the default, is minus the mean of |G*Gĥ(x) − ψ(y)|², in closed form. Decoded metrics, higher better:
        "loss" (minus the output-kernel loss), "f1", "hamming" (minus the loss), "kendall_tau", "spearman_rho",
        "pairwise_accuracy", "top_1" (or "top_5", …), or a function (y_true, y_pred) → float. Of several, computed at
        once, the first chooses; ``best_where(scoring="loss")`` chooses by another.
    one_standard_error : bool
        choose the simplest setting within one standard error of the best; simpler is fewer components, then more ridge.
    refit : bool
        fit the best setting on all data; False leaves the scores alone, and ``predict`` is then refused.
    n_jobs : int, optional
        processes over kernels and splits.
    verbose : bool or int
        show a progress bar.
    random_state : int, RandomState or None
        of the default splits.
    device : None, "cpu" or "cuda"
        where to compute, and where the best estimator does: as in :class:`~psilearn.OEL`. One process at a time.

    Attributes
    ----------
    best_estimator_ : OEL
        fitted on all data with ``best_params_``; not there with ``refit=False``.
    best_params_, best_score_, best_index_ :
        the chosen setting; its mean score; its row of ``cv_results_``. :meth:`best_where` chooses among some of them.
    edges_ : list of str
        where the best value is the first or the last of its grid, in words; a warning says the same.
    grid_ : dict of lists
        the values that were searched.
    ranks_ : list of int
        how many dimensions the outputs span, for each output kernel: the largest p that there is.
    cv_results_ : dict of arrays
        ``param_*``, ``split*_test_score``, ``mean_test_score``, ``std_test_score``, ``rank_test_score``, and for
        a list of scorings the same with their names; ready for ``pandas.DataFrame``.

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
    >>> search.best_where(supervision=0.0, n_components=[2, 4]).params["n_components"]
    4
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
        refit: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        super().__init__(
            input_kernels,
            output_kernels,
            alphas,
            cv,
            scoring,
            one_standard_error,
            refit,
            n_jobs,
            verbose,
            random_state,
            device,
        )
        self.n_components = n_components
        self.supervisions = supervisions

    def _subspace_grid(self) -> tuple[list[float], list[int] | None]:
        supervisions = grids.SUPERVISIONS if self.supervisions is None else self.supervisions
        return grids.numbers(supervisions, "supervisions", validation.check_fraction), _sizes(self.n_components)


class KDECV(PathSearch):
    """Kernel Dependency Estimation with λ, p and the kernels chosen by validation: :class:`OELCV` with c = 0.

    Parameters and attributes as in :class:`OELCV`, without ``supervisions``.
    """

    _estimator = KDE

    def __init__(
        self,
        input_kernels: Any = None,
        output_kernels: Any = None,
        alphas: Any = None,
        n_components: Any = None,
        cv: Any = None,
        scoring: Any = "mse",
        one_standard_error: bool = False,
        refit: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        super().__init__(
            input_kernels,
            output_kernels,
            alphas,
            cv,
            scoring,
            one_standard_error,
            refit,
            n_jobs,
            verbose,
            random_state,
            device,
        )
        self.n_components = n_components

    def _subspace_grid(self) -> tuple[list[float], list[int] | None]:
        return [0.0], _sizes(self.n_components)


class IOKRCV(PathSearch):
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
        refit: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        super().__init__(
            input_kernels,
            output_kernels,
            alphas,
            cv,
            scoring,
            one_standard_error,
            refit,
            n_jobs,
            verbose,
            random_state,
            device,
        )

    def _subspace_grid(self) -> tuple[list[float], list[int] | None]:
        return [1.0], None


def _sizes(n_components: Any) -> list[int]:
    return [] if n_components is None else grids.numbers(n_components, "n_components", validation.check_count)
