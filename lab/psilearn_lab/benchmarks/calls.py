"""Count the calls between files of psilearn that one exact fit and one prediction make: a measure of indirection.

``python -m psilearn_lab.benchmarks.calls`` prints the totals, with ``--list`` each pair of files.
A call counts if the nearest psilearn function that calls, directly or through another library, stands in another file.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import psilearn
from psilearn import OEL
from psilearn.kernels import Dice, Gaussian

SOURCE = str(Path(psilearn.__file__).parent)


def crossing_calls(action: Callable[[], Any]) -> Counter[tuple[str, str, str]]:
    """Return how often each (calling file, called file, called function) occurs while ``action`` runs."""
    counts: Counter[tuple[str, str, str]] = Counter()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(SOURCE):
            return
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(SOURCE):
            caller = caller.f_back
        if caller is None:
            return
        callee_file, caller_file = frame.f_code.co_filename, caller.f_code.co_filename
        if callee_file != caller_file:
            caller_name, callee_name = (
                Path(name).relative_to(SOURCE).as_posix() for name in (caller_file, callee_file)
            )
            counts[caller_name, callee_name, frame.f_code.co_qualname] += 1

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return counts


def count() -> dict[str, Counter[tuple[str, str, str]]]:
    """Trace one fit on 20 pairs and 10 outputs without inputs (Gaussian to Dice), and one prediction of 5 inputs."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((25, 4)), (rng.random((30, 8)) < 0.4).astype(int)
    model = OEL(Gaussian(gamma=0.5), Dice(), alpha=1e-3, n_components=4, supervision=0.5)
    model.fit(X[:20], Y[:20], unlabeled=Y[20:]).predict(X[20:])  # modules are imported lazily: not counted
    return {
        "fit": crossing_calls(lambda: model.fit(X[:20], Y[:20], unlabeled=Y[20:])),
        "predict": crossing_calls(lambda: model.predict(X[20:])),
    }


def main() -> None:
    """Print the totals."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print each pair of files and the function called")
    listed = parser.parse_args().list
    for name, counts in count().items():
        print(f"{name}: {counts.total()} calls between files")
        for (caller, callee, function), number in counts.most_common() if listed else ():
            print(f"  {number:4d}  {caller} -> {callee}: {function}")


if __name__ == "__main__":
    main()
