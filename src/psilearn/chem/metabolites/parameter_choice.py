"""Choice of parameters by the decoded validation loss: held-out spectra are ranked against their candidate molecules.

The squared error in the output space, cheap as it is, prefers much more ridge than ranking does: within a candidate set
all molecules have one formula, and what matters is the direction of the prediction, not its length. So settings are
compared by what they will be used for: the output-kernel loss of the nearest candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psilearn import IOKR, OEL
from psilearn._backend import asarray, precision, to_host
from psilearn._linalg import Array, row_products
from psilearn._linalg.moments import MixedMoment
from psilearn._utils.samples import Index, Samples, n_samples, take
from psilearn.chem.metabolites.similarity import Mixture, SpectrumSimilarity
from psilearn.decoding import CandidateSets
from psilearn.decoding.expansions import Expansions, RankedInSets, rank_in_sets
from psilearn.embedding import LandmarkOutputs, OutputStream, SpannedOutputs
from psilearn.kernels import Kernel
from psilearn.kernels.blocks import block
from psilearn.landmarks import Landmarks
from psilearn.regression import KernelRidge, Regression

Split = tuple[Index, Index]  # training and held-out examples


@dataclass(frozen=True)
class Setting:
    """What is chosen; c and p are None where everything is kept (IOKR)."""

    mixture: Mixture
    alpha: float
    supervision: float | None = None
    n_components: int | None = None


@dataclass(frozen=True)
class Grid:
    """What is tried: IOKR chooses the mixture, the learned embeddings λ, p and c with it."""

    mixtures: Sequence[Mixture]
    alphas: Sequence[float]
    factors: Sequence[float]  # of IOKR's λ: those that the learned embeddings try
    sizes: Sequence[int]  # p
    supervisions: Sequence[float]  # c; below 1 only with unlabeled molecules
    extra_landmarks: int  # unlabeled molecules that, with all labeled ones, span the output coordinates


@dataclass(frozen=True)
class Examples:
    """Spectra as numbers of a similarity, their molecules, and the molecules that each may be."""

    similarity: SpectrumSimilarity
    outputs: Samples  # (n, b) fingerprints
    sets: CandidateSets  # one an example, a row a molecule: those with one fingerprint tie
    truth: Index  # (n,)  place of each molecule in its set; −1 where it is missing
    kernel: Kernel  # on fingerprints

    def mixed(self, mixture: Mixture, train: Index, K_y: Array | None = None) -> tuple[Kernel, Array]:
        """Return the kernel on numbers, and its weights, as training examples determine them.

        ``K_y`` is the output kernel on the training examples, where it is known already.
        """
        if mixture.combination == "alignf" and K_y is None:
            K_y = to_host(self.kernel(take(self.outputs, train)))
        weights = self.similarity.weights(mixture.combination, train, K_y)
        return self.similarity.on_indices(weights, mixture.gamma), weights

    def thinned(self, most: int, seed: int) -> Examples:
        """Return the same with at most so many candidates an example, drawn at random, the true one among them."""
        rng = np.random.default_rng(seed)
        sets, truth = list(self.sets.sets), self.truth.copy()
        for i, one in enumerate(sets):
            if n_samples(one) > most:
                others = np.setdiff1d(np.arange(n_samples(one)), truth[i : i + 1])
                chosen = np.sort(rng.choice(others, most - (truth[i] >= 0), replace=False))
                sets[i] = take(one, np.append(chosen, truth[i]) if truth[i] >= 0 else chosen)
                truth[i] = most - 1 if truth[i] >= 0 else -1
        return replace(self, sets=CandidateSets(sets), truth=truth)

    def losses(self, ranked: RankedInSets, held: Index) -> Array:
        """Return |ψ(ŷ) − ψ(y)|² for each setting and held-out example, (s, q)."""
        values = np.empty(ranked.nearest.shape)
        for j, i in enumerate(held):
            places, inverse = np.unique(ranked.nearest[:, j], return_inverse=True)
            found = take(self.sets.sets[i], places)
            truth = take(self.outputs, np.full(len(places), i))
            values[:, j] = self.kernel.paired_squared_distances(found, truth)[inverse]
        return values


@dataclass(frozen=True)
class Validated:
    """The validation losses of settings."""

    settings: list[Setting]
    losses: Array  # (s, q)  of each example that was held out

    def best(self, *supervisions: float | None) -> Setting:
        """Return the setting with the least mean loss, among those with one of these c."""
        rows = [i for i, setting in enumerate(self.settings) if setting.supervision in supervisions]
        return self.settings[min(rows, key=lambda i: self.losses[i].mean())]

    def mean(self, setting: Setting) -> float:
        """Return the mean loss of a setting."""
        return float(self.losses[self.settings.index(setting)].mean())


def validate_iokr(examples: Examples, grid: Grid, splits: Sequence[Split], say: Callable[[str], None]) -> Validated:
    """Compare mixtures and λ of IOKR: a Cholesky factor for each, kernel values of candidates once a split."""
    settings = [Setting(mixture, alpha) for mixture in grid.mixtures for alpha in grid.alphas]
    losses = []
    for number, (train, held) in enumerate(splits):
        say(f"IOKR, split {number + 1} of {len(splits)}: {len(settings)} settings")
        Y = take(examples.outputs, train)
        K_y = asarray(examples.kernel(Y))
        predictions: list[Any] = []
        for mixture in grid.mixtures:
            kernel = examples.mixed(mixture, train, to_host(K_y))[0]
            for alpha in grid.alphas:  # β = α(x): no coordinates are needed
                beta = KernelRidge(kernel, alpha).fit(train).weights(held)
                predictions.append((to_host(beta).astype(np.float32), to_host(row_products(beta @ K_y, beta))))
        losses.append(_losses(examples, Y, predictions, held))
    return Validated(settings, np.concatenate(losses, axis=1))


def validate_embeddings(
    examples: Examples,
    grid: Grid,
    iokr: Setting,
    unlabeled: Samples | None,
    splits: Sequence[Split],
    say: Callable[[str], None],
) -> Validated:
    """Compare λ, c and p of OEL with the mixture that IOKR chose; every p comes from one set of eigenvectors."""
    alphas = [iokr.alpha * factor for factor in grid.factors]
    supervisions = [c for c in grid.supervisions if c == 1 or unlabeled is not None]
    settings = [Setting(iokr.mixture, alpha, c, p) for alpha in alphas for c in supervisions for p in grid.sizes]
    losses = []
    for number, (train, held) in enumerate(splits):
        say(f"OEL, split {number + 1} of {len(splits)}: {len(settings)} settings")
        side = _side(examples, take(examples.outputs, train), unlabeled, grid)
        kernel = examples.mixed(iokr.mixture, train)[0]
        K = block(kernel, held, train, "input_kernel")
        targets, unsupervised = side.labeled[:], side.moment().summed()
        predictions = []
        for alpha in alphas:
            regression = KernelRidge(kernel, alpha).fit(train).regress(targets).settled()
            for c in supervisions:
                V = _directions(regression, unsupervised, c, max(grid.sizes))
                Z, embedding = K @ regression.coef(V), side.embedding(V)
                predictions += [_prediction(Z[:, :p], embedding.basis[:, :p]) for p in grid.sizes]
        losses.append(_losses(examples, embedding.landmarks, predictions, held))
    return Validated(settings, np.concatenate(losses, axis=1))


def _side(examples: Examples, Y: Samples, unlabeled: Samples | None, grid: Grid) -> SpannedOutputs | LandmarkOutputs:
    """Return the output side of a fit; with unlabeled molecules in the span of the labeled ones and some others."""
    if unlabeled is None:
        return SpannedOutputs(examples.kernel, Y, None, False)
    landmarks = labeled_landmarks(Y, grid.extra_landmarks)
    stream = OutputStream(iter([unlabeled]), examples.kernel, Y)
    return LandmarkOutputs(examples.kernel, Y, stream, True, landmarks, 1.0)


def fitted(
    kernel: Kernel,
    output_kernel: Kernel,
    X: Samples,
    Y: Samples,
    setting: Setting,
    unlabeled: Samples | None,
    extra_landmarks: int,
) -> Any:
    """Return the model of a setting, fitted; unlabeled outputs play a part below full supervision only."""
    if setting.supervision is None:
        return IOKR(kernel, output_kernel, setting.alpha).fit(X, Y)
    model = OEL(kernel, output_kernel, setting.alpha, setting.n_components, setting.supervision)
    if setting.supervision == 1 or unlabeled is None:
        return model.fit(X, Y)
    model.set_params(output_landmarks=labeled_landmarks(Y, extra_landmarks))
    return model.fit(X, Y, unlabeled=iter([unlabeled]))


def labeled_landmarks(Y: Samples, extra: int) -> Landmarks:
    """Return all labeled outputs and ``extra`` others as landmarks."""
    return Landmarks(n_samples(Y) + extra, "labeled")


def _directions(regression: Regression, unsupervised: MixedMoment, c: float, p: int) -> Array | None:
    """Return the p leading directions of M_c, (r, p)."""
    supervised = c * regression.moment if regression.moment is not None else MixedMoment()
    return (supervised if c == 1 else supervised + (1 - c) * unsupervised).top(p).directions


def _prediction(Z: Array, basis: Array) -> tuple[Array, Array]:
    """Return β = basis·z (q, r) and |z|² (q,) of the held-out examples."""
    return to_host(Z @ asarray(basis).T).astype(np.float32), to_host(row_products(Z, Z))


def _losses(examples: Examples, landmarks: Samples, predictions: list[tuple[Array, Array]], held: Index) -> Array:
    """Return the loss of each prediction Σ β ψ(landmark) on the held-out examples, (s, q)."""
    weights, squared = (np.stack([one[part] for one in predictions], axis=1) for part in (0, 1))
    sets = CandidateSets([examples.sets.sets[i] for i in held])
    with precision(np.float32):
        expansions = Expansions(examples.kernel, landmarks, weights, squared)
        return examples.losses(rank_in_sets(expansions, sets, examples.truth[held]), held)
