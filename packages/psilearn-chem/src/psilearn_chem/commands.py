"""The command ``psilearn metabolites``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from psilearn.app.console import print_status, report_errors

if TYPE_CHECKING:
    from psilearn_chem.metabolites import MetaboliteIdentifier
    from psilearn_chem.spectra import Problem, Spectrum


ModelOption = Annotated[Path, typer.Option("--model", help="Model, from `psilearn metabolites train`.")]
DeviceOption = Annotated[
    str | None, typer.Option(help="Device of torch, cpu or cuda. By default, NumPy computes on the CPU.")
]


@contextmanager
def compute_on(device: str | None) -> Iterator[None]:
    """Compute in double precision on a device of torch, or in NumPy."""
    from psilearn import computing

    with computing("float64", device):
        yield


metabolites_app = typer.Typer(
    help="Identify molecules from tandem mass spectra.", no_args_is_help=True, add_completion=False
)

LibraryOption = Annotated[
    Path, typer.Option("--candidates", help="Folder of the library, from `psilearn candidates build`.")
]
MergeOption = Annotated[
    str | None,
    typer.Option(help="Merge spectra of one ion, which share: feature (feature id, else name), name or molecule."),
]
AdductOption = Annotated[
    str | None, typer.Option(help="Adduct of spectra for which the file states none, such as '[M+H]+'.")
]


@metabolites_app.command("train")
def train_model(
    spectra: Annotated[Path, typer.Argument(help="Spectra with SMILES, in the formats that `rank` reads.")],
    candidates: LibraryOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="File of the model to write.")],
    method: Annotated[str, typer.Option(help="oel, oel0 (without unlabeled molecules) or iokr.")] = "oel",
    unlabeled: Annotated[
        int, typer.Option(help="Number of molecules of the library from which oel also learns its embedding.")
    ] = 10000,
    calibration: Annotated[
        float, typer.Option(help="Fraction of the molecules that is held out to calibrate conformal sets.")
    ] = 0.1,
    second_stage: Annotated[
        bool, typer.Option(help="Learn a second stage, which ranks by probabilities; kept if validation prefers it.")
    ] = True,
    adduct: AdductOption = None,
    merge: MergeOption = None,
    polarity: Annotated[
        str, typer.Option(help="Which spectra are used: positive, negative or both. Others are left out.")
    ] = "both",
    seed: Annotated[int, typer.Option(help="Random seed.", min=0, max=2**32 - 1)] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a saved model, once the new one is complete.")
    ] = False,
    device: DeviceOption = None,
) -> None:
    """Train a model on spectra of known molecules; its parameters are chosen by cross-validation.

    Spectra that cannot be used are reported, and the exit status is 1.
    """
    problems: list[Problem] = []
    with report_errors(), compute_on(device):
        from psilearn_chem.metabolites.identifier import MetaboliteIdentifier
        from psilearn_chem.metabolites.queries import select_polarity
        from psilearn_chem.molecules import CandidateLibrary
        from psilearn_chem.spectra import read_spectra

        _check_model_path(output, overwrite)
        library = CandidateLibrary.open(candidates)
        read = read_spectra(spectra, errors="skip", adduct=adduct)
        problems += read.problems
        identifier = MetaboliteIdentifier(
            method=method,
            n_unlabeled=unlabeled,
            calibration=calibration,
            second_stage=second_stage,
            errors="skip",
            random_state=seed,
            verbose=1,
        ).fit(_merge(select_polarity(read.spectra, polarity), merge), library)
        problems += identifier.problems_
        identifier.save(output, overwrite=overwrite)
        print_status(f"{output}: {_describe_training(identifier)}")
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
    with report_errors(), compute_on(device):
        from psilearn.utils import show_progress, track
        from psilearn_chem.metabolites import MetaboliteIdentifier, Query
        from psilearn_chem.metabolites.rank_files import RankFiles, write_rankings
        from psilearn_chem.molecules import CandidateLibrary
        from psilearn_chem.spectra.formats import count_records

        files = RankFiles(output, page, tsv, mztab)
        files.check()
        library, identifier = CandidateLibrary.open(candidates), MetaboliteIdentifier.load(model)
        query = Query(by, ppm, () if any_adduct else identifier.adducts_)
        start = perf_counter()
        results = identifier.rank(
            _read_stream(spectra, adduct, merge, problems),
            library,
            k=top or None,
            query=query,
            coverage=coverage,
            ties=ties,
            whole_set=whole_set,
        )
        with show_progress(True):
            tracked = track(results, "spectra", None if merge else count_records(spectra))
            n_ranked = write_rankings(tracked, library, files, coverage, problems, spectra.name)
        seconds = perf_counter() - start
        _warn_about_trivial_sets(identifier, coverage)
        each = f", {1000 * seconds / n_ranked:.1f} ms each" if n_ranked else ""
        print_status(f"{n_ranked:,} spectra ranked{each}: {files}")
    _exit_with_problems(problems, "not ranked")


def _check_model_path(path: Path, overwrite: bool) -> None:
    """Check that a model can be saved, before the training starts."""
    from psilearn.io import check_model_path

    try:
        check_model_path(path, overwrite=overwrite)
    except FileExistsError as error:
        raise FileExistsError(str(error).replace("overwrite=True", "--overwrite")) from error


def _merge(spectra: Sequence[Spectrum], by: str | None) -> Sequence[Spectrum]:
    """Return one spectrum per group of spectra of the same ion; without a rule, the spectra themselves."""
    from psilearn_chem.spectra.merging import merge_groups

    return spectra if by is None else merge_groups(spectra, by)


def _read_stream(path: Path, adduct: str | None, merge: str | None, problems: list[Problem]) -> Iterator[Spectrum]:
    """Yield the spectra of a file, and append its problems to a list; merging reads the whole file first."""
    from psilearn_chem.spectra import Problem, iter_spectra

    def spectra() -> Iterator[Spectrum]:
        for item in iter_spectra(path, errors="skip", adduct=adduct):
            if isinstance(item, Problem):
                problems.append(item)
            else:
                yield item

    yield from spectra() if merge is None else _merge(list(spectra()), merge)


def _exit_with_problems(problems: Sequence[Problem], action: str) -> None:
    """Report the spectra that were left out; if there are any, exit with status 1."""
    for problem in problems:
        typer.secho(f"{action}: {problem}", err=True, fg="yellow")
    if problems:
        raise typer.Exit(1)


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
    print_status(f"Conformal sets contain every candidate: {reason}.")
