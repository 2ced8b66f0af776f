"""What the commands for molecules and spectra have in common: options, the device, and messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

ModelOption = Annotated[Path, typer.Option("--model", help="Folder of the model, from `psilearn metabolites train`.")]
DeviceOption = Annotated[
    str | None, typer.Option(help="Device of torch, cpu or cuda. By default, NumPy computes on the CPU.")
]


@contextmanager
def compute_on(device: str | None) -> Iterator[None]:
    """Compute in double precision on a device of torch, or in NumPy."""
    from psilearn import computing

    with computing("float64", device):
        yield


def print_status(text: str) -> None:
    """Print to the standard error, so that it does not mix with results."""
    typer.echo(text, err=True)
