"""Hostile arguments: replace each argument of each public call by wrong values, and list what is not a clear error.

Usage: ``python -m psilearn_lab.fuzz.arguments [--seed SEED] [--only TEXT] [--share SHARE] [--json FILE]``. A call must succeed with
a result without NaN, or raise an error that names the argument. It must not warn about its computations, run for long,
change its arguments or, when it fails, its object. The calls run in a child process, which is started again after a
crash; the crash is a defect.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np

from psilearn_lab.fuzz.arguments.attempts import Call, Outcome, attempt, run_valid
from psilearn_lab.fuzz.arguments.hostile_values import Hostile
from psilearn_lab.fuzz.arguments.registry import public_calls

ROOT = Path(__file__).parents[4]


def main() -> int:
    """Run the command; the exit status is 1 if there are defects."""
    parser = argparse.ArgumentParser(
        prog="python -m psilearn_lab.fuzz.arguments", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the order and the selection of the calls")
    parser.add_argument("--only", default="", help="only calls whose name contains this text")
    parser.add_argument("--share", type=float, default=1.0, help="the share of all calls that is run, at random")
    parser.add_argument("--json", type=Path, help="write all outcomes to this file")
    parser.add_argument("--start", type=int, help=argparse.SUPPRESS)  # the first call of a child process
    options = parser.parse_args()
    if options.start is not None:
        _run_as_child(options)
        return 0
    outcomes = list(_run_children(options))
    counts = Counter(outcome["verdict"] for outcome in outcomes)
    for outcome in outcomes:
        if outcome["verdict"] == "defect":
            print("{name}({argument}={label}): {detail}".format(**outcome))
    print(
        f"{len(outcomes)} attempts: {counts['clear error']} clear errors, {counts['accepted']} accepted, "
        f"{counts['defect']} defects"
    )
    if options.json:
        options.json.write_text(json.dumps({"seed": options.seed, "outcomes": outcomes}, indent=1), encoding="utf-8")
    return int(counts["defect"] > 0)


def selected_attempts(seed: int, only: str = "", share: float = 1.0) -> Iterator[tuple[Call, str, Hostile]]:
    """Yield calls with one argument and its hostile value: the calls in a random order, and a random share of each."""
    rng = np.random.default_rng(seed)
    calls = [call for call in public_calls() if only in call.name]
    for index in rng.permutation(len(calls)):
        for argument, hostile in calls[index].attempts():
            if rng.random() < share:
                yield calls[index], argument, hostile


def run(attempts: Iterator[tuple[Call, str, Hostile]]) -> Iterator[Outcome]:
    """Run the attempts; the result of a valid call is computed when its first attempt is."""
    current, expected = None, []
    for call, argument, hostile in attempts:
        if call is not current:
            current, expected = call, run_valid(call)
        yield attempt(call, argument, hostile, expected)


def _run_as_child(options: argparse.Namespace) -> None:
    """Announce each attempt before it runs and print its outcome after it, one line of JSON each."""
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whatever the calls print
    current, expected = None, []
    for number, (call, argument, hostile) in enumerate(selected_attempts(options.seed, options.only, options.share)):
        if number < options.start:
            continue
        started = {"name": call.name, "argument": argument, "label": hostile.label}
        print(json.dumps({"number": number, **started}), file=results, flush=True)
        if call is not current:
            current, expected = call, run_valid(call)
        outcome = attempt(call, argument, hostile, expected)
        print(json.dumps({"number": number, **asdict(outcome)}), file=results, flush=True)


def _run_children(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the outcomes of a child process, and of further ones after each crash."""
    start = 0
    while start is not None:
        with tempfile.TemporaryDirectory() as folder:  # for what calls write to relative paths
            errors = Path(folder) / "stderr"
            started: dict[str, Any] | None = None
            with errors.open("w") as log, _start_child(options, start, folder, log) as child:
                assert child.stdout is not None
                for line in child.stdout:
                    message = json.loads(line)
                    started = None if "verdict" in message else message
                    if started is None:
                        yield message
            if child.returncode == 0:
                return
            report = errors.read_text("utf-8", "replace").strip()[-2000:]
        if started is None or child.returncode > 0:  # an exception, and not a crash
            raise RuntimeError(f"The child process failed at {started}: {report}")
        yield {**started, "verdict": "defect", "detail": f"the process ended with {child.returncode}: {report}"}
        start = started["number"] + 1


def _start_child(options: argparse.Namespace, start: int, folder: str, log: IO[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-X", "faulthandler", "-m", "psilearn_lab.fuzz.arguments", "--start", str(start)]
    command += ["--seed", str(options.seed), "--only", options.only, "--share", str(options.share)]
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "MPLBACKEND": "Agg"}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, stderr=log, cwd=folder, env=environment, text=True
    )


if __name__ == "__main__":
    sys.exit(main())
