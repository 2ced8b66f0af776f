"""SMI2Mol: the graph of a molecule from its SMILES string, on QM9."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer

from psilearn import IOKR, OEL
from psilearn.decoding import local_search
from psilearn.kernels import Gaussian, Graph, Kernel, Substrings, WeisfeilerLehman
from psilearn.metrics import BoundedMean, graph_edit_distance
from psilearn_chem import MoleculeEdits, molecule_graphs
from psilearn_lab import datasets
from psilearn_lab.experiments.experiment import Config, Context, Experiment, Outcome, Part
from psilearn_lab.experiments.protocol import describe_parameters
from psilearn_lab.experiments.results import Metric, Row
from psilearn_lab.neural import NeuralRegressor

FIRST, LAST = "^", "$"  # mark the ends of a string, so that substrings know them


@dataclass(frozen=True)
class Molecules:
    """Molecules as texts and as graphs."""

    texts: list[str]
    graphs: list[Graph]

    @classmethod
    def of(cls, smiles: Sequence[str], n_jobs: int | None) -> Molecules:
        """Return molecules; marks of stereochemistry, of which graphs know nothing, are removed from the texts."""
        return cls([FIRST + remove_stereo(text) + LAST for text in smiles], molecule_graphs(smiles, n_jobs=n_jobs))

    def __len__(self) -> int:
        return len(self.texts)

    def head(self, n: int | None) -> Molecules:
        """Return the first n molecules."""
        return Molecules(self.texts[:n], self.graphs[:n])


@dataclass(frozen=True)
class Task:
    """Training, validation and test molecules, and molecules without a text."""

    train: Molecules
    validation: Molecules
    test: Molecules
    unlabeled: Molecules

    @property
    def title(self) -> str:
        """The numbers of training pairs and of molecules without a text."""
        pairs = f"QM9, {len(self.train):,} pairs"
        return f"{pairs} and {len(self.unlabeled):,} molecules without a SMILES" if self.unlabeled.texts else pairs

    @classmethod
    def load(cls, config: Config, seed: int, n_jobs: int | None) -> Task:
        """Read the SMILES and divide them at random; molecules that differ by stereochemistry only count once."""
        smiles = list({remove_stereo(text): text for text in datasets.load("qm9").smiles}.values())
        order = np.random.default_rng(seed).permutation(len(smiles))
        sizes = [config["tests"], config["validation"], config["pairs"], config["unlabeled"]]
        parts, start = [], 0
        for size in sizes:
            stop = len(smiles) if size is None else start + size
            parts.append(Molecules.of([smiles[i] for i in order[start:stop]], n_jobs))
            start = stop
        test, validation, train, unlabeled = parts
        return cls(train, validation, test, unlabeled)


def remove_stereo(smiles: str) -> str:
    """Return a SMILES without marks of stereochemistry, as text: nothing is parsed."""
    return re.sub(r"\[(\w)@+H?\]", r"\1", smiles).replace("/", "").replace("\\", "")


CHARACTERS = "^$CNOFHcno123456789()[]=#+-"


def make_network(settings: Mapping[str, Any], max_length: int, device: str | None) -> Pipeline:
    """Return a perceptron on the characters at each position and on hashed counts of substrings.

    The number of epochs is found by early stopping on a tenth of the training pairs.
    """
    substrings = HashingVectorizer(
        analyzer="char",
        ngram_range=(1, max_length),
        lowercase=False,
        norm=None,
        alternate_sign=False,
        n_features=settings["columns"],
    )
    positions = FunctionTransformer(one_hot, kw_args={"n_positions": settings["positions"]})
    network = NeuralRegressor(
        settings["hidden"],
        dropout=settings["dropout"],
        learning_rate=settings["learning_rate"],
        epochs=settings["epochs"],
        patience=settings["patience"],
        batch_size=settings["batch_size"],
        standardize=False,
        device=device,
    )
    return make_pipeline(make_union(substrings, positions), network)


def one_hot(texts: Sequence[str], n_positions: int) -> Any:
    """Return one column per position, from both ends of a text, and character; other characters have no column."""
    code = {character: k for k, character in enumerate(CHARACTERS)}
    rows, columns = [], []
    for i, text in enumerate(texts):
        for shift, part in ((0, text), (n_positions, text[::-1])):
            for place, character in enumerate(part[:n_positions]):
                if character in code:
                    rows.append(i)
                    columns.append((shift + place) * len(CHARACTERS) + code[character])
    shape = len(texts), 2 * n_positions * len(CHARACTERS)
    return sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)


def nearest_graphs(train: Molecules, texts: list[str], kernel: Substrings) -> list[Graph]:
    """Return the graph of the training molecule whose text is nearest to each text by the cosine of features."""
    kernel.fit(train.texts)
    neighbors = NearestNeighbors(n_neighbors=1, algorithm="brute", metric="cosine").fit(kernel.features(train.texts))
    nearest = neighbors.kneighbors(kernel.features(texts), return_distance=False)[:, 0]
    return [train.graphs[i] for i in nearest]


METRICS = {
    False: Metric("graph edit distance, without bond orders", "lower", 3),
    True: Metric("graph edit distance, with bond orders", "lower", 3),
}
DECODERS = ("", ", local search")
EXACT = Metric("molecules found exactly, %", "higher", 1)
SOURCE = "El Ahmad, Yang, Laforgue and d'Alché-Buc, Deep Sketched Output Kernel Regression, ECML 2024"
PUBLISHED: dict[str, tuple[float, float | None]] = {
    "SISOKR": (3.330, 4.192),
    "NNBary-FGW": (5.115, None),
    "Sketched ILE-FGW": (2.998, None),
    "DSOKR": (1.951, 2.960),
}
NEAREST = "nearest SMILES"
NETWORK = ", network"  # the end of the name of a method with a network instead of kernel ridge regression
CONFIG: dict[str, Any] = {
    "pairs": None,  # all
    "unlabeled": 0,
    "tests": 2000,
    "validation": 500,
    "select": {"pairs": 10_000, "tests": 500, "input_landmarks": 4000, "output_landmarks": 2000, "starts": 3},
    "grid": {  # the first value of each is the start of a search along one parameter after the other
        "depth": [2, 3, 1],
        "normalize_depths": [True, False],
        "max_length": [5, 4, 6],
        "gamma": [0.5, 0.25, 1.0],
        "alpha": [1e-6, 1e-5],  # smaller ones are near the rounding errors of float32 for all pairs
    },
    "input_landmarks": 10_000,
    "output_landmarks": 3000,
    "components": 1000,
    "methods": ["IOKR", "OEL₀"],
    "starts": 8,
    "columns": 2**17,
    "network": {
        "columns": 4096,
        "positions": 16,
        "hidden": [2048, 2048],
        "dropout": 0.1,
        "learning_rate": 1e-3,
        "epochs": 200,
        "patience": 10,
        "batch_size": 256,
    },
}
QUICK: dict[str, Any] = {
    "pairs": 150,
    "unlabeled": 0,
    "tests": 8,
    "validation": 6,
    "select": {"pairs": 80, "tests": 4, "input_landmarks": 40, "output_landmarks": 40, "starts": 1},
    "grid": {"max_length": [4], "gamma": [0.5], "alpha": [1e-5, 1e-4], "depth": [2], "normalize_depths": [True]},
    "input_landmarks": 100,
    "output_landmarks": 100,
    "components": 50,
    "starts": 1,
    "columns": 2**12,
    "network": {**CONFIG["network"], "columns": 256, "hidden": [32], "epochs": 2},
}
NEAREST_NAMES = ("pairs", "unlabeled", "tests", "validation", "columns")  # of the part without a fit
NEAREST_CONFIG = {name: CONFIG[name] for name in NEAREST_NAMES} | {"max_length": [5, 10, 15, 20]}
NEAREST_QUICK = {name: QUICK[name] for name in NEAREST_NAMES} | {"max_length": [3, 4]}


@dataclass(frozen=True)
class Setting:
    """The parameters that validation chooses."""

    max_length: int
    gamma: float
    alpha: float
    depth: int
    normalize_depths: bool


@dataclass(frozen=True)
class Decoded:
    """The predicted graphs of one decoder with their metrics and the time that it took."""

    distances: dict[bool, BoundedMean]
    seconds: float

    @classmethod
    def of(cls, truth: list[Graph], predicted: list[Graph], seconds: float, n_jobs: int | None) -> Decoded:
        """Compare predicted graphs with true ones."""
        distances = {
            labels: graph_edit_distance(truth, predicted, edge_labels=labels, n_jobs=n_jobs) for labels in METRICS
        }
        return cls(distances, seconds)


def make_text_kernel(max_length: int, config: Config, base: Kernel | None = None) -> Substrings:
    """Return the kernel on texts: tf-idf weighted counts of substrings in rows of length 1, and a kernel on them."""
    return Substrings(max_length, min_length=1, idf=True, n_features=config["columns"], base=base)


def fit(method: str, setting: Setting, train: Molecules, unlabeled: Molecules, config: Config, context: Context) -> Any:
    """Return a fitted model of texts and graphs."""
    options: dict[str, Any] = {
        "output_kernel": WeisfeilerLehman(
            setting.depth, normalize_depths=setting.normalize_depths, n_features=config["columns"]
        ),
        "output_landmarks": min(config["output_landmarks"], len(train)),
        "dtype": "float32",
        "device": context.device,
    }
    if method.endswith(NETWORK):
        options["regressor"] = make_network(config["network"], setting.max_length, context.device)
    else:
        options["input_kernel"] = make_text_kernel(setting.max_length, config, Gaussian(setting.gamma))
        options["input_landmarks"] = min(config["input_landmarks"], len(train))
        options["alpha"] = setting.alpha
    if method.startswith("IOKR"):
        return IOKR(**options).fit(train.texts, train.graphs)
    supervision = 1.0 if method.startswith("OEL₀") else 0.5
    model = OEL(n_components=config["components"], supervision=supervision, **options)
    return model.fit(train.texts, train.graphs, unlabeled=unlabeled.graphs or None)


def decode(model: Any, molecules: Molecules, n_starts: int, n_jobs: int | None) -> dict[str, Decoded]:
    """Return the nearest training molecules, and what a local search finds from the nearest ones."""
    start = perf_counter()
    nearest = model.predict(molecules.texts)
    seconds = perf_counter() - start
    Z = np.asarray(model.embed(molecules.texts), dtype=np.float64)
    edits = MoleculeEdits(max_atoms=9)
    start = perf_counter()
    found = local_search(Z, model.candidates_, edits, n_starts=n_starts, n_jobs=n_jobs)
    searched = perf_counter() - start
    results = (
        Decoded.of(molecules.graphs, nearest, seconds, n_jobs),
        Decoded.of(molecules.graphs, found.outputs, searched, n_jobs),
    )
    return dict(zip(DECODERS, results, strict=True))


def choose(task: Task, config: Config, context: Context) -> tuple[Setting, float]:
    """Search along one parameter after the other for the smallest edit distance after the local search.

    Returns the best setting and the seconds that all scores took.
    """
    grid, select = config["grid"], {**config, **config["select"]}
    train, held_out = task.train.head(select["pairs"]), task.validation.head(select["tests"])
    best = Setting(**{name: values[0] for name, values in grid.items()})
    scores: dict[Setting, dict[str, Any]] = {}

    def measure(setting: Setting) -> dict[str, Any]:
        context.log(f"validation of {setting}")
        start = perf_counter()
        model = fit("IOKR", setting, train, task.unlabeled.head(0), select, context)
        decoded = decode(model, held_out, select["starts"], context.n_jobs)[", local search"]
        return {"score": float(decoded.distances[True]), "seconds": perf_counter() - start}

    def score(setting: Setting) -> float:
        if setting not in scores:
            name = "score-" + "-".join(map(str, astuple(setting)))
            scores[setting] = context.compute_once(name, partial(measure, setting))
        return float(scores[setting]["score"])

    for name, values in grid.items():
        best = min((replace(best, **{name: value}) for value in values), key=score)
    return best, sum(float(item["seconds"]) for item in scores.values())


def evaluate(method: str, setting: Setting, task: Task, context: Context) -> dict[str, Any]:
    """Fit a method and decode the test molecules; return bounds of edit distances, seconds and parameters as arrays."""
    config = context.config
    context.log(f"fitting {method} on {len(task.train):,} pairs")
    start = perf_counter()
    model = fit(method, setting, task.train, task.unlabeled, config, context)
    arrays: dict[str, Any] = {"fit": perf_counter() - start, "parameters": json.dumps(describe_parameters(model))}
    context.log(f"decoding {len(task.test):,} molecules")
    for decoder, decoded in decode(model, task.test, config["starts"], context.n_jobs).items():
        arrays[f"seconds{decoder}"] = decoded.seconds
        for labels, mean in decoded.distances.items():
            arrays[f"upper{decoder}-{labels}"], arrays[f"lower{decoder}-{labels}"] = mean.values, mean.lower
    return arrays


def run(context: Context) -> Outcome:
    """Choose the parameters on validation molecules, fit each method on all pairs, and test once."""
    config = context.config
    context.log("reading molecules")
    task = Task.load(config, context.seed, context.n_jobs)
    setting, chosen = choose(task, config, context)
    rows, notes = [], []
    title = task.title
    for method in config["methods"]:
        name = re.sub(r"\W+", "-", method.replace("₀", "0"))  # of a file
        arrays = context.compute_once(name, partial(evaluate, method, setting, task, context))
        for decoder in DECODERS:
            bounds = {
                labels: (arrays[f"upper{decoder}-{labels}"], arrays[f"lower{decoder}-{labels}"]) for labels in METRICS
            }
            decoded = Decoded(
                {labels: BoundedMean(*pair) for labels, pair in bounds.items()}, float(arrays[f"seconds{decoder}"])
            )
            seconds = {"choose": chosen, "fit": float(arrays["fit"]), "decode": decoded.seconds}
            rows += make_rows(title, method + decoder, decoded, json.loads(str(arrays["parameters"])), seconds)
            notes += bound_notes(method + decoder, decoded)
    return Outcome(rows + published_rows(title), notes)


def run_nearest(context: Context) -> Outcome:
    """Return the graphs of the nearest SMILES; validation chooses the length of substrings, and nothing is fitted."""
    config = context.config
    context.log("reading molecules")
    task = Task.load(config, context.seed, context.n_jobs)

    def predict(max_length: int, molecules: Molecules) -> list[Graph]:
        context.log(f"nearest SMILES of {len(molecules):,} molecules, substrings of 1 to {max_length} characters")
        return nearest_graphs(task.train, molecules.texts, make_text_kernel(max_length, config))

    def score(max_length: int) -> float:
        return float(
            graph_edit_distance(task.validation.graphs, predict(max_length, task.validation), n_jobs=context.n_jobs)
        )

    start = perf_counter()
    best = min(config["max_length"], key=score)
    chosen = perf_counter() - start
    start = perf_counter()
    predicted = predict(best, task.test)
    decoded = Decoded.of(task.test.graphs, predicted, perf_counter() - start, context.n_jobs)
    parameters = {"input_kernel": repr(make_text_kernel(best, config))}
    rows = make_rows(task.title, NEAREST, decoded, parameters, {"choose": chosen, "decode": decoded.seconds})
    return Outcome(rows + published_rows(task.title), bound_notes(NEAREST, decoded))


def bound_notes(method: str, decoded: Decoded) -> list[str]:
    """Return a note if edit distances are not exact."""
    n_bounds = max(int(np.sum(~mean.is_exact)) for mean in decoded.distances.values())
    return [f"{method}: {n_bounds} edit distances are upper bounds (time limit per pair)."] if n_bounds else []


def make_rows(
    title: str, method: str, decoded: Decoded, parameters: dict[str, Any], seconds: dict[str, float]
) -> list[Row]:
    """Return one row per metric."""
    measured = {METRICS[labels]: mean for labels, mean in decoded.distances.items()}
    rows = [
        Row(title, method, metric, float(mean), mean.standard_error, parameters=parameters, seconds=seconds)
        for metric, mean in measured.items()
    ]
    exact = 100 * float(np.mean(decoded.distances[True].values == 0))
    return [*rows, Row(title, method, EXACT, exact, parameters=parameters, seconds=seconds)]


def published_rows(title: str) -> list[Row]:
    """Return the published values, obtained with other random splits of QM9."""
    return [
        Row(title, method, METRICS[labels], paper=value, comparable=False, source=SOURCE)
        for method, values in PUBLISHED.items()
        for labels, value in zip(METRICS, values, strict=True)
        if value is not None
    ]


EXPERIMENT = Experiment(
    name="smi2mol",
    title="SMI2Mol: the graph of a molecule from its SMILES",
    source="DSOKR, ECML 2024",
    protocol="Molecules of QM9 (119,399 of the 133,885; at most nine heavy atoms C, N, O, F). The input is the SMILES "
    "as a string of characters without marks of stereochemistry, the output is the graph of its heavy atoms with "
    "single, double and triple bonds (kekulized). A random split has 2000 test and 500 validation molecules. Input: "
    "a Gaussian kernel on tf-idf weighted counts of substrings. Output: the normalized Weisfeiler–Lehman subtree "
    "kernel with bond orders. No step parses the SMILES of a test molecule.\n\n"
    "On 10,000 training pairs with fewer landmarks, the depth of the output kernel, the weights of its depths, the "
    "length of substrings, the width γ and λ are chosen one after the other by the edit distance (with bond orders) "
    "of the 500 validation molecules after the local search. In the parts with a network, a perceptron takes the place "
    "of kernel ridge regression: its inputs are the characters at each position and hashed counts of substrings, and a "
    "tenth of the training pairs finds the number of epochs. The parts of the nearest SMILES return the graph of the "
    "training molecule whose weighted counts of substrings have the largest cosine, with the length of substrings that "
    "is best for the validation molecules. "
    "Candidates are the training molecules and, in one part, the molecules without a SMILES. The "
    "local search starts from the eight nearest ones and edits them into "
    "other valid molecules as long as the distance to the prediction in the output space falls; its results may leave "
    "the training set. The metric is the graph edit distance with unit costs, found exactly for each pair unless a "
    "note says otherwise, ± standard errors over the test molecules of one split. The published values are means over "
    "five other splits, so no verdict is given.",
    parts=(
        Part("qm9-20000", "QM9, 20,000 pairs", run, {**CONFIG, "pairs": 20_000}, QUICK),
        Part("qm9", "QM9, all pairs", run, CONFIG, QUICK),
        Part(
            "qm9-unlabeled",
            "QM9, 20,000 pairs and all other molecules without a SMILES",
            run,
            {**CONFIG, "pairs": 20_000, "unlabeled": None, "methods": ["OEL₀", "OEL"]},
            {**QUICK, "unlabeled": 100},
        ),
        Part(
            "qm9-20000-network",
            "QM9, 20,000 pairs, a network",
            run,
            {**CONFIG, "pairs": 20_000, "methods": ["IOKR, network", "OEL₀, network"]},
            QUICK,
        ),
        Part("qm9-network", "QM9, all pairs, a network", run, {**CONFIG, "methods": ["IOKR, network"]}, QUICK),
        Part(
            "qm9-20000-nearest",
            "QM9, 20,000 pairs, the nearest SMILES",
            run_nearest,
            {**NEAREST_CONFIG, "pairs": 20_000},
            NEAREST_QUICK,
        ),
        Part("qm9-nearest", "QM9, all pairs, the nearest SMILES", run_nearest, NEAREST_CONFIG, NEAREST_QUICK),
    ),
)
