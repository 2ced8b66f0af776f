"""Competitors that are tuned like our methods: on the same held-out rows, by grids that are widened in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from time import perf_counter
from typing import Any

from sklearn.model_selection import ParameterGrid

from psilearn import computing
from psilearn.kernels import Gaussian
from psilearn_lab import baselines
from psilearn_lab.baselines import Baseline
from psilearn_lab.experiments.competitors import log_numpy
from psilearn_lab.experiments.experiment import Context
from psilearn_lab.experiments.protocol import Data
from psilearn_lab.experiments.scaled_rows import scale_data
from psilearn_lab.experiments.tuned_lines import Tested, load_or_test, score_predictions, top_labels
from psilearn_lab.experiments.validated_settings import validate_block
from psilearn_lab.experiments.widening import BASES, Axis, Block, Scores, edge_sentence, values_of, widen_best_variant


@dataclass(frozen=True)
class CompetitorTask:
    """A baseline, the data, and its grid: positions of numbers and lists of other options."""

    name: str
    data: Data
    context: Context

    @property
    def grid(self) -> Mapping[str, Any]:
        """The config of the competitor."""
        grid: Mapping[str, Any] = self.context.config["competitors"][self.name]
        return grid

    @property
    def axes(self) -> list[Axis]:
        """The numbers that are searched."""
        return [Axis(name, positions) for name, positions in self.grid.items() if name in BASES]

    def run(self) -> Tested:
        """Return the line of the competitor, computed now or in an interrupted run of the part."""
        log_numpy(self.grid["baseline"], self.context)
        with computing("float64", self.context.device):
            return load_or_test(self.context, self.name, self._tune_and_test)

    def _tune_and_test(self) -> Tested:
        """Choose scaling and options by the first grid, widen that grid, fit on all training rows and test once."""
        start = perf_counter()
        options = ParameterGrid({k: v for k, v in self.grid.items() if k not in (*BASES, "baseline")})
        variants = list(product(self.context.config["scalings"], options))
        (scaling, option), best, _ = widen_best_variant(
            self.axes, variants, self._evaluate, self.context.config["max_rounds"]
        )
        chosen = {**option, **values_of(self.axes, best.setting)}
        seconds = {"choose": perf_counter() - start}
        data = scale_data(self.data, scaling)
        start = perf_counter()
        model = self._make(chosen).fit(data.X, data.Y)
        seconds["fit"] = perf_counter() - start
        scores, seconds["decode"] = score_predictions(
            data.Y_test,
            lambda: model.predict(data.X_test),
            (lambda k: top_labels(model.predict_soft(data.X_test), k)) if self.context.config["precisions"] else None,
        )
        notes = edge_sentence(self.axes, best)
        return Tested(self.name, best.score, scores, {"scaling": scaling, **chosen}, seconds, notes)

    def _evaluate(self, variant: tuple[str, Mapping[str, Any]], block: Block, known: Scores) -> Scores:
        """Return the F1 on the held-out rows of all settings of a block that are not known."""
        scaling, option = variant
        data = scale_data(self.data, scaling)

        def log(described: str) -> None:
            self.context.log(f"{self.name}, {scaling}{', ' + described if described else ''}")

        scores = validate_block(self._make, self.axes, block, known, option, data.X, data.Y, log)
        return {setting: 1 + score for setting, score in scores.items()}

    def _make(self, parameters: Mapping[str, Any]) -> Baseline:
        given = dict(parameters)
        if "gamma" in given:
            given["input_kernel"] = Gaussian(given.pop("gamma"))
        kind = getattr(baselines, self.grid["baseline"])
        if "n_jobs" in kind().get_params():
            given["n_jobs"] = self.context.n_jobs
        config = self.context.config
        baseline: Baseline = kind(**given, validation_fraction=config["held_out"], random_state=self.context.seed)
        return baseline


def strongest(lines: Sequence[Tested]) -> Tested:
    """Return the line with the largest F1 on the test examples."""
    return max(lines, key=lambda line: float(line.f1))
