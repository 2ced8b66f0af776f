"""Image reconstruction: the lower half of a USPS digit from its upper half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from psilearn import IOKR, KDE, OEL
from psilearn.kernels import Gaussian, Kernel
from psilearn.metrics import kernel_loss
from psilearn.plotting import plot_completions, plot_curves, select_example_per_class
from psilearn_lab import datasets
from psilearn_lab.arrays import Array
from psilearn_lab.baselines import SPEN
from psilearn_lab.experiments.competitors import (
    Competitor,
    comparison_note,
    fit_competitor,
    fit_neural_oel,
)
from psilearn_lab.experiments.experiment import CaptionedFigures, Config, Context, Experiment, Outcome, Part, figure_of
from psilearn_lab.experiments.protocol import (
    Choice,
    Data,
    Estimator,
    Evaluation,
    Grid,
    Method,
    Score,
    choose_parameters,
    difference_note,
    edge_notes,
    evaluate,
    fit_and_evaluate,
    make_row,
)
from psilearn_lab.experiments.results import Metric, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psilearn_lab.neural.epochs import History

LOSS = Metric("RBF loss", "lower", 3)
PAPER = {"SPEN": 0.801, "KDE": 0.764, "IOKR": 0.751, "OEL₀": 0.734, "OEL": 0.725}
WIDTH = 16  # pixels per image line
GREEN = "#0b7a75"
CONFIG: dict[str, Any] = {
    "pairs": 1000,
    "alone": 6000,
    "tests": 2007,
    "output_gamma": 0.05,  # exp(−d²/20), the paper's σ² = 10; this kernel defines the loss
    "gammas": [0.04, 0.08, 0.16],
    "alphas": [3e-5, 1e-4, 3e-4, 1e-3, 3e-3],
    "sizes": [16, 24, 32, 48, 64, 80, 98, 128, 160],
    "supervisions": [0.0, 0.15, 0.3, 0.5, 0.75, 1.0],
    "splits": 5,
    "max_rounds": 4,
    "competitors": {
        "KNN": {"n_neighbors": [1, 2, 3, 5, 8, 12, 20], "weights": ["uniform", "distance"]},
        "PLS": {"n_components": [5, 10, 20, 30, 40, 60]},
        "KRR": {"gamma": [0.02, 0.04, 0.08, 0.16], "alpha": [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2]},
        "RRR": {
            "gamma": [0.02, 0.04, 0.08, 0.16],
            "alpha": [1e-4, 3e-4, 1e-3, 3e-3],
            "n_components": [8, 16, 32, 64, 96],
        },
        "NN": {"hidden": [[h, h] for h in (110, 250, 500)], "dropout": [0.0, 0.2, 0.4], "standardize": [False]},
        "SPEN": {  # the paper's sizes
            "hidden": [[h, h] for h in (70, 110, 130)],
            "energy_hidden": [5, 10, 20, 50, 70],
            "dropout": [0.0, 0.2],
            "standardize": [False],
        },
    },
    "neural": {  # ĥ as a network
        "hidden": [[500, 500]],
        "sizes": [64, 128],
        "supervisions": [0.15],
        "output_landmarks": 500,  # the number of outputs of the network
        "regressor": {"dropout": 0.2, "standardize": False, "patience": 10},
    },
    "figure": {
        "supervision": 0.15,  # as in the paper
        "alphas": [1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2],
        "sizes": [16, 32, 64, 98, 128, 200, 300],
        "output_landmarks": 1000,
    },
}
GRID_CONFIG: dict[str, Any] = {  # 6 γ × 12 λ × 12 p × 6 c × 5 splits = 25,920 settings
    **{name: CONFIG[name] for name in ("pairs", "alone", "tests", "output_gamma", "supervisions", "splits")},
    "gammas": [0.01, 0.02, 0.04, 0.08, 0.16, 0.32],
    "alphas": [float(f"{10 ** (exponent / 2):.6g}") for exponent in range(-13, -1)],
    "sizes": [8, 10, 13, 17, 22, 28, 36, 47, 60, 77, 99, 128],
    "max_rounds": 0,
}
QUICK = {
    "pairs": 80,
    "alone": 100,
    "tests": 60,
    "gammas": [0.04],
    "alphas": [1e-4, 1e-3],
    "sizes": [8, 16],
    "supervisions": [0.0, 0.5, 1.0],
    "splits": 2,
    "max_rounds": 0,
    "competitors": {
        "KNN": {"n_neighbors": [1, 5]},
        "SPEN": {"hidden": [[8]], "energy_hidden": [2, 3], "epochs": [3], "energy_epochs": [2], "steps": [3]},
    },
    "neural": {
        "hidden": [[8]],
        "sizes": [8],
        "supervisions": [0.5],
        "output_landmarks": 20,
        "regressor": {"epochs": 3},
    },
    "figure": {"supervision": 0.15, "alphas": [1e-4, 1e-3], "sizes": [8, 16], "output_landmarks": 50},
}
GRID_QUICK = {name: value for name, value in QUICK.items() if name in GRID_CONFIG}


def load(config: Config) -> tuple[Data, Array]:
    """Return pairs from the first training images, lower halves of the last ones, test images, and the test digits."""
    usps = datasets.load("usps")
    pairs, others = usps.train[: config["pairs"]], usps.train[-config["alone"] :]
    test = usps.test[: config["tests"]]
    data = Data(usps.X[pairs], usps.Y[pairs], usps.X[test], usps.Y[test], usps.Y[others])
    return data, usps.digits[test]


def run(context: Context) -> Outcome:
    """Choose, fit and test IOKR, KDE, OEL₀, OEL and their competitors."""
    config = context.config
    data, digits = load(config)
    output_kernel = Gaussian(config["output_gamma"])
    score = partial(kernel_loss, kernel=output_kernel)
    choices = _choose(data, output_kernel, context)
    results: dict[str, Evaluation] = {}
    rows = _evaluate_methods(choices, data, score, results, context)
    competitors = [fit_competitor(key, grid, data, context) for key, grid in config["competitors"].items()]
    rows += _evaluate_competitors(competitors, data, score, results)
    rows += _evaluate_neural(output_kernel, data, score, results, context)
    figures = _draw_figures(data, digits, {choice.name: results[choice.name] for choice in choices}, context)
    spen = next((competitor.model for competitor in competitors if isinstance(competitor.model, SPEN)), None)
    if spen and figures:
        caption = "SPEN: errors while its features are trained, loss-augmented inference, and the hinge loss."
        figures["spen-convergence"] = (plot_convergence(spen), caption)
    return Outcome(rows, _make_notes(results, choices, competitors, config), figures)


def plot_convergence(spen: SPEN) -> Figure:
    """Draw the training of a structured prediction energy network in three diagrams.

    The first shows the training loss of the feature network (cross-entropy or squared error) and the error of held-out
    examples (1 − F1 or squared distance) over its epochs, each divided by its first value. The second shows the mean of
    E(x, ŷ) − Δ(ŷ, y) over the steps of loss-augmented inference. The third shows the hinge loss of the energy over its
    epochs, divided by its first value. A dotted line marks the epoch whose weights were kept.
    """
    from matplotlib.figure import Figure

    if not hasattr(spen, "inference_curve_"):
        raise TypeError(f"plot_convergence draws a fitted SPEN; got spen={spen!r:.80}.")
    figure = Figure(figsize=(11, 3.2), dpi=130, facecolor="white", layout="constrained")
    features, inference, hinge = figure.subplots(1, 3)
    _draw_history(features, spen.pretraining_, spen.pretraining_.validation, "loss and error of the features")
    _draw_history(hinge, spen.history_, spen.validation_hinge_[1:], "hinge loss")  # the first value is before training
    inference.plot(spen.inference_curve_, color=GREEN, marker=".")
    inference.set_xlabel("step of loss-augmented inference")
    inference.set_ylabel("E(x, ŷ) − Δ(ŷ, y), held out")
    return figure


def _draw_history(ax: Axes, history: History, held_out: Sequence[float], label: str) -> None:
    """Draw training and held-out values over epochs, each divided by its first value."""
    from matplotlib.ticker import MaxNLocator

    epochs = np.arange(1, len(history.training) + 1)
    ax.plot(epochs, np.divide(history.training, history.training[0] or 1), color="black", label="training")
    ax.plot(epochs, np.divide(held_out, held_out[0] or 1), color=GREEN, label="held out")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.axvline(history.best_epoch, color=GREEN, linestyle=":", label="kept")
    ax.set_xlabel("epoch")
    ax.set_ylabel(f"{label}, ratio to the first")
    ax.legend()


def run_grid(context: Context) -> Outcome:
    """Choose among all settings of a large grid; fit and test IOKR, KDE, OEL₀ and OEL."""
    config = context.config
    data, _ = load(config)
    output_kernel = Gaussian(config["output_gamma"])
    choices = _choose(data, output_kernel, context)
    results: dict[str, Evaluation] = {}
    rows = _evaluate_methods(choices, data, partial(kernel_loss, kernel=output_kernel), results, context)
    return Outcome(rows, _make_method_notes(results, choices, config))


def _choose(data: Data, output_kernel: Kernel, context: Context) -> list[Choice]:
    """Choose the parameters by the squared error, as in the paper, and by the decoded loss."""
    config = context.config
    methods = [
        Method("KDE", KDE, [0.0]),
        Method("IOKR", IOKR),
        Method("OEL₀", OEL, [1.0]),
        Method("OEL", OEL, config["supervisions"]),
    ]
    grid = Grid(
        config["gammas"],
        config["alphas"],
        config["sizes"],
        ["mse", "loss"],
        n_splits=config["splits"],
        joint=True,
        max_rounds=config["max_rounds"],
    )
    return choose_parameters(data, {"": [output_kernel]}, grid, methods, context)


def _evaluate_methods(
    choices: list[Choice], data: Data, score: Score, results: dict[str, Evaluation], context: Context
) -> list[Row]:
    """Fit and test each chosen setting; add its evaluation to the results and return the rows."""
    rows = []
    for choice in choices:
        context.log(f"{choice.name}: fitting, decoding {context.config['tests']} images")
        results[choice.name] = fit_and_evaluate(choice.make_model(device=context.device), data, score)
        paper = None if choice.criterion else PAPER[choice.method.name]  # the paper chose by the squared error
        rows.append(make_row("USPS", choice, results[choice.name], LOSS, paper=paper))
    return rows


def _evaluate_competitors(
    competitors: list[Competitor],
    data: Data,
    score: Score,
    results: dict[str, Evaluation],
) -> list[Row]:
    """Test each competitor with candidates and without."""
    rows = []
    known_outputs = np.concatenate([data.Y, data.unlabeled])
    for competitor in competitors:
        for name, candidates in ((competitor.name, known_outputs), (f"{competitor.name}, free", None)):
            results[name] = evaluate(competitor.model, data, score, candidates)
            rows.append(competitor.make_row("USPS", results[name], LOSS, method=name, paper=PAPER.get(name)))
    return rows


def _evaluate_neural(
    output_kernel: Kernel, data: Data, score: Score, results: dict[str, Evaluation], context: Context
) -> list[Row]:
    """Choose, fit and test OEL₀ and OEL with a network as ĥ."""
    rows = []
    supervised = {"OEL₀, neural ĥ": [1.0], "OEL, neural ĥ": context.config["neural"]["supervisions"]}
    for name, supervisions in supervised.items():
        competitor, results[name] = fit_neural_oel(name, output_kernel, supervisions, data, score, context)
        rows.append(competitor.make_row("USPS", results[name], LOSS))
    return rows


def _make_notes(
    results: Mapping[str, Evaluation], choices: list[Choice], competitors: list[Competitor], config: Config
) -> list[str]:
    return [
        comparison_note(results, LOSS),
        "“free” is the prediction of a method itself, which is not one of the candidates. A blurred lower half has a "
        "smaller loss than a sharp one of the wrong digit; methods that must return a real lower half cannot predict "
        "it.",
        *(note for competitor in competitors for note in competitor.edge_notes()),
        *_make_method_notes(results, choices, config),
    ]


def _make_method_notes(results: Mapping[str, Evaluation], choices: list[Choice], config: Config) -> list[str]:
    """Return notes with paired differences of our methods, and on chosen values at an end of their grid."""
    return [
        difference_note(results, "OEL₀", "IOKR"),
        difference_note(results, "OEL", "OEL₀"),
        *(difference_note(results, choice.name, choice.method.name) for choice in choices if choice.criterion),
        f"KDE is OEL with c = 0 here: it learns its embedding from the {config['alone']} outputs without inputs. The "
        f"paper does not say whether its KDE did.",
        *edge_notes(choices),
    ]


def _draw_figures(data: Data, digits: Array, results: Mapping[str, Evaluation], context: Context) -> CaptionedFigures:
    """Draw the test error over λ and p, and completed digits; nothing without matplotlib."""
    if not context.can_draw:
        return {}
    context.log("drawing the error over λ and p")
    settings = context.config["figure"]
    oel = results["OEL"].model
    curves = compute_squared_errors(data, oel.input_kernel, oel.output_kernel, settings, context.device)
    ax = plot_curves(settings["alphas"], curves, "λ", "test mean squared error", highlight="IOKR")
    ax.set_xscale("log")
    shown = select_example_per_class(digits, [evaluation.prediction for evaluation in results.values()])
    completions = {"truth": data.Y_test[shown]} | {name: e.prediction[shown] for name, e in results.items()}
    return {
        "error-by-lambda-and-p": (
            figure_of(ax),
            f"Test mean squared error |G*Gĥ(x) − ψ(y)|² of OEL with c = {settings['supervision']} over λ, one curve "
            f"per p, and of IOKR (black), with the input kernel chosen for OEL and {settings['output_landmarks']} "
            f"output landmarks. Nothing is chosen by it.",
        ),
        "completed-digits": (
            plot_completions(data.X_test[shown], completions, WIDTH),
            "The first test image of each digit on which the methods differ.",
        ),
    }


def compute_squared_errors(
    data: Data, input_kernel: Kernel, output_kernel: Kernel, settings: Config, device: str | None = None
) -> dict[str, list[float]]:
    """Return the mean of |G*Gĥ(x) − ψ(y)|² over the test pairs for each λ: of OEL for each p, and of IOKR.

    The leading p eigenvectors are nested, so one fit with the largest p serves all.
    """
    sizes = settings["sizes"]
    curves: dict[str, list[float]] = {name: [] for name in (*(f"p = {p}" for p in sizes), "IOKR")}
    for alpha in settings["alphas"]:
        oel = OEL(
            input_kernel,
            output_kernel,
            alpha=alpha,
            n_components=sizes[-1],
            supervision=settings["supervision"],
            output_landmarks=settings["output_landmarks"],
            device=device,
        )
        errors = _nested_errors(oel.fit(data.X, data.Y, unlabeled=data.unlabeled), data)
        for p in sizes:
            curves[f"p = {p}"].append(errors[p - 1])
        iokr = IOKR(input_kernel, output_kernel, alpha=alpha, device=device).fit(data.X, data.Y)
        curves["IOKR"].append(_nested_errors(iokr, data)[-1])
    return curves


def _nested_errors(model: Estimator, data: Data) -> Array:
    """Return the error of keeping the first 1, 2, … components: Σ_{l≤p} z_l² − 2 z_l g_l + k(y, y), shape (p,)."""
    Z, g = model.embed(data.X_test), model.transform_outputs(data.Y_test)  # (q, p)
    errors: Array = np.cumsum(np.mean(Z**2 - 2 * Z * g, axis=0)) + np.mean(model.output_kernel_.diag(data.Y_test))
    return errors


EXPERIMENT = Experiment(
    name="usps",
    title="Image reconstruction",
    source="Table 3 and Figure 2",
    protocol="The first 1000 training images are pairs of halves, the lower halves of the last 6000 are outputs "
    "without inputs, and there are 2007 test images. All kernels are Gaussian; the output kernel has σ² = 10 and "
    "defines the loss. γ of the input kernel, λ, p and c are chosen by the mean validation error |G*Gĥ(x) − ψ(y)|² "
    "over five random 80/20 splits of the 1000 pairs, as in the paper; the grids of γ, λ and p are extended at an end "
    "at which a chosen value lies, at most four times. The lines “by loss” are chosen by the decoded "
    "RBF loss on the same splits. All methods decode to the same 7000 lower halves.\n\n"
    "Competitors regress the pixels. A fifth of the 1000 pairs (for networks a tenth), held out once, chooses their "
    "parameters by the squared error, and they also return the candidate of least cost. With a network of fixed size "
    "as ĥ, and c = 1 or 0.15, p is chosen by the decoded loss on one held-out fifth. Each line decodes the test "
    "images once.\n\n"
    "The part “usps-grid” chooses our methods in the same two ways from a grid that is larger and not extended: "
    "25,920 combinations of γ, λ, p, c and split.",
    parts=(
        Part("usps", "USPS, n = 1000, m = 6000", run, CONFIG, QUICK),
        Part("usps-grid", "USPS, n = 1000, m = 6000, 25,920 settings", run_grid, GRID_CONFIG, GRID_QUICK),
    ),
)
