"""The work that :mod:`fuzz.kills` kills: each scenario runs a command, and knows the states that it may leave."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from psilearn import OEL
from psilearn.app.cli import app
from psilearn.io import load_model, save_model
from psilearn_chem import CandidateLibrary, MetaboliteIdentifier, Ranking, read_spectra
from psilearn_chem.molecules import Adduct, Fingerprints, Formula, MoleculeList, fingerprints
from psilearn_chem.spectra import Spectrum, write_parquet
from psilearn_lab import experiments
from psilearn_lab.experiments import Experiment, Metric, Outcome, Part, Row
from psilearn_lab.experiments.part_errors import FailedError
from psilearn_lab.experiments.runner import load_records, load_results

GROUPS = ("C", "CC", "CCC", "O", "OC", "OCC", "N", "NC", "F", "Cl", "C(=O)O", "CO")
SMILES = [f"{a}c1ccc({b})cc1" for a, b in itertools.combinations_with_replacement(GROUPS, 2)]
CHUNK_SIZE = 16  # molecules: a build of few molecules then has several chunks


class Scenario(ABC):
    """Work that is killed."""

    name: ClassVar[str]
    folder: Path  # of the inputs

    def prepare(self, folder: Path) -> None:
        """Write the inputs."""
        self.folder = folder

    def begin(self, output: Path) -> None:  # noqa: B027  # most outputs do not exist before the first run
        """Bring an output into the state before the first run."""

    @abstractmethod
    def run(self, output: Path) -> None:
        """Do the work, from the start or from where it was interrupted."""

    @abstractmethod
    def state(self, output: Path) -> str:
        """Return "absent", "unfinished" or "finished"; raise an error for any other state."""

    @abstractmethod
    def result(self, output: Path) -> Any:
        """Return the finished result, to be compared with others."""


class Build(Scenario):
    """``psilearn candidates build`` in one process."""

    name = "build"
    jobs = 1

    def prepare(self, folder: Path) -> None:
        """Write a file of molecules."""
        super().prepare(folder)
        fingerprints.CHUNK_SIZE = CHUNK_SIZE
        lines = [f"{smiles} m{i}" for i, smiles in enumerate([*SMILES, "broken("])]
        (folder / "molecules.smi").write_text("\n".join(lines))

    def run(self, output: Path) -> None:
        """Build the library."""
        run_command("candidates", "build", self.folder / "molecules.smi", "-o", output, "--jobs", self.jobs)

    def state(self, output: Path) -> str:
        """Return the state of the library; a finished one has the files of its manifest."""
        try:
            CandidateLibrary.open(output).verify()
        except (FileNotFoundError, ValueError) as error:
            return unfinished_state(error)
        return "finished"

    def result(self, output: Path) -> Any:
        """Return the hash, the texts and the number of unreadable molecules."""
        library = CandidateLibrary.open(output)
        rows = slice(0, len(library))
        texts = library.get_smiles(rows), library.get_names(rows), (output / "unreadable.csv").read_text()
        return library.hash, library.manifest, texts


class BuildInProcesses(Build):
    """``psilearn candidates build`` with worker processes."""

    name = "build-processes"
    jobs = 2


class Train(Scenario):
    """``psilearn metabolites train`` on few spectra."""

    name = "train"

    def prepare(self, folder: Path) -> None:
        """Build a library, and write artificial spectra of its molecules."""
        super().prepare(folder)
        CandidateLibrary.build(MoleculeList(SMILES, SMILES), folder / "library")
        write_parquet(make_spectra(SMILES[:40]), folder / "spectra.parquet")

    def run(self, output: Path) -> None:
        """Train and save a model."""
        options = ("--candidates", self.folder / "library", "--unlabeled", 20, "--calibration", 0.2)
        run_command("metabolites", "train", self.folder / "spectra.parquet", "-o", output, *options)

    def state(self, output: Path) -> str:
        """Return the state of the model."""
        try:
            MetaboliteIdentifier.load(output)
        except (FileNotFoundError, ValueError) as error:
            return unfinished_state(error)
        return "finished"

    def result(self, output: Path) -> Any:
        """Return rankings with their distances."""
        library = CandidateLibrary.open(self.folder / "library")
        spectra = read_spectra(self.folder / "spectra.parquet").spectra
        return list_rankings(MetaboliteIdentifier.load(output), spectra, library)


class Embed(Train):
    """``psilearn candidates embed``: a library stays usable, with or without the embedded molecules."""

    name = "embed"

    def prepare(self, folder: Path) -> None:
        """Train a model."""
        super().prepare(folder)
        library = CandidateLibrary.open(folder / "library")
        MetaboliteIdentifier(n_unlabeled=20).fit(make_spectra(SMILES[:40]), library).save(folder / "model")

    def begin(self, output: Path) -> None:
        """Build a library without embedded molecules."""
        CandidateLibrary.build(MoleculeList(SMILES, SMILES), output)

    def run(self, output: Path) -> None:
        """Embed the molecules."""
        run_command("candidates", "embed", output, "--model", self.folder / "model")

    def state(self, output: Path) -> str:
        """Return whether the molecules are embedded; a library or an embedding that is damaged is an error."""
        model = MetaboliteIdentifier.load(self.folder / "model").model_
        return "unfinished" if CandidateLibrary.open(output).embedded(model) is None else "finished"

    def result(self, output: Path) -> Any:
        """Return rankings of the embedded molecules."""
        identifier = MetaboliteIdentifier.load(self.folder / "model")
        return list_rankings(identifier, make_spectra(SMILES[:40]), CandidateLibrary.open(output))


class Reproduce(Scenario):
    """``psilearn reproduce`` of an experiment with three parts, each with intermediate results."""

    name = "reproduce"

    def prepare(self, folder: Path) -> None:
        """Replace the experiments by one that takes little time and needs no data."""
        super().prepare(folder)
        parts = tuple(Part(name, name, fit_in_steps, {"seed": i}, {}) for i, name in enumerate(("a", "b", "c")))
        self.experiment = Experiment("steps", "Steps", "Table 1", "Fit and test.", parts)
        experiments.NAMES = (self.experiment.name,)  # type: ignore[assignment]
        experiments.find = lambda name: self.experiment

    def run(self, output: Path) -> None:
        """Run all parts and write the report."""
        run_command("reproduce", "steps", "--output", output, "--quick", "--jobs", 1)

    def state(self, output: Path) -> str:
        """Return whether all parts have a record; an unreadable record is an error."""
        results = load_results(self.experiment, output, quick=True)
        if any(isinstance(result, FailedError) for result in results):
            raise AssertionError(f"a record is damaged: {results}")
        report = output / "quick" / "report.html"
        if len(results) == len(self.experiment.parts) and report.exists():
            return "finished"
        return "unfinished" if output.exists() else "absent"

    def result(self, output: Path) -> Any:
        """Return the rows and notes of all records."""
        return [(record.rows, record.notes) for record in load_records(self.experiment, output, quick=True)]


class Overwrite(Scenario):
    """``save_model`` over an older model, again and again: after a kill, there is always a complete model."""

    name = "overwrite"
    n_models = 6

    def prepare(self, folder: Path) -> None:
        """Fit several models that differ in their predictions."""
        super().prepare(folder)
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(40, 3))
        self.models = [OEL(n_components=2).fit(self.X, rng.normal(size=(40, 4))) for _ in range(self.n_models)]
        self.known = [model.predict(self.X).tolist() for model in self.models]

    def begin(self, output: Path) -> None:
        """Save the oldest model."""
        save_model(self.models[0], output)

    def run(self, output: Path) -> None:
        """Replace the model by newer ones."""
        for model in self.models[1:]:
            save_model(model, output, overwrite=True)

    def state(self, output: Path) -> str:
        """Return whether the newest model is there; any other than the known models is an error."""
        number = self.known.index(self.result(output))
        return "finished" if number == self.n_models - 1 else "unfinished"

    def result(self, output: Path) -> Any:
        """Return predictions."""
        return load_model(output).predict(self.X).tolist()


SCENARIOS: dict[str, type[Scenario]] = {
    scenario.name: scenario for scenario in (Build, BuildInProcesses, Train, Embed, Reproduce, Overwrite)
}


def run_command(*arguments: object) -> None:
    """Run a command of the command line, which ends by a SystemExit with its status."""
    app([str(argument) for argument in arguments])


def unfinished_state(error: Exception) -> str:
    """Return the state that an error reports; raise it again unless it says that a folder is absent or unfinished."""
    if isinstance(error, FileNotFoundError):
        return "absent"
    if "unfinished" in str(error) or "it has no manifest" in str(error):  # the latter: killed before the first file
        return "unfinished"
    raise error


def list_rankings(identifier: MetaboliteIdentifier, spectra: list[Spectrum], library: CandidateLibrary) -> Any:
    """Return the rows and distances of the nearest molecules of each spectrum."""
    ranked = [result for result in identifier.rank(spectra, library) if isinstance(result, Ranking)]
    return [(ranking.rows.tolist(), ranking.distances.tolist()) for ranking in ranked]


def make_spectra(smiles: list[str]) -> list[Spectrum]:
    """Return artificial spectra: each bit of a fingerprint is a peak."""
    table = Fingerprints(("maccs",))(smiles)
    adduct = Adduct.parse("[M+H]+")
    spectra = []
    for text, bits, formula in zip(smiles, table.bits, table.formulas, strict=True):
        peaks = np.asarray(40.0 + 0.4 * np.flatnonzero(np.unpackbits(bits)), dtype=np.float64)
        precursor = adduct.mz(Formula.parse(formula).mass)
        spectra.append(Spectrum(peaks, np.ones(len(peaks)), precursor, "[M+H]+", formula, text, text))
    return spectra


def fit_in_steps(context: Any) -> Outcome:
    """Fit models, keep their predictions, and score them."""
    rng = np.random.default_rng(context.config["seed"])
    X, Y = rng.normal(size=(200, 3)), rng.normal(size=(200, 4))
    rows = []
    for p in (1, 2, 3):
        step = context.compute_once(f"step-{p}", lambda p=p: {"Y": OEL(n_components=p).fit(X, Y).predict(X)})
        loss = float(np.mean((step["Y"] - Y) ** 2))
        rows.append(Row("Toy", f"OEL, p = {p}", Metric("loss", "lower"), loss))
    return Outcome(rows)
