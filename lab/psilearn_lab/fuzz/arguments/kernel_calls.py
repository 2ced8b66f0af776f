"""Valid calls of the kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from scipy import sparse

from psilearn import kernels
from psilearn.kernels import Dice, Gaussian, Linear
from psilearn_lab.fuzz.arguments.attempts import Call
from psilearn_lab.fuzz.arguments.tiny_data import LABELS, RANKS, ROWS, N, X

K = kernels.Gaussian(0.5).gram(X)
WORDS = ["ab", "abc", "ca", "bb", "cab"]


def _flat_numbers(item: Any) -> str:
    """Return an object as text, the same for a row in any form."""
    item = item.toarray() if sparse.issparse(item) else item
    items = np.ravel(np.asarray(item, dtype=object)).tolist()
    return str([float(part) if isinstance(part, np.number) else part for part in items])


def _same_text(a: Any, b: Any) -> float:
    """Compare any two objects: a function of a user may take what it likes."""
    return float(_flat_numbers(a) == _flat_numbers(b))


GRAPHS = [kernels.Graph("C" * n + "O", [(i, i + 1, 1) for i in range(n)]) for n in range(1, 7)]
GRAPH_PARAMETERS = {"n_features": 64, "normalize": True, "base": Linear()}
KERNEL_PARAMETERS: dict[str, tuple[dict[str, Any], Any]] = {
    "Curves": ({"grid": [0.0, 1.0, 3.0], "width": 0.5}, X),
    "Hellinger": ({}, LABELS + 1.0),
    "EditGaussian": (
        {"gamma": 0.5, "n_landmarks": 4, "random_state": 0, "normalize": True, "base": Linear()},
        WORDS,
    ),
    "Dice": ({"packed": False}, LABELS),
    "Tanimoto": ({"packed": False}, LABELS),
    "GaussianTanimoto": ({"gamma": 0.5, "packed": False}, LABELS),
    "GappySubstrings": (
        {"length": 2, "max_span": 3, "decay": 0.5, "alphabet": None, "n_features": 64, "normalize": True, "base": None},
        WORDS,
    ),
    "Gaussian": ({"gamma": 0.5, "base": Linear()}, X),
    "Laplacian": ({"gamma": 0.5}, X),
    "Linear": ({}, X),
    "Polynomial": ({"degree": 2, "gamma": 1.0, "coef0": 1.0}, X),
    "HierarchicalDice": ({"hierarchy": kernels.Hierarchy([-1, 0, 0, 1])}, LABELS),
    "Kemeny": ({"partial": False, "items": None}, RANKS),
    "Hamming": ({"partial": False, "items": None}, RANKS),
    "Lehmer": ({"partial": False, "items": None}, RANKS),
    "MismatchSubstrings": (
        {"alphabet": "abc", "length": 2, "mismatches": 1, "n_features": None, "normalize": True, "base": Linear()},
        WORDS,
    ),
    "VertexHistogram": ({**GRAPH_PARAMETERS}, GRAPHS),
    "EdgeHistogram": ({"ends": True, **GRAPH_PARAMETERS}, GRAPHS),
    "ShortestPaths": ({"max_length": 2, **GRAPH_PARAMETERS}, GRAPHS),
    "WeisfeilerLehman": (
        {"depth": 2, "edge_labels": True, "cores": False, "normalize_depths": False, **GRAPH_PARAMETERS},
        GRAPHS,
    ),
    "Normalized": ({"kernel": Linear()}, X),
    "Pairwise": ({"function": _same_text}, X),
    "Precomputed": ({"matrix": K}, np.arange(5)),
    "Product": ({"left": Linear(), "right": Gaussian(0.5)}, X),
    "Scaled": ({"kernel": Linear(), "scale": 2.0}, X),
    "Substrings": (
        {"max_length": 2, "min_length": 1, "alphabet": None, "n_features": None, "idf": True, "normalize": True},
        WORDS,
    ),
    "Sum": ({"left": Linear(), "right": Gaussian(0.5)}, X),
    "Aligned": ({"kernels": [Linear(), Gaussian(0.5)], "output_kernel": Linear()}, X),
}


def kernel_calls() -> Iterator[Call]:
    """Yield the calls of all kernels: parameters followed by an evaluation, every method, and combinations."""
    arguments: dict[str, Any]
    for name, (parameters, A) in KERNEL_PARAMETERS.items():
        make = getattr(kernels, name)
        if parameters:
            yield Call(
                f"psilearn.kernels.{name}",
                partial(_evaluate, make, A),
                parameters,
                aliases={"function": ("Pairwise", "kernel function")},
            )
        subject = partial(_fitted_kernel, name)
        for method, arguments in (
            ("__call__", {"A": A, "B": A[:3]}),
            ("gram", {"A": A}),
            ("diag", {"A": A}),
            ("check", {"A": A, "name": "A", "allow_1d": True}),
            ("fit", {"A": A, "y": ROWS if len(A) == N else None}),
            ("paired", {"A": A[:3], "B": A[2:5]}),
            ("squared_distances", {"A": A, "B": A[:3]}),
            ("paired_squared_distances", {"A": A[:3], "B": A[2:5]}),
        ):
            yield Call(
                f"psilearn.kernels.{name}.{method}",
                partial(_call_kernel, method, A),
                arguments,
                subject,
                {"name": ("*",)},
            )
    arguments = {"graphs": GRAPHS, "node_label": "label", "edge_label": "label", "name": "graphs"}
    yield Call("psilearn.kernels.as_graphs", kernels.as_graphs, arguments, not_attacked={"name": ("*",)})
    yield Call("psilearn.kernels.Graph", kernels.Graph, {"node_labels": ["C", "O"], "edges": [(0, 1, 2)]})
    weights = {"kernel": Linear(), "A": X, "weights": np.eye(N)}
    yield Call("psilearn.kernels.pre_image", kernels.pre_image, weights)
    yield Call(
        "psilearn.kernels.has_pre_image", kernels.has_pre_image, {"kernel": Linear()}, not_attacked={"kernel": ("*",)}
    )
    items = {"kernels": [Linear(), Gaussian(0.5)]}
    yield Call("psilearn.kernels.uniform", _gram(kernels.uniform), items)
    yield Call("psilearn.kernels.weighted", _gram(kernels.weighted), {**items, "weights": [1.0, 2.0]})
    arguments = {**items, "X": X, "y": LABELS, "output_kernel": Dice()}
    yield Call("psilearn.kernels.alignf", _gram(kernels.alignf), arguments)
    yield Call("psilearn.kernels.centered_alignment", kernels.centered_alignment, {"K": K, "L": K + np.eye(N)})
    for convert, values in ((kernels.as_kernel, {}), (kernels.as_output_kernel, {"y": LABELS})):
        arguments = {"kernel": Dice(), **values, "name": "kernel"}
        yield Call(f"psilearn.kernels.{convert.__name__}", convert, arguments, not_attacked={"name": ("*",)})


def _evaluate(make: Callable[..., Any], A: Any, **parameters: Any) -> Any:
    kernel = make(**parameters)
    kernel.fit(A, ROWS if len(A) == N else None)
    return kernel(A, A[:2]), kernel.diag(A)


@cache
def _fitted_kernel(name: str) -> Any:
    parameters, A = KERNEL_PARAMETERS[name]
    kernel = getattr(kernels, name)(**parameters)
    kernel.fit(A, ROWS if len(A) == N else None)
    return kernel


def _call_kernel(method: str, rows: Any, kernel: Any, /, **arguments: Any) -> Any:
    result = getattr(kernel, method)(**arguments)
    if method == "check":
        return len(rows)
    return kernel(rows) if method == "fit" else result


def _gram(combine: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **arguments: combine(**arguments).gram(X)
