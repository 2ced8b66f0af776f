"""The command line: ``psilearn fit``, ``search``, ``predict`` and ``evaluate`` for tables, and the other commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from psilearn._utils.command_errors import report_errors
from psilearn._utils.output_files import check_output_file
from psilearn.chem.candidate_commands import candidates_app
from psilearn.chem.commands import metabolites_app
from psilearn.cli.command_group import CommandGroup
from psilearn.cli.table_commands import register
from psilearn.serve.serve_command import serve_models

__all__ = ["app"]

app = typer.Typer(
    name="psilearn",
    help="Structured prediction with output kernels: IOKR, KDE and Output Embedding Learning.",
    no_args_is_help=True,
    cls=CommandGroup,
)
register(app)
app.add_typer(candidates_app, name="candidates")
app.add_typer(metabolites_app, name="metabolites")
app.command("serve")(serve_models)

SeedOption = Annotated[int, typer.Option(help="Random seed.", min=0, max=2**32 - 1)]


def _show_version(value: bool) -> None:
    if value:
        from psilearn import __version__

        typer.echo(f"psilearn {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Structured prediction with output kernels."""


@app.command()
def demo(
    picture: Annotated[Path, typer.Option(help="PNG file to write.")] = Path("psilearn-demo.png"),
    seed: SeedOption = 0,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve a page on which you draw the upper half of a digit.")
    ] = False,
    port: Annotated[int, typer.Option(help="Port of the page; 0 for a free one.", min=0, max=65535)] = 8000,
) -> None:
    """Complete handwritten digits: predict the lower half from the upper half.

    Compares IOKR, KDE, OEL₀ and OEL on data that scikit-learn includes, with few pairs and many lower halves alone.
    Takes less than 40 seconds, offline.
    """
    with report_errors():
        if serve:
            from psilearn.cli.demo_output import serve_demo

            serve_demo(seed, port)
            return
        check_output_file(picture, "--picture")
        from psilearn.cli.demo_output import run_demo

        run_demo(picture, seed)


@app.command()
def data(
    name: Annotated[str | None, typer.Argument(help="Dataset to describe. By default, all are listed.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare checksums, not only sizes.")] = False,
    download: Annotated[bool, typer.Option("--download", help="Download missing files that are public.")] = False,
) -> None:
    """List the datasets, the state of their files, where the files belong and where they come from."""
    with report_errors():
        from psilearn.datasets import listing
        from psilearn.datasets.catalogue import DATASETS

        if name is not None and name not in DATASETS:
            raise ValueError(f"There is no dataset {name!r}; the datasets are {', '.join(DATASETS)}.")
        raise typer.Exit(listing.show(name, verify=verify, download=download))


@app.command()
def reproduce(
    name: Annotated[
        str | None, typer.Argument(help="Experiment to run, or all. By default, the experiments are listed.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder of the results and the report.")] = Path("psilearn-results"),
    seed: SeedOption = 0,
    jobs: Annotated[
        int | None, typer.Option(help="Number of processes of the searches. By default, one per core, at most 4.")
    ] = None,
    only: Annotated[str | None, typer.Option(help="Run a single part, usually a dataset.", metavar="PART")] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Trial run on little data, whose results are not meaningful (label-ranking: one repetition of five; "
            "metabolites: one fold of five).",
        ),
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute finished parts again.")] = False,
    device: Annotated[str | None, typer.Option(help="Torch device, such as cuda,.")] = None,
) -> None:
    """Run the experiments of the paper and write a report with our results next to the paper's.

    Finished parts are kept. If the run is interrupted, run the same command again to resume it.
    """
    with report_errors():
        from psilearn.experiments.reproduce import Reproduction, select_experiments

        if jobs is not None and jobs < 1 and jobs != -1:
            raise ValueError(f"--jobs must be at least 1, or -1 for one process per core; got {jobs}.")
        reproduction = Reproduction(output, seed=seed, n_jobs=jobs, only=only, quick=quick, fresh=fresh, device=device)
        if name is None:
            reproduction.show_overview()
            return
        selected = select_experiments(name, only)
        reproduction.prepare_folder()
    raise typer.Exit(reproduction.run(selected))


@app.command()
def info() -> None:
    """Show versions, linear algebra libraries, devices, optional packages and folders."""
    with report_errors():
        from psilearn.cli.installation_info import describe_installation

        for name, value in describe_installation():
            typer.echo(f"{name:18} {value}")
