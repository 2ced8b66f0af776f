"""The validated data, splits and grids of a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit, check_cv

from psilearn._distributed import is_dask
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples, n_samples, take
from psilearn.decoding import AllLabelSets, Candidates, NearLabelSets, SharedCandidates, as_candidates
from psilearn.decoding.all_rankings import MAX_LISTED_ITEMS, has_all_rankings
from psilearn.decoding.label_sets.listable import ListableLabelSets
from psilearn.embedding import Embedding, KnownOutputs
from psilearn.estimators.base import check_fit_outputs, check_outputs
from psilearn.kernels import Kernel
from psilearn.landmarks.selection import Landmarks, as_landmarks
from psilearn.model_selection import grids
from psilearn.model_selection.scoring import Scoring, as_scorings
from psilearn.model_selection.split_outputs import UnlabeledOutputs

Split = tuple[Index, Index]  # the numbers of the training and of the validation examples
N_DEFAULT_SPLITS = 5
DEFAULT_VALIDATION_SHARE = 0.2


@dataclass(frozen=True)
class SearchProblem:
    """What a search is computed from, except for the default grid of p, which depends on the outputs' spectrum."""

    X: Samples
    Y: Samples
    unlabeled: UnlabeledOutputs | None
    known: KnownOutputs  # the distinct outputs in memory
    input_kernels: list[Kernel]
    output_kernels: list[Kernel]
    alphas: list[float]
    supervisions: list[float]
    sizes: list[int] | None  # empty for the default, None to keep every direction
    input_landmarks: Landmarks | None
    output_landmarks: Landmarks | None
    scorings: list[Scoring]
    splits: list[Split]
    candidate_rules: list[str | ListableLabelSets]  # that are searched; empty if there is no choice
    candidates: list[Candidates | str | None]  # of decoded scores, one per choice; None for the default

    @property
    def n(self) -> int:
        """The number of examples."""
        return n_samples(self.Y)

    @property
    def knows_unlabeled(self) -> bool:
        """Whether there are unlabeled outputs among the known ones."""
        return self.unlabeled is not None and self.unlabeled.in_memory is not None


def check_problem(search: Any, X: Samples, y: Samples, unlabeled: Any, candidates: Any, groups: Any) -> SearchProblem:
    """Validate the parameters of a search and its data, before any long computation starts."""
    if y is None:
        raise ValueError(f"{type(search).__name__} requires y to be passed, but the target y is None.")
    if any(is_dask(part) for part in (X, y, unlabeled)):
        raise TypeError(
            f"{type(search).__name__} takes its data in memory: search on a sample, such as X[::100].compute() and "
            f"y[::100].compute(), and fit best_params_ on the Dask collections. The tasks of a search run on a cluster "
            f'inside of joblib.parallel_config("dask").'
        )
    validation.check_bool(search.refit, "refit")
    validation.check_bool(search.one_standard_error, "one_standard_error")
    validation.check_verbose(search.verbose, "verbose")
    validation.as_random_state(search.random_state)
    scorings = as_scorings(search.scoring)
    supervisions, sizes = search._subspace_grid()
    input_landmarks = as_landmarks(search.input_landmarks, "input_landmarks", "uniform")
    output_landmarks = as_landmarks(search.output_landmarks, "output_landmarks", "pivoted")
    input_kernels = grids.input_kernel_grid(search.input_kernels, X)
    output_kernels = grids.output_kernel_grid(search.output_kernels, y)
    _check_comparable(scorings, output_kernels)
    for kernel in input_kernels:
        inputs = kernel.check(X, "X", allow_1d=False)
    for kernel in output_kernels:
        check_outputs(kernel, y)
    Y, stream = check_fit_outputs(output_kernels[0], y, unlabeled, n_samples(inputs))
    alphas = grids.alpha_grid(search.alphas, n_samples(inputs))
    _check_leave_one_out(search, groups)
    splits = make_splits(search.cv, Y, groups, search.random_state)
    others = UnlabeledOutputs.of(stream, unlabeled, stores_all=output_landmarks is None)
    known = KnownOutputs.of(Y, None if others is None else others.in_memory)
    if search.candidates is not None and candidates is not None:
        raise ValueError(f"The search chooses among candidates={search.candidates!r}: pass no candidates to fit.")
    given = candidates if grids.is_candidate_rule(candidates) else search.candidates
    rules = grids.candidate_grid(given, scorings[0].decodes)
    choices = _check_choices(rules, candidates, output_kernels, known.outputs, n_samples(Y))
    if any(scoring.decodes for scoring in scorings):
        for choice in choices:
            _check_default_candidates(choice, scorings, output_kernels, Y, uses_leave_one_out(search.cv))
    return SearchProblem(
        inputs,
        Y,
        others,
        known,
        input_kernels,
        output_kernels,
        alphas,
        supervisions,
        sizes,
        input_landmarks,
        output_landmarks,
        scorings,
        splits,
        rules,
        choices,
    )


def _check_comparable(scorings: list[Scoring], output_kernels: list[Kernel]) -> None:
    name = next((scoring.name for scoring in scorings if scoring.needs_one_kernel), None)
    if name and len(output_kernels) > 1:
        raise ValueError(
            f'scoring="{name}" is measured in the space of the output kernel, so {len(output_kernels)} output kernels '
            f'cannot be compared by it: use a decoded metric such as "f1", or one output kernel.'
        )


