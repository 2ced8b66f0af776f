"""The commands ``psilearn candidates …`` and ``psilearn metabolites …``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

candidates_app = typer.Typer(help="Libraries of candidate molecules on disk.", no_args_is_help=True)
metabolites_app = typer.Typer(help="From tandem mass spectra to ranked molecules.", no_args_is_help=True)

Library = Annotated[Path, typer.Option("--candidates", help="The library, a folder of psilearn candidates build.")]
Device = Annotated[str | None, typer.Option(help="Where to compute: cpu or cuda, of torch; by default in NumPy.")]
Adduct = Annotated[str | None, typer.Option(help="The adduct of spectra that do not say theirs, such as '[M+H]+'.")]


@contextmanager
def _errors_as_words(device: str | None = None) -> Iterator[None]:
    """Turn what a user can mend into one line and exit code 2; compute on this device of torch."""
    from psilearn._backend import computing, find_device

    try:
        with computing("float64", find_device(device, "--device")):
            yield
    except (ValueError, OSError, EOFError, ImportError, MemoryError) as error:
        typer.secho(f"Error: {error}", err=True, fg="red")
        raise typer.Exit(2) from error


def _say(text: str) -> None:
    typer.echo(text, err=True)


@candidates_app.command("build")
def build(
    molecules: Annotated[Path, typer.Argument(help="A .parquet, .csv, .tsv, .smi or .sdf file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder that is made.")] = Path("candidates"),
    fingerprints: Annotated[
        str, typer.Option(help="Kinds, with commas: morgan, maccs, path, atompair, torsion.")
    ] = "morgan,maccs",
    jobs: Annotated[int, typer.Option(help="Processes; -1: one a core.")] = -1,
) -> None:
    """Build a library once, for many models: fingerprints, formulas and masses. Interrupted, it goes on."""
    with _errors_as_words():
        from psilearn._utils.progress import show_progress
        from psilearn.chem.molecules import CandidateLibrary, Fingerprints

        start = perf_counter()
        kinds = tuple(kind.strip() for kind in fingerprints.split(",") if kind.strip())
        with show_progress(True):
            library = CandidateLibrary.build(molecules, output, Fingerprints(kinds), n_jobs=jobs)
        told = library.manifest
        listed = f" (listed in {output / 'unreadable.csv'})" if told["unreadable"] else ""
        _say(
            f"{output}: {len(library):,} molecules of {told['formulas']:,} formulas in {perf_counter() - start:.0f} s; "
            f"{told['repeated']:,} repeated, {told['unreadable']:,} that cannot be read{listed}."
        )


@candidates_app.command("embed")
def embed(
    library: Annotated[Path, typer.Argument(help="A library.")],
    model: Annotated[Path, typer.Option("--model", help="A model of psilearn metabolites train.")],
    device: Device = None,
) -> None:
    """Embed all molecules with a model, once, so that ranking costs a product of p numbers a candidate."""
    with _errors_as_words(device):
        from psilearn._utils.progress import show_progress
        from psilearn.chem.metabolites import MetaboliteIdentifier
        from psilearn.chem.molecules import CandidateLibrary

        identifier, opened = MetaboliteIdentifier.load(model), CandidateLibrary.open(library)
        identifier.require(opened)
        start = perf_counter()
        with show_progress(True):
            opened.embedded(identifier.model, build=True)
        p = identifier.model.n_components_
        _say(f"{len(opened):,} molecules in {p} dimensions, {perf_counter() - start:.0f} s.")


@candidates_app.command("show")
def show(
    library: Annotated[Path, typer.Argument(help="A library.")],
    formula: Annotated[str | None, typer.Option(help="List the molecules of this formula.")] = None,
    mass: Annotated[float | None, typer.Option(help="List the molecules of this neutral mass, Da.")] = None,
    ppm: Annotated[float, typer.Option(help="Half the width of the window of masses.")] = 10.0,
    verify: Annotated[bool, typer.Option("--verify", help="Compare the hash of its files.")] = False,
) -> None:
    """Say what a library holds, or list some of its molecules: SMILES, name and formula."""
    with _errors_as_words():
        from psilearn.chem.molecules import CandidateLibrary

        opened = CandidateLibrary.open(library)
        if verify:
            opened.verify()
        if formula is None and mass is None:
            typer.echo(
                f"{len(opened):,} molecules of {len(opened.formulas):,} formulas, {opened.masses[0]:.4f} to "
                f"{opened.masses[-1]:.4f} Da; fingerprints {'+'.join(opened.fingerprints.kinds)}; sha256 {opened.hash}"
            )
            return
        rows = opened.of_formula(formula) if formula is not None else opened.of_mass(float(mass or 0), ppm)
        if rows.start == rows.stop:
            raise ValueError("no molecule fits.")
        for line in zip(opened.smiles(rows), opened.names(rows), opened.formulas_of(rows), strict=True):
            typer.echo("\t".join(line))


@metabolites_app.command("train")
def train_command(
    spectra: Annotated[Path, typer.Argument(help="Spectra with SMILES: .parquet, .mgf, .msp, .mzml or MassBank .txt.")],
    candidates: Library,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the model, which is made.")],
    method: Annotated[str, typer.Option(help="oel, oel0 (no unlabeled molecules) or iokr.")] = "oel",
    unlabeled: Annotated[
        int, typer.Option(help="Molecules of the library that oel learns its embedding from.")
    ] = 10000,
    calibration: Annotated[float, typer.Option(help="Part of molecules held back for conformal sets.")] = 0.1,
    adduct: Adduct = None,
    seed: Annotated[int, typer.Option(help="Of every random choice.", min=0, max=2**32 - 1)] = 0,
    device: Device = None,
) -> None:
    """Learn from spectra whose molecules are known; parameters are chosen by validation on them."""
    problems: list[Any] = []
    with _errors_as_words(device):
        from psilearn.chem.metabolites import train
        from psilearn.chem.molecules import CandidateLibrary
        from psilearn.chem.spectra import read_spectra

        if output.exists() and (not output.is_dir() or any(output.iterdir())):
            raise FileExistsError(f"{output} exists and is not an empty folder: choose another one for the model.")
        library = CandidateLibrary.open(candidates)
        read = read_spectra(spectra, errors="skip", adduct=adduct)
        problems += read.problems
        start = perf_counter()
        identifier = train(
            read.spectra,
            library,
            method=method,
            unlabeled=unlabeled,
            calibration=calibration,
            seed=seed,
            say=lambda text: _say(f"{perf_counter() - start:6.0f} s  {text}"),
            on_problem=problems.append,
        )
        identifier.save(output)
        told = identifier.training
        chosen = [told["input_kernel"], f"λ={told['alpha']:.2g}"]
        chosen += [f"{s}={told[n]:g}" for s, n in (("p", "n_components"), ("c", "supervision")) if told[n] is not None]
        _say(
            f"{output}: {told['spectra']} spectra of {told['molecules']} molecules, {told['calibration_spectra']} for "
            f"calibration; {', '.join(chosen)}; validation loss {told['validation_loss']:.4f}; adducts "
            f"{', '.join(identifier.adducts) or 'not stated'}."
        )
        _tell_sets(identifier.model, 0.9)
    _tell(problems, "not learnt from")


@metabolites_app.command("rank")
def rank_command(
    spectra: Annotated[Path, typer.Argument(help="Spectra: .mgf, .msp, .mzml, MassBank .txt or .parquet.")],
    model: Annotated[Path, typer.Option("--model", help="A model of psilearn metabolites train.")],
    candidates: Library,
    output: Annotated[Path, typer.Option("--output", "-o", help="The table, a CSV file.")] = Path("ranks.csv"),
    page: Annotated[Path | None, typer.Option("--html", help="Also a page with drawn structures.")] = None,
    top: Annotated[int, typer.Option("--top", "-k", help="Molecules a spectrum; 0: all candidates.", min=0)] = 10,
    by: Annotated[str, typer.Option(help="How candidates are found: auto, formula or mass.")] = "auto",
    ppm: Annotated[float, typer.Option(help="Half the window of masses, of the molecule's own mass.")] = 10.0,
    adduct: Adduct = None,
    any_adduct: Annotated[bool, typer.Option("--any-adduct", help="Accept adducts the model never saw.")] = False,
    coverage: Annotated[float, typer.Option(help="Of the conformal sets.")] = 0.9,
    ties: Annotated[str, typer.Option(help="Rank of ties: expected, optimistic or pessimistic.")] = "expected",
    device: Device = None,
) -> None:
    """Rank the candidates of each spectrum. Spectra that cannot be ranked are named, and the exit code is 1."""
    rankings: list[Any] = []
    with _errors_as_words(device):
        from psilearn.chem.metabolites import MetaboliteIdentifier, Query, rank_spectra
        from psilearn.chem.metabolites.csv_table import write_table
        from psilearn.chem.metabolites.page import write_page
        from psilearn.chem.molecules import CandidateLibrary
        from psilearn.chem.spectra import Problem, read_spectra

        for place in (output, page):
            if place is not None and not place.absolute().parent.is_dir():
                raise FileNotFoundError(f"the folder {place.absolute().parent} does not exist.")
        library, identifier = CandidateLibrary.open(candidates), MetaboliteIdentifier.load(model)
        read = read_spectra(spectra, errors="skip", adduct=adduct)
        problems: list[Any] = list(read.problems)
        query = Query(by, ppm, () if any_adduct else identifier.adducts)
        start = perf_counter()
        ranked = rank_spectra(
            identifier, read.spectra, library, k=top or None, query=query, coverage=coverage, ties=ties
        )
        for one in ranked:
            (problems if isinstance(one, Problem) else rankings).append(one)
        took = perf_counter() - start
        write_table(rankings, library, output)
        if page is not None:
            write_page(rankings, problems, library, coverage, page)
        each = f", {1000 * took / len(rankings):.1f} ms each" if rankings else ""
        _tell_sets(identifier.model, coverage)
        _say(f"{len(rankings)} spectra ranked{each}: {output}{f' and {page}' if page else ''}")
    _tell(problems, "not ranked")


def _tell_sets(model: Any, coverage: float) -> None:
    """Say where conformal sets tell nothing: too few molecules were held back for such a coverage."""
    from psilearn.conformal import threshold

    scores = getattr(model, "calibration_scores_", None)
    if scores is not None and threshold(scores, coverage) == float("inf"):
        _say(
            f"Conformal sets hold every candidate: {len(scores)} calibration spectra cannot promise {coverage:.0%}; "
            f"{coverage / (1 - coverage):.0f} or more are needed."
            if coverage < 1
            else "Conformal sets of coverage 1 hold every candidate."
        )


def _tell(problems: list[Any], what: str) -> None:
    """Name what was left out, and make the exit code say so."""
    for problem in problems:
        typer.secho(f"{what}: {problem}", err=True, fg="yellow")
    if problems:
        raise typer.Exit(1)
