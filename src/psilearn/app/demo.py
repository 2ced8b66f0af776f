"""The output of ``psilearn demo``: a table of the methods, their parameters and a picture."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from psilearn.app.console import PipeConsole
from psilearn.app.digits_demo import (
    N_SEEDS,
    WIDTH,
    DemoResult,
    DigitHalves,
    MethodSummary,
    fit_methods,
    load_halves,
    run_seeds,
)
from psilearn.plotting import plot_completions, select_example_per_class
from psilearn.utils import explain_missing

COLUMNS = ("method", "loss ± s.e.", "− IOKR ± s.e.", "p", "fit", "decode", "search")


def run_demo(picture: Path, seed: int) -> None:
    """Run the demo, print its results and save the picture."""
    console = PipeConsole()
    digits = load_halves(seed)
    console.print(
        f"[bold]{len(digits.X)}[/] digits with both halves, [bold]{len(digits.unlabeled)}[/] with the lower half only, "
        f"[bold]{len(digits.X_test)}[/] to complete. Parameters are chosen by leave-one-out on the {len(digits.X)} "
        f"digits with both halves. Means over {N_SEEDS} random splits."
    )
    with console.status("starting") as status:
        summaries = run_seeds(seed, status.update)
    console.print(_make_table(summaries))
    console.print("loss: mean |ψ(y) − ψ(ŷ)|² of the output kernel, between 0 and 2; lower is better.")
    console.print("s.e.: over the splits. p, parameters and times are those of the first split.")
    results = [summary.first for summary in summaries]
    for result in results:
        search = f"of {result.n_settings} settings, by leave-one-out"
        console.print(f"{result.method}: {_describe_parameters(result)}, {search}", highlight=False)
    _save_picture(picture, digits, results, console)


def serve_demo(seed: int, port: int) -> None:
    """Fit the models of the demo, and serve a page on which one draws the upper half of a digit."""
    with explain_missing("The service needs FastAPI and uvicorn: pip install 'psilearn[serve]'."):
        from psilearn.app.serve import Limits, ServedModel, create_app
        from psilearn.app.serve.server_process import bind_socket, run_service

    console = PipeConsole()
    listener = bind_socket("127.0.0.1", port)
    with console.status("starting") as status:
        models = fit_methods(seed, status.update)
    app = create_app([ServedModel(name, model, {"image_width": WIDTH}) for name, model in models.items()])
    console.print(
        f"Open http://127.0.0.1:{listener.getsockname()[1]} and draw the upper half of a digit; Ctrl-C stops."
    )
    run_service(lambda: app, listener, limits=Limits())


def _make_table(summaries: list[MethodSummary]) -> Table:
    """Return one row per method."""
    table = Table(*COLUMNS, title="Lower half from upper half")
    for column in table.columns[1:]:
        column.justify = "right"
    for summary in summaries:
        first = summary.first
        table.add_row(
            summary.method,
            "{:.3f} ± {:.3f}".format(*summary.loss),
            "" if summary.method == "IOKR" else "{:+.3f} ± {:.3f}".format(*summary.difference),
            str(first.n_components),
            f"{first.fit_seconds:.2f} s",
            f"{first.decode_seconds:.3f} s",
            f"{first.choose_seconds:.1f} s",
        )
    return table


def _describe_parameters(result: DemoResult) -> str:
    return ", ".join(f"{name.removeprefix('input_kernel__')} = {value:.3g}" for name, value in result.chosen.items())


def _save_picture(picture: Path, digits: DigitHalves, results: list[DemoResult], console: Console) -> None:
    """Draw one digit per class on which the methods differ; without matplotlib, print how to install it."""
    examples = select_example_per_class(digits.digits_test, [result.prediction for result in results])
    completions = {"truth": digits.Y_test[examples]}
    completions |= {result.method: result.prediction[examples] for result in results}
    try:
        figure = plot_completions(digits.X_test[examples], completions, WIDTH)
    except ImportError:
        console.print("To get a picture, install matplotlib: pip install 'psilearn\\[plot]'.")
        return
    figure.savefig(picture, bbox_inches="tight")
    console.print(f"Picture of digits on which the methods differ: {picture}")
