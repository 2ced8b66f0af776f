"""Measure psilearn on this machine: speed, memory, growth, and whether what is claimed of it holds here.

    python -m benchmarks                         everything, in order (hours)
    python -m benchmarks bibtex usps             some parts
    python -m benchmarks growth --quick          small sizes, a minute or two, nothing judged
    python -m benchmarks devices --device cuda   psilearn's own work on that device of torch
    PSILEARN_DATA=... python -m benchmarks ...   where the data lie

Each number is the median of several turns, the methods taking turns. A part whose data are not in the data home is
skipped. Run it alone on the machine.
"""

import argparse
import importlib
import traceback
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.report import Run, describe_machine, draw_growth, read_history, write_history
from psilearn._backend import computing, find_device
from psilearn.datasets import data_home

PARTS = (
    "machine",
    "bibtex",
    "usps",
    "growth",
    "rankings",
    "metabolites",
    "baselines",
    "convergence",
    "falkon",
    "million",
    "mediamill",
    "bookmarks",
    "usps_grid",
    "fingerprints",
    "devices",
)
HERE = Path(__file__).resolve().parent


def main() -> int:
    """Run the parts; the status is 1 where one of them failed."""
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__.split("\n\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes; writes only where --output is given")
    parser.add_argument("--output", type=Path, help="folder of history.json and growth.png; default: benchmarks")
    parser.add_argument("--device", help="where psilearn computes: cpu or cuda, of torch; NumPy by default")
    parser.add_argument("--repeats", type=int, default=3, help="turns that each median is taken over")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown or options.repeats < 1:
        parser.error(f"parts are {', '.join(PARTS)} and repeats at least 1; got {sorted(unknown)}, {options.repeats}")
    try:
        find_device(options.device, "--device")
    except (ValueError, ImportError) as error:
        parser.error(str(error))
    output = options.output or (None if options.quick else HERE)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)

    run = Run(options.quick, options.repeats, options.device)
    record = {
        **describe_machine(),
        "device": run.device,
        "quick": options.quick,
        "repeats": options.repeats,
        "figures": {},
    }
    former = read_history(output / "history.json") if output else []
    chosen = ["machine", *(part for part in PARTS[1:] if part in (options.parts or PARTS))]
    failed = False
    for part in chosen:  # the machine's own speed first: it is the ceiling of the others
        figures, error = measure(part, run)
        failed |= error
        if figures is not None:
            record["figures"][part] = figures
        record["claims"] = run.claims
        if output:  # after each part, so that an interrupted run leaves what it has
            write_history(output / "history.json", [*former, record])
    if output and run.curves:
        drawn = draw_growth(run.curves, output / "growth.png")
        run.say(f"growth: {output / 'growth.png'}" if drawn else "growth: no picture without matplotlib")
    if output:
        run.say(f"record appended to {output / 'history.json'}")
    return int(failed)


def measure(part: str, run: Run) -> tuple[dict[str, Any] | None, bool]:
    """Return the figures of one part, None where it has no data, and whether it failed."""
    run.console.rule(part)
    start = perf_counter()
    try:
        module = importlib.import_module(f"benchmarks.{part}")
        missing = [name for name in getattr(module, "NEEDS", ()) if not (data_home() / name).exists()]
        if missing:
            run.say(f"{part}: skipped, not in the data home {data_home()}: {', '.join(missing)}")
            return None, False
        with computing("float64", find_device(run.device, "--device")):
            figures = module.measure(run)
    except Exception as error:  # the other parts are still worth their hours
        traceback.print_exc()
        run.say(f"{part}: FAILED, {type(error).__name__}: {error}")
        return {"failed": f"{type(error).__name__}: {error}"[:200]}, True
    figures["seconds"] = perf_counter() - start
    run.say(f"{part}: done in {figures['seconds']:.0f} s\n")
    return figures, False


if __name__ == "__main__":
    raise SystemExit(main())
