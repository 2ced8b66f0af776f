"""Metabolite identification: the molecule of a tandem mass spectrum, among all candidates with its formula."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from psilearn_lab.experiments.competitors import WITHOUT_TORCH, has_torch
from psilearn_lab.experiments.experiment import Context, Experiment, Outcome, Part
from psilearn_lab.experiments.metabolite_evidence import EVIDENCE_CONFIG, run_evidence
from psilearn_lab.experiments.metabolite_folds import COVERAGES, run_fold
from psilearn_lab.experiments.metabolite_tables import Results
from psilearn_lab.experiments.metabolite_task import load_task

CONFIG: dict[str, Any] = {
    "folds": [0, 1, 2, 3, 4],
    "adduct": "[M+H]+",
    "spectra": None,  # all
    "inner": 4,
    "fingerprints": ["morgan", "maccs"],
    "output_gamma": 0.5,  # the paper's σ² = 1
    "width": 0.005,  # Da
    "formulas": False,  # whether kernels on formulas of fragments and losses are parts of the mixture
    "gammas": [None, 0.25, 0.5, 1.0],
    "alphas": [3e-6, 1e-5, 3e-5, 1e-4, 3e-4],
    "factors": [0.1, 1.0],
    "sizes": [400, 600, 800, 1200, 1600, 2000],
    "supervisions": [0.25, 0.75, 1.0],
    "select_unlabeled": 5000,
    "select_candidates": 300,  # at most, per spectrum
    "unlabeled": [10_000, None],  # None: all
    "extra_landmarks": 1000,
    "networks": {
        "inputs": 2000,  # principal components, as in the paper
        "competitors": {
            "SPEN": {  # sizes as in the paper
                "hidden": [[1500, 1500]],
                "energy_hidden": [500],
                "learning_rate": [3e-3],  # 1e-3 was worse on held-out spectra of four folds
                "dropout": [0.5],
                "standardize": [False],
                "batch_size": [128],
                "patience": [6],
                "energy_epochs": [30],
                "energy_learning_rate": [1e-4],
            },
        },
    },
}
LINEAR = {  # the sums of kernels as in the paper, not inside a Gaussian
    "gammas": [None],
    "alphas": [3e-5, 1e-4, 3e-4, 1e-3],
    "factors": [0.3, 1.0],
    "supervisions": [0.75, 1.0],
    "unlabeled": [10_000],
}
WITHOUT_NETWORKS = {"unlabeled": [10_000], "networks": {**CONFIG["networks"], "competitors": {}}}
FORMULAS = {**WITHOUT_NETWORKS, "formulas": True}
NEGATIVE = {**WITHOUT_NETWORKS, "adduct": "[M-H]-"}
QUICK = {"folds": [0]}


def run(context: Context) -> Outcome:
    """Choose, fit and test on every outer fold; results are means over all spectra, each tested once."""
    task = load_task(context)
    numbers = context.config["folds"]
    kind = "fold" if has_torch() else "fold-without-networks"
    folds = [context.compute_once(f"{kind}-{number}", partial(run_fold, task, number, context)) for number in numbers]
    known_formulas = [np.isin(task.formulas, task.formulas[task.fold != number]) for number in numbers]
    results = Results.join(folds, numbers, task.n_candidates, known_formulas)
    notes = [
        *results.notes(COVERAGES),
        f"Candidate library: {len(task.library):,} molecules, sha256 {task.library.hash[:16]}…; {task.n_noncommercial} "
        f"of the spectra are licensed for non-commercial use.",
    ]
    if not has_torch():
        notes.append(WITHOUT_TORCH)
    if len(folds) < len(CONFIG["folds"]):
        notes.append(f"{len(folds)} of {len(CONFIG['folds'])} folds.")
    return Outcome(results.rows(), notes, results.figures() if context.can_draw else {})


EXPERIMENT = Experiment(
    name="metabolites",
    title="Metabolite identification",
    source="Table 7",
    protocol="3942 MassBank spectra of [M+H]+ ions, one per molecule, in five given folds. The candidates of a "
    "spectrum are the molecules with its formula in a library of 460,559. The paper used other data (6974 spectra, "
    "7593 bits, PubChem), so its values show the order of magnitude only and no verdict is given. Input: probability "
    "product kernels on peaks and neutral losses (σ = 0.005 Da, square roots of intensities), each normalized, summed "
    "with equal weights or by centered alignment, as they are or inside a Gaussian. Output: the Gaussian-Tanimoto "
    "kernel (σ² = 1) on Morgan and MACCS fingerprints, which defines the loss.\n\n"
    "On the training folds, four inner folds choose by the decoded loss: for IOKR the input kernel and λ, then for "
    "the embeddings λ, p and c with that kernel. For this choice, a spectrum has at most 300 random candidates, and "
    "5000 unlabeled molecules are used. Fits with unlabeled molecules work in the span of all training molecules and "
    "1000 others. SPEN predicts the bits of a fingerprint from 2000 kernel principal components of the spectra, with "
    "the paper's sizes and the kernel that IOKR chose, and ranks molecules by their energy; its learning rate was "
    "compared on training spectra of the first fold, which are test spectra of other folds. Ties count with their "
    "expected position. Results are means over all spectra, each tested once, ± standard errors over spectra. A "
    "second part uses the sums of kernels as in the paper, not inside a Gaussian. A third part adds kernels on the "
    "formulas of fragments and losses, counted and weighted by square roots of intensities: the formula of the "
    "molecule explains peaks within 10 ppm or 0.002 Da. A fourth part has spectra of [M-H]- ions: the records of each "
    "molecule are merged, molecules that are not candidates are left out, and those that are in no fold are dealt to "
    "the folds in the order of their InChIKeys. The last two parts are without SPEN. Three more parts learn a "
    "second stage on inner splits, with reference spectra as evidence: where molecules may be known or new, with folds "
    "by scaffolds, and for [M-H]- ions. In these parts, test molecules with several records are also queried with "
    "one of them.",
    parts=(
        Part("massbank", "MassBank", run, CONFIG, QUICK, trial=False),
        Part("massbank-evidence", "MassBank, second stage", run_evidence, EVIDENCE_CONFIG, QUICK, trial=False),
        Part(
            "massbank-scaffolds",
            "MassBank, second stage, folds by scaffolds",
            run_evidence,
            {**EVIDENCE_CONFIG, "scaffolds": True},
            QUICK,
            trial=False,
        ),
        Part(
            "massbank-negative-evidence",
            "MassBank, second stage, negative ions",
            run_evidence,
            {**EVIDENCE_CONFIG, "adduct": "[M-H]-"},
            QUICK,
            trial=False,
        ),
        Part("massbank-linear", "MassBank, without the Gaussian", run, {**CONFIG, **LINEAR}, QUICK, trial=False),
        Part("massbank-formulas", "MassBank, with formulas", run, {**CONFIG, **FORMULAS}, QUICK, trial=False),
        Part("massbank-negative", "MassBank, negative ions", run, {**CONFIG, **NEGATIVE}, QUICK, trial=False),
    ),
)
