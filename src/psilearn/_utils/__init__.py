"""Helpers that do not depend on kernels and estimators: samples, validation, files, hashes, progress."""
