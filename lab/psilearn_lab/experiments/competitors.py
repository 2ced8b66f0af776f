"""Competing methods, chosen as carefully as ours: on held-out training examples, then tested once.

A config gives a grid of parameters for each baseline, as JSON data. Each baseline holds out a part of its training
examples, the same for all settings of a seed. The grid is widened around the setting with the smallest error there, as
often as the config allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product
from time import perf_counter
from typing import Any, TypeAlias

from sklearn.model_selection import ParameterGrid

from psilearn import OEL, computing
from psilearn.kernels import Gaussian, Kernel
from psilearn.utils import hold_out, n_columns, n_samples
from psilearn_lab import baselines
from psilearn_lab.baselines import Baseline
from psilearn_lab.experiments.experiment import Config, Context
from psilearn_lab.experiments.protocol import (
    Data,
    Evaluation,
    Score,
    difference_note,
    fit_and_evaluate,
    quote_name,
    select_by_holdout,
)
from psilearn_lab.experiments.result_rows import Metric, Row
from psilearn_lab.experiments.validated_settings import validate_block
from psilearn_lab.experiments.widening import (
    FRACTIONS,
    Block,
    ListedAxis,
    Scores,
    find_ends,
    values_of,
    widen_best_variant,
)

ParameterValues: TypeAlias = Mapping[str, Sequence[Any]]  # name of a parameter → the values that are tried

TITLES = {"KNN": "k-NN", "KRR": "KRR, no embedding", "RRR": "reduced rank"}
NETWORKS = ("NN", "SPEN", "DVN")
LARGEST_FRACTION = 0.99  # of dropped units, omitted labels and the like
IN_NUMPY = ("KNN", "PLS", "PRLR")  # baselines without code for devices
WITHOUT_TORCH = "torch is not installed, so networks are quoted or left out: pip install 'psilearn[torch]'"


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


def has_torch() -> bool:
    """Tell whether torch is installed, which the networks need."""
    return find_spec("torch") is not None


def log_numpy(key: str, context: Context) -> None:
    """Log a line if a device was requested but a baseline has no code for devices."""
    if context.device is not None and key in IN_NUMPY:
        context.log(f"{TITLES.get(key, key)}: no code for devices, computed in NumPy")


def available_competitors(config: Config) -> dict[str, ParameterValues]:
    """Return the grids of the competitors that can run: networks need torch."""
    grids: Mapping[str, ParameterValues] = config["competitors"]
    return {key: grid for key, grid in grids.items() if has_torch() or key not in NETWORKS}


def fit_competitor(key: str, grid: ParameterValues, data: Data, context: Context) -> Competitor:
    """Fit a baseline with the setting of the smallest error on held-out examples, chosen from a grid that is widened.

    Options without an order are chosen by the first grid. Then each list of at least two numbers is widened around the
    best setting, at most as often as ``competitor_rounds`` of the config says (0 if it has none). ``gamma`` in a grid
    is the parameter of a Gaussian input kernel.
    """
    start = perf_counter()
    log_numpy(key, context)
    axes = _make_axes(key, grid, data, context)
    options = list(ParameterGrid({k: list(v) for k, v in grid.items() if k not in {axis.name for axis in axes}}))

    def evaluate(option: Mapping[str, Any], block: Block, known: Scores) -> Scores:
        make = partial(_make_baseline, key, context=context)
        return validate_block(make, axes, block, known, option, data.X, data.Y, partial(_log_setting, key, context))

    with computing("float64", context.device):
        option, best, scores = widen_best_variant(axes, options, evaluate, context.config.get("competitor_rounds", 0))
        chosen = {**option, **values_of(axes, best.setting)}
        model = _make_baseline(key, chosen, context).fit(data.X, data.Y)
    seconds = {"choose and fit": perf_counter() - start}
    return Competitor(key, model, chosen, find_ends(axes, best, scores), seconds)


def _make_axes(key: str, grid: ParameterValues, data: Data, context: Context) -> list[ListedAxis]:
    """Return the parameters of a grid that are numbers, with the largest values that exist."""
    return [
        ListedAxis.from_values(name, values, _largest_value(key, name, data, context))
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


def _log_setting(key: str, context: Context, described: str) -> None:
    context.log(f"{TITLES.get(key, key)}{': ' + described if described else ''}")


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


def _make_baseline(key: str, setting: Mapping[str, Any], context: Context) -> Baseline:
    parameters = {**setting, "random_state": context.seed}
    if key in NETWORKS:
        parameters["device"] = context.device
    if "gamma" in parameters:
        parameters["input_kernel"] = Gaussian(parameters.pop("gamma"))
    baseline: Baseline = getattr(baselines, key)(**parameters)
    return baseline
