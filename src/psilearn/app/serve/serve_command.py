"""The command ``psilearn serve``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from psilearn.app.console import report_errors
from psilearn.utils import explain_missing

TOKEN_VARIABLE = "PSILEARN_TOKEN"
MIN_TOKEN, MAX_TOKEN = 16, 1000  # characters
MISSING = "The service needs FastAPI and uvicorn: pip install 'psilearn[serve]'."


def serve_models(
    models: Annotated[list[Path], typer.Argument(help="Folders of saved models.", metavar="MODEL...")],
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
        with explain_missing(MISSING):
            from psilearn.app.serve.request_guard import Access
            from psilearn.app.serve.server_process import ServiceSettings, bind_socket, run_service
            from psilearn.app.serve.service_limits import Limits

        token = read_token(token_file)
        limits = Limits(block_rows=block_rows)
        settings = ServiceSettings(
            tuple(models), host, port, token, tuple(allow_host or ()), device, candidates, jobs, limits
        )
        Access.of(host, token)  # before the models are loaded
        app = settings()
        listener = bind_socket(host, port)
        name = f"[{host}]" if ":" in host else host
        typer.echo(f"http://{name}:{listener.getsockname()[1]}", err=True)
        run_service(settings if workers > 1 else lambda: app, listener, limits=settings.limits, workers=workers)


def read_token(file: Path | None) -> str | None:
    """Return the token of a file or of the environment: it never stands on a command line, which others can see."""
    token = os.environ.get(TOKEN_VARIABLE) if file is None else file.read_text(encoding="utf-8")
    token = token.strip() if token else None
    if token is not None and not (MIN_TOKEN <= len(token) <= MAX_TOKEN and token.isascii() and token.isprintable()):
        raise ValueError(f"A token must have {MIN_TOKEN} to {MAX_TOKEN} printable ASCII characters.")
    return token
