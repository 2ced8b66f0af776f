"""Run oracles on random problems and count what they find."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from psilearn._linalg import NotPositiveSemidefiniteError
from psilearn_lab.fuzz.oracles import all_outputs, copies, decoding, fits, searches
from psilearn_lab.fuzz.oracles.comparison import Comparison
from psilearn_lab.fuzz.oracles.problems import Problem, make_problem

Oracle = Callable[[Problem], Comparison | None]

ORACLES: dict[str, Oracle] = {
    oracle.__name__: oracle for module in (fits, copies, decoding, all_outputs, searches) for oracle in module.ORACLES
}


@dataclass
class Tally:
    """What one oracle found: numbers of problems, the worst relative difference, and a message per defect."""

    problems: int = 0
    agreeing: int = 0
    undecidable: int = 0
    worst: float = 0.0
    defects: list[str] = field(default_factory=list)

    def add(self, problem: Problem, oracle: Oracle) -> None:
        """Run the oracle on a problem; an error of the library is a defect."""
        try:
            comparison = oracle(problem)
        except NotPositiveSemidefiniteError as error:
            self._add_error(problem, error, is_expected=problem.reference.has_no_factor)
            return
        except Exception as error:
            self._add_error(problem, error)
            return
        if comparison is None:
            return
        self.problems += 1
        if not comparison.is_decidable:
            self.undecidable += 1
        elif comparison.agrees:
            self.agreeing += 1
            self.worst = max(self.worst, comparison.worst)
        else:
            found = f"relative difference {comparison.worst:.1e}, tolerance {np.max(comparison.tolerance):.1e}"
            self.defects.append(f"{problem.describe()}: {found}")

    def _add_error(self, problem: Problem, error: Exception, is_expected: bool = False) -> None:
        """Count an error of the library, which is a defect unless λ is below the rounding errors of the kernel."""
        self.problems += 1
        self.undecidable += is_expected
        if not is_expected:
            self.defects.append(f"{problem.describe()}: {type(error).__name__}: {error}")


def run(
    seeds: Iterable[int], names: Iterable[str] = ORACLES, report: Callable[[str, str], None] | None = None
) -> dict[str, Tally]:
    """Run oracles on the random problem of each seed; numerical warnings are errors.

    ``report`` is called with the name of the oracle and the message of each defect when it is found.
    """
    tallies = {name: Tally() for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        for seed in seeds:
            problem = make_problem(seed)
            for name, tally in tallies.items():
                n_before = len(tally.defects)
                tally.add(problem, ORACLES[name])
                if report is not None and len(tally.defects) > n_before:
                    report(name, tally.defects[-1])
    return tallies


def as_table(tallies: dict[str, Tally]) -> str:
    """Return the tallies as a Markdown table."""
    columns = ("oracle", "problems", "agreeing", "ill-conditioned", "defects", "worst difference")
    rows = [f"| {' | '.join(columns)} |", "| --- " * len(columns) + "|"]
    for name, t in tallies.items():
        counts = f"{t.problems} | {t.agreeing} | {t.undecidable} | {len(t.defects)}"
        rows.append(f"| {name.replace('_', ' ')} | {counts} | {t.worst:.0e} |")
    return "\n".join(rows)
