"""The choice among candidates by a cost that is linear in the output, up to a term of the output alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from psilearn._backend import iter_blocks, to_numpy
from psilearn._linalg import Array
from psilearn.decoding import Candidates, TopK, as_candidates
from psilearn.decoding.distances import TIE_TOLERANCE, count_nearer, k_smallest
from psilearn.kernels.linear import Linear
from psilearn.kernels.row_kernel import check_numbers
from psilearn.metrics import TruthPositions
from psilearn.utils import Index, Samples, fitted_snapshot, match, n_samples, take, validation
from psilearn_lab.baselines.output_rows import as_columns

CandidatesLike: TypeAlias = Samples | Sequence[Samples] | Candidates | None  # for all inputs, or one set per input
CostBlock: TypeAlias = tuple[Index, Samples, Array, Array]  # examples, their candidates, costs, rounding errors


class CandidateChoice(ABC):
    """Choice among candidate outputs by the cost ⟨s(x), y⟩ + r(y); by default the squared distance to a prediction."""

    candidates_: Samples

    def predict_topk(self, X: Samples, k: int = 10, candidates: CandidatesLike = None) -> TopK:
        """Return the k candidates of lowest cost for each input.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (q, d)
            The inputs.
        k : int, default=10
            The number of candidates per input.
        candidates : collection of outputs, or one collection per input, default=None
            The outputs to choose from; by default the distinct training outputs, ``candidates_``.

        Returns
        -------
        TopK
            The indices of the candidates and their costs, lowest first. Its ``distances`` are costs here, which may be
            negative.

        See Also
        --------
        predict : Return the best output only.
        costs : Compute the costs of all candidates.

        Examples
        --------
        >>> from psilearn_lab.baselines import KNN
        >>> model = KNN(n_neighbors=1).fit([[0.0], [1.0], [2.0]], [[0.0, 0.5], [1.0, 0.5], [3.0, 0.5]])
        >>> model.predict_topk([[0.9]], k=2).indices
        array([[1, 0]])
        """
        k = validation.check_count(k, "k")
        model = fitted_snapshot(self)
        X = model._check_new_inputs(X)
        checked = model._check_candidates(candidates, n_samples(X))
        k = min(k, checked.max_size)
        indices, costs = np.full((n_samples(X), k), -1, dtype=np.intp), np.full((n_samples(X), k), np.inf)
        for examples, _, D, slack in model._iter_costs(X, checked):
            columns = min(k, D.shape[1])
            indices[examples, :columns], costs[examples, :columns] = k_smallest(D, slack, columns)
        return TopK(indices, costs, checked)

    def truth_positions(self, X: Samples, y: Samples, candidates: CandidatesLike = None) -> TruthPositions:
        """Return the position of the true output of each input among its distinct candidates.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (q, d)
            The inputs.
        y : array-like or CSR matrix of shape (q, L), or q numbers
            The true outputs.
        candidates : collection of outputs, or one collection per input, default=None
            The outputs among which the true one is searched; by default the distinct training outputs,
            ``candidates_``.

        Returns
        -------
        TruthPositions
            The number of candidates of lower cost, and the number of candidates of equal cost, ties counted separately.

        See Also
        --------
        psilearn.metrics.top_k_accuracy : Compute the top-k accuracy from the positions.

        Examples
        --------
        >>> from psilearn_lab.baselines import KNN
        >>> model = KNN(n_neighbors=1).fit([[0.0], [1.0], [2.0]], [[0.0, 0.5], [1.0, 0.5], [3.0, 0.5]])
        >>> model.truth_positions([[0.9], [0.9]], [[1.0, 0.5], [3.0, 0.5]]).nearer
        array([0., 2.])
        """
        model = fitted_snapshot(self)
        X = model._check_new_inputs(X)
        truth = model._check_outputs(y, "y")
        if n_samples(X) != n_samples(truth):
            raise ValueError(f"X has {n_samples(X)} examples, y has {n_samples(truth)}.")
        checked = model._check_candidates(candidates, n_samples(X))
        checked = checked.distinct()
        nearer, tied = np.full(n_samples(X), np.inf), np.zeros(n_samples(X))
        for examples, C, D, slack in model._iter_costs(X, checked):
            places = match(take(truth, examples), C)
            rows = np.flatnonzero(places >= 0)
            columns = places[rows, None]
            true_cost, true_slack = (np.take_along_axis(part[rows], columns, axis=1) for part in (D, slack))
            nearer[examples[rows]], tied[examples[rows]] = count_nearer(D[rows], slack[rows], true_cost, true_slack)
        return TruthPositions(nearer, tied)

    def costs(self, X: Samples, candidates: CandidatesLike = None) -> Iterator[CostBlock]:
        """Yield the costs ⟨s(x), y⟩ + r(y) of candidates, block by block, for examples with the same candidates.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (q, d)
            The inputs.
        candidates : collection of outputs, or one collection per input, default=None
            The outputs whose costs are computed; by default the distinct training outputs, ``candidates_``.

        Yields
        ------
        examples : ndarray of shape (m,)
            The indices of the inputs of this block.
        candidates : collection of c outputs
            Their candidates.
        costs : ndarray of shape (m, c)
            The cost of each candidate for each input.
        slack : ndarray of shape (m, c)
            The possible rounding error of each cost; costs that differ by less are tied.

        See Also
        --------
        predict_topk : Return the candidates of lowest cost.

        Examples
        --------
        >>> from psilearn_lab.baselines import KNN
        >>> model = KNN(n_neighbors=1).fit([[0.0], [1.0]], [[0.0, 0.5], [1.0, 0.5]])
        >>> [costs.tolist() for _, _, costs, _ in model.costs([[0.9]], candidates=[[1.0, 0.5], [0.0, 0.0]])]
        [[[-1.25, 0.0]]]
        """
        model = fitted_snapshot(self)
        X = model._check_new_inputs(X)
        yield from model._iter_costs(X, model._check_candidates(candidates, n_samples(X)))

    def _iter_costs(self, X: Samples, candidates: Candidates) -> Iterator[CostBlock]:
        """Yield examples, their common candidates, costs (m, c) and rounding errors (m, c) for checked collections."""
        S = np.asarray(self._linear_costs(X), dtype=np.float64)  # (n, L)
        lengths = np.linalg.norm(S, axis=1)
        linear = Linear()
        for C, members in candidates.groups(n_samples(X)):
            rows = as_columns(C)
            constants = np.asarray(self._candidate_costs(rows), dtype=np.float64)  # (c,)
            norms = np.sqrt(linear.diag(rows))
            for part in iter_blocks(len(members), 24 * n_samples(rows)):
                examples = members[part]
                D = to_numpy(linear(S[examples], rows))
                D += constants
                yield examples, C, D, TIE_TOLERANCE * (lengths[examples, None] * norms + np.abs(constants))

    def _linear_costs(self, X: Samples) -> Array:
        """Return s(x), shape (len(X), L); here −2ŷ(x)."""
        return -2 * self._predict_soft(X)

    def _candidate_costs(self, C: Samples) -> Array:
        """Return r(y) for rows of candidates, shape (len(C),); here |y|²."""
        return Linear().diag(C)

    @abstractmethod
    def _predict_soft(self, X: Samples) -> Array:
        """Return the predicted vectors for checked inputs, shape (len(X), L)."""

    @abstractmethod
    def _check_new_inputs(self, X: Samples) -> Samples:
        """Return checked inputs of the form of the training inputs."""

    def _check_outputs(self, Y: Samples, name: str) -> Samples:
        """Return checked outputs of the form of the training outputs."""
        Y = check_numbers(Y, name)
        Linear().check_same_kind(Y, name, self.candidates_, "the outputs that the model was fitted on")
        return Y

    def _check_candidates(self, candidates: CandidatesLike, n_examples: int) -> Candidates:
        """Return checked candidates, the distinct training outputs for None."""
        return as_candidates(candidates, self.candidates_, self._check_outputs, n_examples)
