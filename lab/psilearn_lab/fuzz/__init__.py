"""Attacks on psilearn: damaged and crafted files, wrong arguments, hostile requests, kills, forks, and oracles.

``python -m psilearn_lab.fuzz`` runs all of them and prints the table of ``docs/reliability.md``.
"""

import os

# One thread: forked processes have no others, and CPU time is time. Set before NumPy is imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
