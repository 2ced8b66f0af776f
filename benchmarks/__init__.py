"""Speed, memory and growth, side by side with peers: ``python -m benchmarks`` from the root of the repository."""
