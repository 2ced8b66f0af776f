"""The command line: ``psilearn fit``, ``search``, ``predict`` and ``evaluate`` for tables, and the other commands."""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer

from psilearn.app.cli.table_commands import evaluate, fit, predict, search
from psilearn.app.console import CommandGroup, check_output_file, report_errors

__all__ = ["app"]

TOKEN_VARIABLE = "PSILEARN_TOKEN"


class _Commands(CommandGroup):
    """The commands of this package and those of others, each a Typer group or a function, imported when needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [*super().list_commands(ctx), *sorted(entry.name for entry in entry_points(group="psilearn.commands"))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None."""
        found = entry_points(group="psilearn.commands", name=cmd_name)
        if cmd_name in self.commands or not found:
            return super().get_command(ctx, cmd_name)
        loaded = next(iter(found)).load()
        group = loaded if isinstance(loaded, typer.Typer) else typer.Typer(add_completion=False)
        if group is not loaded:
            group.command(cmd_name)(loaded)
        command = typer.main.get_command(group)
        command.name = cmd_name
        return command


app = typer.Typer(
    name="psilearn",
    help="Structured prediction with output kernels: IOKR, KDE and Output Embedding Learning.",
    no_args_is_help=True,
    cls=_Commands,
)
for command in (fit, search, predict, evaluate):
    app.command()(command)


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
def serve(
    models: Annotated[list[Path], typer.Argument(help="Files of saved models.", metavar="MODEL...")],
    candidates: Annotated[
        Path | None, typer.Option(help="Folder of the library, for a metabolite model.", show_default=False)
    ] = None,
    jobs: Annotated[Path, typer.Option(help="Folder of the jobs of a metabolite model.")] = Path("psilearn-jobs"),
    host: Annotated[str, typer.Option(help="Address to listen on; others than 127.0.0.1 need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for a free one.", min=0, max=65535)] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token of clients. By default, the variable PSILEARN_TOKEN.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Further name by which clients call the service; can be repeated.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Number of processes.", min=1, max=64)] = 1,
    block_rows: Annotated[
        int, typer.Option(help="Inputs of concurrent requests that are predicted together; 1 for each alone.", min=1)
    ] = 256,
    device: Annotated[
        str | None, typer.Option(help="Device of torch, cpu or cuda. By default, that of the saved model.")
    ] = None,
) -> None:
    """Serve saved models over HTTP, with a page for browsers.

    The service is described in docs/serve.md and by itself at /openapi.json.
    """
    with report_errors():
        from psilearn.app.serve.request_guard import Access
        from psilearn.app.serve.server_process import ServiceSettings, bind_socket, run_service
        from psilearn.app.serve.service_limits import Limits

        token = _read_token(token_file)
        limits = Limits(block_rows=block_rows)
        settings = ServiceSettings(
            tuple(models), host, port, token, tuple(allow_host or ()), device, candidates, jobs, limits
        )
        Access.of(host, token)  # before the models are loaded
        service = settings()
        listener = bind_socket(host, port)
        name = f"[{host}]" if ":" in host else host
        typer.echo(f"http://{name}:{listener.getsockname()[1]}", err=True)
        run_service(settings if workers > 1 else lambda: service, listener, limits=settings.limits, workers=workers)


def _read_token(file: Path | None) -> str | None:
    """Return the token of a file or of the environment: it never stands on a command line, which others can see."""
    if file is not None and not file.is_file():
        raise FileNotFoundError(f"--token-file: {file} is not a file.")
    token = os.environ.get(TOKEN_VARIABLE) if file is None else file.read_text(encoding="utf-8")
    return token.strip() if token else None


@app.command()
def demo(
    picture: Annotated[Path, typer.Option(help="PNG file to write.")] = Path("psilearn-demo.png"),
    seed: Annotated[int, typer.Option(help="Random seed.", min=0, max=2**32 - 1)] = 0,
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
        if not serve:
            check_output_file(picture, "--picture")
        from psilearn.app.demo import run_demo, serve_demo

        if serve:
            serve_demo(seed, port)
        else:
            run_demo(picture, seed)


@app.command()
def info() -> None:
    """Show versions, linear algebra libraries, devices and optional packages."""
    with report_errors():
        from psilearn.app.cli.installation_info import describe_installation

        for name, value in describe_installation():
            typer.echo(f"{name:18} {value}")
