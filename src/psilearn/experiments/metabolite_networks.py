"""Networks that predict the bits of a fingerprint from a spectrum, and rank molecules by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA

from psilearn._linalg import Array
from psilearn._utils.samples import Index
from psilearn.chem.metabolites.parameter_choice import Examples
from psilearn.decoding import CandidateSets
from psilearn.decoding.expansions import RankedInSets, place_truth
from psilearn.experiments.competitors import contend
from psilearn.experiments.experiment import Context
from psilearn.experiments.protocol import Data
from psilearn.kernels import Kernel


def networks_of_fold(
    examples: Examples, kernel: Kernel, train: Index, test: Index, context: Context, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Choose, fit and test the networks of the config on one fold; for each its name, ranks, losses, setting, seconds.

    As in the paper, spectra enter by the leading kernel principal components of the training spectra. A network is
    told the bits of a fingerprint; candidates are ranked by what it makes of them: probability, or energy.
    """
    settings = context.config["networks"]
    if not settings["competitors"]:
        return []
    say(f"{settings['inputs']} principal components of spectra")
    X, X_test = principal_components(kernel, train, test, settings["inputs"])
    data = Data(X, _bits(examples.outputs[train]), X_test, _bits(examples.outputs[test]))
    found = []
    for key, grid in settings["competitors"].items():
        say(f"{key}: training")
        contender = contend(key, grid, data, context)
        ranked = rank_bits(contender.model, X_test, examples, test)
        found.append(
            {
                "name": key,
                "nearer": ranked.nearer,
                "tied": ranked.tied,
                "loss": examples.losses(ranked, test),
                "setting": ", ".join(f"{name}={value}" for name, value in contender.parameters.items()),
                "edges": ", ".join(contender.edges),
                "seconds": sum(contender.seconds.values()),
            }
        )
    return found


def principal_components(kernel: Kernel, train: Index, test: Index, most: int) -> tuple[Array, Array]:
    """Return the leading kernel principal components of the training spectra, and the others in the same axes."""
    pca = KernelPCA(min(most, len(train) - 1), kernel="precomputed", eigen_solver="dense")
    X = pca.fit_transform(kernel(train))
    return X, pca.transform(kernel(test, train))


def rank_bits(model: Any, X: Array, examples: Examples, test: Index) -> RankedInSets:
    """Rank the candidates of test spectra by a baseline's costs; each molecule counts, those with equal bits tie."""
    return place_truth(_costs(model, X, [examples.sets.sets[i] for i in test]), 1, examples.truth[test])


def _costs(model: Any, X: Array, sets: Sequence[Any]) -> Iterator[tuple[int, Array, Array]]:
    """Yield each spectrum with the costs (1, c) of its candidates, unpacked one set at a time, and their slack."""
    for i, one in enumerate(sets):
        for _, _, D, slack in model.costs(X[i : i + 1], CandidateSets([_bits(one)])):
            yield i, D, slack


def _bits(packed: Any) -> Any:
    """Return packed fingerprints as rows of 0 and 1."""
    return np.unpackbits(packed, axis=1)


def joined(kernels: Mapping[str, Any], networks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the arrays of a fold with networks among them, before the predictions that know no spectrum."""
    place = len(kernels["settings"])
    made = dict(kernels)
    for key, own in (("methods", "name"), ("nearer", "nearer"), ("tied", "tied"), ("loss", "loss")):
        rows = [np.atleast_1d(one[own]) for one in networks]
        made[key] = np.concatenate([kernels[key][:place], *rows, kernels[key][place:]])
    for key, own in (("settings", "setting"), ("edges", "edges"), ("seconds", "seconds")):
        made[key] = [*kernels[key], *(one[own] for one in networks)]
    return made
