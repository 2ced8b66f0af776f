"""All 2^L label sets as candidates; the nearest ones are found without a list of them.

Let G*z = Σ_l β_l ψ(s_l) with β = basis·z, where s_l are the landmark outputs of a model. Since |G*z| = |z|,

    |G*z − ψ(y)|² = |z|² − 2 Σ_l β_l k(y, s_l) + k(y, y).

With the Dice kernel k(y, s) = 2|y∩s| / (|y| + |s|), k(y, y) = 1, and for a set y of size s

    Σ_l β_l k(y, s_l) = Σ_{j∈y} w_s,j,    w_s = Σ_t 2/(s + t) Σ_{l: |s_l|=t} β_l s_l,

which is linear in y: the nearest set of size s consists of the s labels with the largest w_s,j, and the nearest of all
sets is found by trying every size. The empty set has similarity 1 with itself and 0 with any other set, so its score
is the total of β_l over the landmarks that are empty. See :mod:`psilearn.decoding.label_sets.size_weights` for the
other kernels with this property, and :mod:`psilearn.decoding.label_sets.tanimoto` for Tanimoto.
"""

from __future__ import annotations

from functools import cached_property
from inspect import signature
from typing import Any, Self

from psilearn._backend import Compute
from psilearn._utils import validation
from psilearn._utils.samples import Samples
from psilearn.decoding.label_sets.label_rows import FoundSets
from psilearn.decoding.label_sets.listable import ListableLabelSets
from psilearn.decoding.label_sets.set_limits import MAX_COUNT, MAX_LISTED_SETS, SetLimits
from psilearn.decoding.label_sets.size_weights import SizeWeights, find_size_form
from psilearn.decoding.label_sets.solver import SizeSolver
from psilearn.decoding.label_sets.tanimoto import TanimotoSolver
from psilearn.embedding import Embedding
from psilearn.kernels import Kernel, Tanimoto


def has_all_label_sets(kernel: Kernel) -> bool:
    """Return whether the nearest of all label sets can be found with an output kernel.

    Parameters
    ----------
    kernel : Kernel
        The output kernel.

    Returns
    -------
    bool
        True for Dice, Linear, the normalized Linear kernel, and multiples, sums and normalizations of them, whose
        cost is known in advance. False for Tanimoto, which is searched by branch and bound.

    See Also
    --------
    AllLabelSets : All label sets as candidates.

    Examples
    --------
    >>> from psilearn.decoding import has_all_label_sets
    >>> from psilearn.kernels import Dice, Gaussian
    >>> has_all_label_sets(Dice()), has_all_label_sets(Gaussian(1.0))
    (True, False)
    """
    return find_size_form(kernel) is not None


