"""The commands that the laboratory adds to ``psilearn``: ``data`` and ``reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from psilearn.app.console import report_errors

SeedOption = Annotated[int, typer.Option(help="Random seed.", min=0, max=2**32 - 1)]


def data(
    name: Annotated[str | None, typer.Argument(help="Dataset to describe. By default, all are listed.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare checksums, not only sizes.")] = False,
    download: Annotated[bool, typer.Option("--download", help="Download missing files that are public.")] = False,
) -> None:
    """List the datasets, the state of their files, where the files belong and where they come from."""
    with report_errors():
        from psilearn_lab.datasets import listing
        from psilearn_lab.datasets.catalogue import DATASETS

        if name is not None and name not in DATASETS:
            raise ValueError(f"There is no dataset {name!r}; the datasets are {', '.join(DATASETS)}.")
        raise typer.Exit(listing.show(name, verify=verify, download=download))


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
    device: Annotated[str | None, typer.Option(help="Torch device, such as cuda.")] = None,
) -> None:
    """Run the experiments of the paper and write a report with our results next to the paper's.

    Finished parts are kept. If the run is interrupted, run the same command again to resume it.
    """
    with report_errors():
        from psilearn_lab.experiments.reproduce import Reproduction, select_experiments

        if jobs is not None and jobs < 1 and jobs != -1:
            raise ValueError(f"--jobs must be at least 1, or -1 for one process per core; got {jobs}.")
        reproduction = Reproduction(output, seed=seed, n_jobs=jobs, only=only, quick=quick, fresh=fresh, device=device)
        if name is None:
            reproduction.show_overview()
            return
        selected = select_experiments(name, only)
        reproduction.prepare_folder()
    raise typer.Exit(reproduction.run(selected))
