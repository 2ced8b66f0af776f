"""Speed, memory and growth, next to other implementations: ``python -m benchmarks`` in the root of the repository."""
