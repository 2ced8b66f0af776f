"""Reference evidence and the second stage: metabolite identification where molecules may be new or known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np

from psilearn_chem.metabolites.reference_evidence import fit_record_evidence
from psilearn_lab.experiments.experiment import Context, Outcome
from psilearn_lab.experiments.metabolite_evidence_tables import ONE_RECORD, EvidenceResults
from psilearn_lab.experiments.metabolite_rankings import RankedQuery, RankingPass
from psilearn_lab.experiments.metabolite_references import ReferenceTask, load_references
from psilearn_lab.experiments.metabolite_second_stage import SECOND_STAGE, learn_fold
from psilearn_lab.experiments.metabolite_splits import (
    MIXED,
    NEW,
    Split,
    inner_splits,
    mixed_split,
    new_split,
    scaffold_folds,
)

EVIDENCE_CONFIG: dict[str, Any] = {
    "folds": [0, 1, 2, 3, 4],
    "spectra": None,  # all
    "fingerprints": ["morgan", "maccs"],
    "output_gamma": 0.5,
    "width": 0.005,  # Da
    "adduct": "[M+H]+",
    "gammas": [0.1, 0.25, 0.5],
    "alphas": [1e-5, 3e-5, 1e-4],
    "plain": [0.5, 1e-4],  # γ and λ of the control without formulas
    "scaffolds": False,  # whether folds are formed by scaffolds
}


class EvidenceFolds:
    """The outer folds of the experiment; queries of all folds are ranked in one pass when they are first needed."""

    def __init__(self, context: Context) -> None:
        self.context = context

    @cached_property
    def task(self) -> ReferenceTask:
        """The spectra and their kernels."""
        return load_references(self.context)

    @cached_property
    def splits(self) -> dict[int, list[Split]]:
        """The inner splits of each outer fold, followed by those of its tests."""
        task, is_scaffold = self.task, self.context.config["scaffolds"]
        fold = scaffold_folds(task, self.context.seed) if is_scaffold else task.fold
        found = {}
        for outer in self.context.config["folds"]:
            tests = [new_split(fold, outer)] + ([] if is_scaffold else [mixed_split(task, fold, outer)])
            found[outer] = [*inner_splits(task, fold, outer), *(split.with_single_records(task) for split in tests)]
        return found

    @cached_property
    def queries(self) -> dict[str, list[RankedQuery]]:
        """The queries of all splits."""
        splits = [split for part in self.splits.values() for split in part]
        return RankingPass(self.task, self.context.config, self.context.log).rank(splits)

    def run(self, outer: int) -> Mapping[str, Any]:
        """Learn on the inner splits of an outer fold, and return the results of its tests."""
        inner = [split for split in self.splits[outer] if not split.is_test]
        queries = [query for split in inner for query in self.queries[split.name]]
        train = np.unique(np.concatenate([split.molecules for split in inner]))
        learned = learn_fold(queries, fit_record_evidence(self.task.records.of_molecules(train)))
        weights = learned.methods[SECOND_STAGE].model.weights
        self.context.log(f"fold {outer}: {learned.first_stage}, {learned.found}, {dict(weights)}")
        results = dict(self._tests(outer, learned))
        results["first_stage"] = np.array(learned.first_stage)
        results["fits"], results["found"] = np.array(list(learned.found)), np.array(list(learned.found.values()))
        results["weights"] = np.array(list(weights.values()))
        results["names"] = np.array(list(weights))
        results["log_ratios"] = np.array(learned.evidence.log_ratios)
        return results

    def _tests(self, outer: int, learned: Any) -> Iterator[tuple[str, Any]]:
        for protocol, suffix in product((NEW, MIXED), ("", ONE_RECORD)):
            of_protocol = self.queries.get(f"{outer}-{protocol}", [])
            queries = [query for query in of_protocol if query.is_single_record == bool(suffix)]
            if queries:
                for name, values in learned.evaluate(queries).items():
                    yield f"{protocol}{suffix}: {name}", values


def run_evidence(context: Context) -> Outcome:
    """Run the outer folds; results are means over all queries, each tested once."""
    parts = EvidenceFolds(context)
    numbers = context.config["folds"]
    folds = [context.compute_once(f"fold-{number}", partial(parts.run, number)) for number in numbers]
    results = EvidenceResults.join(folds)
    return Outcome(results.rows(), results.notes(numbers), results.figures() if context.can_draw else {})
