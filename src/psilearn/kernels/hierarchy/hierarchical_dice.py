"""The Dice kernel of label sets with all ancestors: the hierarchical F1."""

from __future__ import annotations

from typing import Any

from psilearn._utils.samples import Samples
from psilearn.kernels.binary import Dice
from psilearn.kernels.feature_kernel import FeatureKernel
from psilearn.kernels.hierarchy.label_hierarchy import Hierarchy
from psilearn.kernels.kernel import Kernel


class HierarchicalDice(FeatureKernel):
    """The Dice kernel of label sets with their ancestors: k(y, y′) = 2|ȳ∩ȳ′| / (|ȳ| + |ȳ′|).

    ȳ contains the labels of y and all their ancestors. k is the hierarchical F1 of two sets, and its squared distance
    is 2 − 2·F1. Estimators with this output kernel predict over all consistent sets with ``candidates="all"``.

    Parameters
    ----------
    hierarchy : Hierarchy
        The parents of the labels.

    See Also
    --------
    Hierarchy : Labels in a tree or in an acyclic graph.
    Dice : The same without ancestors.
    psilearn.metrics.hierarchical_f1 : The mean of this kernel over examples.

    References
    ----------
    Kiritchenko, Matwin and Famili, *Functional annotation of genes using hierarchical text categorization*, 2005.

    Examples
    --------
    >>> from psilearn.kernels import HierarchicalDice, Hierarchy
    >>> kernel = HierarchicalDice(Hierarchy([-1, 0, 0, 1]))
    >>> kernel([[0, 0, 0, 1]], [[0, 1, 0, 0], [0, 0, 1, 0]])  # a label with its parent, and with another branch
    array([[0.8, 0.4]])
    """

    normalize = False
    base = None

    def __init__(self, hierarchy: Hierarchy) -> None:
        self.hierarchy = hierarchy

    def _base(self) -> Kernel:
        return _DICE

    def _features(self, A: Any) -> Any:
        return self.hierarchy.close(A)

    def _key(self, A: Any) -> Any:
        return None  # rows are closed as quickly as they are compared

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        if not isinstance(self.hierarchy, Hierarchy):
            raise TypeError(f"hierarchy of HierarchicalDice must be a Hierarchy; got {self.hierarchy!r:.80}.")
        rows = _DICE._check(A, name, False)
        if rows.shape[1] != self.hierarchy.n_labels:
            raise ValueError(
                f"{name} has {rows.shape[1]} columns, but the hierarchy has {self.hierarchy.n_labels} labels."
            )
        return rows


_DICE = Dice()
