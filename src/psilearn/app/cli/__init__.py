"""The command line: ``psilearn fit``, ``search``, ``predict`` and ``evaluate`` for tables, and the other commands."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer

from psilearn.app.cli.command_group import CommandGroup
from psilearn.app.cli.table_commands import register
from psilearn.app.console import check_output_file, report_errors
from psilearn.app.serve.serve_command import serve_models

__all__ = ["app"]

app = typer.Typer(
    name="psilearn",
    help="Structured prediction with output kernels: IOKR, KDE and Output Embedding Learning.",
    no_args_is_help=True,
    cls=CommandGroup,
)
register(app)
app.command("serve")(serve_models)
for extension in entry_points(group="psilearn.commands"):  # of other packages: a group of commands or a function
    command = extension.load()
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=extension.name)
    else:
        app.command(extension.name)(command)

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
            from psilearn.app.demo import serve_demo

            serve_demo(seed, port)
            return
        check_output_file(picture, "--picture")
        from psilearn.app.demo import run_demo

        run_demo(picture, seed)


@app.command()
def info() -> None:
    """Show versions, linear algebra libraries, devices, optional packages and folders."""
    with report_errors():
        from psilearn.app.cli.installation_info import describe_installation

        for name, value in describe_installation():
            typer.echo(f"{name:18} {value}")
