"""Imports of optional packages, for applications."""

from psilearn._backend.missing_dependency import MissingDependencyError, explain_missing

__all__ = ["MissingDependencyError", "explain_missing"]
