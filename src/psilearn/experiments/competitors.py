"""The systems that others would use, chosen with the same care: on held-out training examples, then tested once.

A config names them with a grid of parameters each, as plain data. Every setting is fitted; each baseline holds out a
part of its training examples, the same for all settings of a seed, and the setting with the least error there is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from time import perf_counter
from typing import Any

from sklearn.model_selection import ParameterGrid

from psilearn import OEL, baselines
from psilearn.experiments.experiment import Context
from psilearn.experiments.protocol import Data, Measured, Score, least_validation_loss, measure, paired_note
from psilearn.experiments.record import Metric, Row
from psilearn.kernels import Gaussian, Kernel

TITLES = {"KNN": "k-NN", "KRR": "KRR, no embedding", "RRR": "reduced rank"}
NETWORKS = ("NN", "SPEN", "DVN")
WITHOUT_TORCH = "torch is not installed, so networks are quoted or left out: pip install 'psilearn[torch]'"


@dataclass(frozen=True)
class Contender:
    """A system that was fitted with the setting that validation chose."""

    key: str
    model: Any
    parameters: dict[str, Any]  # chosen
    edges: list[str]  # where they lie at the edge of the grid
    seconds: dict[str, float]

    @property
    def name(self) -> str:
        """How the row is called."""
        return TITLES.get(self.key, self.key)

    def row(self, dataset: str, measured: Measured, metric: Metric, scale: float = 1.0, **more: Any) -> Row:
        """Return the line of a table, times ``scale``; ``more`` may name it otherwise, and holds the paper's figure."""
        return Row(
            dataset,
            more.pop("method", self.name),
            metric,
            scale * float(measured.score),
            scale * measured.score.standard_error,
            parameters={
                key: value if isinstance(value, int | float) else str(value) for key, value in self.parameters.items()
            },
            seconds=self.seconds | measured.seconds,
            **more,
        )

    def notes(self) -> list[str]:
        """Say where the choice lies at the edge of its grid."""
        return [f"{self.name}: {edge}" for edge in self.edges]


def has_torch() -> bool:
    """Return whether networks can be trained here."""
    return find_spec("torch") is not None


def available(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the competitors of a config that can run here, with their grids: networks need torch."""
    every: Mapping[str, Any] = config["competitors"]
    return {key: grid for key, grid in every.items() if has_torch() or key not in NETWORKS}


def contend(key: str, grid: Mapping[str, Sequence[Any]], data: Data, context: Context) -> Contender:
    """Fit a baseline with every setting of its grid and return the one with the least error on held-out examples.

    ``gamma`` in a grid stands for a Gaussian input kernel of that width. The parameter that the baseline chooses by
    itself is given to it as a list.
    """
    start = perf_counter()
    tuned = getattr(baselines, key)._tuned
    settings = list(ParameterGrid({name: list(values) for name, values in grid.items() if name != tuned}))
    best: Any = None
    for i, setting in enumerate(settings, 1):
        context.say(f"{TITLES.get(key, key)}: setting {i} of {len(settings)}")
        own = {tuned: list(grid[tuned])} if tuned in grid else {}
        model = _model(key, {**setting, **own}, context.seed).fit(data.X, data.Y)
        if best is None or model.validation_error_ < best[0].validation_error_:
            best = model, setting
    model, setting = best
    chosen = {**setting, tuned: getattr(model, f"{tuned}_")} if tuned in grid else setting
    return Contender(key, model, chosen, _edges(chosen, grid), {"choose and fit": perf_counter() - start})


def neural_oel(
    name: str,
    output_kernel: Kernel,
    supervisions: Sequence[float],
    data: Data,
    score: Score,
    context: Context,
) -> tuple[Contender, Measured]:
    """Choose, fit and test OEL with a network as ĥ; one held-out fifth of the pairs chooses by the decoded loss."""
    from psilearn.neural import NeuralRegressor

    config = context.config["neural"]
    models = [
        OEL(
            output_kernel=output_kernel,
            n_components=p,
            supervision=c,
            output_landmarks=config["output_landmarks"],
            regressor=NeuralRegressor(hidden, random_state=context.seed, **config["regressor"]),
        )
        for hidden, p, c in product(config["hidden"], config["sizes"], supervisions)
    ]
    context.say(f"{name}: {len(models)} settings")
    start = perf_counter()
    chosen = least_validation_loss(models, data, context.seed)
    choosing = perf_counter() - start
    measured = measure(chosen, data, score)
    parameters = {
        "hidden": chosen.regressor.hidden,
        "n_components": chosen.n_components,
        "supervision": chosen.supervision,
    }
    return Contender(name, measured.model, parameters, [], {"choose": choosing}), measured


def plainly(results: Mapping[str, Measured], metric: Metric, scale: float = 1.0, digits: int = 3) -> str:
    """Say which competitors are better than the best line of IOKR, KDE and OEL with kernels on the test examples."""
    sign = 1 if metric.better == "higher" else -1
    ours = [name for name in results if name.startswith(("OEL", "IOKR", "KDE")) and "neural" not in name]
    best = max(ours, key=lambda name: sign * results[name].score)
    better = [name for name in results if name not in ours and sign * results[name].score > sign * results[best].score]
    if not better:
        return f"No competitor is better than {best}."
    told = " ".join(paired_note(results, name, best, scale, digits) for name in better)
    return f"Better than {best}, of IOKR, KDE and OEL with kernels the best on the test examples: {told}"


def _model(key: str, setting: Mapping[str, Any], seed: int) -> Any:
    parameters = {**setting, "random_state": seed}
    if "gamma" in parameters:
        parameters["input_kernel"] = Gaussian(parameters.pop("gamma"))
    return getattr(baselines, key)(**parameters)


def _edges(chosen: Mapping[str, Any], grid: Mapping[str, Sequence[Any]]) -> list[str]:
    edges = []
    for name, value in chosen.items():
        values = [v for v in grid[name] if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(values) > 2 and value in (min(values), max(values)):
            edges.append(f"{name}={value:g} is the {'least' if value == min(values) else 'largest'} of its grid.")
    return edges
