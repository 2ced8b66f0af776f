"""The second stage with reference evidence: learned on inner splits, evaluated where molecules may be new or known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np

from psilearn.conformal import threshold
from psilearn.metrics import Mean, TruthPositions, mean_reciprocal_rank, top_k_accuracy
from psilearn.plotting import plot_curves
from psilearn_chem.metabolites.adaptive_sets import AdaptiveSets, cumulated_probabilities, members
from psilearn_chem.metabolites.candidate_model import NEW_FEATURES, CandidateModel
from psilearn_chem.metabolites.reference_evidence import RecordEvidence, ReferenceEvidence, fit_record_evidence
from psilearn_chem.metabolites.second_stage_fit import (
    Fit,
    Query,
    add_fragments,
    add_fragments_with,
    choose_fit,
    hit,
    learn_evidence,
    list_fits,
    set_evidence,
    true_molecules,
)
from psilearn_lab.arrays import Array, Mask
from psilearn_lab.experiments.experiment import CaptionedFigures, Context, Outcome, figure_of
from psilearn_lab.experiments.metabolite_data import ReferenceTask, load_references
from psilearn_lab.experiments.metabolite_rankings import (
    MIXED,
    NEW,
    FirstStage,
    RankedQuery,
    RankingPass,
    Split,
    inner_splits,
    mixed_split,
    new_split,
    scaffold_folds,
)
from psilearn_lab.experiments.protocol import quote_name
from psilearn_lab.experiments.results import Metric, Row

SECOND_STAGE = "second stage"
ABLATIONS: Mapping[str, Mapping[str, str | None]] = {  # feature → the one that replaces it; None: 0 for all candidates
    "without formulas of fragments": {"embedding": "plain embedding"},
    "without adding up evidence": {"records": "evidence"},
    "without fragments": {"explained": None, "explained_cheaply": None},
    "without neighbors": {"neighbors": None, "neighbor": None},
    "without prior": {"prior": None},
}
COVERAGES = (0.8, 0.9, 0.95)
DROPPED = 1e6  # subtracted from the scores of training molecules


@dataclass(frozen=True)
class Method:
    """A model of candidates, and the features that are replaced."""

    model: CandidateModel
    replaced: Mapping[str, str | None]

    def log_probabilities(self, query: Query) -> Array:
        """Return the log-probabilities of the candidates of a query."""
        return self.model.log_probabilities(replace_features(query, self.replaced).features)


def replace_features(query: Query, replaced: Mapping[str, str | None]) -> Query:
    """Return a query with other features in place of some."""
    zero = np.zeros(len(query.features["embedding"]))
    values = {name: zero if other is None else query.features[other] for name, other in replaced.items()}
    return replace(query, features={**query.features, **values})


@dataclass(frozen=True)
class LearnedFold:
    """The parameters of the first stage, the evidence, the models and the conformal sets that inner splits gave."""

    first_stage: FirstStage
    found: Mapping[str, float]  # fit → share of the queries of inner splits whose truth is first, cross-fitted
    evidence: ReferenceEvidence
    records: RecordEvidence | None
    methods: Mapping[str, Method]
    cheap: Mapping[str, float]  # weights by which candidates are chosen for fragmentation
    sets: AdaptiveSets
    limits: Mapping[float, float]  # coverage → largest cumulated probability, without kinds and groups

    def evaluate(self, queries: Sequence[RankedQuery]) -> dict[str, Array]:
        """Return the results of all queries as arrays."""
        for query in queries:
            query.choose(self.first_stage)
        set_evidence(queries, self.evidence, self.records)
        add_fragments_with(self.cheap, queries)
        results = [self._evaluate_query(query) for query in queries]
        return {name: np.array([result[name] for result in results]) for name in results[0]}

    def _evaluate_query(self, query: RankedQuery) -> dict[str, float]:
        trained = query.has_reference
        scores = {
            "molecule prior": query.features["prior"],
            **query.controls,
            "IOKR, never a training molecule": query.controls["IOKR"] - DROPPED * trained,
            **{name: method.log_probabilities(query) for name, method in self.methods.items()},
        }
        result: dict[str, float] = {
            "molecule": query.molecule,
            "known": query.is_known,
            "shares": float(trained.any()),
            "candidates": len(trained),
        }
        for name, values in scores.items():
            true = values[query.truth]
            result[f"nearer {name}"] = np.sum(values > true + 1e-9 * abs(true))
            result[f"tied {name}"] = np.sum(np.abs(values - true) <= 1e-9 * abs(true))
        return result | self._sets_of(query, scores[SECOND_STAGE])

    def _sets_of(self, query: RankedQuery, log_p: Array) -> dict[str, float]:
        """Return the highest probability, whether it is that of the truth, and coverage and sizes of sets."""
        cumulated = cumulated_probabilities(log_p)
        result = {"confidence": float(np.exp(log_p.max())), "right": float(np.argmax(log_p) == query.truth)}
        p_values = self.sets.p_values(log_p, query.has_reference)
        for coverage, limit in self.limits.items():
            for label, inside in (("adaptive", members(p_values, coverage)), ("plain", cumulated <= limit)):
                result[f"covered {label} {coverage}"] = float(inside[query.truth])
                result[f"size {label} {coverage}"] = float(np.sum(inside))
        return result


def choose_first_stage(queries: Sequence[RankedQuery]) -> FirstStage:
    """Return the parameters with which IOKR finds most of the new molecules of inner splits."""
    new = [query for query in queries if not query.is_known]
    return max(
        new[0].embeddings, key=lambda stage: np.mean([hit(query.embeddings[stage], query.truth) for query in new])
    )


def learn_fold(queries: Sequence[RankedQuery], records: RecordEvidence) -> LearnedFold:
    """Learn from the queries of inner splits."""
    first_stage = choose_first_stage(queries)
    for query in queries:
        query.choose(first_stage)
    evidence, is_learned = learn_evidence(queries, records)
    fits = list_fits(queries, is_learned)
    cheap = add_fragments(queries, next(iter(fits.values())))
    best, found = choose_fit(queries, fits)
    methods = {SECOND_STAGE: Method(best.fit.model(queries), {})}
    methods |= {f"second stage, {name}": Method(fit.model(queries), {}) for name, fit in fits.items()}
    methods["without reference evidence"] = Method(Fit(NEW_FEATURES).model(queries), {})
    for label, replaced in ABLATIONS.items():
        methods[label] = Method(best.fit.model([replace_features(query, replaced) for query in queries]), replaced)
    scores = np.array([cumulated_probabilities(p)[q.truth] for q, p in zip(queries, best.log_p, strict=True)])
    limits = {coverage: threshold(scores, coverage) for coverage in COVERAGES}
    sets = AdaptiveSets.fit(true_molecules(queries, best.log_p))
    return LearnedFold(first_stage, found, evidence, records if is_learned else None, methods, cheap, sets, limits)


TOP_K = {k: Metric(f"top-{k}, %", "higher", 1) for k in (1, 5, 10, 20)}
MRR = Metric("MRR@25, %", "higher", 1)
MIN_CANDIDATES, MANY_CANDIDATES = 20, 100
LIBRARY_SEARCH = "weighted library search"
N_BINS = 10
ONE_RECORD = ", one record"  # of the names of protocols in which a query is one of several records
MERGING_METHODS = (SECOND_STAGE, "without adding up evidence", "IOKR", LIBRARY_SEARCH)


@dataclass(frozen=True)
class EvidenceResults:
    """The arrays of all test queries, by protocol and name."""

    values: Mapping[str, Mapping[str, Array]]  # protocol → name → (q,)
    folds: Sequence[Mapping[str, Any]]

    @classmethod
    def join(cls, folds: Sequence[Mapping[str, Any]]) -> EvidenceResults:
        """Join the results of the folds."""
        values: dict[str, dict[str, Array]] = {}
        for key in folds[0]:
            protocol, separator, name = key.partition(": ")
            if separator:
                joined = np.concatenate([np.asarray(fold[key], dtype=np.float64) for fold in folds])
                values.setdefault(protocol, {})[name] = joined
        sizes = [len(fold["new: candidates"]) for fold in folds]
        values["new"]["fold"] = np.repeat(np.arange(float(len(folds))), sizes)
        return cls(values, folds)

    @property
    def methods(self) -> list[str]:
        """The names of the methods."""
        return [name.removeprefix("nearer ") for name in self.values["new"] if name.startswith("nearer ")]

    def positions(self, protocol: str, method: str) -> TruthPositions:
        """Return the positions of the true molecules."""
        values = self.values[protocol]
        return TruthPositions(values[f"nearer {method}"], values[f"tied {method}"])

    def subsets(self) -> dict[str, tuple[str, Mask]]:
        """Return the subsets of at least two queries: protocol and mask by label."""
        new, n = self.values["new"], self.values["new"]["candidates"]
        found = {
            "all molecules new": ("new", n > 0),
            "all new, without the first fold": ("new", new["fold"] > 0),
            f"all new, 2 to {MIN_CANDIDATES - 1} candidates": ("new", (n > 1) & (n < MIN_CANDIDATES)),
            f"all new, at least {MIN_CANDIDATES} candidates": ("new", n >= MIN_CANDIDATES),
            f"all new, at least {MANY_CANDIDATES} candidates": ("new", n >= MANY_CANDIDATES),
            "all new, formula of a training molecule": ("new", new["shares"] > 0),
            "all new, formula of no training molecule": ("new", new["shares"] == 0),
        }
        if "mixed" in self.values:
            mixed = self.values["mixed"]
            share = np.mean(mixed["known"])
            found |= {
                f"mixed, {share:.0%} known molecules": ("mixed", mixed["candidates"] > 0),
                "mixed, the known molecules": ("mixed", mixed["known"] > 0),
                "mixed, the new molecules": ("mixed", mixed["known"] == 0),
            }
        found |= self._merging_subsets()
        return {label: subset for label, subset in found.items() if np.sum(subset[1]) > 1}

    def _merging_subsets(self) -> dict[str, tuple[str, Mask]]:
        """Return the queries of molecules with several records: all records merged, and one of them."""
        found = {}
        for protocol, kind, is_known in (("new", "all new", 0.0), ("mixed", "mixed, known", 1.0)):
            single = self.values.get(protocol + ONE_RECORD)
            if single is not None:
                merged = self.values[protocol]
                has_several = np.isin(merged["molecule"], single["molecule"])
                label = f"{kind}, molecules with several records"
                found[f"{label}, merged"] = (protocol, has_several & (merged["known"] == is_known))
                found[f"{label}, one of them"] = (protocol + ONE_RECORD, single["known"] == is_known)
        return found

    def rows(self) -> list[Row]:
        """Return the rows of all subsets, methods and metrics."""
        rows = []
        for label, (protocol, mask) in self.subsets().items():
            for metric, values in self._metrics(protocol).items():
                for method, examples in values.items():
                    mean = Mean(100 * examples[mask])
                    rows.append(Row(label, method, metric, float(mean), mean.standard_error))
        return rows

    def _metrics(self, protocol: str) -> dict[Metric, dict[str, Array]]:
        """Return one value per query for each metric and method."""
        positions = {method: self.positions(protocol, method) for method in self.methods}
        n = self.values[protocol]["candidates"]
        found: dict[Metric, dict[str, Array]] = {}
        for k, metric in TOP_K.items():
            found[metric] = {method: top_k_accuracy(place, k).values for method, place in positions.items()}
            found[metric]["chance"] = np.minimum(k, n) / n
        found[MRR] = {method: mean_reciprocal_rank(place).values for method, place in positions.items()}
        return found

    def notes(self, fold_numbers: Sequence[int]) -> list[str]:
        """Return notes on differences, coverage, calibration and weights."""
        return [
            *(self._difference(reference) for reference in (LIBRARY_SEARCH, "IOKR")),
            *self._gains_of_merging(),
            *(self._coverage(label, protocol, mask) for label, (protocol, mask) in self.subsets().items()),
            self._reliability(),
            *self._weights(fold_numbers),
        ]

    def _difference(self, reference: str) -> str:
        texts = []
        for k in TOP_K:
            ours, theirs = (
                top_k_accuracy(self.positions("new", method), k).values for method in (SECOND_STAGE, reference)
            )
            mean = Mean(100 * (ours - theirs))
            texts.append(f"top-{k} {mean:+.2f} ± {mean.standard_error:.2f}")
        names, n = f"{quote_name(SECOND_STAGE)} minus {quote_name(reference)}", len(self.values["new"]["candidates"])
        return f"{names}, paired over {n} new molecules: {', '.join(texts)}."

    def _gains_of_merging(self) -> list[str]:
        """Return how much better merged records are than one of them, paired over molecules."""
        subsets, notes = list(self._merging_subsets().items()), []
        for (label, merged), (_, single) in zip(subsets[::2], subsets[1::2], strict=True):
            for method in MERGING_METHODS:
                texts = []
                for k in TOP_K:
                    gain = Mean(100 * (self._hits(*merged, method, k) - self._hits(*single, method, k)))
                    texts.append(f"top-{k} {gain:+.2f} ± {gain.standard_error:.2f}")
                notes.append(f"{label} minus one of them, {quote_name(method)}: {', '.join(texts)}.")
        return notes

    def _hits(self, protocol: str, mask: Mask, method: str, k: int) -> Array:
        """Return whether the truth is among the first k for some queries, in the order of their molecules."""
        order = np.argsort(self.values[protocol]["molecule"][mask])
        return top_k_accuracy(self.positions(protocol, method), k).values[mask][order]

    def _coverage(self, label: str, protocol: str, mask: Mask) -> str:
        values, texts = self.values[protocol], []
        for coverage in COVERAGES:
            shown = []
            for kind in ("adaptive", "plain"):
                covered = np.mean(values[f"covered {kind} {coverage}"][mask])
                size = values[f"size {kind} {coverage}"][mask]
                shown.append(f"{covered:.1%} with {np.mean(size):.1f} molecules (median {np.median(size):.0f}) {kind}")
            texts.append(f"{coverage:.0%} requested, {' and '.join(shown)}")
        return f"Conformal sets, {label}: {'; '.join(texts)}."

    def _bins(self) -> list[tuple[float, float, int]]:
        """Return mean confidence, share of correct first places, and number of queries of bins of confidence."""
        protocol = self.values.get("mixed", self.values["new"])
        confidence, right = protocol["confidence"], protocol["right"]
        number = np.minimum((N_BINS * confidence).astype(int), N_BINS - 1)
        return [
            (float(confidence[number == i].mean()), float(right[number == i].mean()), int(np.sum(number == i)))
            for i in range(N_BINS)
            if np.any(number == i)
        ]

    def _reliability(self) -> str:
        bins = self._bins()
        total = sum(count for *_, count in bins)
        error = sum(count * abs(mean - share) for mean, share, count in bins) / total
        texts = "; ".join(f"{mean:.2f} → {share:.2f} ({count})" for mean, share, count in bins)
        return (
            f"Probability of the first molecule → how often it is right (number): {texts}. Mean difference {error:.3f}."
        )

    def _weights(self, fold_numbers: Sequence[int]) -> list[str]:
        notes = []
        for number, fold in zip(fold_numbers, self.folds, strict=True):
            weights = ", ".join(f"{n} {w:.3g}" for n, w in zip(fold["names"], fold["weights"], strict=True))
            found = ", ".join(f"{name} {share:.1%}" for name, share in zip(fold["fits"], fold["found"], strict=True))
            ratios = ", ".join(f"{value:.2f}" for value in fold["log_ratios"])
            first_stage = "γ = {:g}, λ = {:g}".format(*fold["first_stage"])
            notes.append(
                f"Fold {number}: {first_stage}; true molecule first on inner splits: {found}; weights {weights}; "
                f"evidence at similarities 0.025, 0.075, …, 0.975: {ratios}."
            )
        return notes

    def figures(self) -> CaptionedFigures:
        """Return the reliability of probabilities and the top-k curves."""
        bins = self._bins()
        means = [mean for mean, *_ in bins]
        ax = plot_curves(means, {SECOND_STAGE: [share for _, share, _ in bins], "exact": means}, "probability", "right")
        ks = [1, 2, 3, 5, 7, 10, 15, 20, 30, 50]
        shown = [name for name in self.methods if not name.startswith("without")]
        curves = {name: [100 * float(top_k_accuracy(self.positions("new", name), k)) for k in ks] for name in shown}
        top = plot_curves(ks, curves, "k", "truth among the k first, %", highlight=SECOND_STAGE)
        return {
            "reliability": (figure_of(ax), "How often the first molecule is right, by its probability."),
            "top-k": (figure_of(top), "How often the true molecule is among the first k, all molecules new."),
        }


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
