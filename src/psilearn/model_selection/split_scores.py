"""The scores of every kernel, λ, c and p on one split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone
from threadpoolctl import ThreadpoolController

from psilearn._backend import N_STREAMS, Compute, to_numpy
from psilearn._distributed import map_items
from psilearn._linalg import Array
from psilearn._utils.progress import show_progress
from psilearn._utils.samples import Index, Samples, take
from psilearn.decoding import AllRankings, Candidates, PathDecoder, as_candidates, has_all_rankings
from psilearn.decoding.label_sets.listable import ListableLabelSets
from psilearn.embedding.subspace_path import MAX_DENSE_ORDER
from psilearn.kernels import Kernel
from psilearn.landmarks import Landmarks
from psilearn.model_selection.grids import PathGrid
from psilearn.model_selection.regression_routes import Step, choose_route
from psilearn.model_selection.scoring import DecodedScores, Scoring
from psilearn.model_selection.split_outputs import ExactOutputPath, OutputPath, SplitOutputs

MAX_SHARED_ORDER = 4096  # of matrices that leave most of a GPU idle
MATRICES_PER_TASK = 6  # of that order, in float64, that a task on a device has in memory at a time


@dataclass(frozen=True)
class SplitTask:
    """One split with some input kernels and all output kernels; picklable, so that another process can run it.

    Input kernels in one task share the coordinates of the outputs and the kernel values of candidates.
    """

    output_paths: Sequence[Sequence[OutputPath]]  # one or more per output kernel, which divide the values of c
    input_kernels: Sequence[Kernel]
    X: Samples
    y: Samples
    train: Index
    held: Index
    scorings: Sequence[Scoring]
    candidates: Sequence[Candidates | str | None]  # of all examples, or names; None for the default of each kernel
    grid: PathGrid
    compute: Compute
    decoding_compute: Compute  # the precision of distances to candidates
    input_landmarks: Landmarks | None = None
    leaves_one_out: bool = False  # every example is held out by itself: train and held are all of them

    def scores(self) -> Array:
        """Return the scores, of shape (input kernels, output kernels, λ, c, p, candidates, scorings).

        K_x is decomposed once per input kernel, or factored once per λ. If every direction is kept, as IOKR does, the
        axes of c and p have length 1.
        """
        with self.compute.active(), show_progress(False), ThreadpoolController().limit(limits=self._max_threads()):
            return self._scores()

    def is_small_on_device(self) -> bool:
        """Return whether several such tasks fit on a device together, and share nothing that one of them computes."""
        is_exact = all(isinstance(path, ExactOutputPath) for group in self.output_paths for path in group)
        decodes = any(scoring.decodes for scoring in self.scorings)
        needed = N_STREAMS * MATRICES_PER_TASK * 8 * self._order() ** 2
        is_small = self._order() <= MAX_SHARED_ORDER and needed <= (self.compute.available_bytes() or 0) // 2
        return is_exact and not decodes and is_small and self.compute.dtype == np.float64

    def _order(self) -> int:
        return max([len(self.train), *(path.width for group in self.output_paths for path in group)])

    def _max_threads(self) -> int | None:
        """Return 1 for small problems: their threads would wait for each other longer than they compute."""
        return 1 if self.compute.device is None and self._order() <= MAX_DENSE_ORDER else None

    def _scores(self) -> Array:
        paths = [path for group in self.output_paths for path in group]
        outputs_of = _Cache(lambda which: paths[which].split(self.train, self.held))
        scorers: dict[int, PathScorer] = {}
        X, y = take(self.X, self.train), take(self.y, self.train)
        held = None if self.leaves_one_out else take(self.X, self.held)
        widths = [path.width for path in paths]
        for kernel in self.input_kernels:
            fitted = clone(kernel).fit(X, y)
            route = choose_route(fitted, X, held, outputs_of, widths, self.grid, self.input_landmarks, self.compute)
            for which, path in enumerate(paths):
                if which not in scorers:
                    scorers[which] = PathScorer(self, outputs_of(which), path)
                scorers[which].add(outputs_of(which), route.steps(which, scorers[which].grid))
            del route  # and with it K_x, before that of the next input kernel is computed
        return self._assemble([scorers[which].table() for which in range(len(paths))])

    def _assemble(self, tables: list[Array]) -> Array:
        """Join the values of c of each output kernel, and put the input kernels first."""
        remaining = iter(tables)
        groups = [np.concatenate([next(remaining) for _ in group], axis=2) for group in self.output_paths]
        return np.stack(groups, axis=1)


def scores_on_dask(tasks: Sequence[SplitTask]) -> list[Array]:
    """Return the scores of all tasks, one per split and input kernel, computed on Dask's workers.

    Kernel values are computed where they are used: only the data and the coordinates of the outputs are sent.
    """
    none = np.empty(0, dtype=np.intp)
    shared = replace(tasks[0], input_kernels=(), train=none, held=none)
    return map_items(_scores_of_split, shared, [(task.input_kernels, task.train, task.held) for task in tasks])


def _scores_of_split(shared: SplitTask, input_kernels: Sequence[Kernel], train: Index, held: Index) -> Array:
    return replace(shared, input_kernels=input_kernels, train=train, held=held).scores()


class _Cache:
    """The outputs of a split, computed on request; of several large ones only the last is kept."""

    def __init__(self, compute_outputs: Callable[[int], SplitOutputs]) -> None:
        self._compute_outputs = compute_outputs
        self._known: dict[int, SplitOutputs] = {}

    def __call__(self, which: int) -> SplitOutputs:
        if which not in self._known:
            large = [i for i, outputs in self._known.items() if len(outputs.moment.sigma) > MAX_DENSE_ORDER]
            for i in large:
                del self._known[i]
            self._known[which] = self._compute_outputs(which)
        return self._known[which]


class PathScorer:
    """Scores the predictions of one split for one output path, step by step.

    Parameters
    ----------
    task : SplitTask
        The split and the scorings.
    outputs : SplitOutputs
        The outputs of the split. They are not kept.
    path : OutputPath
        The output path, for its values of c.
    """

    def __init__(self, task: SplitTask, outputs: SplitOutputs, path: OutputPath) -> None:
        self.grid = PathGrid(task.grid.alphas, path.supervisions, task.grid.sizes)
        self.scorings = task.scorings
        self.n_sizes = 1 if self.grid.sizes is None else len(self.grid.sizes)
        self._errors: list[Array] = []  # (n_sizes,) for each step
        self._n_choices = len(task.candidates)
        self._decoded: list[DecodedScores] = []  # one per choice of candidates
        if any(scoring.decodes for scoring in self.scorings):
            truth = take(task.y, task.held)
            for choice in task.candidates:
                candidates = split_candidates(choice, outputs, task.held)
                decoder = self._make_decoder(task, outputs, candidates, truth)
                self._decoded.append(DecodedScores(decoder, self.scorings, truth, outputs.outputs.kernel))

    def _make_decoder(
        self, task: SplitTask, outputs: SplitOutputs, candidates: Candidates, truth: Samples
    ) -> PathDecoder:
        candidates = candidates.distinct()
        needs_positions = any(scoring.top_k is not None for scoring in self.scorings)
        matches = candidates.match(truth) if needs_positions else None
        return candidates.path_decoder(outputs.embedding, self.grid.sizes, task.decoding_compute, matches)

    def add(self, outputs: SplitOutputs, steps: Iterable[Step]) -> None:
        """Add the predictions of one input kernel, for each λ and c."""
        target, mean_norm = outputs.held_out_targets(), outputs.mean_held_out_norm()  # (q, s)
        for V, Z in steps:
            sizes = [Z.shape[1]] if self.grid.sizes is None else [min(p, Z.shape[1]) for p in self.grid.sizes]
            self._errors.append(squared_errors(Z, target if V is None else target @ V, sizes, mean_norm))
            for decoded in self._decoded:
                decoded.add(V, Z)

    def table(self) -> Array:
        """Return the scores, of shape (input kernels, λ, c, p, candidates, scorings)."""
        columns = [self._score(scoring) for scoring in self.scorings]
        n_alphas, n_steps = len(self.grid.alphas), self.grid.n_steps
        shape = (-1, n_alphas, n_steps // n_alphas, self.n_sizes, self._n_choices, len(columns))
        return np.stack(columns, axis=-1).reshape(shape)

    def _score(self, scoring: Scoring) -> Array:
        """Return one score for every step, p and choice of candidates."""
        if not scoring.decodes:
            return np.repeat(-np.stack(self._errors)[..., None], self._n_choices, axis=-1)
        return np.stack([decoded.scores(scoring.name) for decoded in self._decoded], axis=-1)


def split_candidates(choice: Candidates | str | None, outputs: SplitOutputs, held: Index) -> Candidates:
    """Return the candidates of the held-out examples: given ones, or those of a model that is fitted on the split.

    None stands for the default of such a model: all rankings, or its known outputs.
    """
    if isinstance(choice, Candidates) and not isinstance(choice, ListableLabelSets):
        return choice.restrict(held)
    if choice is None and has_all_rankings(outputs.outputs.kernel):
        return AllRankings(outputs.embedding, outputs.outputs.known.outputs)
    return as_candidates(choice or "known", outputs.known_candidates(), lambda known, _: known, len(held))


def squared_errors(Z: Array, target: Array, sizes: Sequence[int], mean_norm: float) -> Array:
    """Return the mean of |G*Gĥ(x) − ψ(y)|² = Σ_{l≤p} z_l² − 2 z_l g_l + k(y, y) for each p."""
    gains = np.concatenate([[0.0], np.cumsum(to_numpy((Z**2 - 2 * Z * target).mean(0)))])
    return gains[list(sizes)] + mean_norm
