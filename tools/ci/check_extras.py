"""Install psilearn with each of its extras by itself into a new environment, and import what the extra is for.

``python tools/ci/check_extras.py chem torch`` checks two extras; without an argument, all are checked. Several hundred
megabytes are downloaded for ``torch``.
"""

import sys
import tomllib
from pathlib import Path

from environments import new_environment, run_program

ROOT = Path(__file__).parents[2]
PROGRAMS = {
    "plot": "import psilearn.plotting, matplotlib",
    "data": "import psilearn_lab.datasets, h5py, pooch",
    "parquet": "import psilearn_lab.datasets, pyarrow.parquet",
    "chem": "from psilearn_chem import CandidateLibrary, MetaboliteIdentifier, read_spectra; import rdkit, matchms",
    "torch": "from psilearn_lab.neural import NeuralRegressor; import torch",
    "dask": "import psilearn, dask.array, distributed",
    "ann": "import psilearn.decoding, faiss",
    "graph": "import psilearn.metrics, networkx, ot",
    "grakel": "import psilearn.kernels.graph, grakel",
    "strings": "import psilearn.metrics, rapidfuzz",
    "series": "import psilearn.kernels, tslearn.metrics",
    "serve": "import psilearn, fastapi, uvicorn",
    "docs": "import psilearn, sphinx, sphinx_gallery, numpydoc, myst_parser",
    "test": "import psilearn, pytest, hypothesis",
}
REQUIRED = "import psilearn, psilearn.app.cli; psilearn.OEL; "


def main(extras: list[str]) -> int:
    """Check extras; return 2 if one of them has no program, and 1 if one of them fails."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    unknown = sorted({*(extras or declared)} - PROGRAMS.keys()) or sorted({*extras} - declared.keys())
    if unknown:
        print(f"There is no extra {unknown[0]!r} in pyproject.toml, or no program for it here.", file=sys.stderr)
        return 2
    for extra in extras or declared:
        with new_environment([f"{ROOT}[{extra}]"]) as (programs, work):
            run_program([str(programs / "python"), "-c", REQUIRED + PROGRAMS[extra]], work)
            run_program([str(programs / "psilearn"), "--help"], work)
        print(f"psilearn[{extra}] installs and imports.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