class AllLabelSets(ListableLabelSets):
    """All label sets, or all of given sizes, as candidates: ``model.predict(X, candidates="all")``.

    With the kernels of :func:`has_all_label_sets` the nearest sets are found exactly, in O(L) per query and size, and
    with Tanimoto by branch and bound: exactly, or an error if that takes too long. For everything else, such as the
    position of a true output or conformal sets, and with other kernels, the sets are listed, up to 65,536 of them: all
    sets of 16 labels, or the small sets of more labels.

    A tie goes to the smallest set, then to the lowest labels; :mod:`psilearn.decoding.distances` defines ties. With
    branch and bound any of the sets that tie may be returned.

    Parameters
    ----------
    embedding : Embedding, default=None
        The embedding of a model. None until the sets are passed to a method of a model.
    known : array or CSR matrix of shape (n, L), default=None
        Some label sets, in the form in which predictions are returned.
    min_labels : int, default=0
        The smallest number of labels of a set. 1 excludes the empty set.
    max_labels : int, default=None
        The largest number of labels of a set. None stands for L.
    label_groups : array of shape (L,), default=None
        The number of the group of each label, −1 for a label without a group. With groups only the nearest set is found
        without a list, and with NumPy.
    group_rule : {"at_most_one", "exactly_one"}, default="at_most_one"
        How many labels of a group a set contains.
    n_labels : int, default=None
        The number of labels of packed rows, if it is not a multiple of 8.
    max_nodes : int, default=20000
        How many nodes the branch and bound of Tanimoto may visit per query; 10,000 take about a second.

    See Also
    --------
    NearLabelSets : The known sets, and those that differ from one of them by one label.
    has_all_label_sets : Whether an output kernel has a solver.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.decoding import AllLabelSets
    >>> from psilearn.embedding import Embedding
    >>> from psilearn.kernels import Dice
    >>> known = np.array([[1, 1, 0, 0], [0, 1, 1, 0]])
    >>> sets = AllLabelSets(Embedding(Dice(), known[:1], np.eye(1)), known)
    >>> sets.nearest(np.array([[0.9]]), k=1).nearest
    array([[1, 1, 0, 0]])
    >>> sets.nearest(np.array([[0.9]]), k=2).outputs[0]
    array([[1, 1, 0, 0],
           [1, 1, 1, 0]])
    >>> sets.max_size
    16
    """

    def __init__(
        self,
        embedding: Embedding | None = None,
        known: Samples | None = None,
        *,
        min_labels: int = 0,
        max_labels: int | None = None,
        label_groups: Any = None,
        group_rule: str = "at_most_one",
        n_labels: int | None = None,
        max_nodes: int = 20_000,
    ) -> None:
        self.embedding = embedding
        self.known = known
        self.min_labels = min_labels
        self.max_labels = max_labels
        self.label_groups = label_groups
        self.group_rule = group_rule
        self.n_labels = n_labels
        self.max_nodes = max_nodes

    def __repr__(self) -> str:
        if self.known is None and self.embedding is None:
            defaults = {name: parameter.default for name, parameter in signature(type(self)).parameters.items()}
            values = {name: getattr(self, name) for name in defaults}
            given = [f"{name}={value!r}" for name, value in values.items() if value is not defaults[name]]
            return f"AllLabelSets({', '.join(given)})"
        count = self._max_size()
        number = f"{count:,}" if count < MAX_COUNT else "more than 10^18"
        return f"AllLabelSets({number} sets of {self._limits.n_labels} labels)"

    @cached_property
    def _limits(self) -> SetLimits:
        return SetLimits.of(self._n_labels, self.min_labels, self.max_labels, self.label_groups, self.group_rule)

    @cached_property
    def _solver(self) -> SizeSolver | TanimotoSolver:
        landmarks = self.landmark_rows
        form = find_size_form(self._known_embedding().kernel)
        if form is not None:
            return SizeSolver(SizeWeights(form, landmarks), self._limits)
        return TanimotoSolver(landmarks, self._limits, validation.check_count(self.max_nodes, "max_nodes"))

    def _copy(self, embedding: Embedding | None, known: Samples) -> Self:
        return type(self)(
            embedding,
            known,
            min_labels=self.min_labels,
            max_labels=self.max_labels,
            label_groups=self.label_groups,
            group_rule=self.group_rule,
            n_labels=self.n_labels,
            max_nodes=self.max_nodes,
        )

    def _max_size(self) -> int:
        return self._limits.count()

    def _max_listed(self) -> int:
        return MAX_LISTED_SETS

    def _advice(self) -> str:
        if not self._has_solver(1):
            kernel = None if self.embedding is None else self.embedding.kernel
            with_groups = " and label_groups" if self._limits.optional is not None else ""
            return (
                f"the nearest of all sets is found with Dice, Linear and Tanimoto (Tanimoto without label_groups), but "
                f"not with {kernel!r}{with_groups}."
            )
        return 'candidates="known" are the known sets, and max_labels of AllLabelSets limits the sizes.'

    def _list_rows(self) -> Any:
        return self._limits.list_sets()

    def _has_solver(self, k: int) -> bool:
        if self.embedding is None:
            return False
        has_groups = self._limits.optional is not None
        if find_size_form(self.embedding.kernel) is not None:
            return k == 1 or not has_groups
        return type(self.embedding.kernel) is Tanimoto and not has_groups and self._max_size() > self._max_listed()

    def _solve(self, Z: Any, basis: Any, k: int, compute: Compute) -> FoundSets:
        return self._solver.nearest(Z, basis, k, compute)
