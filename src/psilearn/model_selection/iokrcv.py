"""The search for Input Output Kernel Regression."""

from __future__ import annotations

from typing import Any

from psilearn.estimators import IOKR
from psilearn.landmarks import Landmarks
from psilearn.model_selection.grids import KernelGrid, NumberGrid
from psilearn.model_selection.path_search import PathSearch


class IOKRCV(PathSearch):
    """Input Output Kernel Regression with λ and the kernels chosen by validation.

    The scores are those of fitting :class:`~psilearn.IOKR` again for every setting and split, at a small part of the
    cost: K_x is decomposed once per input kernel and split and serves every λ. Memory: three matrices of d·r numbers
    per output kernel for d distinct outputs of rank r, one more for decoded scores, and two matrices of n² numbers.

    Parameters
    ----------
    input_kernels : Kernel, callable or list of them, default=None
        The input kernels that are searched. None is five Gaussian kernels with widths around the median heuristic and,
        if X is sparse or has no negative entries, three more on the rows of X scaled to length 1.
        Kernels that are learned from data are fitted on the training examples of each split.
    output_kernels : Kernel, callable or list of them, default=None
        The output kernels that are searched; several can only be compared by a decoded metric. None chooses by the kind
        of y: Dice for rows of zeros and ones, Kemeny for rankings, a Gaussian kernel with the median width for other
        outputs. A median width is taken once, from all of y.
    alphas : float or list of float, default=None
        The ridge parameters λ that are searched. None is a grid from 1e-5/√n to 10/√n.
    input_landmarks : int, Landmarks or None, default=None
        None decomposes K_x and stores n² numbers. With q landmarks (an int: drawn at random) the search works in their
        span, as IOKR(input_landmarks=...) does: landmarks are chosen among the training inputs of each split, which are
        read in blocks, so that n may be in the hundreds of thousands. Landmarks by leverage scores use the middle
        value of ``alphas``.
    output_landmarks : int, Landmarks or None, default=None
        None spans every distinct output and stores d² numbers for d of them. With r landmarks (an int: chosen by
        randomly pivoted Cholesky) the search works in the coordinates of their span, as IOKR(output_landmarks=...)
        does: landmarks are chosen among the training outputs of each split. Landmarks by leverage scores use the middle
        value of ``alphas``.
    cv : int, splitter, iterable of splits or "loo", default=None
        The splits. None is five random splits with 80 % training and 20 % validation examples, as in the paper. "loo"
        leaves one example out at a time in closed form, at the cost of one split: the regression, with the same ridge
        nλ, does not use it, but kernel widths are learned with it. There is then one score and no standard error.
    scoring : str, callable, scikit-learn scorer, or list of them, default="mse"
        The score of a setting; higher is better. "mse" is minus the mean of |G*Gĥ(x) − ψ(y)|², in closed form. Decoded
        metrics are "loss" (minus the output-kernel loss), "f1", "hamming" (minus the loss), "jaccard",
        "subset_accuracy", "kendall_tau", "spearman_rho", "pairwise_accuracy", "top_1" (or "top_5", …), a function
        (y_true, y_pred) → float, and the scorers of scikit-learn that are based on predictions: names such as
        "f1_samples", or ``make_scorer(...)``. A function may also return one value per example, or a
        :class:`~psilearn.metrics.Mean`: the mean is the score, and each value must depend only on the true and the
        predicted output of its example, because it is computed once per pair of them, as for the metrics by name.
        Several scorings are computed at once, and the first one chooses.
    candidates : {"known", "near", "all"}, AllLabelSets, NearLabelSets or list of them, default=None
        The candidates of decoded scores, and of predictions without candidates: the known outputs; the known label sets
        and those that differ from one of them by one label; or all label sets or rankings, as in
        :meth:`~psilearn.OEL.predict`. Several are searched, with a decoded metric: ``best_params_["candidates"]`` is
        the best one. None is the default of the estimator.
    one_standard_error : bool, default=False
        Whether to choose the simplest setting within one standard error of the best. Simpler means fewer components,
        then more ridge.
    refit : bool, default=True
        Whether to fit the best setting on all data. Without it there are scores only, and ``predict`` raises.
    n_jobs : int or None, default=None
        The number of processes that share the input kernels and splits. None is one process, in which all input
        kernels share the coordinates of the outputs and the kernel values of candidates.
    verbose : int, default=0
        1 shows a progress bar on stderr if the search takes longer than a second.
    random_state : int, RandomState or None, default=None
        The random seed of the default splits.
    dtype : {"float64", "float32", "tf32"}, default="float64"
        The precision of the candidates' kernel values and distances in decoded scores, and of the best estimator.
        Everything else in the search is float64. float32 needs half the memory and time for one set of candidates per
        example; candidates whose distances differ by less than its rounding errors tie.
    device : {"cpu", "cuda"}, torch.device or None, default=None
        The torch device that computes (``pip install 'psilearn[torch]'``), for the search and for the best estimator.
        None computes with NumPy, or on the device of tensors that are passed instead of arrays. Only one process can
        use a device.

    Attributes
    ----------
    best_estimator_ : IOKR
        The estimator with ``best_params_``, fitted on all data. It does not exist with ``refit=False``.
    best_params_ : dict
        The parameters of the best setting.
    best_score_ : float
        The mean score of the best setting.
    best_index_ : int
        The row of the best setting in ``cv_results_``.
    edges_ : list of str
        Descriptions of the parameters whose best value is the first or the last of its grid; warnings say the same.
    grid_ : dict of lists
        The values that were searched, by the names of the parameters of :class:`~psilearn.IOKR`.
    ranks_ : list of int
        The number of dimensions that the outputs span with each output kernel.
    cv_results_ : dict of arrays
        ``params``, ``param_*``, ``split*_test_score``, ``mean_test_score``, ``std_test_score``, ``rank_test_score``,
        and the same with the name of each scoring if there are several; ready for ``pandas.DataFrame``.
    n_features_in_ : int
        The number of columns of X, if X has rows and ``refit=True``.

    See Also
    --------
    IOKR : The estimator.
    OELCV : Also learns the output embedding.

    References
    ----------
    Brouard, Szafranski and d'Alché-Buc, *Input Output Kernel Regression*, JMLR 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import IOKRCV
    >>> from psilearn.kernels import Gaussian
    >>> X = np.linspace(0, 1, 60).reshape(-1, 1)
    >>> Y = np.hstack([np.sin(6 * X), np.cos(6 * X)])
    >>> search = IOKRCV([Gaussian(1.0), Gaussian(10.0)], Gaussian(1.0), alphas=[1e-8, 1e-4, 1e-2], cv=5).fit(X, Y)
    >>> search.best_params_["input_kernel"]
    Gaussian(gamma=10.0)
    """

    _estimator = IOKR

    def __init__(
        self,
        input_kernels: KernelGrid = None,
        output_kernels: KernelGrid = None,
        *,
        alphas: NumberGrid = None,
        input_landmarks: int | Landmarks | None = None,
        output_landmarks: int | Landmarks | None = None,
        cv: Any = None,
        scoring: Any = "mse",
        candidates: Any = None,
        one_standard_error: bool = False,
        refit: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
        dtype: Any = "float64",
        device: Any = None,
    ) -> None:
        super().__init__(
            input_kernels,
            output_kernels,
            alphas=alphas,
            input_landmarks=input_landmarks,
            output_landmarks=output_landmarks,
            cv=cv,
            scoring=scoring,
            candidates=candidates,
            one_standard_error=one_standard_error,
            refit=refit,
            n_jobs=n_jobs,
            verbose=verbose,
            random_state=random_state,
            dtype=dtype,
            device=device,
        )

    def _subspace_grid(self) -> tuple[list[float], list[int] | None]:
        return [1.0], None
