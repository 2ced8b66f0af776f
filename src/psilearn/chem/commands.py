"""The commands ``psilearn candidates`` and ``psilearn metabolites``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import disk_usage
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from psilearn._utils.command_errors import report_errors
from psilearn._utils.dask_clusters import connect

if TYPE_CHECKING:
    from psilearn._utils.folder_writer import FolderWriter
    from psilearn.chem.metabolites import MetaboliteIdentifier
    from psilearn.chem.molecules import CandidateLibrary
    from psilearn.chem.spectra import Problem, Spectrum

candidates_app = typer.Typer(help="Build and search libraries of candidate molecules.", no_args_is_help=True)
metabolites_app = typer.Typer(help="Identify molecules from tandem mass spectra.", no_args_is_help=True)

LibraryArgument = Annotated[Path, typer.Argument(help="Folder of the library.")]
LibraryOption = Annotated[
    Path, typer.Option("--candidates", help="Folder of the library, from `psilearn candidates build`.")
]
ModelOption = Annotated[Path, typer.Option("--model", help="Folder of the model, from `psilearn metabolites train`.")]
DeviceOption = Annotated[
    str | None, typer.Option(help="Device of torch, cpu or cuda. By default, NumPy computes on the CPU.")
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(help="Address of a Dask scheduler whose workers share this disk, such as tcp://host:8786; or local."),
]
MergeOption = Annotated[
    str | None,
    typer.Option(help="Merge spectra of one ion, which share: feature (feature id, else name), name or molecule."),
]
AdductOption = Annotated[
    str | None, typer.Option(help="Adduct of spectra for which the file states none, such as '[M+H]+'.")
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
        from psilearn._utils.progress import show_progress
        from psilearn.chem.molecules import CandidateLibrary, Fingerprints

        start = perf_counter()
        kinds = tuple(kind.strip() for kind in fingerprints.split(",") if kind.strip())
        with show_progress(True), connect(scheduler):
            library = CandidateLibrary.build(molecules, output.resolve(), Fingerprints(kinds), n_jobs=jobs)
        seconds, manifest = perf_counter() - start, library.manifest
        listed = f" (listed in {output / 'unreadable.csv'})" if manifest["unreadable"] else ""
        _print_status(
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
        _compute_on(device),
    ):
        from psilearn._utils.progress import show_progress
        from psilearn.chem.metabolites import MetaboliteIdentifier
        from psilearn.chem.molecules import CandidateLibrary

        identifier, candidates = MetaboliteIdentifier.load(model), CandidateLibrary.open(library)
        identifier.check_library(candidates)
        n_bytes = len(candidates) * (4 * identifier.model_.n_components_ + 8)
        _print_status(
            f"{len(candidates):,} molecules in {identifier.model_.n_components_} dimensions as float32: "
            f"{n_bytes / 1e9:.2f} GB on disk, of which {disk_usage(library).free / 1e9:.1f} GB are free."
        )
        start = perf_counter()
        with show_progress(True), connect(scheduler) as client:
            candidates.embedded(identifier.model_, build=True, on_cluster=client is not None)
        p = identifier.model_.n_components_
        _print_status(f"{len(candidates):,} molecules embedded in {p} dimensions in {perf_counter() - start:.0f} s.")


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
        from psilearn.chem.molecules import CandidateLibrary

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


@metabolites_app.command("train")
def train_model(
    spectra: Annotated[Path, typer.Argument(help="Spectra with SMILES, in the formats that `rank` reads.")],
    candidates: LibraryOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the model, to create.")],
    method: Annotated[str, typer.Option(help="oel, oel0 (without unlabeled molecules) or iokr.")] = "oel",
    unlabeled: Annotated[
        int, typer.Option(help="Number of molecules of the library from which oel also learns its embedding.")
    ] = 10000,
    calibration: Annotated[
        float, typer.Option(help="Fraction of the molecules that is held out to calibrate conformal sets.")
    ] = 0.1,
    adduct: AdductOption = None,
    merge: MergeOption = None,
    polarity: Annotated[
        str, typer.Option(help="Which spectra are used: positive, negative or both. Others are left out.")
    ] = "both",
    seed: Annotated[int, typer.Option(help="Random seed.", min=0, max=2**32 - 1)] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model in the folder, once the new one is complete.")
    ] = False,
    device: DeviceOption = None,
) -> None:
    """Train a model on spectra of known molecules; its parameters are chosen by cross-validation.

    Spectra that cannot be used are reported, and the exit status is 1.
    """
    problems: list[Problem] = []
    with report_errors(), _compute_on(device):
        from psilearn.chem.metabolites import train
        from psilearn.chem.metabolites.polarity import select_polarity
        from psilearn.chem.metabolites.saved_identifier import encode_identifier
        from psilearn.chem.molecules import CandidateLibrary
        from psilearn.chem.spectra import read_spectra

        with _claim_model_folder(output, overwrite) as folder:
            library = CandidateLibrary.open(candidates)
            read = read_spectra(spectra, errors="skip", adduct=adduct)
            problems += read.problems
            start = perf_counter()
            identifier = train(
                _merge(select_polarity(read.spectra, polarity), merge),
                library,
                method=method,
                unlabeled=unlabeled,
                calibration=calibration,
                seed=seed,
                say=lambda text: _print_status(f"{perf_counter() - start:6.0f} s  {text}"),
                on_problem=problems.append,
            )
            encode_identifier(identifier).write(folder)
        _print_status(f"{output}: {_describe_training(identifier)}")
        _warn_about_trivial_sets(identifier, 0.9)
    _exit_with_problems(problems, "not used for training")


@metabolites_app.command("rank")
def rank_candidates(
    spectra: Annotated[Path, typer.Argument(help="Spectra: .mgf, .msp, .mzml, SIRIUS .ms, MassBank .txt or .parquet.")],
    model: ModelOption,
    candidates: LibraryOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV file to write.")] = Path("ranks.csv"),
    page: Annotated[
        Path | None,
        typer.Option("--html", help="HTML page with drawn structures to write; over 50 spectra, an index and pages."),
    ] = None,
    tsv: Annotated[Path | None, typer.Option(help="Table with the columns of SIRIUS to write.")] = None,
    mztab: Annotated[Path | None, typer.Option(help="mzTab-M file to write.")] = None,
    top: Annotated[
        int, typer.Option("--top", "-k", help="Number of molecules per spectrum; 0 for all candidates.", min=0)
    ] = 10,
    whole_set: Annotated[
        bool, typer.Option("--whole-set", help="Also list molecules of the conformal set beyond the first --top.")
    ] = False,
    by: Annotated[str, typer.Option(help="How candidates are found: auto, formula or mass.")] = "auto",
    ppm: Annotated[
        float, typer.Option(help="Half the width of the window of masses, in ppm of the mass of the molecule.")
    ] = 10.0,
    adduct: AdductOption = None,
    merge: MergeOption = None,
    any_adduct: Annotated[
        bool, typer.Option("--any-adduct", help="Also accept adducts on which the model was not trained.")
    ] = False,
    coverage: Annotated[float, typer.Option(help="Coverage of the conformal sets.")] = 0.9,
    ties: Annotated[
        str, typer.Option(help="Rank of tied molecules: expected, optimistic or pessimistic.")
    ] = "expected",
    device: DeviceOption = None,
) -> None:
    """Rank the candidates of each spectrum.

    Spectra that cannot be ranked are reported, and the exit status is 1.
    """
    problems: list[Problem] = []
    with report_errors(), _compute_on(device):
        from psilearn._utils.progress import show_progress, track
        from psilearn.chem.metabolites import MetaboliteIdentifier, Query, rank_spectra
        from psilearn.chem.metabolites.rank_files import RankFiles, write_rankings
        from psilearn.chem.molecules import CandidateLibrary

        files = RankFiles(output, page, tsv, mztab)
        files.check()
        library, identifier = CandidateLibrary.open(candidates), MetaboliteIdentifier.load(model)
        query = Query(by, ppm, () if any_adduct else identifier.adducts_)
        start = perf_counter()
        results = rank_spectra(
            identifier,
            _read_stream(spectra, adduct, merge, problems),
            library,
            k=top or None,
            query=query,
            coverage=coverage,
            ties=ties,
            whole_set=whole_set,
        )
        with show_progress(True):
            n_ranked = write_rankings(track(results, "spectra"), library, files, coverage, problems, spectra.name)
        seconds = perf_counter() - start
        _warn_about_trivial_sets(identifier, coverage)
        each = f", {1000 * seconds / n_ranked:.1f} ms each" if n_ranked else ""
        _print_status(f"{n_ranked:,} spectra ranked{each}: {files}")
    _exit_with_problems(problems, "not ranked")


def _claim_model_folder(path: Path, overwrite: bool) -> FolderWriter:
    """Check that a model can be saved, and lock its folder, before the training starts."""
    from psilearn.io.saved_models import claim_model_folder

    try:
        return claim_model_folder(path, overwrite=overwrite)
    except FileExistsError as error:
        raise FileExistsError(str(error).replace("overwrite=True", "--overwrite")) from error


@contextmanager
def _compute_on(device: str | None) -> Iterator[None]:
    """Compute in double precision on a device of torch, or in NumPy."""
    from psilearn import computing

    with computing("float64", device):
        yield


def _merge(spectra: Sequence[Spectrum], by: str | None) -> Sequence[Spectrum]:
    """Return one spectrum per group of spectra of the same ion; without a rule, the spectra themselves."""
    from psilearn.chem.spectra.merging import merge_groups

    return spectra if by is None else merge_groups(spectra, by)


def _read_stream(path: Path, adduct: str | None, merge: str | None, problems: list[Problem]) -> Iterator[Spectrum]:
    """Yield the spectra of a file, and append its problems to a list; merging reads the whole file first."""
    from psilearn.chem.spectra import Problem, iter_spectra

    def spectra() -> Iterator[Spectrum]:
        for item in iter_spectra(path, errors="skip", adduct=adduct):
            if isinstance(item, Problem):
                problems.append(item)
            else:
                yield item

    yield from spectra() if merge is None else _merge(list(spectra()), merge)


def _print_status(text: str) -> None:
    """Print to the standard error, so that it does not mix with results."""
    typer.echo(text, err=True)


def _exit_with_problems(problems: Sequence[Problem], action: str) -> None:
    """Report the spectra that were left out; if there are any, exit with status 1."""
    for problem in problems:
        typer.secho(f"{action}: {problem}", err=True, fg="yellow")
    if problems:
        raise typer.Exit(1)


def _describe_library(library: CandidateLibrary) -> str:
    return (
        f"{len(library):,} molecules with {len(library.formulas):,} formulas, {library.masses[0]:.4f} to "
        f"{library.masses[-1]:.4f} Da; fingerprints {'+'.join(library.fingerprints.kinds)}; sha256 {library.hash}"
    )


def _describe_training(identifier: MetaboliteIdentifier) -> str:
    """Return on which data a model was trained, and which parameters were chosen."""
    training = identifier.training_
    chosen = [training["input_kernel"], f"λ={training['alpha']:.2g}"]
    for symbol, name in (("p", "n_components"), ("c", "supervision")):
        if training[name] is not None:
            chosen.append(f"{symbol}={training[name]:g}")
    return (
        f"{training['spectra']} spectra of {training['molecules']} molecules, {training['calibration_spectra']} for "
        f"calibration; {', '.join(chosen)}; validation loss {training['validation_loss']:.4f}; adducts "
        f"{', '.join(identifier.adducts_) or 'not stated'}."
    )


def _warn_about_trivial_sets(identifier: MetaboliteIdentifier, coverage: float) -> None:
    """Print a warning if the calibration spectra are too few for the coverage, so that sets contain every candidate."""
    from psilearn.conformal import threshold

    scores = getattr(identifier.model_, "calibration_scores_", None)
    if scores is None or threshold(scores, coverage) < float("inf"):
        return
    reason = (
        f"{len(scores)} calibration spectra are too few for a coverage of {coverage:.0%}; at least "
        f"{coverage / (1 - coverage):.0f} are needed"
        if coverage < 1
        else "a coverage of 1 requires it"
    )
    _print_status(f"Conformal sets contain every candidate: {reason}.")
