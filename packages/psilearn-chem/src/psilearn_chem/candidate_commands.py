"""The command ``psilearn candidates``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import disk_usage
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psilearn.app.console import print_status, report_errors
from psilearn_chem.commands import DeviceOption, ModelOption, compute_on

if TYPE_CHECKING:
    from psilearn_chem.molecules import CandidateLibrary

candidates_app = typer.Typer(
    help="Build and search libraries of candidate molecules.", no_args_is_help=True, add_completion=False
)

LOCAL = "local"
CONNECT_SECONDS = 10
LibraryArgument = Annotated[Path, typer.Argument(help="Folder of the library.")]
SchedulerOption = Annotated[
    str | None,
    typer.Option(help="Address of a Dask scheduler whose workers share this disk, such as tcp://host:8786; or local."),
]


@candidates_app.command("build")
def build_library(
    molecules: Annotated[Path, typer.Argument(help="File with molecules: .parquet, .csv, .tsv, .smi or .sdf.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to create.")] = Path("candidates"),
    fingerprints: Annotated[
        str, typer.Option(help="Kinds, separated by commas: morgan, maccs, path, atompair, torsion.")
    ] = "morgan,maccs",
    jobs: Annotated[int, typer.Option(help="Number of processes; -1 for one per core.")] = -1,
    scheduler: SchedulerOption = None,
) -> None:
    """Build a library of candidates: fingerprints, formulas and masses.

    One library serves many models. If the build is interrupted, run the same command again to resume it.
    """
    with report_errors(resume="Finished chunks are kept; run the same command again to resume."):
        from psilearn.utils import show_progress
        from psilearn_chem.molecules import CandidateLibrary, Fingerprints

        start = perf_counter()
        kinds = tuple(kind.strip() for kind in fingerprints.split(",") if kind.strip())
        with show_progress(True), connect(scheduler):
            library = CandidateLibrary.build(molecules, output.resolve(), Fingerprints(kinds), n_jobs=jobs)
        seconds, manifest = perf_counter() - start, library.manifest
        listed = f" (listed in {output / 'unreadable.csv'})" if manifest["unreadable"] else ""
        print_status(
            f"{output}: {len(library):,} molecules with {manifest['formulas']:,} formulas in {seconds:.0f} s; "
            f"{manifest['repeated']:,} repeated, {manifest['unreadable']:,} that cannot be read{listed}."
        )


@candidates_app.command("embed")
def embed_library(
    library: LibraryArgument, model: ModelOption, device: DeviceOption = None, scheduler: SchedulerOption = None
) -> None:
    """Embed all molecules of a library with a model, to make ranking faster.

    Afterwards, ranking with this model costs one product of p numbers per candidate. The size on disk is printed
    first. If the command is interrupted, run it again to resume it.
    """
    with (
        report_errors(resume="Embedded molecules are kept; run the same command again to resume."),
        compute_on(device),
    ):
        from psilearn.utils import show_progress
        from psilearn_chem.metabolites import MetaboliteIdentifier
        from psilearn_chem.molecules import CandidateLibrary

        identifier, candidates = MetaboliteIdentifier.load(model), CandidateLibrary.open(library)
        identifier.check_library(candidates)
        n_bytes = len(candidates) * (4 * identifier.model_.n_components_ + 8)
        print_status(
            f"{len(candidates):,} molecules in {identifier.model_.n_components_} dimensions as float32: "
            f"{n_bytes / 1e9:.2f} GB on disk, of which {disk_usage(library).free / 1e9:.1f} GB are free."
        )
        start = perf_counter()
        with show_progress(True), connect(scheduler) as client:
            candidates.embedded(identifier.model_, build=True, on_cluster=client is not None)
        p = identifier.model_.n_components_
        print_status(f"{len(candidates):,} molecules embedded in {p} dimensions in {perf_counter() - start:.0f} s.")


@candidates_app.command("show")
def show_library(
    library: LibraryArgument,
    formula: Annotated[str | None, typer.Option(help="List the molecules with this formula.")] = None,
    mass: Annotated[float | None, typer.Option(help="List the molecules with this neutral mass in Da.")] = None,
    ppm: Annotated[float, typer.Option(help="Half the width of the window of masses, in ppm.")] = 10.0,
    verify: Annotated[bool, typer.Option("--verify", help="Also compare the files with their hash.")] = False,
) -> None:
    """Describe a library, or list the SMILES, names and formulas of some molecules."""
    with report_errors():
        from psilearn_chem.molecules import CandidateLibrary

        candidates = CandidateLibrary.open(library)
        if verify:
            candidates.verify()
        if formula is None and mass is None:
            typer.echo(_describe_library(candidates))
            return
        rows = candidates.find_formula(formula) if formula is not None else candidates.find_mass(float(mass or 0), ppm)
        if rows.start == rows.stop:
            raise ValueError("no molecule was found.")
        columns = candidates.get_smiles(rows), candidates.get_names(rows), candidates.get_formulas(rows)
        for line in zip(*columns, strict=True):
            typer.echo("\t".join(line))


def _describe_library(library: CandidateLibrary) -> str:
    return (
        f"{len(library):,} molecules with {len(library.formulas):,} formulas, {library.masses[0]:.4f} to "
        f"{library.masses[-1]:.4f} Da; fingerprints {'+'.join(library.fingerprints.kinds)}; sha256 {library.hash}"
    )


@contextmanager
def connect(scheduler: str | None) -> Iterator[Any]:
    """Yield a client of a scheduler, which is the default client inside of the block; joblib uses its workers too.

    ``scheduler`` is an address, passed to Dask as it is (``tcp://host:8786``, or ``tls://host:8786`` with the
    certificates of Dask's configuration), or "local" for workers on this machine. None connects to nothing.
    """
    if scheduler is None:
        yield None
        return
    from psilearn.utils import explain_missing

    with explain_missing("--scheduler needs Dask: pip install 'psilearn[dask]'."):
        import distributed
    import joblib

    source: Any = distributed.LocalCluster(dashboard_address=":0") if scheduler == LOCAL else scheduler
    try:
        client = distributed.Client(source, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise OSError(
            f"No Dask scheduler answers at {scheduler!r}: give the address that `dask scheduler` prints, such as "
            f"tcp://host:8786, or {LOCAL!r}. Dask: {error}"
        ) from error
    try:
        with client, joblib.parallel_config("dask"):
            yield client
    finally:
        if scheduler == LOCAL:
            source.close()
