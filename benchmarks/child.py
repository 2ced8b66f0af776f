"""Run a function of a benchmarks module in a fresh process and return its result with the memory it took.

    result = child("benchmarks.million", "grow_unlabeled", m=1000, quick=True)
    result["peak_bytes"], result["baseline_bytes"]

The peak is the largest resident set of the process, mapped files included; the baseline is what it held after its
imports.
"""

import importlib
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.device import warm_up
from psilearn._backend import computing, find_device, working_device

ROOT = Path(__file__).resolve().parent.parent
MARK = "benchmarks.child:"


def child(module: str, function: str, **arguments: Any) -> dict[str, Any]:
    """Return the dict that the function returned, with ``peak_bytes`` and ``baseline_bytes``.

    The process computes where this one does: on the device of a surrounding ``with computing(...)``.
    """
    device = working_device()
    place = "" if device is None else str(device)
    command = [sys.executable, "-m", "benchmarks.child", module, function, json.dumps(arguments), place]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    answers = [line.removeprefix(MARK) for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not answers:
        reason = (done.stderr or done.stdout).strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise RuntimeError(f"{module}.{function}({arguments}) failed: {reason[0]}")
    return json.loads(answers[-1])


def resident_bytes(peak: bool) -> int:
    """Return the resident set of this process: now, or the largest so far."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:  # not Linux: the largest so far is all there is
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    name = "VmHWM:" if peak else "VmRSS:"
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(name))


def main(module: str, function: str, arguments: str, device: str) -> None:
    """Run the function and print its answer as one marked line."""
    call = getattr(importlib.import_module(module), function)
    import psilearn.estimators  # noqa: F401  a model's imports belong to the baseline

    with computing("float64", find_device(device or None)):
        if device:
            warm_up()
        baseline = resident_bytes(peak=False)
        answer = call(**json.loads(arguments))
    print(MARK + json.dumps({**answer, "peak_bytes": resident_bytes(peak=True), "baseline_bytes": baseline}))


if __name__ == "__main__":
    main(*sys.argv[1:])
