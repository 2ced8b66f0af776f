"""IOKR, KDE and OEL: they wire the rooms together, regress → embed → decode."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from psilearn import checks
from psilearn.backend import precision, row_blocks, working_dtype
from psilearn.decode import CandidateSet, CandidateSets, Ranks, TopK, as_candidates, nearest, rank_of_truth
from psilearn.embed import LandmarkOutputs, OutputStream, SpannedOutputs
from psilearn.kernels.base import Kernel, as_kernel, block, diagonal
from psilearn.landmarks import as_landmarks
from psilearn.linalg import Array
from psilearn.metrics import kernel_loss
from psilearn.moments import MixedMoment, Subspace
from psilearn.progress import reporting, track
from psilearn.regress import KernelRidge, NystromRidge, Regression
from psilearn.samples import Samples, describe, is_empty, n_columns, n_samples, take


class _OutputKernelRegression(BaseEstimator):
    """What the three estimators share; they differ in ``_choose_subspace`` and in the outputs it looks at."""

    input_kernel: Any
    output_kernel: Any
    alpha: float
    input_landmarks: Any
    output_landmarks: Any
    dtype: Any
    verbose: int

    def fit(self, X: Samples, y: Samples, unlabeled: Any = None) -> Self:
        """Learn from pairs (xᵢ, yᵢ) and from further outputs without inputs.

        Parameters
        ----------
        X : array, CSR matrix or sequence of n inputs
        y : array (1-D or 2-D), CSR matrix or sequence of n outputs
        unlabeled : same form as y, path to a .npy or .parquet file, or iterator of batches; optional
            m ≥ 0 outputs of which the input is not known. In KDE, and in OEL below full supervision, they take the
            place of y in the outputs' moment 1/m Σ ψ(yⱼ)ψ(yⱼ)ᵀ, so give a sample that stands for the outputs, not a
            few odd ones. With ``output_landmarks`` they are read once, batch by batch; without, all of them are held.
            Outputs that are in memory (no memory-mapped array, path or iterator) also join the default candidates,
            as all do without ``output_landmarks``. (scikit-learn's searches cut a fit parameter that is exactly as
            long as X together with X; :class:`~psilearn.OELCV` does not.)
        """
        self._check_parameters()
        with self._numerics():
            kernel_x, kernel_y = (
                as_kernel(self.input_kernel, "input_kernel"),
                as_kernel(self.output_kernel, "output_kernel"),
            )
            given, X = X, kernel_x.check(X, "X", allow_1d=False)
            Y, stream = check_outputs_of_fit(type(self).__name__, kernel_y, y, unlabeled, n_samples(X))
            kernel_x.fit(X)
            kernel_y.fit(Y)
            outputs = self._output_side(kernel_y, Y, stream)
            regression = self._regressor(kernel_x).fit(X).regress(outputs.labeled)
            if isinstance(outputs, LandmarkOutputs):
                regression = replace(regression, moment=regression.moment.summed())
            fitted = self._from_subspace(outputs, regression)

            for stale in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(stale, None)
            if n_columns(X) is not None:
                validate_data(self, given, skip_check_array=True)  # remembers the number and the names of the columns
            self.X_fit_ = regression.anchors
            self.input_kernel_ = kernel_x
            self.output_kernel_ = kernel_y
            self.input_approximation_error_ = regression.approximation_error
            self.__dict__.update(fitted)
        return self

    def _from_subspace(self, outputs: SpannedOutputs | LandmarkOutputs, regression: Regression) -> dict[str, Any]:
        """Return the fitted attributes that depend on the chosen directions V (r, p)."""
        eigenvalues, V = self._choose_subspace(outputs, regression)
        embedding = outputs.embedding(V)
        g = outputs.embedded(V, embedding)  # (d, p)
        norms = diagonal(embedding.kernel, outputs.outputs, "output_kernel")
        return {
            "embedding_": embedding,
            "candidates_": CandidateSet(outputs.outputs, embedding, norms, g),
            "dual_coef_": regression.coef(V).astype(working_dtype(), copy=False),  # (a, p)
            "eigenvalues_": eigenvalues,
            "n_components_": embedding.n_components,
            "approximation_error_": outputs.approximation_error,
            "_continuation": (outputs, regression) if isinstance(outputs, LandmarkOutputs) else None,
        }

    def embed(self, X: Samples) -> Array:
        """Return z(x) = Gĥ(x), the predicted embedding, shape (len(X), p)."""
        check_is_fitted(self)
        with self._numerics():
            given, X = X, self.input_kernel_.check(X, "X", allow_1d=False)
            if n_columns(X) is not None:
                validate_data(self, given, reset=False, skip_check_array=True)
            Z = np.empty((n_samples(X), self.n_components_), dtype=working_dtype())
            blocks = list(row_blocks(len(Z), 3 * Z.itemsize * len(self.dual_coef_)))
            for rows in track(blocks, "embedding of inputs", len(blocks)):
                Z[rows] = block(self.input_kernel_, take(X, rows), self.X_fit_, "input_kernel") @ self.dual_coef_
            return Z

    def transform_outputs(self, Y: Samples) -> Array:
        """Return g(y) = Gψ(y), the learned embedding of outputs, shape (len(Y), p)."""
        check_is_fitted(self)
        with self._numerics():
            return self.embedding_(self._check_outputs(Y, "Y"))

    def candidate_set(self, outputs: Samples, path: Any = None) -> CandidateSet:
        """Embed candidates once, for many calls of ``predict`` and ``predict_topk``.

        Parameters
        ----------
        outputs : c candidates, in the form of y
        path : folder, optional
            where to keep [g(y), k(y, y)] and the outputs, memory-mapped, instead of c·p numbers in memory;
            ``CandidateSet.load(path, model.embedding_)`` finds them again.
        """
        check_is_fitted(self)
        with self._numerics():
            return CandidateSet.build(self._check_outputs(outputs, "outputs"), self.embedding_, path)

    def predict(self, X: Samples, candidates: Any = None) -> Samples:
        """Return the nearest candidate of each input, in the form in which the candidates came.

        Parameters
        ----------
        X : inputs
        candidates : collection, CandidateSet, list of collections or CandidateSets, optional
            one set for all inputs (embedded already, with :meth:`candidate_set`), or one set an input; the distinct
            known outputs by default.
        """
        return self.predict_topk(X, 1, candidates).nearest

    def predict_topk(self, X: Samples, k: int = 10, candidates: Any = None) -> TopK:
        """Return the k nearest candidates of each input with squared distances in the output space.

        k is at most the number of candidates. Cost: len(X)·c·p flops for c candidates, and for candidates that are
        given c·r kernel values and c·r·p flops to embed them; never more than ``working_memory`` beside the (len(X), k)
        answer and the (len(X), p) queries.
        """
        Z = self.embed(X)
        with self._numerics():
            return nearest(Z, self._prepare(candidates, len(Z)), self.embedding_, checks.count(k, "k"))

    def rank(self, X: Samples, y: Samples, candidates: Any = None) -> Ranks:
        """Return where the true output of each input stands among its distinct candidates, ties counted apart."""
        Z = self.embed(X)
        Y = self._check_outputs(y, "y")
        if len(Z) != n_samples(Y):
            raise ValueError(f"X has {len(Z)} examples, y has {n_samples(Y)}.")
        with self._numerics():
            ranks = rank_of_truth(Z, Y, self._prepare(candidates, len(Z)), self.embedding_)
        if np.isinf(ranks.nearer).all():
            warnings.warn("No true output of y is among its candidates: every rank is ∞.", UserWarning, stacklevel=2)
        return ranks

    def score(self, X: Samples, y: Samples, candidates: Any = None) -> float:
        """Return minus the mean output-kernel loss |ψ(ŷ) − ψ(y)|² of the predictions; higher is better.

        Measured in the model's own output kernel, it cannot compare models with different output kernels: for those
        use a metric, or ``make_scorer(kernel_loss, kernel=one, greater_is_better=False)``.
        """
        prediction = self.predict(X, candidates)
        return -float(kernel_loss(self._check_outputs(y, "y"), prediction, self.output_kernel_))

    def _check_parameters(self) -> None:
        checks.positive(self.alpha, "alpha")
        checks.precision(self.dtype, "dtype")
        as_landmarks(self.input_landmarks, "input_landmarks", "uniform")
        as_landmarks(self.output_landmarks, "output_landmarks", "pivoted")

    @contextmanager
    def _numerics(self) -> Iterator[None]:
        with precision(checks.precision(self.dtype, "dtype")), reporting(self.verbose):
            yield

    def _looks_at_unlabeled(self) -> bool:
        """Whether the coordinates must span the unlabeled outputs too."""
        return False

    def _output_side(self, kernel: Kernel, Y: Samples, stream: OutputStream | None) -> SpannedOutputs | LandmarkOutputs:
        landmarks = as_landmarks(self.output_landmarks, "output_landmarks", "pivoted")
        if landmarks is None:
            return SpannedOutputs(kernel, Y, stream, self._looks_at_unlabeled())
        return LandmarkOutputs(kernel, Y, stream, self._looks_at_unlabeled(), landmarks, float(self.alpha))

    def _regressor(self, kernel: Kernel) -> KernelRidge | NystromRidge:
        landmarks = as_landmarks(self.input_landmarks, "input_landmarks", "uniform")
        if landmarks is None:
            return KernelRidge(kernel, float(self.alpha))
        return NystromRidge(kernel, float(self.alpha), landmarks)

    def _choose_subspace(self, outputs: SpannedOutputs | LandmarkOutputs, regression: Regression) -> Subspace:
        raise NotImplementedError

    def _check_outputs(self, Y: Samples, name: str) -> Samples:
        Y = self.output_kernel_.check(Y, name)
        _same_width(Y, name, self.candidates_.outputs, "the outputs that the model was fitted on")
        return Y

    def _prepare(self, candidates: Any, n_examples: int) -> CandidateSet | CandidateSets:
        if candidates is None:
            return self.candidates_
        if isinstance(candidates, CandidateSet):
            candidates.require(self.embedding_)
            return candidates
        candidates = as_candidates(candidates, self.candidates_.outputs)
        if isinstance(candidates, CandidateSets):
            return candidates.checked(self._check_outputs, n_examples)
        candidates = self._check_outputs(candidates, "candidates")
        return CandidateSet(candidates, self.embedding_, diagonal(self.output_kernel_, candidates, "output_kernel"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def check_outputs_of_fit(
    estimator: str, kernel: Kernel, y: Samples, unlabeled: Any, n_inputs: int
) -> tuple[Samples, OutputStream | None]:
    """Return the outputs as the kernel takes them, one an input, and the unlabeled outputs (None for none)."""
    if y is None:
        raise ValueError(f"{estimator} requires y to be passed, but the target y is None.")
    Y = kernel.check(y, "y")
    if n_samples(Y) != n_inputs:
        raise ValueError(
            f"X and y must have one row an example: X has {n_inputs}, y has {n_samples(Y)} ({describe(Y)})."
        )
    if unlabeled is None or is_empty(unlabeled):
        return Y, None
    return Y, OutputStream(unlabeled, kernel, Y)


def _same_width(A: Samples, name: str, B: Samples, other: str) -> None:
    if n_columns(A) != n_columns(B):
        raise ValueError(
            f"{name} must be of the same width as {other}: {name} has {describe(A)}, {other} has {describe(B)}."
        )


class IOKR(_OutputKernelRegression):
    """Input Output Kernel Regression: kernel ridge regression into the whole output space.

    ĥ(x) = Σᵢ αᵢ(x) ψ(yᵢ), α(x) = (K_x + nλI)⁻¹ k_x(X, x);   ŷ(x) = argmin_y |ĥ(x) − ψ(y)|².

    Fit costs n³/3 + d²r flops, and at its peak about 2n² + 4d² numbers, for d distinct outputs of rank r; decoding r
    flops a candidate.

    Parameters
    ----------
    input_kernel, output_kernel : Kernel, function k(a, b) or None
        None is a Gaussian kernel with the median width.
    alpha : float
        λ of the paper: the ridge is K_x + n·λ·I.

    Attributes
    ----------
    embedding_ : Embedding
        y ↦ g(y).
    candidates_ : CandidateSet
        the distinct known outputs, labeled first: the default candidates.
    dual_coef_ : array (n, p)
        z(x) = k_x(x, X_fit_) @ dual_coef_.
    X_fit_ : the training inputs.
    n_components_ : int
        p: here the dimension that the training outputs span.
    eigenvalues_ : empty array; IOKR orders no directions.
    input_kernel_, output_kernel_ : Kernel
        fitted copies of the parameters.
    n_features_in_ : int
        width of X, where X has rows.

    References
    ----------
    Brouard, Szafranski and d'Alché-Buc, *Input Output Kernel Regression*, JMLR 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import IOKR
    >>> from psilearn.kernels import Dice, Gaussian
    >>> X = np.array([[0.0], [0.1], [1.0], [1.1]])
    >>> Y = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]])
    >>> IOKR(Gaussian(gamma=10.0), Dice(), alpha=1e-3).fit(X, Y).predict([[0.05], [1.2]])
    array([[1, 1, 0],
           [0, 1, 1]])
    """

    def __init__(
        self,
        input_kernel: Any = None,
        output_kernel: Any = None,
        alpha: float = 1e-4,
        input_landmarks: Any = None,
        output_landmarks: Any = None,
        dtype: Any = "float64",
        verbose: int = 0,
    ) -> None:
        self.input_kernel = input_kernel
        self.output_kernel = output_kernel
        self.alpha = alpha
        self.input_landmarks = input_landmarks
        self.output_landmarks = output_landmarks
        self.dtype = dtype
        self.verbose = verbose

    def _choose_subspace(self, outputs: SpannedOutputs | LandmarkOutputs, regression: Regression) -> Subspace:
        return Subspace(np.empty(0), None)


def _needs_output_landmarks(estimator: Any) -> bool:
    if estimator.output_landmarks is None:
        raise AttributeError("partial_fit needs output_landmarks: without them every output is held, and fit is exact.")
    return True


class KDE(_OutputKernelRegression):
    """Kernel Dependency Estimation: ridge regression onto the leading kernel principal components of the outputs.

    G spans the p leading eigenvectors of 1/m Σⱼ ψ(yⱼ)ψ(yⱼ)ᵀ (uncentred), over the unlabeled outputs, or over Y where
    there are none. The inputs play no part in choosing G: it is :class:`OEL` with ``supervision=0``.

    Fit costs n³/3 + d²r flops and the leading p eigenvectors of an (r, r) moment, and at its peak about 2n² + 4d²
    numbers, for d distinct outputs (labeled and unlabeled) of rank r; decoding p flops a candidate.

    Parameters
    ----------
    input_kernel, output_kernel, alpha :
        as in :class:`IOKR`.
    n_components : int or None
        p; None keeps the whole rank.

    Attributes
    ----------
    eigenvalues_ : array (p,)
        of the moment, descending.
    n_components_ : int
        p as used: at most the rank.
    Others as in :class:`IOKR`.

    References
    ----------
    Weston, Chapelle, Elisseeff, Schölkopf and Vapnik, *Kernel Dependency Estimation*, NIPS 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import KDE
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> KDE(n_components=3).fit(X, np.hstack([X, X**2])).embed(X[:2]).shape
    (2, 3)
    """

    def __init__(
        self,
        input_kernel: Any = None,
        output_kernel: Any = None,
        alpha: float = 1e-4,
        n_components: int | None = None,
        input_landmarks: Any = None,
        output_landmarks: Any = None,
        dtype: Any = "float64",
        verbose: int = 0,
    ) -> None:
        self.input_kernel = input_kernel
        self.output_kernel = output_kernel
        self.alpha = alpha
        self.n_components = n_components
        self.input_landmarks = input_landmarks
        self.output_landmarks = output_landmarks
        self.dtype = dtype
        self.verbose = verbose

    @available_if(_needs_output_landmarks)
    def partial_fit(self, unlabeled: Any) -> Self:
        """Take further unlabeled outputs into the embedding, as if ``fit`` had seen them too; needs output_landmarks.

        The landmarks and the regression stay as they are; ``approximation_error_`` says how well the landmarks span
        what has been seen since. Where ``fit`` saw no unlabeled outputs, these take the place of y in the moment. Cost:
        m·r kernel values, 2m·r² flops and the leading eigenvectors of an (r, r) matrix.

        Parameters
        ----------
        unlabeled : as in ``fit``
        """
        check_is_fitted(self)
        if self._continuation is None:
            raise ValueError("This model was fitted without output_landmarks: fit it again before partial_fit.")
        outputs, regression = self._continuation
        with self._numerics():
            outputs = outputs.with_unlabeled(OutputStream(unlabeled, self.output_kernel_, outputs.outputs))
            self.__dict__.update(self._from_subspace(outputs, regression))
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_components is not None:
            checks.count(self.n_components, "n_components")

    def _looks_at_unlabeled(self) -> bool:
        return True

    def _choose_subspace(self, outputs: SpannedOutputs | LandmarkOutputs, regression: Regression) -> Subspace:
        return self._top(outputs.moment())

    def _top(self, moment: MixedMoment) -> Subspace:
        subspace = moment.top(self.n_components)
        rank = len(subspace.eigenvalues)
        if self.n_components is not None and rank < self.n_components:
            warnings.warn(
                f"n_components={self.n_components} is more than the rank of the output moment: {rank} components are "
                f"used.",
                UserWarning,
                stacklevel=4,
            )
        return subspace


class OEL(KDE):
    """Output Embedding Learning: learn a small output embedding that is easy to predict, jointly with the regression.

    G spans the p leading eigenvectors of the mixed moment

        M_c = c/n Σᵢ ĥ(xᵢ)ĥ(xᵢ)ᵀ + (1−c)/m Σⱼ ψ(yⱼ)ψ(yⱼ)ᵀ

    of the regression's fitted values ĥ(xᵢ) and of the outputs yⱼ, unlabeled ones where given, Y otherwise. The
    prediction is argmin_y |G*Gĥ(x) − ψ(y)|². The paper's OEL₀ is ``supervision=1``.

    Fit costs n³/3 + n²r + d²r flops and the leading p eigenvectors of an (r, r) moment, and at its peak about 2n² + 4d²
    + nr numbers, for d distinct outputs (labeled and unlabeled) of rank r; decoding p flops a candidate instead of
    IOKR's r, once candidates are embedded (r·p flops each).

    Parameters
    ----------
    input_kernel, output_kernel, alpha, n_components :
        as in :class:`KDE`.
    supervision : float in [0, 1]
        c: 1 looks only at the fitted values ĥ(xᵢ), 0 only at the outputs ψ(yⱼ).

    Attributes
    ----------
    eigenvalues_ : array (p,)
        of M_c, descending.
    n_components_ : int
        p as used: at most the rank.
    Others as in :class:`IOKR`.

    References
    ----------
    Brogat-Motte, Rudi, Brouard, Rousu and d'Alché-Buc, *Learning Output Embeddings in Structured Prediction*.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn import OEL
    >>> from psilearn.kernels import Gaussian
    >>> X = np.linspace(0, 1, 30).reshape(-1, 1)
    >>> Y = np.hstack([np.sin(6 * X), np.cos(6 * X)])
    >>> model = OEL(Gaussian(5.0), Gaussian(1.0), alpha=1e-6, n_components=8, supervision=0.5).fit(X, Y)
    >>> model.predict([[0.0]]).round(2)
    array([[0., 1.]])
    >>> model.predict_topk([[0.0]], k=2).indices
    array([[0, 1]])
    """

    def __init__(
        self,
        input_kernel: Any = None,
        output_kernel: Any = None,
        alpha: float = 1e-4,
        n_components: int | None = None,
        supervision: float = 0.5,
        input_landmarks: Any = None,
        output_landmarks: Any = None,
        dtype: Any = "float64",
        verbose: int = 0,
    ) -> None:
        super().__init__(
            input_kernel, output_kernel, alpha, n_components, input_landmarks, output_landmarks, dtype, verbose
        )
        self.supervision = supervision

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.fraction(self.supervision, "supervision")

    def _looks_at_unlabeled(self) -> bool:
        return self.supervision < 1

    def _choose_subspace(self, outputs: SpannedOutputs | LandmarkOutputs, regression: Regression) -> Subspace:
        c = float(self.supervision)
        if c == 0:
            return super()._choose_subspace(outputs, regression)
        supervised = c * regression.moment
        return self._top(supervised if c == 1 else supervised + (1 - c) * outputs.moment())
