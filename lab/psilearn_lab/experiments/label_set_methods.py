"""IOKR and OEL₀ with known, near and all label sets as candidates, tuned by F1 on held-out training rows."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from psilearn import IOKR, IOKRCV, OEL, OELCV
from psilearn.decoding import AllLabelSets, has_all_label_sets
from psilearn.kernels import Dice, Gaussian, Kernel
from psilearn.utils import hold_out, n_samples
from psilearn_lab.experiments.experiment import Context
from psilearn_lab.experiments.protocol import Data, describe_parameters
from psilearn_lab.experiments.scaled_rows import scale_data
from psilearn_lab.experiments.tuned_lines import Tested, file_name, load_or_test, score_predictions
from psilearn_lab.experiments.widening import (
    Axis,
    Best,
    Block,
    Evaluate,
    Scores,
    edge_sentence,
    first_block,
    values_of,
    widen,
)

Tables: TypeAlias = dict[str, Scores]  # candidates → scores of settings


@dataclass(frozen=True)
class Tuned:
    """The best setting of each kind of candidates, and the scaling of the inputs."""

    scaling: str
    axes: Sequence[Axis]
    best: Mapping[str, Best]  # candidates → setting
    seconds: float
    rank: int

    @property
    def overall(self) -> dict[str, Any]:
        """The values of the best setting with any candidates."""
        return values_of(self.axes, max(self.best.values(), key=lambda best: best.score).setting)


@dataclass(frozen=True)
class LabelSetTask:
    """Data and settings for one kind of output kernel."""

    data: Data  # inputs as they were loaded
    kind: str  # "Dice" or "Gaussian"
    context: Context

    @property
    def config(self) -> Mapping[str, Any]:
        """The settings of the kind of output kernel."""
        config: Mapping[str, Any] = self.context.config["outputs"][self.kind]
        return config

    def run(self) -> list[Tested]:
        """Tune and test IOKR, then OEL₀ with its kernels, with each kind of candidates."""
        iokr = self._load_or_tune("IOKR", self._iokr_axes(), self._tune_iokr)
        lines = self._test_all("IOKR", iokr, {})
        fixed = {name: value for name, value in iokr.overall.items() if name != "alpha"}
        axes = self._oel_axes(iokr.rank)
        oel = self._load_or_tune("OEL₀", axes, lambda: self._tune_oel(iokr, axes, fixed))
        return lines + self._test_all("OEL₀", oel, fixed)

    def _iokr_axes(self) -> list[Axis]:
        grid = self.context.config["grid"]
        axes = [Axis("gamma", grid["gamma"]), Axis("alpha", grid["alpha"])]
        if self.kind == "Dice":
            return axes
        scale = 1 / float(np.mean(self.data.Y.sum(axis=1)))  # γ = 1/l̄ is one of the readings of the paper
        return [*axes, Axis("output_gamma", self.config["output_gamma"], scale)]

    def _oel_axes(self, rank: int) -> list[Axis]:
        grid = self.context.config["grid"]
        return [Axis("alpha", grid["alpha"]), Axis("n_components", grid["n_components"], largest=max(1, rank))]

    def _tune_iokr(self) -> Tuned:
        """Choose the scaling of the inputs by the first grid, then widen that grid for each kind of candidates."""
        axes, start = self._iokr_axes(), perf_counter()
        tables: dict[str, Tables] = {}
        rank = 0
        for scaling in self.context.config["scalings"]:
            tables[scaling], rank = self._search(scaling, axes, first_block(axes), self.config["candidates"], {})
        scaling = max(tables, key=lambda name: max(max(scores.values()) for scores in tables[name].values()))
        best = self._widen(scaling, axes, tables[scaling], {})
        return Tuned(scaling, axes, best, perf_counter() - start, rank)

    def _tune_oel(self, iokr: Tuned, axes: Sequence[Axis], fixed: Mapping[str, Any]) -> Tuned:
        """Choose λ and p with the scaling and the kernels of the best IOKR."""
        start = perf_counter()
        tables, _ = self._search(iokr.scaling, axes, first_block(axes), self.config["candidates"], fixed)
        best = self._widen(iokr.scaling, axes, tables, fixed)
        return Tuned(iokr.scaling, axes, best, perf_counter() - start, iokr.rank)

    def _load_or_tune(self, method: str, axes: Sequence[Axis], tune: Callable[[], Tuned]) -> Tuned:
        """Return the best settings, found now or in an interrupted run of the part."""

        def compute() -> dict[str, Any]:
            tuned = tune()
            best = {name: [found.setting, found.score, found.is_interior] for name, found in tuned.best.items()}
            return {"text": json.dumps([tuned.scaling, best, tuned.seconds, tuned.rank])}

        content = self.context.compute_once(file_name(f"choice of {method}, {self.kind}"), compute)
        scaling, stored, seconds, rank = json.loads(str(content["text"]))
        best = {name: Best(tuple(setting), *rest) for name, (setting, *rest) in stored.items()}
        return Tuned(scaling, axes, best, seconds, rank)

    def _test_all(self, method: str, tuned: Tuned, fixed: Mapping[str, Any]) -> list[Tested]:
        """Return one line per kind of candidates."""
        return [
            load_or_test(
                self.context,
                self.line_name(method, name),
                lambda name=name: self._test(method, tuned, name, fixed),  # type: ignore[misc]
            )
            for name in tuned.best
        ]

    def _test(self, method: str, tuned: Tuned, candidates: str, fixed: Mapping[str, Any]) -> Tested:
        """Fit the best setting of one kind of candidates on all training rows, and decode the test rows."""
        data, best = scale_data(self.data, tuned.scaling), tuned.best[candidates]
        values = {**fixed, **values_of(tuned.axes, best.setting)}
        self.context.log(f"{method}, {self.kind}, {candidates}: fitting {n_samples(data.X)} pairs")
        start = perf_counter()
        model = self._make_model(method, values).fit(data.X, data.Y)
        seconds = {"choose": tuned.seconds, "fit": perf_counter() - start}

        def predict_top(k: int) -> Any:
            return model.predict(data.X_test, AllLabelSets(min_labels=k, max_labels=k))

        with_precisions = self.context.config["precisions"] and has_all_label_sets(model.output_kernel_)
        scores, seconds["decode"] = score_predictions(
            data.Y_test, lambda: model.predict(data.X_test, candidates), predict_top if with_precisions else None
        )
        parameters = {"candidates": candidates, "scaling": tuned.scaling, **describe_parameters(model)}
        notes = edge_sentence(tuned.axes, best)
        return Tested(self.line_name(method, candidates), best.score, scores, parameters, seconds, notes)

    def line_name(self, method: str, candidates: str) -> str:
        """Return the name of a line."""
        return f"{method}, {self.kind}, {candidates}"

    def _make_model(self, method: str, values: Mapping[str, Any]) -> IOKR | OEL:
        kernels = Gaussian(values["gamma"]), self._output_kernel(values)
        options = {"alpha": values["alpha"], "device": self.context.device}
        if method == "IOKR":
            return IOKR(*kernels, **options)
        return OEL(*kernels, n_components=values["n_components"], supervision=1.0, **options)

    def _output_kernel(self, values: Mapping[str, Any]) -> Kernel:
        return Dice() if self.kind == "Dice" else Gaussian(values["output_gamma"])

    def _widen(self, scaling: str, axes: Sequence[Axis], tables: Tables, fixed: Mapping[str, Any]) -> dict[str, Best]:
        """Widen the grid for each kind of candidates; score the costly ones at the best settings of the others."""
        best: dict[str, Best] = {}
        for name, scores in tables.items():
            evaluate = self._evaluator(scaling, axes, name, fixed)
            best[name] = widen(axes, scores, evaluate, self.context.config["max_rounds"])
        settings, rounds = sorted({found.setting for found in best.values()}), self.config["late_rounds"]
        for name in self.config["late_candidates"]:
            evaluate = self._evaluator(scaling, axes, name, fixed)
            late: Scores = {}
            for setting in settings:
                late |= evaluate({axis.name: [position] for axis, position in zip(axes, setting, strict=True)})
            best[name] = widen(axes, late, evaluate, rounds)
            if not rounds:  # these settings are known to be best for other candidates
                best[name] = replace(best[name], is_interior=True)
        return best

    def _evaluator(self, scaling: str, axes: Sequence[Axis], candidates: str, fixed: Mapping[str, Any]) -> Evaluate:
        """Return a function that scores blocks of settings with one kind of candidates."""
        return lambda block: self._search(scaling, axes, block, [candidates], fixed)[0][candidates]

    def _search(
        self, scaling: str, axes: Sequence[Axis], block: Block, candidates: Sequence[str], fixed: Mapping[str, Any]
    ) -> tuple[Tables, int]:
        """Return the F1 on the held-out rows of all settings of a block, and the rank of the outputs."""
        data = scale_data(self.data, scaling)
        values = {axis.name: {axis.value(p): p for p in block[axis.name]} for axis in axes}
        lists = {name: [value] for name, value in fixed.items()} | {name: list(v) for name, v in values.items()}
        size = " × ".join(str(len(found)) for found in lists.values())
        learns = "n_components" in lists
        self.context.log(f"{'OEL₀' if learns else 'IOKR'}, {self.kind}, {scaling}: {size} settings, {candidates}")
        search = self._make_search(lists, candidates, n_samples(data.X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about edges, which are widened
            search.fit(data.X, data.Y)
        tables: Tables = {name: {} for name in candidates}
        for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
            chosen = {
                "gamma": params["input_kernel"].gamma,
                "alpha": params["alpha"],
                "n_components": params.get("n_components"),
                "output_gamma": getattr(params["output_kernel"], "gamma", None),
            }
            setting = tuple(values[axis.name][chosen[axis.name]] for axis in axes)
            tables[params["candidates"]][setting] = float(score)
        return tables, max(search.ranks_)

    def _make_search(self, lists: Mapping[str, list[Any]], candidates: Sequence[str], n: int) -> IOKRCV | OELCV:
        input_kernels = [Gaussian(gamma) for gamma in lists["gamma"]]
        output_gammas = lists.get("output_gamma", [None])
        options: dict[str, Any] = {
            "alphas": lists["alpha"],
            "candidates": list(candidates),
            "cv": [hold_out(n, self.context.config["held_out"], self.context.seed)],
            "scoring": "f1",
            "refit": False,
            "device": self.context.device,
            **self.context.config["search_landmarks"],
        }
        output_kernels = [self._output_kernel({"output_gamma": gamma}) for gamma in output_gammas]
        if "n_components" not in lists:
            return IOKRCV(input_kernels, output_kernels, **options)
        return OELCV(input_kernels, output_kernels, n_components=lists["n_components"], supervisions=[1.0], **options)
