"""Install a built wheel into a new environment without extras, and use it as a new user would.

``python tools/ci/check_wheel.py dist/psilearn-0.1.0-py3-none-any.whl`` fits, predicts, searches, saves and loads a
model and calls the command line, in a folder from which the repository cannot be imported.
"""

import sys
from pathlib import Path

from environments import new_environment, run_program

PROGRAM = """
import sys
from importlib.metadata import version
from importlib.resources import files
from sklearn.datasets import make_multilabel_classification
import psilearn
from psilearn import OEL, OELCV, load_model, save_model

X, Y = make_multilabel_classification(n_samples=80, n_classes=6, random_state=0)
model = OEL(n_components=5).fit(X[:60], Y[:60])
save_model(model, "model")
assert (load_model("model").predict(X[60:]) == model.predict(X[60:])).all()
OELCV(cv=2).fit(X[:60], Y[:60]).predict(X[60:])
assert version("psilearn") == psilearn.__version__
assert files("psilearn").joinpath("py.typed").is_file()
assert {"torch", "rdkit", "matchms", "matplotlib"}.isdisjoint(sys.modules)
print("fitted, searched, saved and loaded with psilearn", psilearn.__version__)
"""


def main(wheels: list[str]) -> int:
    """Check each wheel."""
    for wheel in wheels:
        with new_environment([str(Path(wheel).resolve())]) as (programs, work):
            print(run_program([str(programs / "python"), "-c", PROGRAM], work), end="")
            print(run_program([str(programs / "psilearn"), "--version"], work), end="")
            run_program([str(programs / "psilearn"), "data"], work)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
