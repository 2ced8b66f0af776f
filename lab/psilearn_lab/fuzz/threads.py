"""Importing this module before NumPy keeps numerical libraries from starting threads, with which no fork is safe."""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
