"""The protocol that the experiments share: choose by validation on training data, fit, look at the test data once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit

from psilearn import IOKR, IOKRCV, OELCV
from psilearn._utils.holdout import hold_out
from psilearn._utils.samples import Samples, n_samples, take
from psilearn.experiments.experiment import Context
from psilearn.experiments.record import Metric, Row
from psilearn.kernels import Kernel
from psilearn.metrics import Mean

Score = Callable[[Samples, Samples], Mean]  # of truth and prediction


@dataclass(frozen=True)
class Data:
    """Pairs to learn from, outputs without inputs, and pairs to be judged by."""

    X: Samples
    Y: Samples
    X_test: Samples
    Y_test: Samples
    unlabeled: Samples | None = None


@dataclass(frozen=True)
class Grid:
    """What is tried."""

    input_kernels: Sequence[Kernel]
    alphas: Sequence[float]
    sizes: Sequence[int]  # p
    scorings: Sequence[str]  # the first is the protocol's; others make further lines of the table
    n_splits: int = 5
    joint: bool = False  # search the embedding with every input kernel, not only with the one that IOKR prefers


@dataclass(frozen=True)
class Method:
    """An estimator, and which c of the grid belong to it."""

    name: str
    estimator: type
    supervisions: Sequence[float] = ()


@dataclass(frozen=True)
class Choice:
    """The setting that validation chose for a method."""

    method: Method
    outputs: str  # kind of output kernel
    parameters: dict[str, Any]
    edges: list[str]  # where it lies at the edge of the grid
    seconds: float  # of the search
    criterion: str = ""  # that chose, where it is not the protocol's

    @property
    def name(self) -> str:
        """How the row is called."""
        by = f"by {self.criterion}" if self.criterion else ""
        return ", ".join(part for part in (self.method.name, self.outputs, by) if part)

    def model(self, **options: Any) -> Any:
        """Return the estimator, unfitted."""
        accepted = self.method.estimator().get_params(deep=False)
        return self.method.estimator(**{k: v for k, v in self.parameters.items() if k in accepted} | options)


@dataclass(frozen=True)
class Measured:
    """A fitted model, what it predicts for the test inputs, and how good that is."""

    model: Any
    prediction: Samples
    score: Mean
    seconds: dict[str, float]


def choose(
    data: Data, outputs: Mapping[str, Sequence[Kernel]], grid: Grid, methods: Sequence[Method], context: Context
) -> list[Choice]:
    """Choose the parameters of every method and kind of output kernel; the test data plays no part.

    Random 80/20 splits of the pairs, the same for all. First IOKR chooses the input kernel, the output kernel of each
    kind and its λ; then the learned embeddings choose λ, p and c with these kernels (with every input kernel where the
    grid is joint). One search serves all learned embeddings of a kind.

    Parameters
    ----------
    data : Data
    outputs : dict of kind → kernels
        a kind whose kernels differ in width only is one line of the table.
    grid : Grid
    methods : list of Method
        IOKR and at least one other.
    context : Context
    """
    choices = []
    learned = [method for method in methods if method.estimator is not IOKR]
    every_output = [kernel for kernels in outputs.values() for kernel in kernels]
    context.say("choosing the kernels with IOKR")
    iokr, seconds = _searched(IOKRCV(grid.input_kernels, every_output, grid.alphas), data, grid, context)
    for kind, kernels in outputs.items():
        where: dict[str, Any] = {"output_kernel": list(kernels)}
        kept = [method for method in methods if method.estimator is IOKR]
        choices += [_choice(iokr, line, kind, where, seconds) for line in product(grid.scorings, kept)]
        best = iokr.best_where(**where).params
        input_kernels = grid.input_kernels if grid.joint else [best["input_kernel"]]
        supervisions = sorted({c for method in learned for c in method.supervisions})
        rank = iokr.ranks_[iokr.grid_["output_kernel"].index(best["output_kernel"])]
        sizes = [p for p in grid.sizes if p <= rank]  # a kernel such as Dice spans fewer dimensions than others
        oel = OELCV(input_kernels, best["output_kernel"], grid.alphas, sizes, supervisions)
        context.say(f"choosing {'λ' if len(supervisions) == 1 else 'λ, c'} and p{', ' + kind if kind else ''}")
        oel, took = _searched(oel, data, grid, context)
        for line in product(grid.scorings, learned):
            choices.append(_choice(oel, line, kind, {"supervision": list(line[1].supervisions)}, took))
    return sorted(choices, key=lambda choice: bool(choice.criterion))  # the protocol's own lines first


def _choice(search: Any, line: tuple[str, Method], kind: str, where: dict[str, Any], seconds: float) -> Choice:
    scoring, method = line
    best = search.best_where(scoring, **where)
    criterion = "" if scoring == search.scoring[0] else scoring
    edges = [edge for edge in best.edges if not edge.startswith("output_kernel")]  # kinds and readings, not a range
    return Choice(method, kind, best.params, edges, seconds, criterion)


def _searched(search: Any, data: Data, grid: Grid, context: Context) -> tuple[Any, float]:
    """Return the fitted search and its seconds."""
    splits = ShuffleSplit(grid.n_splits, test_size=0.2, random_state=context.seed)
    search.set_params(cv=splits, scoring=list(grid.scorings), n_jobs=context.jobs, refit=False)
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of edges: each choice names its own
        search.fit(data.X, data.Y, unlabeled=data.unlabeled)
    return search, perf_counter() - start


def measure(model: Any, data: Data, score: Score, candidates: Any = None) -> Measured:
    """Fit on the pairs and the outputs alone, decode the test inputs, and compare with the truth."""
    start = perf_counter()
    model.fit(data.X, data.Y, unlabeled=data.unlabeled)
    fitted = perf_counter() - start
    measured = tested(model, data, score, candidates)
    return replace(measured, seconds={"fit": fitted, **measured.seconds})


def tested(model: Any, data: Data, score: Score, candidates: Any = None) -> Measured:
    """Decode the test inputs with a fitted model, and compare with the truth."""
    start = perf_counter()
    prediction = model.predict(data.X_test, candidates)
    seconds = {"decode": perf_counter() - start}
    return Measured(model, prediction, score(data.Y_test, prediction), seconds)


def least_validation_loss(models: Sequence[Any], data: Data, seed: int) -> Any:
    """Return the unfitted model whose score is best on a fifth of the pairs, held out; a single one needs no choice."""
    if len(models) == 1:
        return models[0]
    kept, held = hold_out(n_samples(data.X), 0.2, seed)
    X, Y, X_held, Y_held = (take(part, rows) for rows in (kept, held) for part in (data.X, data.Y))
    scores = [clone(model).fit(X, Y, unlabeled=data.unlabeled).score(X_held, Y_held) for model in models]
    return models[int(np.argmax(scores))]


def row(dataset: str, choice: Choice, measured: Measured, metric: Metric, scale: float = 1.0, **more: Any) -> Row:
    """Return the line of a table, times ``scale``."""
    return Row(
        dataset,
        choice.name,
        metric,
        scale * float(measured.score),
        scale * measured.score.standard_error,
        parameters=parameters(measured.model),
        seconds={"choose": choice.seconds, **measured.seconds},
        **more,
    )


def parameters(model: Any) -> dict[str, Any]:
    """Return what a fitted model was built with, as plain data."""
    named: dict[str, Any] = {"input_kernel": repr(model.input_kernel_), "output_kernel": repr(model.output_kernel_)}
    for name in ("alpha", "n_components", "supervision", "input_landmarks", "output_landmarks"):
        value = getattr(model, name, None)
        if value is not None:
            named[name] = value if isinstance(value, int | float) else repr(value)
    if model.dtype != "float64":
        named["dtype"] = str(model.dtype)
    return named


def edge_notes(choices: Sequence[Choice]) -> list[str]:
    """Say where a choice lies at the edge of its grid."""
    return [f"{choice.name}: {sentence}" for choice in choices for sentence in choice.edges]


def paired_note(results: Mapping[str, Measured], one: str, other: str, scale: float = 1.0, digits: int = 3) -> str:
    """Say how much one method differs from another on the same test examples, with the paired standard error."""
    difference = Mean(results[one].score.values - results[other].score.values)
    return (
        f"{one} minus {other}: {scale * difference:+.{digits}f} ± {scale * difference.standard_error:.{digits}f} "
        f"(paired over the test examples)."
    )
