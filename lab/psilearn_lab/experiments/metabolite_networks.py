"""Networks that predict the bits of a fingerprint from a spectrum, and rank molecules by them."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import KernelPCA

from psilearn.kernels import Kernel
from psilearn.metrics import TruthPositions, kernel_loss
from psilearn.utils import Index
from psilearn_chem.molecules.fingerprints import Bits
from psilearn_lab.baselines import Baseline
from psilearn_lab.experiments.competitors import fit_competitor
from psilearn_lab.experiments.experiment import Array, Context, Log
from psilearn_lab.experiments.metabolite_evaluation import MethodResult, truth_positions
from psilearn_lab.experiments.metabolite_task import Task
from psilearn_lab.experiments.protocol import Data


def run_networks(
    task: Task, kernel: Kernel, train: Index, test: Index, context: Context, log: Log
) -> list[MethodResult]:
    """Choose, fit and test the networks of the config on one fold; return the results of each.

    As in the paper, the inputs are the leading kernel principal components of the training spectra. A network learns
    the bits of a fingerprint, and candidates are ranked by the probability or energy that it gives them.
    """
    settings = context.config["networks"]
    if not settings["competitors"]:
        return []
    log(f"{settings['inputs']} principal components of spectra")
    X, X_test = principal_components(kernel, train, test, settings["inputs"])
    data = Data(X, unpack(task.outputs[train]), X_test, unpack(task.outputs[test]))
    results = []
    for key, grid in settings["competitors"].items():
        log(f"{key}: training")
        competitor = fit_competitor(key, grid, data, context)
        nearest, positions = rank_by_costs(competitor.model, X_test, task, test)
        results.append(
            MethodResult(
                key,
                positions,
                kernel_loss(task.outputs[test], nearest, task.output_kernel).values,
                setting=", ".join(f"{name}={value}" for name, value in competitor.parameters.items()),
                edges=", ".join(competitor.edges),
                seconds=sum(competitor.seconds.values()),
            )
        )
    return results


def principal_components(kernel: Kernel, train: Index, test: Index, n_components: int) -> tuple[Array, Array]:
    """Return at most ``n_components`` kernel principal components of the training spectra and of the test spectra."""
    pca = KernelPCA(min(n_components, len(train) - 1), kernel="precomputed", eigen_solver="dense")
    X = pca.fit_transform(kernel(train))
    return X, pca.transform(kernel(test, train))


def rank_by_costs(model: Baseline, X: Array, task: Task, test: Index) -> tuple[Bits, TruthPositions]:
    """Return the best candidates of the test spectra by a baseline's costs, and the positions of the true molecules.

    Fingerprints are unpacked for one spectrum at a time.
    """
    nearest, nearer, tied = np.empty_like(task.outputs[test]), np.empty(len(test)), np.empty(len(test))
    for row, spectrum in enumerate(test):
        candidates = task.labeled.sets[spectrum]
        top = model.predict_topk(X[row : row + 1], len(candidates), [unpack(candidates)])
        positions = truth_positions(top, task.truth[spectrum : spectrum + 1])
        nearest[row] = candidates[top.indices[0, 0]]
        nearer[row], tied[row] = positions.nearer[0], positions.tied[0]
    return nearest, TruthPositions(nearer, tied)


def unpack(packed: Bits) -> Bits:
    """Return packed fingerprints as rows of 0 and 1."""
    return np.unpackbits(packed, axis=1)
