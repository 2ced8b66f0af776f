"""Valid calls of metrics, candidates, theory, figures, saved models and readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from psilearn import (
    IOKR,
    computing,
    conformal,
    decoding,
    embedding,
    io,
    kernels,
    landmarks,
    memory,
    metrics,
    plotting,
    rankings,
    theory,
)
from psilearn._backend import NUMPY
from psilearn.app import tables
from psilearn.kernels import Dice, Gaussian
from psilearn_lab import baselines, datasets
from psilearn_lab.fuzz.arguments.attempts import Call, Fresh
from psilearn_lab.fuzz.arguments.kernel_calls import GRAPHS
from psilearn_lab.fuzz.arguments.model_calls import STARTS_PROCESSES, fitted
from psilearn_lab.fuzz.arguments.tiny_data import (
    LABELS,
    LABELS_NEW,
    NUMBERS,
    RANKS,
    ROWS,
    X_NEW,
    N,
    X,
    file_with,
    new_path,
)
from psilearn_lab.fuzz.targets.tables import save_table_model

K = kernels.Gaussian(0.5).gram(X)
ORDERS = ["a>b>c", "b>a>c", "c>a>b"]
COLUMN_ALIASES = {"n_features": ("columns",), "n_labels": ("columns",)}
PAIR_ALIASES = {"Y_true": ("A",), "Y_pred": ("B",)}  # what a kernel calls the two sides of pairs
HIERARCHY = kernels.Hierarchy([-1, 0, 0, 1])
DECAY = theory.Decay(rate=2.0, lower=0.1, upper=1.0)
POSITIONS = metrics.TruthPositions(np.array([0.0, 1.0, 3.0]), np.array([1.0, 1.0, 2.0]))


def core_calls() -> Iterator[Call]:
    """Yield the calls of the core, without kernels and models."""
    yield from _function_calls()
    yield from _candidate_calls()
    yield from _file_calls()
    yield from _figure_calls()


def _function_calls() -> Iterator[Call]:
    arguments: dict[str, Any]
    orders: dict[str, Any]
    scores: dict[str, Any]
    for name in ("f1_score", "jaccard_score", "hamming_loss", "subset_accuracy"):
        arguments = {"Y_true": LABELS, "Y_pred": LABELS[::-1].copy()}
        yield Call(f"psilearn.metrics.{name}", getattr(metrics, name), arguments, aliases=PAIR_ALIASES, may_be_nan=True)
    for name in ("hierarchical_f1", "hierarchical_precision", "hierarchical_recall"):
        arguments = {"Y_true": LABELS, "Y_pred": LABELS[::-1].copy(), "hierarchy": HIERARCHY}
        yield Call(f"psilearn.metrics.{name}", getattr(metrics, name), arguments, aliases=PAIR_ALIASES, may_be_nan=True)
    for name in ("edit_distance", "edit_similarity"):
        arguments = {"Y_true": ["tea", "cat"], "Y_pred": ["tee", "cats"]}
        yield Call(f"psilearn.metrics.{name}", getattr(metrics, name), arguments, may_be_nan=True)
    arguments = {"parents": [-1, 0, 0, 1], "names": ["a", "b", "c", "d"]}
    yield Call("psilearn.kernels.Hierarchy", kernels.Hierarchy, arguments)
    yield Call("psilearn.kernels.Hierarchy.close", kernels.Hierarchy.close, {"Y": LABELS}, lambda: HIERARCHY)
    for name in ("kendall_tau", "pairwise_accuracy", "spearman_rho"):
        arguments = {"Y_true": RANKS, "Y_pred": RANKS[::-1].copy()}
        yield Call(f"psilearn.metrics.{name}", getattr(metrics, name), arguments, aliases=PAIR_ALIASES, may_be_nan=True)
        orders = {"Y_true": ORDERS, "Y_pred": ORDERS[::-1]}
        yield Call(f"psilearn.metrics.{name} of orders", getattr(metrics, name), orders)
    arguments = {"Y_true": LABELS, "Y_pred": LABELS[::-1].copy(), "kernel": Dice()}
    yield Call("psilearn.metrics.kernel_loss", metrics.kernel_loss, arguments, aliases=PAIR_ALIASES)
    arguments = {"Y_true": GRAPHS, "Y_pred": GRAPHS[::-1], "edge_labels": True, "time_limit": 1.0, "n_jobs": None}
    pairs = {"Y_true": GRAPHS, "Y_pred": GRAPHS[::-1], "trade_off": 0.5}
    yield Call("psilearn.metrics.fgw_distance", metrics.fgw_distance, pairs)
    name = "psilearn.metrics.graph_edit_distance"
    yield Call(name, metrics.graph_edit_distance, arguments, not_attacked=STARTS_PROCESSES)
    yield Call(
        "psilearn.metrics.BoundedMean", metrics.BoundedMean, {"values": NUMBERS, "lower": NUMBERS - 1}, may_be_nan=True
    )
    yield Call("psilearn.metrics.Mean", metrics.Mean, {"values": NUMBERS}, may_be_nan=True)
    arguments = {"positions": POSITIONS, "k": 2, "ties": "expected"}
    yield Call("psilearn.metrics.top_k_accuracy", metrics.top_k_accuracy, arguments)
    yield Call("psilearn.metrics.mean_reciprocal_rank", metrics.mean_reciprocal_rank, arguments)
    yield Call("psilearn.rankings.all_rankings", rankings.all_rankings, {"n_items": 3})
    arguments = {"orders": ORDERS, "items": ["a", "b", "c"], "partial": False, "name": "orders"}
    yield Call("psilearn.rankings.from_orders", rankings.from_orders, arguments, not_attacked={"name": ("*",)})
    yield Call("psilearn.rankings.is_orders", rankings.is_orders, {"A": ORDERS})
    yield Call("psilearn.rankings.to_orders", rankings.to_orders, {"ranks": RANKS, "items": ["a", "b", "c"]})
    yield Call(
        "psilearn.rankings.ranks_from_item_numbers", rankings.ranks_from_item_numbers, {"order": np.array([[2, 0, 1]])}
    )
    yield from _theory_calls()
    scores = {"scores": np.tile(NUMBERS, (3, 1))[:, :4]}
    yield Call(
        "psilearn_lab.baselines.apply_threshold",
        baselines.apply_threshold,
        {**scores, "threshold": 0.4, "allow_empty": True},
    )
    yield Call(
        "psilearn_lab.baselines.best_threshold",
        baselines.best_threshold,
        {"Y": LABELS[:3], **scores, "allow_empty": True},
    )
    arguments = {"Y": LABELS[:3], **scores, "allow_empty": True, "min_positives": 1, "max_rounds": 2}
    find = baselines.best_label_thresholds
    yield Call(
        "psilearn_lab.baselines.best_label_thresholds", find, arguments, not_attacked={"max_rounds": ("10**30",)}
    )
    joint = np.array([[[0.4, 0.3], [0.0, 0.6], [0.0, 0.3]]])
    arguments = {"joint": joint, "sizes": np.array([1.0, 2.0]), "empty": np.array([0.1])}
    yield Call("psilearn_lab.baselines.maximize_expected_f1", baselines.maximize_expected_f1, arguments)
    yield Call("psilearn.landmarks.Landmarks", _choose, {"n": 4, "method": "uniform", "random_state": 0})
    arguments = {"kernel": Gaussian(0.5), "A": X, "alpha": 0.1, "n_labeled": 0}
    yield Call(
        "psilearn.landmarks.Landmarks.choose", landmarks.Landmarks.choose, arguments, partial(landmarks.Landmarks, 4)
    )
    yield Call("psilearn.computing", _compute, {"dtype": "float64", "device": None})


def _theory_calls() -> Iterator[Call]:
    algorithm: dict[str, Any]
    arguments: dict[str, Any]
    bound: dict[str, Any]
    grams: dict[str, Any]
    bound = {"n": 100, "m": 200, "alpha": 0.01, "n_components": 5, "supervision": 0.5, "decay": DECAY, "R": 1.0}
    bound |= {"Q": 1.0, "kappa": 1.0, "delta": 0.1}
    yield Call("psilearn.theory.excess_risk_bound", theory.excess_risk_bound, bound)
    yield Call("psilearn.theory.comparison_constant", theory.comparison_constant, {"Q": 1.0})
    yield Call("psilearn.theory.fit_decay", theory.fit_decay, {"eigenvalues": NUMBERS})
    yield Call("psilearn.theory.suggest", theory.suggest, {"n": 100, "decay": DECAY})
    sizes: dict[str, Any] = {"n": 100, "d": 50, "input_landmarks": 10, "output_landmarks": 10, "n_components": 5}
    yield Call("psilearn.memory.fit_bytes", memory.fit_bytes, {**sizes, "dtype": "float64"})
    arguments = {**sizes, "n_alphas": 2, "n_output_kernels": 1, "validation_share": 0.2, "leave_one_out": False}
    arguments |= {"decoded": False, "n_jobs": 1, "refit": True, "dtype": "float64", "supervisions": [0.5]}
    yield Call("psilearn.memory.search_bytes", memory.search_bytes, arguments)
    arguments = {"n_queries": 10, "n_components": 5, "k": 2, "dtype": "float64"}
    yield Call("psilearn.memory.predict_bytes", memory.predict_bytes, arguments)
    grams = {"K_x": K, "K_ss": K, "K_su": K[:, :5], "K_uu": K[:5, :5]}
    algorithm = {**grams, "alpha": 0.1, "n_components": 2, "supervision": 0.5}
    yield Call("psilearn.embedding.algorithm_1", embedding.algorithm_1, algorithm)


def _choose(**parameters: Any) -> Any:
    return landmarks.Landmarks(**parameters).choose(Gaussian(0.5), X)


def _compute(**parameters: Any) -> Any:
    with computing(**parameters):
        return Gaussian(0.5)(X)


def _candidate_calls() -> Iterator[Call]:
    arguments: dict[str, Any]
    yield Call(
        "psilearn.conformal.p_values", conformal.p_values, {"scores": NUMBERS, "calibration_scores": np.sort(NUMBERS)}
    )
    yield Call("psilearn.conformal.threshold", conformal.threshold, {"scores": NUMBERS, "coverage": 0.5})
    Z = fitted("psilearn.IOKR").embed(X_NEW)
    arguments = {"Z": Z, "limit": 1.0, "coverage": 0.5}
    yield Call("psilearn.conformal.prediction_sets", _prediction_sets, arguments)
    yield Call("psilearn.conformal.scores_of_truth", _scores_of_truth, {"Z": Z, "truth": LABELS_NEW})
    arguments = {"Z": Z, "k": 2, "ties": "expected", "limit": 1.0}
    yield Call("psilearn.decoding.ranked_candidates", _ranked, arguments)
    parts = list(decoding.ranked_candidates(Z, fitted("psilearn.IOKR").candidates_, NUMPY))
    arguments = {"parts": parts, "k": 2, "ties": "expected", "limit": 1.0}
    yield Call("psilearn.decoding.join_rankings", decoding.join_rankings, arguments)
    for name in ("SharedCandidates", "PerExampleCandidates"):
        outputs: Any = {"outputs": LABELS} if name == "SharedCandidates" else {"sets": [LABELS] * len(X_NEW)}
        make = getattr(decoding, name)
        yield Call(
            f"psilearn.decoding.{name}",
            partial(_predict_among, make),
            outputs,
            aliases={"sets": ("candidates",), "outputs": ("candidates",)},
        )
    shared = fitted("psilearn.IOKR").candidates_
    for method, values in (
        ("nearest", {"Z": Z, "k": 2}),
        ("truth_positions", {"Z": Z, "truth": LABELS_NEW}),
        ("match", {"truth": LABELS_NEW}),
    ):
        yield Call(f"psilearn.decoding.SharedCandidates.{method}", partial(getattr(shared, method)), values)
    arguments = {"outputs": LABELS, "path": Fresh(new_path), "keep_outputs": True}
    build = partial(decoding.SharedCandidates.build, embedding=shared.embedding)
    yield Call("psilearn.decoding.SharedCandidates.build", build, arguments, not_attacked={"path": ("text",)})
    arguments = {"queries": Z, "k": 2, "kind": "hnsw", "min_recall": 0.9, "random_state": 0}
    yield Call("psilearn.decoding.ApproximateCandidates.of", _approximate, arguments)
    yield Call("psilearn.decoding.ShardedCandidates.open", _open_shards, {"path": _saved_shards()})
    arguments = {"candidates": LABELS, "n_examples": 4}
    yield Call("psilearn.decoding.as_candidates", _as_candidates, arguments)
    arguments = {"node_labels": ["C", "O"], "edge_labels": [1, 2], "max_nodes": 3, "connected": True}
    yield Call("psilearn.decoding.GraphEdits", _edit_graph, arguments)
    arguments = {
        "Z": np.zeros((2, 1)),
        "edits": decoding.GraphEdits("CO", max_nodes=2),
        "n_starts": 1,
        "max_steps": 2,
        "n_jobs": None,
    }
    aliases = {"edits": ("the edited outputs",)}
    yield Call("psilearn.decoding.local_search", _local_search, arguments, None, STARTS_PROCESSES, aliases)
    arguments = {"Z": np.zeros((2, 1)), "n_graphs": 2, "n_nodes": 3, "trade_off": 0.5}
    yield Call("psilearn.decoding.fgw_barycenters", _barycenters, arguments)
    yield Call("psilearn.decoding.has_all_rankings", decoding.has_all_rankings, {"kernel": kernels.Kemeny()})
    yield Call("psilearn.decoding.has_all_label_sets", decoding.has_all_label_sets, {"kernel": Dice()})


def _prediction_sets(**arguments: Any) -> Any:
    candidates = fitted("psilearn.IOKR").candidates_
    return conformal.prediction_sets(candidates=candidates, compute=NUMPY, **arguments).indices


def _scores_of_truth(**arguments: Any) -> Any:
    return conformal.scores_of_truth(candidates=fitted("psilearn.IOKR").candidates_, compute=NUMPY, **arguments)


def _ranked(**arguments: Any) -> Any:
    candidates = fitted("psilearn.IOKR").candidates_
    return [
        ranked.distances for ranked in decoding.ranked_candidates(candidates=candidates, compute=NUMPY, **arguments)
    ]


def _predict_among(make: Callable[..., Any], **arguments: Any) -> Any:
    return fitted("psilearn.IOKR").predict(X_NEW, make(**arguments))


def _approximate(**arguments: Any) -> Any:
    return decoding.ApproximateCandidates.of(fitted("psilearn.IOKR").candidates_, verbose=False, **arguments).recall


def _saved_shards() -> Path:
    """Return the folder of candidates in two shards."""
    import dask.array as da

    path = new_path()
    fitted("psilearn.IOKR").candidate_set(da.from_array(LABELS, chunks=(N // 2, -1)), path)
    return path


def _open_shards(path: Any) -> Any:
    return decoding.ShardedCandidates.open(path, fitted("psilearn.IOKR").embedding_).points()


def _edit_graph(**arguments: Any) -> Any:
    return decoding.GraphEdits(**arguments)(GRAPHS[0])


def _local_search(**arguments: Any) -> Any:
    kernel = kernels.VertexHistogram(n_features=16)
    candidates = IOKR(kernels.Linear(), kernel).fit([[0.0], [1.0]], GRAPHS[:1] * 2).candidates_
    return decoding.local_search(candidates=candidates, **arguments).distances


def _barycenters(**arguments: Any) -> Any:
    kernel = kernels.VertexHistogram(n_features=16)
    model = IOKR(kernels.Linear(), kernel).fit([[0.0], [1.0]], GRAPHS[:1] * 2)
    return len(decoding.fgw_barycenters(embedding=model.embedding_, **arguments))


def _as_candidates(**arguments: Any) -> Any:
    model = fitted("psilearn.IOKR")
    return decoding.as_candidates(known=model.candidates_, check=model._check_outputs, **arguments).outputs_of(0)


def _file_calls() -> Iterator[Call]:
    arguments: dict[str, Any]
    arguments = {"model": fitted("psilearn.OEL"), "path": Fresh(new_path), "notes": {"a": 1}}
    yield Call("psilearn.save_model", io.save_model, arguments, not_attacked={"path": ("text",)})
    path = new_path()
    io.save_model(fitted("psilearn.OEL"), path, notes={"a": 1})
    yield Call("psilearn.load_model", lambda path: io.load_model(path).predict(X_NEW), {"path": path})
    yield Call("psilearn.io.read_notes", io.read_notes, {"path": path})
    stored = new_path()
    fitted("psilearn.IOKR").candidate_set(LABELS, stored)
    load = partial(decoding.SharedCandidates.load, embedding=fitted("psilearn.IOKR").embedding_)
    yield Call(
        "psilearn.decoding.SharedCandidates.load",
        lambda **arguments: load(**arguments).points(),
        {"path": stored, "outputs": LABELS},
    )
    read: Any = datasets.read_svmlight_multilabel
    arguments = {"path": file_with("0,2 1:0.5 3:1\n1 2:1\n"), "n_features": 4, "n_labels": 4, "zero_based": False}
    yield Call("psilearn_lab.datasets.read_svmlight_multilabel", read, arguments, aliases=COLUMN_ALIASES)
    yield Call("psilearn_lab.datasets.read_xc", datasets.read_xc, {"path": file_with("2 4 3\n0,2 1:0.5 3:1\n1 2:1\n")})
    arguments = {"path": file_with("a,b,ranking\n1,2,x>y\n3,4,y>x\n", ".csv"), "order": "ranking", "items": ["x", "y"]}
    yield Call(
        "psilearn_lab.datasets.read_orders_csv",
        datasets.read_orders_csv,
        {**arguments, "partial": False},
        aliases={"order": ("orders",)},
    )
    arguments = {"path": file_with("a,b,L1,L2\n1,2,1,2\n3,4,2,1\n", ".csv"), "ranks": "L", "partial": False}
    yield Call("psilearn_lab.datasets.read_ranks_csv", datasets.read_ranks_csv, arguments)
    arff = "@relation r\n@attribute x numeric\n@attribute l {0,1}\n@data\n0.5,1\n1.5,0\n"
    xml = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="l"></label></labels>'
    arguments = {"arff": file_with(arff, ".arff"), "xml": file_with(xml, ".xml")}
    yield Call("psilearn_lab.datasets.read_mulan", datasets.read_mulan, arguments)
    arguments = {"path": file_with("a,b\n1,x\n2,y\n", ".csv"), "text_columns": ["b"]}
    yield Call("psilearn.app.tables.read_table", tables.read_table, arguments)
    yield Call("psilearn.app.tables.TableModel.load", tables.TableModel.load, {"path": _saved_table_model()})
    yield Call("psilearn_lab.datasets.load_label_ranking", _load_label_ranking, {"name": "sushi"})


def _saved_table_model() -> Path:
    """Return the folder of a small model of a table."""
    path = new_path()
    save_table_model(file_with("x,tag_a,tag_b\n1,1,0\n2,0,1\n3,0,1\n4,1,1\n", ".csv"), path)
    return path


def _load_label_ranking(name: Any) -> Any:
    """Return nothing for the valid name, whose data may not be on this machine."""
    return None if isinstance(name, str) and name == "sushi" else datasets.load_label_ranking(name)


def _figure_calls() -> Iterator[Call]:
    arguments: dict[str, Any]
    curves: dict[str, Any]
    images: dict[str, Any]
    search: dict[str, Any]
    yield Call("psilearn.plotting.plot_spectrum", plotting.plot_spectrum, {"eigenvalues": NUMBERS, "ax": None})
    curves = {"x": NUMBERS, "curves": {"a": NUMBERS}, "x_label": "p", "y_label": "error", "highlight": "a", "ax": None}
    yield Call("psilearn.plotting.plot_curves", plotting.plot_curves, curves)
    search = {"search": fitted("psilearn.OELCV"), "iokr": fitted("psilearn.IOKRCV"), "ax": None}
    yield Call("psilearn.plotting.plot_validation", plotting.plot_validation, search)
    yield Call("psilearn.plotting.plot_components", plotting.plot_components, search)
    yield Call(
        "psilearn.plotting.plot_convergence", plotting.plot_convergence, {"spen": fitted("psilearn_lab.baselines.SPEN")}
    )
    images = {"inputs": LABELS, "rows": {"truth": LABELS}, "width": 2}
    yield Call("psilearn.plotting.plot_completions", plotting.plot_completions, images)
    arguments = {"labels": np.arange(N) % 3, "predictions": [ROWS, ROWS + 1]}
    yield Call("psilearn.plotting.select_example_per_class", plotting.select_example_per_class, arguments)
