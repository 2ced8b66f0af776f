"""Competing methods, chosen as carefully as ours: on held-out training examples, then tested once.

A config gives a grid of parameters for each baseline, as JSON data. Every setting is fitted. Each baseline holds out a
part of its training examples, the same for all settings of a seed, and the setting with the smallest error there is
kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from time import perf_counter
from typing import Any, TypeAlias

from sklearn.model_selection import ParameterGrid

from psilearn import OEL, baselines, computing
from psilearn.baselines import Baseline
from psilearn.experiments.experiment import Config, Context
from psilearn.experiments.protocol import (
    Data,
    Evaluation,
    Score,
    difference_note,
    fit_and_evaluate,
    quote_name,
    select_by_holdout,
)
from psilearn.experiments.result_rows import Metric, Row
from psilearn.kernels import Gaussian, Kernel

ParameterValues: TypeAlias = Mapping[str, Sequence[Any]]  # name of a parameter → the values that are tried

TITLES = {"KNN": "k-NN", "KRR": "KRR, no embedding", "RRR": "reduced rank"}
NETWORKS = ("NN", "SPEN", "DVN")
IN_NUMPY = ("KNN", "PLS", "PRLR")  # baselines without code for devices
WITHOUT_TORCH = "torch is not installed, so networks are quoted or left out: pip install 'psilearn[torch]'"


@dataclass(frozen=True)
class Competitor:
    """A model that was fitted with the parameters that validation chose."""

    key: str  # name of the baseline, or of the row
    model: Baseline | OEL
    parameters: dict[str, Any]  # the chosen ones
    edges: list[str]  # sentences about parameters at the edge of the grid
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
        """Return a note for each chosen parameter at the edge of its grid."""
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
    """Fit a baseline with every setting of its grid; return the one with the smallest error on held-out examples.

    ``gamma`` in a grid is the parameter of a Gaussian input kernel. The parameter that the baseline chooses itself
    is passed to it as a list.
    """
    start = perf_counter()
    log_numpy(key, context)
    tuned = getattr(baselines, key).tuned_parameter
    settings = list(ParameterGrid({name: list(values) for name, values in grid.items() if name != tuned}))
    tuned_values = {tuned: list(grid[tuned])} if tuned in grid else {}
    with computing("float64", context.device):
        fitted = _fit_settings(key, settings, tuned_values, data, context)
        model, setting = min(fitted, key=lambda pair: pair[0].validation_error_)
    chosen = {**setting, tuned: getattr(model, f"{tuned}_")} if tuned in grid else setting
    return Competitor(key, model, chosen, _edges(chosen, grid), {"choose and fit": perf_counter() - start})


def _fit_settings(
    key: str, settings: Sequence[dict[str, Any]], tuned_values: dict[str, Any], data: Data, context: Context
) -> Iterator[tuple[Baseline, dict[str, Any]]]:
    """Yield the baseline, fitted with each setting and the values that it chooses from itself."""
    for i, setting in enumerate(settings, 1):
        context.log(f"{TITLES.get(key, key)}: setting {i} of {len(settings)}")
        yield _make_baseline(key, {**setting, **tuned_values}, context).fit(data.X, data.Y), setting


def fit_neural_oel(
    name: str,
    output_kernel: Kernel,
    supervisions: Sequence[float],
    data: Data,
    score: Score,
    context: Context,
) -> tuple[Competitor, Evaluation]:
    """Choose, fit and test OEL with a network as ĥ; the decoded loss of one held-out fifth of the pairs chooses."""
    from psilearn.neural import NeuralRegressor

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


def _edges(chosen: Mapping[str, Any], grid: ParameterValues) -> list[str]:
    """Return a sentence for each number that is the smallest or largest of at least three values."""
    edges = []
    for name, value in chosen.items():
        values = [v for v in grid[name] if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(values) > 2 and value in (min(values), max(values)):
            edges.append(f"{name} = {value:g} is the {'smallest' if value == min(values) else 'largest'} of its grid.")
    return edges
