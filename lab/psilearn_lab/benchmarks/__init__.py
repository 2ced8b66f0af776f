"""Speed, memory and growth, next to other implementations: ``python -m psilearn_lab.benchmarks``."""
