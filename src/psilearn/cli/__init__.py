"""The command line: ``psilearn demo``, ``data``, ``reproduce``, ``candidates`` and ``metabolites``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from psilearn.chem.commands import candidates_app, metabolites_app

app = typer.Typer(
    name="psilearn",
    help="Structured prediction with output kernels: IOKR, KDE and Output Embedding Learning.",
    no_args_is_help=True,
    add_completion=False,
)
app.add_typer(candidates_app, name="candidates")
app.add_typer(metabolites_app, name="metabolites")


def _show_version(value: bool) -> None:
    if value:
        from psilearn import __version__

        typer.echo(f"psilearn {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Structured prediction with output kernels."""


@app.command()
def demo(
    picture: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("psilearn-demo.png"),
    seed: Annotated[int, typer.Option(help="Which random split of the digits.", min=0, max=2**32 - 1)] = 0,
) -> None:
    """Complete handwritten digits: predict the lower half from the upper half. Offline, under half a minute."""
    if not picture.absolute().parent.is_dir():
        raise typer.BadParameter(f"the folder {picture.absolute().parent} does not exist", param_hint="--picture")
    from rich.console import Console
    from rich.table import Table

    from psilearn.experiments import digits_demo
    from psilearn.plotting import select_example_per_class, plot_completions

    console = Console()
    digits = digits_demo.halves(seed)
    console.print(
        f"[bold]{len(digits.X)}[/] digits with both halves, [bold]{len(digits.unlabeled)}[/] lower halves alone, "
        f"[bold]{len(digits.X_test)}[/] to complete. Parameters are chosen by validation on the {len(digits.X)} pairs."
    )
    table = Table(
        "method", "loss ± s.e.", "p", "fit", "decode", "settings", "tried in", title="Lower half from upper half"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    rows = []
    with console.status("starting") as status:
        for row in digits_demo.run(digits, seed, status.update):
            table.add_row(
                row.method,
                f"{row.loss:.3f} ± {row.loss.standard_error:.3f}",
                str(row.n_components),
                f"{row.fit_seconds:.2f} s",
                f"{row.decode_seconds:.3f} s",
                f"{row.n_settings:,} × 5",
                f"{row.choose_seconds:.1f} s",
            )
            rows.append(row)
    console.print(table)
    console.print("loss: mean |ψ(y) − ψ(ŷ)|² of the output kernel, between 0 and 2; lower is better.")
    for row in rows:
        chosen = ", ".join(f"{key.removeprefix('input_kernel__')} = {value:.3g}" for key, value in row.chosen.items())
        console.print(f"{row.method}: {chosen}", highlight=False)
    examples = select_example_per_class(digits.digits_test, [row.prediction for row in rows])
    completions = {"truth": digits.Y_test[examples]} | {row.method: row.prediction[examples] for row in rows}
    try:
        figure = plot_completions(digits.X_test[examples], completions, digits_demo.WIDTH)
    except ImportError:
        console.print("For the picture, install the extra: pip install 'psilearn\\[plot]'.")
        return
    figure.savefig(picture, bbox_inches="tight")
    console.print(f"Picture, digits on which the methods differ: {picture}")


@app.command()
def data(
    name: Annotated[str | None, typer.Argument(help="One dataset, with its description; by default all.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare checksums too, not only sizes.")] = False,
    download: Annotated[bool, typer.Option("--download", help="Fetch what is missing and public.")] = False,
) -> None:
    """List the datasets: present, missing or spoiled, where their files belong, and whence they come."""
    from psilearn.datasets import listing
    from psilearn.datasets.catalogue import DATASETS

    if name is not None and name not in DATASETS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(DATASETS)}", param_hint="NAME")
    raise typer.Exit(listing.show(name, verify=verify, download=download))


@app.command()
def reproduce(
    name: Annotated[str | None, typer.Argument(help="An experiment, or all; without it they are listed.")] = None,
    output: Annotated[Path, typer.Option(help="The folder of results and report.")] = Path("psilearn-results"),
    seed: Annotated[int, typer.Option(help="Of every random choice.", min=0, max=2**32 - 1)] = 0,
    jobs: Annotated[
        int | None, typer.Option(help="Processes of the searches; by default one a core, at most 4.")
    ] = None,
    only: Annotated[str | None, typer.Option(help="A single part, usually a dataset.", metavar="PART")] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="A trial run on little data, whose figures say nothing; label-ranking: one repetition of five; "
            "metabolites: one fold of five.",
        ),
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute finished parts again.")] = False,
) -> None:
    """Rerun the paper's experiments: our figures beside the paper's, and a report. Finished parts are kept."""
    from psilearn.experiments.reproduce import Reproduction, choose

    if jobs is not None and jobs < 1 and jobs != -1:
        raise typer.BadParameter("must be 1 or more, or -1 for one a core", param_hint="--jobs")
    reproduction = Reproduction(output, seed=seed, jobs=jobs, only=only, quick=quick, fresh=fresh)
    if name is None:
        reproduction.overview()
        return
    try:
        wanted = choose(name, only)
        reproduction.prepare()
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    except OSError as error:
        raise typer.BadParameter(f"the folder cannot be used: {error}", param_hint="--output") from error
    raise typer.Exit(reproduction.run(wanted))
