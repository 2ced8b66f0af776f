"""How long fitting and decoding take, as in the paper's supplement."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

from psilearn import IOKR, OEL
from psilearn._backend import precision
from psilearn.decoding import nearest
from psilearn.experiments import multilabel, usps
from psilearn.experiments.experiment import Context, Experiment, Outcome, Part
from psilearn.experiments.protocol import Data, parameters
from psilearn.experiments.record import Metric, Row
from psilearn.kernels import Gaussian

FIT = Metric("fit, s", "lower", 2)
DECODE = Metric("decode, s", "lower", 2)
KERNEL = Metric("input kernel, s", "lower", 2)
RATIO = Metric("decode of IOKR / of OEL₀", "higher", 1)
PAPER = {  # fit, decode
    "bibtex": {"IOKR": (2.0, 13.0), "OEL₀": (15.0, 4.0)},
    "bookmarks": {"IOKR": (465.0, 3371.0), "OEL₀": (617.0, 214.0)},
    "usps": {"IOKR": (0.1, 9.0), "OEL₀": (0.4, 1.0), "OEL": (37.0, 38.0)},
}
COMMON: dict[str, Any] = {"repeats": 5, "tests": None}
DATASETS: dict[str, dict[str, Any]] = {
    "bibtex": {"pairs": None, "gamma": 0.5, "alpha": 1e-5, "OEL₀": 130, "landmarks": {}},
    "bookmarks": {
        "pairs": None,
        "gamma": 0.5,
        "alpha": 1e-5,
        "OEL₀": 200,
        "landmarks": {"input_landmarks": 15000, "output_landmarks": 12000, "dtype": "float32"},
        "repeats": 1,
    },
    "usps": {
        "pairs": 1000,
        "alone": 6000,
        "tests": 2007,
        "gamma": 0.04,
        "alpha": 1e-4,
        "output_gamma": usps.CONFIG["output_gamma"],
        "OEL₀": 64,
        "OEL": 98,
        "supervision": 0.15,
        "landmarks": {},
    },
}
QUICK = {"pairs": 100, "alone": 50, "tests": 40, "OEL₀": 8, "OEL": 8, "repeats": 2, "landmarks": {}}


def run(context: Context, name: str) -> Outcome:
    """Measure the methods turn by turn, so that a disturbance of the machine strikes all alike; report medians."""
    config = context.config
    data, output_kernel = _load(context, name)
    methods = _methods(config, output_kernel)
    turns: dict[str, list[dict[str, float]]] = {method: [] for method in methods}
    models: dict[str, Any] = {}
    for turn in range(config["repeats"]):
        for method, make in methods.items():
            context.say(f"{method}: turn {turn + 1} of {config['repeats']}")
            models[method] = make()
            turns[method].append(_turn(models[method], data))
    rows, decode = [], {}
    title = multilabel.TITLES.get(name, "USPS")
    for method, model in models.items():
        seconds = {step: median(turn[step] for turn in turns[method]) for step in turns[method][0]}
        decode[method] = seconds["decode"]
        paper = dict(zip(("fit", "decode"), PAPER[name].get(method, ()), strict=True))
        settings = parameters(model)
        rows += [
            Row(title, method, metric, seconds[step], paper=paper.get(step), comparable=False, parameters=settings)
            for metric, step in ((FIT, "fit"), (DECODE, "decode"), (KERNEL, "kernel"))
        ]
    (_, iokr), (_, oel) = PAPER[name]["IOKR"], PAPER[name]["OEL₀"]
    rows.append(Row(title, "OEL₀", RATIO, decode["IOKR"] / decode["OEL₀"], paper=iokr / oel))
    return Outcome(rows, [f"Medians of {config['repeats']} turns. The paper's seconds are of another machine."])


def _load(context: Context, name: str) -> tuple[Data, Any]:
    config = context.config
    if name == "usps":
        return usps.load(config)[0], Gaussian(config["output_gamma"])
    data = multilabel.load(name, context.seed).data(config["pairs"], tests=config["tests"])
    return data, multilabel.output_kernels(data.Y, "Gaussian")["Gaussian"][0]


def _methods(config: Any, output_kernel: Any) -> dict[str, Callable[[], Any]]:
    base = {"input_kernel": Gaussian(config["gamma"]), "output_kernel": output_kernel, "alpha": config["alpha"]}
    base |= config["landmarks"]
    methods: dict[str, Callable[[], Any]] = {
        "IOKR": partial(IOKR, **base),
        "OEL₀": partial(OEL, **base, n_components=config["OEL₀"], supervision=1.0),
    }
    if "supervision" in config:
        methods["OEL"] = partial(OEL, **base, n_components=config["OEL"], supervision=config["supervision"])
    return methods


def _turn(model: Any, data: Data) -> dict[str, float]:
    """Return the seconds of a fit, of k_x between test and training inputs, and of decoding from there."""
    start = perf_counter()
    model.fit(data.X, data.Y, unlabeled=data.unlabeled)
    fitted = perf_counter()
    with precision(model.dtype):
        K = model.input_kernel_(data.X_test, model.X_fit_)
        evaluated = perf_counter()
        _ = nearest(K @ model.dual_coef_, model.candidates_, model.embedding_, k=1).nearest
    return {"fit": fitted - start, "kernel": evaluated - fitted, "decode": perf_counter() - evaluated}


EXPERIMENT = Experiment(
    name="timing",
    title="Time",
    source="Table 11, in the supplement",
    protocol="Fixed parameters near those that validation chooses, the paper's p and sizes, methods in turns. Decoding "
    "is what predicting takes beyond the input kernel between test and training inputs, which is the same for all "
    "methods and stands in a line of its own; outputs are kept once each, for IOKR too, and candidates are embedded by "
    "the fit. Bookmarks: 15,000 input and 12,000 output landmarks for both methods, float32. The ratio of two decoding "
    "times on one machine is compared with the paper's, the seconds are not.",
    parts=tuple(
        Part(name, multilabel.TITLES.get(name, "USPS"), partial(run, name=name), {**COMMON, **own}, QUICK)
        for name, own in DATASETS.items()
    ),
)
