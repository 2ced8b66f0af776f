"""Measure psilearn on this machine: speed, memory, growth, and whether the claims about them hold here.

    python -m psilearn_lab.benchmarks                         run all parts in order (hours)
    python -m psilearn_lab.benchmarks bibtex usps             run some parts
    python -m psilearn_lab.benchmarks growth --quick          small sizes, one or two minutes, no claim is checked
    python -m psilearn_lab.benchmarks bookmarks --device cuda --profile    on a device of torch, with the time of steps
    OMP_NUM_THREADS=1 python -m psilearn_lab.benchmarks costs --cpu-time   CPU seconds of one thread
    PSILEARN_DATA=... python -m psilearn_lab.benchmarks ...   set the folder of the data

Each number is the median of several turns, in which the methods alternate. A part without its data is skipped. Run
nothing else on the machine at the same time.
"""

import argparse
import importlib
import os
import traceback
from pathlib import Path
from time import perf_counter, process_time

from psilearn import computing
from psilearn_lab.benchmarks.measurement import (
    Clock,
    Figures,
    Run,
    compute_on,
    describe_machine,
    draw_growth,
    read_history,
    write_history,
)
from psilearn_lab.datasets import data_home

PARTS = {  # name → module and function
    **{name: (name, "measure") for name in ("machine", "costs", "bibtex", "usps")},
    "usps_decoding": ("usps", "measure_decoding"),
    **{name: (name, "measure") for name in ("growth", "label_sets")},
    "search_scale": ("scale", "measure_search"),
    "metabolite_training": ("metabolites", "measure"),
    "rank_stream": ("metabolites", "measure_stream"),
    "ridge_path": ("ridge_path", "measure"),
    "million": ("scale", "measure"),
    **{name: (name, "measure") for name in ("bookmarks", "fingerprints", "memory")},
    "cluster": ("cluster", "measure"),
    **{f"cluster_{name}": ("cluster", f"measure_{name}") for name in ("overhead", "kills", "memory", "steps")},
    "serve": ("serve", "measure"),
}
FOLDER = Path(__file__).resolve().parent
MAX_MESSAGE = 200  # characters of an error in the history


def main() -> int:
    """Run the parts; return 1 if one of them failed, else 0."""
    options = parse_options()
    output = options.output or (None if options.quick else FOLDER)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    if options.cpu_time:
        Clock.timer = staticmethod(process_time)
    run = Run(options.quick, options.repeats, options.device, options.profile)
    failed = run_parts(options.parts, run, output)
    if output and run.curves:
        drawn = draw_growth(run.curves, output / "growth.png")
        run.log(f"growth: {output / 'growth.png'}" if drawn else "growth: no picture without matplotlib")
    if output:
        run.log(f"record appended to {output / 'history.json'}")
    return int(failed)


def parse_options() -> argparse.Namespace:
    """Return the options of the command line; exit with status 2 if they are wrong."""
    parser = argparse.ArgumentParser("python -m psilearn_lab.benchmarks", description=__doc__.split("\n\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"parts to run, all by default: {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="small sizes; nothing is written without --output")
    parser.add_argument("--output", type=Path, help="folder of history.json and growth.png; default: benchmarks")
    parser.add_argument("--device", help="device of torch, cpu or cuda; by default psilearn computes in NumPy")
    parser.add_argument("--profile", action="store_true", help="also print the seconds of each step, where known")
    parser.add_argument("--cpu-time", action="store_true", help="CPU seconds instead of wall time; one thread, NumPy")
    parser.add_argument("--repeats", type=int, default=3, help="number of turns of which the median is taken")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown parts {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    if options.cpu_time and (options.device is not None or os.environ.get("OMP_NUM_THREADS") != "1"):
        parser.error("--cpu-time requires OMP_NUM_THREADS=1 and no --device: waiting threads use CPU time too")
    if options.repeats < 1:
        parser.error(f"--repeats must be at least 1; got {options.repeats}")
    try:
        with computing("float64", options.device):
            pass
    except (ValueError, ImportError) as error:
        parser.error(str(error))
    return options


def run_parts(parts: list[str], run: Run, output: Path | None) -> bool:
    """Run the named parts, all if none is named, and append a record to the history; return whether one failed."""
    figures: Figures = {}
    clock = "cpu" if Clock.timer is process_time else "wall"
    options = {"device": run.device, "quick": run.quick, "repeats": run.repeats, "clock": clock}
    record = {**describe_machine(), **options, "figures": figures}
    history = read_history(output / "history.json") if output else []
    selected = ["machine", *(part for part in PARTS if part != "machine" and part in (parts or PARTS))]
    any_failed = False
    for part in selected:  # the machine first: its own speed bounds all others
        measured, failed = measure(part, run)
        any_failed |= failed
        if measured is not None:
            figures[part] = measured
        record["claims"] = run.claims
        if output:  # after each part, so that an interrupted run keeps its figures
            write_history(output / "history.json", [*history, record])
    return any_failed


def measure(part: str, run: Run) -> tuple[Figures | None, bool]:
    """Return the figures of one part, None if its data is missing, and whether it failed."""
    run.console.rule(part)
    start = perf_counter()
    try:
        name, function = PARTS[part]
        module = importlib.import_module(f"psilearn_lab.benchmarks.{name}")
        missing = [name for name in getattr(module, "NEEDS", ()) if not (data_home() / name).exists()]
        if missing:
            run.log(f"{part}: skipped, not in the data home {data_home()}: {', '.join(missing)}")
            return None, False
        with compute_on(run.device):
            figures: Figures = getattr(module, function)(run)
    except Exception as error:  # the other parts run all the same
        traceback.print_exc()
        run.log(f"{part}: FAILED, {type(error).__name__}: {error}")
        return {"failed": f"{type(error).__name__}: {error}"[:MAX_MESSAGE]}, True
    figures["seconds"] = perf_counter() - start
    run.log(f"{part}: done in {figures['seconds']:.0f} s\n")
    return figures, False


if __name__ == "__main__":
    raise SystemExit(main())
