"""Networks that predict the bits of a fingerprint from a spectrum, and rank molecules by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import KernelPCA

from psilearn._utils.samples import Index
from psilearn.baselines import Baseline
from psilearn.chem.metabolites.parameter_choice import Examples
from psilearn.decoding import CandidateSets
from psilearn.decoding.expansions import RankedInSets, place_truth
from psilearn.experiments.competitors import fit_competitor
from psilearn.experiments.experiment import Array, Context, Log
from psilearn.experiments.protocol import Data
from psilearn.kernels import Kernel

Bits = npt.NDArray[np.uint8]


def run_networks(
    examples: Examples, kernel: Kernel, train: Index, test: Index, context: Context, log: Log
) -> list[dict[str, Any]]:
    """Choose, fit and test the networks of the config on one fold; return the results of each.

    As in the paper, the inputs are the leading kernel principal components of the training spectra. A network learns
    the bits of a fingerprint, and candidates are ranked by the probability or energy that it gives them.
    """
    settings = context.config["networks"]
    if not settings["competitors"]:
        return []
    log(f"{settings['inputs']} principal components of spectra")
    X, X_test = principal_components(kernel, train, test, settings["inputs"])
    data = Data(X, _unpack(examples.outputs[train]), X_test, _unpack(examples.outputs[test]))
    results = []
    for key, grid in settings["competitors"].items():
        log(f"{key}: training")
        competitor = fit_competitor(key, grid, data, context)
        ranked = rank_by_costs(competitor.model, X_test, examples, test)
        results.append(
            {
                "name": key,
                "nearer": ranked.nearer,
                "tied": ranked.tied,
                "loss": examples.losses(ranked, test),
                "setting": ", ".join(f"{name}={value}" for name, value in competitor.parameters.items()),
                "edges": ", ".join(competitor.edges),
                "seconds": sum(competitor.seconds.values()),
            }
        )
    return results


def principal_components(kernel: Kernel, train: Index, test: Index, n_components: int) -> tuple[Array, Array]:
    """Return at most ``n_components`` kernel principal components of the training spectra and of the test spectra."""
    pca = KernelPCA(min(n_components, len(train) - 1), kernel="precomputed", eigen_solver="dense")
    X = pca.fit_transform(kernel(train))
    return X, pca.transform(kernel(test, train))


def rank_by_costs(model: Baseline, X: Array, examples: Examples, test: Index) -> RankedInSets:
    """Rank the candidates of the test spectra by a baseline's costs; molecules with equal bits tie."""
    return place_truth(_iter_costs(model, X, [examples.sets.sets[i] for i in test]), 1, examples.truth[test])


def _iter_costs(model: Baseline, X: Array, sets: Sequence[Bits]) -> Iterator[tuple[int, Array, Array]]:
    """Yield each spectrum with the costs (1, c) of its candidates and their tolerance; unpack one set at a time."""
    for i, packed in enumerate(sets):
        for _, _, costs, tolerance in model.costs(X[i : i + 1], CandidateSets([_unpack(packed)])):
            yield i, costs, tolerance


def _unpack(packed: Bits) -> Bits:
    """Return packed fingerprints as rows of 0 and 1."""
    return np.unpackbits(packed, axis=1)


def insert_networks(results: Mapping[str, Any], networks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the arrays of a fold with the networks after the methods that have settings."""
    n_methods = len(results["settings"])
    joined = dict(results)
    for key, network_key in (("methods", "name"), ("nearer", "nearer"), ("tied", "tied"), ("loss", "loss")):
        rows = [np.atleast_1d(network[network_key]) for network in networks]
        joined[key] = np.concatenate([results[key][:n_methods], *rows, results[key][n_methods:]])
    for key, network_key in (("settings", "setting"), ("edges", "edges"), ("seconds", "seconds")):
        joined[key] = [*results[key], *(network[network_key] for network in networks)]
    return joined
