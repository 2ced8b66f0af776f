"""The output of ``psilearn demo``: a table of the methods, their parameters and a picture."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from psilearn._utils.consoles import PipeConsole
from psilearn.experiments.digits_demo import N_SPLITS, WIDTH, DemoResult, DigitHalves, load_halves, run
from psilearn.plotting import plot_completions, select_example_per_class

COLUMNS = ("method", "loss ± s.e.", "p", "fit", "decode", "settings", "search")


def run_demo(picture: Path, seed: int) -> None:
    """Run the demo, print its results and save the picture."""
    console = PipeConsole()
    digits = load_halves(seed)
    console.print(
        f"[bold]{len(digits.X)}[/] digits with both halves, [bold]{len(digits.unlabeled)}[/] with the lower half only, "
        f"[bold]{len(digits.X_test)}[/] to complete. Parameters are chosen by validation on the {len(digits.X)} digits "
        f"with both halves."
    )
    with console.status("starting") as status:
        results = list(run(digits, seed, status.update))
    console.print(_make_table(results))
    console.print("loss: mean |ψ(y) − ψ(ŷ)|² of the output kernel, between 0 and 2; lower is better.")
    for result in results:
        console.print(f"{result.method}: {_describe_parameters(result)}", highlight=False)
    _save_picture(picture, digits, results, console)


def _make_table(results: list[DemoResult]) -> Table:
    """Return one row per method."""
    table = Table(*COLUMNS, title="Lower half from upper half")
    for column in table.columns[1:]:
        column.justify = "right"
    for result in results:
        table.add_row(
            result.method,
            f"{result.loss:.3f} ± {result.loss.standard_error:.3f}",
            str(result.n_components),
            f"{result.fit_seconds:.2f} s",
            f"{result.decode_seconds:.3f} s",
            f"{result.n_settings:,} × {N_SPLITS}",
            f"{result.choose_seconds:.1f} s",
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