def _check_leave_one_out(search: Any, groups: Any) -> None:
    if uses_leave_one_out(search.cv) and (groups is not None or search.one_standard_error):
        raise ValueError(
            'cv="loo" leaves single examples out and has no standard error: with groups or one_standard_error=True '
            "use splits, such as GroupKFold() or cv=5."
        )


def _check_choices(
    rules: list[str | ListableLabelSets], candidates: Any, kernels: list[Kernel], known: Samples, n: int
) -> list[Candidates | str | None]:
    """Return the candidates that are searched, those that were passed to ``fit``, or None for the default."""

    def check(outputs: Samples, name: str) -> Samples:
        for kernel in reversed(kernels):  # the form of the first kernel is kept
            checked = kernel.check(outputs, name)
            kernel.check_same_kind(checked, name, known, "the known outputs")
        return checked

    if not rules:
        return [None if candidates is None else as_candidates(candidates, known, check, n)]
    for rule in rules:  # every output kernel must be able to search the candidates
        for kernel in kernels:
            embedding = Embedding(kernel, take(known, slice(0, 1)), np.zeros((1, 1)))
            as_candidates(rule, SharedCandidates(known, embedding), check, n)
    return list(rules)


def _check_default_candidates(
    choice: Candidates | str | None, scorings: list[Scoring], kernels: list[Any], Y: Samples, is_loo: bool
) -> None:
    """Raise if candidates that depend on the split contain the output that is left out, or cannot be listed."""
    if isinstance(choice, AllLabelSets | NearLabelSets) and choice.known is None:
        choice = "all" if isinstance(choice, AllLabelSets) else "near"
    if isinstance(choice, Candidates):
        return
    of_rankings = [kernel for kernel in kernels if has_all_rankings(kernel) and choice in (None, "all")]
    if is_loo and choice != "all" and len(of_rankings) < len(kernels):
        raise ValueError(
            'cv="loo" with a decoded scoring needs candidates: the known outputs contain the one that is left out. '
            'Give candidates, use scoring="mse", or splits such as cv=5.'
        )
    top = next((scoring.name for scoring in scorings if scoring.top_k is not None), None)
    for kernel in of_rankings if top else []:
        kernel.check_full(Y, "y")
        if kernel.n_items(Y) > MAX_LISTED_ITEMS:
            raise ValueError(
                f"scoring={top!r} counts the candidates that are nearer than the truth, and all rankings are listed up "
                f"to {MAX_LISTED_ITEMS} items only: give candidates."
            )


def uses_leave_one_out(cv: Any) -> bool:
    """Return whether the closed-form leave-one-out replaces splits."""
    if isinstance(cv, str) and cv != "loo":
        raise ValueError(f'cv must be an integer, a splitter, an iterable of splits, "loo" or None; got {cv!r}.')
    return isinstance(cv, str)


def make_splits(cv: Any, y: Samples, groups: Any, random_state: Any) -> list[Split]:
    """Return the splits; by default five random ones with 80 % training examples, as in the paper."""
    n = n_samples(y)
    if uses_leave_one_out(cv):
        if n < 2:
            raise ValueError(f'cv="loo" needs at least 2 examples; got {n}.')
        return [(np.arange(n), np.arange(n))]
    check_groups(groups, n)
    splits = [(_as_indices(train), _as_indices(held)) for train, held in _split(cv, y, groups, random_state)]
    if not splits:
        raise ValueError("cv contains no split.")
    for i, split in enumerate(splits):
        _check_split(i, *split, n)
    return splits


def check_groups(groups: Any, n: int) -> None:
    """Raise an error unless there is one group per example, or none."""
    if groups is None:
        return
    array = np.asarray(groups, dtype=object if isinstance(groups, list | tuple) else None)
    if array.shape != (n,) or array.dtype.kind not in "biufUSO":
        raise ValueError(f"groups must have one value per example, {n}; got shape {array.shape}, {array.dtype}.")


def _split(cv: Any, y: Samples, groups: Any, random_state: Any) -> list[tuple[Any, Any]]:
    """Return the splits of the parameter ``cv`` as its splitter yields them; an error names the parameter."""
    labels = y if isinstance(y, np.ndarray) else None  # for splitters that stratify
    try:
        splitter = check_cv(cv)
        if cv is None:
            splitter = ShuffleSplit(N_DEFAULT_SPLITS, test_size=DEFAULT_VALIDATION_SHARE, random_state=random_state)
        return [(train, held) for train, held in splitter.split(np.zeros((n_samples(y), 1)), labels, groups)]
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"cv={cv!r:.80} cannot split {n_samples(y)} examples: {error}") from error


def _as_indices(side: Any) -> Index:
    """Return one side of a split as indices; masks are allowed, as in scikit-learn."""
    array = np.asarray(side)
    if array.dtype == bool:
        array = np.flatnonzero(array)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(f"A split of cv must hold integer indices or masks; got shape {array.shape}, {array.dtype}.")
    return array.astype(np.intp)


def _check_split(number: int, train: Index, held: Index, n: int) -> None:
    if not len(train) or not len(held):
        raise ValueError(
            f"Split {number} of cv has {len(train)} training and {len(held)} validation examples: both need one."
        )
    low, high = min(train.min(), held.min()), max(train.max(), held.max())
    if low < 0 or high >= n:
        raise ValueError(f"Split {number} of cv has the examples {low} to {high}; valid numbers are 0 to {n - 1}.")
