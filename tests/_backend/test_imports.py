"""torch stays in its rooms, and out of the way of those who do not ask for it."""

import ast
import subprocess
import sys
from pathlib import Path

import psilearn

SOURCE = Path(psilearn.__file__).parent
ROOMS = {"_backend", "_linalg", "app", "kernels"}  # "app" reports its version and devices


def test_torch_is_imported_in_its_rooms_alone_and_never_at_the_top():
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = [
            node
            for node in ast.walk(tree)
            if (isinstance(node, ast.Import) and any(name.name.split(".")[0] == "torch" for name in node.names))
            or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch")
        ]
        room = path.relative_to(SOURCE).parts[0]
        assert not named or room in ROOMS, f"{path.name} imports torch"
        assert not [node for node in named if node in tree.body], f"{path.name} imports torch at the top"


def test_numpy_alone_needs_no_torch():
    code = (
        "import sys, numpy as np; from psilearn import OEL, OELCV; X = np.arange(20.0).reshape(10, 2);"
        "OEL(n_components=2).fit(X, X).predict(X);"
        "OELCV(alphas=[1.0], n_components=[2], supervisions=[0.5], cv=2).fit(X, X).predict(X);"
        "print('torch' in sys.modules or 'dask' in sys.modules or 'faiss' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
