"""Differential oracles: pairs of routes through the library that must give the same answer, on random problems.

``python -m psilearn_lab.fuzz.oracles --seed 0 --problems 200`` prints how often each pair agrees. The problem of a seed is always
the same one, so a defect is repeated by ``--seed SEED --problems 1 --oracle NAME``.
"""
