"""Label sets in a hierarchy: a tree or an acyclic graph of labels, and the kernel that is the hierarchical F1."""

from psilearn.kernels.hierarchy.hierarchical_dice import HierarchicalDice
from psilearn.kernels.hierarchy.label_hierarchy import Hierarchy

__all__ = ["HierarchicalDice", "Hierarchy"]
