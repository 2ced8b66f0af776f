"""Fuzzing of all readers and loaders: damaged files must give clear errors, and nothing else."""
