"""Valid calls of the estimators, the searches, the baselines and the networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

import psilearn
from psilearn.kernels import Dice, Gaussian
from psilearn_lab import baselines, neural
from psilearn_lab.fuzz.arguments.attempts import Call, Fresh
from psilearn_lab.fuzz.arguments.tiny_data import LABELS, LABELS_NEW, X_NEW, N, X, new_path

STARTS_PROCESSES = {"n_jobs": ("-1", "int8 -1")}  # all cores: valid, and slow
ENDLESS = dict.fromkeys(
    ("epochs", "energy_epochs", "steps", "n_rounds", "n_chains", "n_unlabeled", "unlabeled"), ("10**30",)
)
METHOD_ALIASES = {"X": ("examples",), "y": ("the known outputs",)}  # compared with other arguments
GROUPS = np.arange(N) % 3

ESTIMATORS: dict[str, Any] = {
    "psilearn.IOKR": psilearn.IOKR(Gaussian(0.5), Dice(), alpha=0.01),
    "psilearn.KDE": psilearn.KDE(Gaussian(0.5), Dice(), alpha=0.01, n_components=3, output_landmarks=6),
    "psilearn.OEL": psilearn.OEL(
        Gaussian(0.5), Dice(), alpha=0.01, n_components=3, supervision=0.5, input_landmarks=6, output_landmarks=6
    ),
}
SEARCHES: dict[str, Any] = {
    "psilearn.IOKRCV": psilearn.IOKRCV(Gaussian(0.5), Dice(), alphas=0.01, cv=2, n_jobs=1, random_state=0),
    "psilearn.KDECV": psilearn.KDECV(Gaussian(0.5), Dice(), alphas=0.01, n_components=2, cv=2, random_state=0),
    "psilearn.OELCV": psilearn.OELCV(
        Gaussian(0.5), Dice(), alphas=0.01, n_components=2, supervisions=0.5, cv=2, random_state=0
    ),
}
_NETWORK: dict[str, Any] = {"hidden": (3,), "epochs": 2, "patience": 1, "batch_size": 4, "validation_fraction": 0.25}
BASELINES: dict[str, Any] = {
    "psilearn_lab.baselines.KNN": baselines.KNN((1, 2)),
    "psilearn_lab.baselines.KRR": baselines.KRR(Gaussian(0.5), alpha=(0.01, 0.1)),
    "psilearn_lab.baselines.LR": baselines.LR(1.0),
    "psilearn_lab.baselines.ECC": baselines.ECC(1.0, n_chains=2),
    "psilearn_lab.baselines.GFM": baselines.GFM(1.0),
    "psilearn_lab.baselines.PLS": baselines.PLS((1, 2)),
    "psilearn_lab.baselines.RRR": baselines.RRR(Gaussian(0.5), n_components=(1, 2)),
    "psilearn_lab.baselines.PRLR": baselines.PRLR(1.0, n_rounds=1),
    "psilearn_lab.baselines.NN": baselines.NN(**_NETWORK),
    "psilearn_lab.baselines.DVN": baselines.DVN(**_NETWORK, energy_hidden=2, steps=2),
    "psilearn_lab.baselines.SPEN": baselines.SPEN(**_NETWORK, energy_hidden=2, energy_epochs=1, steps=2),
}
REGRESSORS: dict[str, Any] = {"psilearn_lab.neural.NeuralRegressor": neural.NeuralRegressor(**_NETWORK)}


def model_calls() -> Iterator[Call]:
    """Yield the calls of all models: parameters followed by fit, and every public method."""
    fit: dict[str, Any]
    others: dict[str, Any]
    for name, model in {**ESTIMATORS, **SEARCHES, **BASELINES, **REGRESSORS}.items():
        yield _parameter_call(name, model)
    for name, model in ESTIMATORS.items():
        unlabeled = {"unlabeled": LABELS[:5]}
        yield from _method_calls(name, model, {**_PREDICTOR_ARGUMENTS, "fit": {**_PAIR, **unlabeled}})
        if hasattr(model, "partial_fit"):
            yield from _method_calls(name, model, {"partial_fit": unlabeled})
    for name, model in SEARCHES.items():
        fit = {**_PAIR, "unlabeled": None, "candidates": LABELS, "groups": GROUPS}
        others = {"best_where": {"scoring": "score"}}
        yield from _method_calls(name, model, {**_PREDICTOR_ARGUMENTS, **others, "fit": fit})
    for name, model in BASELINES.items():
        yield from _method_calls(name, model, _BASELINE_ARGUMENTS)
    for name, model in REGRESSORS.items():
        yield from _method_calls(name, model, {"fit": _PAIR, "predict": {"X": X_NEW}})


_PAIR: dict[str, Any] = {"X": X, "y": LABELS}
_NEW_PAIR: dict[str, Any] = {"X": X_NEW, "y": LABELS_NEW, "candidates": LABELS}
_PREDICTOR_ARGUMENTS: dict[str, dict[str, Any]] = {
    "predict": {"X": X_NEW, "candidates": LABELS},
    "predict_topk": {"X": X_NEW, "k": 2, "candidates": [LABELS[:3]] * len(X_NEW)},
    "predict_set": {"X": X_NEW, "coverage": 0.5, "candidates": LABELS},
    "rank_candidates": {"X": X_NEW, "candidates": LABELS, "k": 3, "ties": "expected", "coverage": 0.5},
    "truth_positions": _NEW_PAIR,
    "score": _NEW_PAIR,
    "calibrate": _NEW_PAIR,
    "embed": {"X": X_NEW},
    "transform_outputs": {"Y": LABELS_NEW},
    "candidate_set": {"outputs": LABELS, "path": Fresh(new_path), "dtype": "float32"},
}
_BASELINE_ARGUMENTS: dict[str, dict[str, Any]] = {
    "fit": _PAIR,
    "predict": {"X": X_NEW, "candidates": LABELS},
    "predict_soft": {"X": X_NEW},
    "predict_topk": {"X": X_NEW, "k": 2, "candidates": LABELS},
    "costs": {"X": X_NEW, "candidates": LABELS},
    "truth_positions": _NEW_PAIR,
    "score": {"X": X_NEW, "y": LABELS_NEW},
}


@cache
def fitted(name: str) -> Any:
    """Return the fitted model of a name, calibrated if it can be; it must not be changed."""
    model = {**ESTIMATORS, **SEARCHES, **BASELINES, **REGRESSORS}[name].fit(X, LABELS)
    return model.calibrate(X_NEW, LABELS_NEW) if hasattr(model, "calibrate") else model


def _parameter_call(name: str, model: Any) -> Call:
    parameters = model.get_params(deep=False)
    return Call(name, _refit, parameters, partial(fitted, name), not_attacked={**STARTS_PROCESSES, **ENDLESS})


def _refit(model: Any, **parameters: Any) -> Any:
    """Fit a fitted model again with other parameters; restore its parameters if that fails."""
    original = model.get_params(deep=False)
    try:
        return model.set_params(**parameters).fit(X, LABELS).predict(X_NEW)
    except Exception:
        model.set_params(**original)
        raise


def _method_calls(name: str, model: Any, arguments: dict[str, dict[str, Any]]) -> Iterator[Call]:
    for method, values in arguments.items():
        yield Call(
            f"{name}.{method}", _caller(method), values, partial(fitted, name), {"path": ("text",)}, METHOD_ALIASES
        )


def _caller(method: str) -> Callable[..., Any]:
    def call(model: Any, **arguments: Any) -> Any:
        result = getattr(model, method)(**arguments)
        if result is model:  # fit, partial_fit, calibrate
            return model.predict(X_NEW if method != "fit" else arguments["X"])
        return list(result) if method == "rank_candidates" else result

    return call
