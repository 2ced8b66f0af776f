"""Random small problems of structured prediction: data, kernels and the parameters of an estimator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from psilearn import IOKR, KDE, OEL
from psilearn.kernels import Kernel
from psilearn_lab.fuzz.oracles import objects
from psilearn_lab.fuzz.oracles.reference import Array, Reference, gap_positions, model_distances

ESTIMATORS = {"IOKR": IOKR, "KDE": KDE, "OEL": OEL}
SUPERVISIONS = (0.0, 0.1, 0.5, 0.9, 1.0)


@dataclass(frozen=True, eq=False)
class Problem:
    """Labeled pairs, unlabeled outputs, test pairs and candidates, with the estimator to fit.

    Fields are changed with :func:`dataclasses.replace`; the fitted model and the reference are computed once.
    """

    seed: int
    X: Any
    y: Any
    unlabeled: Any
    X_test: Any
    y_test: Any
    candidates: Any
    input_kind: str
    output_kind: str
    input_kernel: Kernel
    output_kernel: Kernel
    estimator: str
    alpha: float
    n_components: int | None
    supervision: float | None  # c of OEL, 0 for KDE, None for IOKR

    @property
    def n(self) -> int:
        """The number of labeled pairs."""
        return len(self.y) if isinstance(self.y, list) else self.y.shape[0]

    def make_model(self, **changes: Any) -> Any:
        """Return the unfitted estimator, with some parameters changed."""
        parameters: dict[str, Any] = {"alpha": self.alpha}
        if self.estimator != "IOKR":
            parameters["n_components"] = self.n_components
        if self.estimator == "OEL":
            parameters["supervision"] = self.supervision
        parameters |= {"input_kernel": clone(self.input_kernel), "output_kernel": clone(self.output_kernel)}
        return ESTIMATORS[self.estimator](**{**parameters, **changes})

    def fit_model(self, **changes: Any) -> Any:
        """Return the fitted estimator, with some parameters changed."""
        return self.make_model(**changes).fit(self.X, self.y, unlabeled=self.unlabeled)

    @cached_property
    def model(self) -> Any:
        """The fitted estimator."""
        return self.fit_model()

    @cached_property
    def reference(self) -> Reference:
        """The same model by dense formulas, with its condition numbers."""
        kernels = clone(self.input_kernel).fit(self.X, self.y), clone(self.output_kernel).fit(self.y)
        return Reference(*kernels, self.X, self.y, self.unlabeled, self.alpha, self.n_components, self.supervision)

    @cached_property
    def distances(self) -> Array:
        """The squared distances of the test inputs (rows) to the candidates (columns), by the fitted estimator."""
        return model_distances(self.model, self.X_test, self.candidates)

    @cached_property
    def scale(self) -> float:
        """What errors of distances are measured in."""
        return self.reference.scale(self.X_test, self.candidates)

    @cached_property
    def tolerance(self) -> float:
        """The relative error of distances that rounding can cause."""
        return self.reference.tolerance(self.X_test, self.candidates)

    def describe(self) -> str:
        """Return one line on the problem."""
        p = "all" if self.n_components is None else self.n_components
        return (
            f"seed {self.seed}: {self.estimator}, n={self.n}, {self.input_kind} {self.input_kernel} → "
            f"{self.output_kind} {self.output_kernel}, λ={self.alpha:.2g}, p={p}, c={self.supervision}, "
            f"{'no' if self.unlabeled is None else 'with'} unlabeled outputs"
        )


def make_problem(seed: int) -> Problem:
    """Return the random problem of a seed."""
    rng = np.random.default_rng(seed)
    n, m, q, c = (int(rng.integers(low, high)) for low, high in ((2, 26), (1, 26), (1, 9), (1, 31)))
    inputs = objects.make_objects(rng, objects.INPUT_MAKERS, [n, q])
    outputs = objects.make_objects(rng, objects.OUTPUT_MAKERS, [n, m, q, c])
    X, y = (
        objects.repeat_some(rng, part) if rng.random() < 0.3 else part for part in (inputs.parts[0], outputs.parts[0])
    )
    estimator = str(rng.choice(list(ESTIMATORS), p=[0.25, 0.25, 0.5]))
    problem = Problem(
        seed=seed,
        X=X,
        y=y,
        unlabeled=outputs.parts[1] if rng.random() < 0.6 else None,
        X_test=inputs.parts[1],
        y_test=outputs.parts[2],
        candidates=outputs.parts[3],
        input_kind=inputs.kind,
        output_kind=outputs.kind,
        input_kernel=inputs.kernel,
        output_kernel=outputs.kernel,
        estimator=estimator,
        alpha=float(10 ** rng.uniform(-10, 3)),
        n_components=None,
        supervision={"IOKR": None, "KDE": 0.0}.get(estimator, float(rng.choice(SUPERVISIONS))),
    )
    if estimator == "IOKR" or rng.random() < 0.2:
        return problem
    # directions are defined by a gap in the spectrum: most of the problems have one, the others test what is left
    sizes = gap_positions(problem.reference.eigenvalues)
    n_components = int(rng.choice(sizes)) if len(sizes) and rng.random() < 0.9 else int(rng.integers(1, n + 1))
    return replace(problem, n_components=n_components)
