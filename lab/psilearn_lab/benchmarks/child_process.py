"""Run a function of a benchmark in a new process and return its result with the memory that it used.

    result = run_in_child("psilearn_lab.benchmarks.million", "grow_unlabeled", device=None, size=1000, ...)
    result["peak_bytes"], result["baseline_bytes"]

The peak is the largest resident set of the process, memory-mapped files included; the baseline is its resident set
after its imports.
"""

import importlib
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from psilearn_lab.benchmarks.device import compute_on, warm_up
from psilearn_lab.benchmarks.measurement import Figures

ROOT = Path(__file__).resolve().parents[3]
MARK = "psilearn_lab.benchmarks.child_process:"


def run_in_child(module: str, function: str, *, device: str | None = None, **arguments: Any) -> Figures:
    """Return the dict that the function returned, with ``peak_bytes`` and ``baseline_bytes``.

    The process computes on ``device``, a device of torch, or in NumPy if it is None.
    """
    command = [
        sys.executable,
        "-m",
        "psilearn_lab.benchmarks.child_process",
        module,
        function,
        json.dumps(arguments),
        device or "",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    answers = [line.removeprefix(MARK) for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not answers:
        reason = (done.stderr or done.stdout).strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise RuntimeError(f"{module}.{function}({arguments}) failed: {reason[0]}")
    answer: Figures = json.loads(answers[-1])
    return answer


def resident_bytes(peak: bool) -> int:
    """Return the resident set of this process: the current one, or the largest so far."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:  # not Linux: only the largest so far is known
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    name = "VmHWM:" if peak else "VmRSS:"
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(name))


def main(module: str, function: str, arguments: str, device: str) -> None:
    """Run the function and print its answer as one marked line."""
    call = getattr(importlib.import_module(module), function)
    import psilearn.estimators  # noqa: F401  the imports of a model belong to the baseline

    with compute_on(device or None):
        if device:
            warm_up()
        baseline = resident_bytes(peak=False)
        answer = call(**json.loads(arguments))
    print(MARK + json.dumps({**answer, "peak_bytes": resident_bytes(peak=True), "baseline_bytes": baseline}))


if __name__ == "__main__":
    main(*sys.argv[1:])
