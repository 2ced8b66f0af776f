"""The protocol of the experiments: choose parameters by validation on training data, fit, use the test data once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from time import perf_counter
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit

from psilearn import IOKR, IOKRCV, KDE, OEL, OELCV
from psilearn.kernels import Gaussian, Kernel
from psilearn.metrics import Mean
from psilearn.utils import Samples, hold_out, n_samples, take
from psilearn_lab.experiments.experiment import Context
from psilearn_lab.experiments.results import Metric, Row
from psilearn_lab.experiments.widening import Line, Values, WidenedSearch

Score: TypeAlias = Callable[[Samples, Samples], Mean]  # of the true and the predicted outputs
Estimator: TypeAlias = IOKR | KDE | OEL
Search = TypeVar("Search", IOKRCV, OELCV)


class Model(Protocol):
    """A fitted model: an estimator or a baseline."""

    def predict(self, X: Samples, candidates: Samples | None = None) -> Samples:
        """Return the predicted outputs."""


@dataclass(frozen=True)
class Data:
    """Training pairs, outputs without inputs, and test pairs."""

    X: Samples
    Y: Samples
    X_test: Samples
    Y_test: Samples
    unlabeled: Samples | None = None


@dataclass(frozen=True)
class Grid:
    """The parameters among which validation chooses."""

    gammas: Sequence[float]  # of the Gaussian input kernel
    alphas: Sequence[float]
    sizes: Sequence[int]  # p
    scorings: Sequence[str]  # the first one is the protocol's; each further one adds lines to the table
    n_splits: int = 5
    joint: bool = False  # search the embedding with every input kernel, not only with the best one of IOKR
    max_rounds: int = 0  # how often a grid is extended at most


@dataclass(frozen=True)
class Method:
    """An estimator and the values of c that belong to it."""

    name: str
    estimator: type[Estimator]
    supervisions: Sequence[float] = ()


@dataclass(frozen=True)
class Choice:
    """The parameters that validation chose for a method."""

    method: Method
    outputs: str  # kind of output kernel
    parameters: dict[str, Any]
    edges: list[str]  # sentences about parameters at the edge of the grid
    seconds: float  # of the search
    criterion: str = ""  # the scoring that chose, if it is not the protocol's

    @property
    def name(self) -> str:
        """The name of the row."""
        by = f"by {self.criterion}" if self.criterion else ""
        return ", ".join(part for part in (self.method.name, self.outputs, by) if part)

    def make_model(self, **options: Any) -> Estimator:
        """Return the unfitted estimator; ``options`` are further parameters."""
        accepted = self.method.estimator().get_params(deep=False)
        return self.method.estimator(**{k: v for k, v in self.parameters.items() if k in accepted} | options)


@dataclass(frozen=True)
class Evaluation:
    """A fitted model, its predictions for the test inputs, their score and the times."""

    model: Any
    prediction: Samples
    score: Mean
    seconds: dict[str, float]


def choose_parameters(
    data: Data, outputs: Mapping[str, Sequence[Kernel]], grid: Grid, methods: Sequence[Method], context: Context
) -> list[Choice]:
    """Choose the parameters of every method and kind of output kernel on the training data alone.

    All searches use the same random 80/20 splits of the pairs. First IOKR chooses the input kernel, the output kernel
    of each kind and its λ; then the learned embeddings choose λ, p and c with these kernels (with every input kernel
    if the grid is joint). One search serves all learned embeddings of a kind. ``outputs`` maps each kind of output
    kernel, which is one line of the table, to its kernels; ``methods`` are IOKR and at least one other. Grids of γ, λ
    and p are extended where a chosen value is at an end.
    """
    choices = []
    direct = [method for method in methods if method.estimator is IOKR]
    learned = [method for method in methods if method.estimator is not IOKR]
    supervisions = sorted({c for method in learned for c in method.supervisions})
    context.log("choosing the kernels with IOKR")
    iokr, seconds = _search_kernels(data, outputs, grid, context)
    for kind, kernels in outputs.items():
        lines = [Line(scoring, {"output_kernel": kernels}) for scoring in grid.scorings]
        choices += [_make_choice(iokr, line, m, kind, grid, seconds) for line in lines for m in direct]
        context.log(f"choosing {'λ' if len(supervisions) == 1 else 'λ, c'} and p{', ' + kind if kind else ''}")
        oel, oel_seconds = _search_embedding(data, iokr, iokr.best(lines[0]), learned, grid, context)
        for scoring, method in product(grid.scorings, learned):
            line = Line(scoring, {"supervision": method.supervisions})
            choices.append(_make_choice(oel, line, method, kind, grid, oel_seconds))
    return sorted(choices, key=lambda choice: bool(choice.criterion))  # the lines of the protocol's criterion first


def _search_kernels(
    data: Data, outputs: Mapping[str, Sequence[Kernel]], grid: Grid, context: Context
) -> tuple[WidenedSearch, float]:
    """Return the search of γ, λ and every output kernel with IOKR, and its seconds."""
    every_output = [kernel for kernels in outputs.values() for kernel in kernels]
    lines = [Line(scoring, {"output_kernel": kernels}) for scoring in grid.scorings for kernels in outputs.values()]

    def run(values: Values) -> IOKRCV:
        context.log(f"IOKR: {_describe_values(values)}, {len(every_output)} output kernels")
        kernels = [Gaussian(gamma) for gamma in values["gamma"]]
        return _run_search(IOKRCV(kernels, every_output, alphas=values["alpha"]), data, grid, context)

    start = perf_counter()
    values: Values = {"gamma": sorted(grid.gammas), "alpha": sorted(grid.alphas)}
    search = WidenedSearch(run, values, lines, grid.max_rounds).fit()
    return search, perf_counter() - start


def _search_embedding(
    data: Data,
    iokr: WidenedSearch,
    best: Mapping[str, Any],
    learned: Sequence[Method],
    grid: Grid,
    context: Context,
) -> tuple[WidenedSearch, float]:
    """Return the search of λ, c and p with the output kernel that IOKR chose, and its seconds."""
    supervisions = sorted({c for method in learned for c in method.supervisions})
    lines = [Line(scoring, {"supervision": m.supervisions}) for scoring in grid.scorings for m in learned]
    rank = iokr.ranks[repr(best["output_kernel"])]  # a kernel such as Dice spans fewer dimensions
    values: Values = {
        "gamma": iokr.values["gamma"] if grid.joint else [best["input_kernel"].gamma],
        "alpha": sorted(grid.alphas),
        "n_components": [p for p in sorted(grid.sizes) if p <= rank],
    }

    def run(values: Values) -> OELCV:
        context.log(f"learned embeddings: {_describe_values(values)}, {len(supervisions)} values of c")
        search = OELCV(
            [Gaussian(gamma) for gamma in values["gamma"]],
            best["output_kernel"],
            alphas=values["alpha"],
            n_components=values["n_components"],
            supervisions=supervisions,
        )
        return _run_search(search, data, grid, context)

    start = perf_counter()
    return WidenedSearch(run, values, lines, grid.max_rounds).fit(), perf_counter() - start


def _make_choice(search: WidenedSearch, line: Line, method: Method, kind: str, grid: Grid, seconds: float) -> Choice:
    """Return the best parameters of a search for one line and method."""
    criterion = "" if line.scoring == grid.scorings[0] else line.scoring
    return Choice(method, kind, search.best(line), search.edges(line), seconds, criterion)


def _describe_values(values: Values) -> str:
    symbols = {"gamma": "γ", "alpha": "λ", "n_components": "p"}
    return ", ".join(f"{len(found)} values of {symbols[name]}" for name, found in values.items())


def _run_search(search: Search, data: Data, grid: Grid, context: Context) -> Search:
    """Return the fitted search."""
    splits = ShuffleSplit(grid.n_splits, test_size=0.2, random_state=context.seed)
    search.set_params(cv=splits, scoring=list(grid.scorings), refit=False, **context.search_options())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about edges: each choice lists its own
        search.fit(data.X, data.Y, unlabeled=data.unlabeled)
    return search


def fit_and_evaluate(model: Estimator, data: Data, score: Score, candidates: Samples | None = None) -> Evaluation:
    """Fit on the pairs and the outputs without inputs, decode the test inputs, and compare with the truth."""
    start = perf_counter()
    model.fit(data.X, data.Y, unlabeled=data.unlabeled)
    fit_seconds = perf_counter() - start
    evaluation = evaluate(model, data, score, candidates)
    return replace(evaluation, seconds={"fit": fit_seconds, **evaluation.seconds})


def evaluate(model: Model, data: Data, score: Score, candidates: Samples | None = None) -> Evaluation:
    """Decode the test inputs with a fitted model, and compare with the truth."""
    start = perf_counter()
    prediction = model.predict(data.X_test, candidates)
    seconds = {"decode": perf_counter() - start}
    return Evaluation(model, prediction, score(data.Y_test, prediction), seconds)


def select_by_holdout(models: Sequence[OEL], data: Data, seed: int) -> OEL:
    """Return the unfitted model with the best score on a held-out fifth of the pairs; nothing is fitted for one."""
    if len(models) == 1:
        return models[0]
    kept, held_out = hold_out(n_samples(data.X), 0.2, seed)
    X, Y, X_held, Y_held = (take(part, rows) for rows in (kept, held_out) for part in (data.X, data.Y))
    scores = [clone(model).fit(X, Y, unlabeled=data.unlabeled).score(X_held, Y_held) for model in models]
    return models[int(np.argmax(scores))]


def make_row(
    dataset: str,
    choice: Choice,
    evaluation: Evaluation,
    metric: Metric,
    scale: float = 1.0,
    *,
    paper: float | None = None,
    comparable: bool = True,
) -> Row:
    """Return the row of a table; the score is multiplied by ``scale``."""
    return Row(
        dataset,
        choice.name,
        metric,
        scale * float(evaluation.score),
        scale * evaluation.score.standard_error,
        paper=paper,
        comparable=comparable,
        parameters=describe_parameters(evaluation.model),
        seconds={"choose": choice.seconds, **evaluation.seconds},
    )


def describe_parameters(model: Estimator) -> dict[str, Any]:
    """Return the parameters of a fitted model as JSON data."""
    described: dict[str, Any] = {
        "input_kernel": repr(model.input_kernel),
        "output_kernel": repr(model.output_kernel_),
    }
    for name in ("alpha", "n_components", "supervision", "input_landmarks", "output_landmarks"):
        value = getattr(model, name, None)
        if value is not None:
            described[name] = value if isinstance(value, int | float) else repr(value)
    if model.dtype != "float64":
        described["dtype"] = str(model.dtype)
    return described


def edge_notes(choices: Sequence[Choice]) -> list[str]:
    """Return a note for each chosen parameter at the edge of its grid."""
    return [f"{choice.name}: {sentence.rstrip('.')}." for choice in choices for sentence in choice.edges]


def difference_note(
    results: Mapping[str, Evaluation], method: str, reference: str, scale: float = 1.0, digits: int = 3
) -> str:
    """Return a note with the difference of two methods on the same test examples and its paired standard error."""
    difference = Mean(results[method].score.values - results[reference].score.values)
    return (
        f"{quote_name(method)} minus {quote_name(reference)}: {scale * difference:+.{digits}f} ± "
        f"{scale * difference.standard_error:.{digits}f} (paired over the test examples)."
    )


def quote_name(name: str) -> str:
    """Return the name of a row for a sentence, in quotation marks if it contains a comma."""
    return f"“{name}”" if "," in name else name
