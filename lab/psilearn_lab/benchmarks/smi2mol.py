"""SMI2Mol: the fit of 100,000 SMILES and molecular graphs, and what the decoders cost.

The settings are those of ``psilearn reproduce smi2mol``: substrings of up to five characters with a Gaussian kernel,
10,000 input landmarks, Weisfeiler–Lehman subtrees of depth 2, 3000 output landmarks, float32. The nearest training
molecules of 2000 test molecules are found, and 200 of them by the local search with eight starts in one process.
"""

from collections.abc import Callable

import numpy as np

from psilearn import IOKR
from psilearn.decoding import local_search
from psilearn_chem import MoleculeEdits
from psilearn_lab.benchmarks.device import warm_up
from psilearn_lab.benchmarks.measurement import Clock, Figures, Run, time_in_turns
from psilearn_lab.experiments import smi2mol
from psilearn_lab.experiments.experiment import Config, Context
from psilearn_lab.experiments.smi2mol import Task

NEEDS = ("qm9/qm9_smiles.txt",)
METHODS = ("IOKR", "OEL₀")
SETTING = smi2mol.Setting(max_length=5, gamma=0.5, alpha=1e-6, depth=2, normalize_depths=True)
N_SEARCHED = 200
MAX_FIT_SECONDS = {"cpu": 1200, "cuda": 60}
MAX_DECODE_RATIO = 1.0  # of OEL₀ and IOKR, with candidates


def measure(run: Run) -> Figures:
    """Print and return the seconds of fits and decoders."""
    config = {**smi2mol.CONFIG, "pairs": 100_000, **(smi2mol.QUICK if run.quick else {})}
    task = Task.load(config, 0, -1)
    warm_up()
    methods = {method: _make_turn(method, task, config, run) for method in METHODS}
    timings = time_in_turns(methods, 1)  # minutes per turn
    figures: Figures = {"n": len(task.train), "tests": len(task.test)}
    rows = []
    for method, timing in timings.items():
        per_molecule = 1000 * timing.seconds["search"] / min(len(task.test), N_SEARCHED)
        figures[method] = {**timing.seconds, "ms per molecule, search": per_molecule}
        rows.append([method, timing.seconds["fit"], timing.seconds["decode"], f"{per_molecule:.0f} ms"])
    columns = ["method", "fit s", f"decode s, {len(task.test)} molecules", "local search, per molecule"]
    run.show_table(f"SMI2Mol, {len(task.train):,} pairs", columns, rows)
    _check_claims(run, figures)
    return figures


def _make_turn(method: str, task: Task, config: Config, run: Run) -> Callable[[Clock], IOKR]:
    """Return a function that fits a model and decodes the test molecules."""
    context = Context(config, 0, None, run.log, device=run.device)
    texts = task.test.texts

    def run_turn(clock: Clock) -> IOKR:
        with clock("fit"):
            model: IOKR = smi2mol.fit(method, SETTING, task.train, task.unlabeled, config, context)
        model.predict(texts[:1])  # the index of the candidates
        with clock("decode"):
            model.predict(texts)
        Z = np.asarray(model.embed(texts[:N_SEARCHED]), dtype=np.float64)
        with clock("search"):
            local_search(Z, model.candidates_, MoleculeEdits(max_atoms=9), n_starts=config["starts"])
        return model

    return run_turn


def _check_claims(run: Run, figures: Figures) -> None:
    limit = MAX_FIT_SECONDS["cuda" if (run.device or "").startswith("cuda") else "cpu"]
    seconds = [figures[method]["fit"] for method in METHODS]
    run.check_claim(
        f"Fits of {figures['n']:,} pairs of SMI2Mol take less than {limit} s",
        max(seconds) < limit,
        " and ".join(f"{value:.0f} s" for value in seconds),
    )
    ratio = figures["OEL₀"]["decode"] / figures["IOKR"]["decode"]
    run.check_claim("SMI2Mol: OEL₀ decodes faster than IOKR", ratio < MAX_DECODE_RATIO, f"{ratio:.2f} of the time")
