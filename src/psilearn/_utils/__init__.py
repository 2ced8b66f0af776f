"""Helpers that know nothing of kernels and estimators: samples, validation, files, hashes, progress."""
