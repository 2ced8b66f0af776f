"""Competing methods, chosen as carefully as ours: on held-out training examples, then tested once.

A config gives a grid of parameters for each baseline, as JSON data. Each baseline holds out a part of its training
examples, the same for all settings of a seed. The grid is widened around the setting with the smallest error there, as
often as the config allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from time import perf_counter
from typing import Any, TypeAlias

from sklearn.model_selection import ParameterGrid

from psilearn import OEL
from psilearn.kernels import Gaussian, Kernel
from psilearn.utils import Samples, hold_out, n_columns, n_samples
from psilearn_lab import baselines
from psilearn_lab.baselines import Baseline
from psilearn_lab.experiments.experiment import Context
from psilearn_lab.experiments.protocol import (
    Data,
    Evaluation,
    Score,
    difference_note,
    fit_and_evaluate,
    quote_name,
    select_by_holdout,
)
from psilearn_lab.experiments.results import Metric, Row
from psilearn_lab.experiments.tuned_lines import Tested, scale_data, score_predictions, top_labels
from psilearn_lab.experiments.widening import (
    BASES,
    FRACTIONS,
    Axis,
    Best,
    Block,
    Scores,
    Setting,
    edge_sentence,
    find_ends,
    values_of,
    widen_best_variant,
)

ParameterValues: TypeAlias = Mapping[str, Sequence[Any]]  # name of a parameter → the values that are tried

MakeBaseline: TypeAlias = Callable[[Mapping[str, Any]], Baseline]
Variant: TypeAlias = tuple[str | None, Mapping[str, Any]]  # a scaling of the rows, and options without an order
TITLES = {"KNN": "k-NN", "KRR": "KRR, no embedding", "RRR": "reduced rank"}
NETWORKS = ("NN", "SPEN", "DVN")
LARGEST_FRACTION = 0.99  # of dropped units, omitted labels and the like


@dataclass(frozen=True)
class Competitor:
    """A model that was fitted with the parameters that validation chose."""

    key: str  # name of the baseline, or of the row
    model: Baseline | OEL
    parameters: dict[str, Any]  # the chosen ones
    edges: list[str]  # sentences about parameters at an end of their grids
    seconds: dict[str, float]

    @property
    def name(self) -> str:
        """The name of the row."""
        return TITLES.get(self.key, self.key)

    def make_row(
        self,
        dataset: str,
        evaluation: Evaluation,
        metric: Metric,
        scale: float = 1.0,
        *,
        method: str | None = None,
        paper: float | None = None,
    ) -> Row:
        """Return the row of a table, named ``method`` if it is given; the score is multiplied by ``scale``."""
        return Row(
            dataset,
            method or self.name,
            metric,
            scale * float(evaluation.score),
            scale * evaluation.score.standard_error,
            paper=paper,
            parameters={
                key: value if isinstance(value, int | float) else str(value) for key, value in self.parameters.items()
            },
            seconds=self.seconds | evaluation.seconds,
        )

    def edge_notes(self) -> list[str]:
        """Return a note for each chosen parameter at an end of its grid."""
        return [f"{self.name}: {edge}" for edge in self.edges]


def fit_competitor(key: str, grid: ParameterValues, data: Data, context: Context) -> Competitor:
    """Fit a baseline with the setting of the smallest error on held-out examples, chosen from a grid that is widened.

    Options without an order are chosen by the first grid. Then each list of at least two numbers is widened around the
    best setting, at most as often as ``competitor_rounds`` of the config says (0 if it has none). ``gamma`` in a grid
    is the parameter of a Gaussian input kernel.
    """
    start = perf_counter()
    make = partial(_make_baseline, key, context)
    axes = _make_axes(key, grid, data, context)
    options = ParameterGrid({k: list(v) for k, v in grid.items() if k not in {axis.name for axis in axes}})
    tuning = Tuning(TITLES.get(key, key), make, axes, data, context)
    _, best, chosen, scores = tuning.choose([(None, option) for option in options], "competitor_rounds")
    model = make(chosen).fit(data.X, data.Y)
    seconds = {"choose and fit": perf_counter() - start}
    return Competitor(key, model, chosen, find_ends(axes, best, scores), seconds)


@dataclass(frozen=True)
class Tuning:
    """The search for the parameters of a baseline on held-out training rows, by grids that are widened."""

    name: str
    make: MakeBaseline
    axes: Sequence[Axis]  # the numbers that are searched
    data: Data
    context: Context

    def choose(self, variants: Sequence[Variant], rounds: str) -> tuple[Variant, Best, dict[str, Any], Scores]:
        """Return the best variant, setting and parameters; at most as many rounds as the config says widen the grid."""
        max_rounds = self.context.config.get(rounds, 0)
        variant, best, scores = widen_best_variant(self.axes, variants, self._evaluate, max_rounds)
        return variant, best, {**variant[1], **values_of(self.axes, best.setting)}, scores

    def _evaluate(self, variant: Variant, block: Block, known: Scores) -> Scores:
        """Return minus the errors on the held-out rows of all settings of a block that are not known."""
        scaling, option = variant
        data = scale_data(self.data, scaling)
        name = ", ".join(filter(None, (self.name, scaling)))

        def log(described: str) -> None:
            self.context.log(", ".join(filter(None, (name, described))))

        return validate_block(self.make, self.axes, block, known, option, data.X, data.Y, log)


def _make_axes(key: str, grid: ParameterValues, data: Data, context: Context) -> list[Axis]:
    """Return the parameters of a grid that are numbers, with the largest values that exist."""
    return [
        Axis.from_values(name, values, _largest_value(key, name, data, context))
        for name, values in grid.items()
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    ]


def _largest_value(key: str, name: str, data: Data, context: Context) -> float:
    """Return the largest value of a parameter: the number of neighbors, of outputs or of dimensions of centered X."""
    fraction = getattr(baselines, key)().validation_fraction
    n_training = len(hold_out(n_samples(data.X), fraction, context.seed)[0])
    if name == "n_components":
        return n_columns(data.Y) or 1 if key == "RRR" else min(n_training - 1, data.X.shape[1])
    return {"n_neighbors": n_training, **dict.fromkeys(FRACTIONS, LARGEST_FRACTION)}.get(name, float("inf"))


def fit_neural_oel(
    name: str,
    output_kernel: Kernel,
    supervisions: Sequence[float],
    data: Data,
    score: Score,
    context: Context,
) -> tuple[Competitor, Evaluation]:
    """Choose, fit and test OEL with a network as ĥ; the decoded loss of one held-out fifth of the pairs chooses."""
    from psilearn_lab.neural import NeuralRegressor

    config = context.config["neural"]
    models = [
        OEL(
            output_kernel=output_kernel,
            n_components=p,
            supervision=c,
            output_landmarks=config["output_landmarks"],
            regressor=NeuralRegressor(hidden, random_state=context.seed, device=context.device, **config["regressor"]),
        )
        for hidden, p, c in product(config["hidden"], config["sizes"], supervisions)
    ]
    context.log(f"{name}: {len(models)} settings")
    start = perf_counter()
    chosen = select_by_holdout(models, data, context.seed)
    seconds = {"choose": perf_counter() - start}
    evaluation = fit_and_evaluate(chosen, data, score)
    parameters = {
        "hidden": chosen.regressor.hidden,
        "n_components": chosen.n_components,
        "supervision": chosen.supervision,
    }
    return Competitor(name, evaluation.model, parameters, [], seconds), evaluation


def comparison_note(results: Mapping[str, Evaluation], metric: Metric, scale: float = 1.0, digits: int = 3) -> str:
    """Return a note that names the competitors which are better than the best of IOKR, KDE and OEL with kernels."""
    sign = 1 if metric.better == "higher" else -1
    ours = [name for name in results if name.startswith(("OEL", "IOKR", "KDE")) and "neural" not in name]
    best = max(ours, key=lambda name: sign * results[name].score)
    better = [name for name in results if name not in ours and sign * results[name].score > sign * results[best].score]
    if not better:
        return f"No competitor is better than {quote_name(best)}."
    differences = " ".join(difference_note(results, name, best, scale, digits) for name in better)
    return (
        f"Better than {quote_name(best)}, the best of IOKR, KDE and OEL with kernels on the test examples: "
        f"{differences}"
    )


def _make_baseline(key: str, context: Context, setting: Mapping[str, Any], **options: Any) -> Baseline:
    """Return an unfitted baseline; ``gamma`` is the width of a Gaussian input kernel."""
    parameters = {**setting, **options, "random_state": context.seed, "device": context.device}
    if "gamma" in parameters:
        parameters["input_kernel"] = Gaussian(parameters.pop("gamma"))
    baseline: Baseline = getattr(baselines, key)(**parameters)
    if "n_jobs" in baseline.get_params():
        baseline.set_params(n_jobs=context.n_jobs)
    return baseline


def validate_block(
    make: MakeBaseline,
    axes: Sequence[Axis],
    block: Block,
    known: Scores,
    option: Mapping[str, Any],
    X: Samples,
    Y: Samples,
    log: Callable[[str], None],
) -> Scores:
    """Return minus the error on the held-out rows of all settings of a block, without those whose score is known.

    ``make`` returns a baseline with given parameters. The values of the parameter that it chooses itself are passed to
    it as a list; if that parameter has no axis, the smallest error counts.
    """
    tuned = make({}).tuned_parameter
    scores: Scores = {}
    for settings in _group_settings(axes, block, known, tuned):
        values = values_of(axes, settings[0])
        described = {**option, **{name: value for name, value in values.items() if name != tuned}}
        log(", ".join(f"{name} = {value}" for name, value in described.items()))
        listed = {tuned: [values_of(axes, setting)[tuned] for setting in settings]} if tuned in values else {}
        errors = make({**option, **values, **listed}).validate(X, Y)
        found = errors if listed else errors.min(keepdims=True)
        scores.update({setting: -float(error) for setting, error in zip(settings, found, strict=True)})
    return scores


def _group_settings(axes: Sequence[Axis], block: Block, known: Scores, tuned: str) -> list[list[Setting]]:
    """Return the settings of a block that are not known, in groups that differ in the tuned parameter only."""
    groups: dict[Setting, list[Setting]] = {}
    for setting in product(*(block[axis.name] for axis in axes)):
        others = tuple(p for axis, p in zip(axes, setting, strict=True) if axis.name != tuned)
        if setting not in known:
            groups.setdefault(others, []).append(setting)
    return list(groups.values())


def tune_and_test(name: str, data: Data, context: Context) -> Tested:
    """Choose scaling and options by the first grid, widen that grid, fit on all training rows and test once.

    The config has positions of numbers, see ``BASES``, and lists of other options.
    """
    grid, start = dict(context.config["competitors"][name]), perf_counter()
    make = partial(_make_baseline, grid.pop("baseline"), context, validation_fraction=context.config["held_out"])
    axes = [Axis(parameter, grid.pop(parameter)) for parameter in list(grid) if parameter in BASES]
    variants = list(product(context.config["scalings"], ParameterGrid(grid)))
    (scaling, _), best, chosen, _ = Tuning(name, make, axes, data, context).choose(variants, "max_rounds")
    seconds = {"choose": perf_counter() - start}
    scaled = scale_data(data, scaling)
    start = perf_counter()
    model = make(chosen).fit(scaled.X, scaled.Y)
    seconds["fit"] = perf_counter() - start
    scores, seconds["decode"] = score_predictions(
        scaled.Y_test,
        lambda: model.predict(scaled.X_test),
        (lambda k: top_labels(model.predict_soft(scaled.X_test), k)) if context.config["precisions"] else None,
    )
    parameters = {"scaling": scaling, **chosen}
    return Tested(name, 1 + best.score, scores, parameters, seconds, edge_sentence(axes, best))


def strongest(lines: Sequence[Tested]) -> Tested:
    """Return the line with the largest F1 on the test examples."""
    return max(lines, key=lambda line: float(line.f1))
