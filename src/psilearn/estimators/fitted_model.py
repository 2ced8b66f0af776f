"""A fitted model: the embedding of inputs, outputs and candidates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from psilearn._backend import Compute, is_tensor, like_input, resolve_compute, to_numpy
from psilearn._distributed import is_dask
from psilearn._linalg import Array
from psilearn._utils.estimators import declare_sparse_inputs_and_outputs, fitted_snapshot
from psilearn._utils.progress import show_progress
from psilearn._utils.samples import Samples, n_columns, n_samples
from psilearn.decoding import Candidates, ShardedCandidates, SharedCandidates, as_candidates
from psilearn.embedding import Embedding
from psilearn.estimators.dask_inputs import require_embedded
from psilearn.estimators.lazy_prediction import lazy_embeddings
from psilearn.kernels import Kernel
from psilearn.regression.kernel_regression import Regression


class FittedModel(BaseEstimator):
    """What all predictions of a fitted model need: embedded inputs, validated outputs and candidates.

    A subclass sets ``regression_``, ``embedding_``, ``candidates_``, ``output_kernel_`` and ``n_components_``.
    """

    dtype: Any
    device: Any
    verbose: int
    regression_: Regression
    embedding_: Embedding
    candidates_: SharedCandidates
    output_kernel_: Kernel
    n_components_: int

    def embed(self, X: Samples) -> Array:
        """Compute the predicted embedding z(x) = Gĥ(x) of inputs.

        Parameters
        ----------
        X : array, CSR matrix, sequence or Dask collection of n inputs
            The inputs.

        Returns
        -------
        array of shape (n, p)
            The predicted embeddings, a tensor if X is one, and a Dask array if X is a Dask collection.

        See Also
        --------
        transform_outputs : The embedding of outputs in the same space.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> OEL(n_components=3).fit(X, np.hstack([X, X**2])).embed(X[:2]).shape
        (2, 3)
        """
        model = fitted_snapshot(self)
        if is_dask(X):
            return lazy_embeddings(model, "embed", X, "X")
        with model._computing(X) as compute:
            return like_input(X, model._embed(X, compute))

    def transform_outputs(self, Y: Samples) -> Array:
        """Compute the learned embedding g(y) = Gψ(y) of outputs.

        Parameters
        ----------
        Y : array, CSR matrix, sequence or Dask collection of n outputs
            The outputs.

        Returns
        -------
        array of shape (n, p)
            The embedded outputs, a tensor if Y is one, and a Dask array if Y is a Dask collection.

        See Also
        --------
        embed : The predicted embedding of inputs in the same space.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> OEL(n_components=3).fit(X, np.hstack([X, X**2])).transform_outputs([[0.5, 0.25]]).shape
        (1, 3)
        """
        model = fitted_snapshot(self)
        if is_dask(Y):
            return lazy_embeddings(model, "transform_outputs", Y, "Y")
        with model._computing(Y) as compute:
            return like_input(Y, model.embedding_(model._check_outputs(Y, "Y"), compute))

    def candidate_set(
        self, outputs: Samples, path: str | Path | None = None, *, dtype: DTypeLike | None = None
    ) -> SharedCandidates:
        """Embed candidates once, for many calls of ``predict`` and ``predict_topk``.

        Parameters
        ----------
        outputs : array, CSR matrix, sequence or Dask collection of c outputs
            The candidates, in the form of y.
        path : str or Path, default=None
            A new folder in which the embedded candidates and the outputs are stored. They are memory-mapped, so that
            c·p numbers are never in memory, and found again by
            ``SharedCandidates.load(path, model.embedding_)``. The chunks of a Dask collection, which requires a path,
            are written in parallel as shards, and found again by
            ``ShardedCandidates.open(path, model.embedding_)``; after an interruption the same call resumes the build.
        dtype : {"float64", "float32"}, default=None
            Precision of the embeddings in the folder. None stores them as they are computed.

        Returns
        -------
        SharedCandidates
            The embedded candidates.

        See Also
        --------
        predict : Takes them as ``candidates``.

        Examples
        --------
        >>> import numpy as np
        >>> from psilearn import OEL
        >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> model = OEL(n_components=3).fit(X, np.hstack([X, X**2]))
        >>> len(model.candidate_set([[0.0, 0.0], [1.0, 1.0]]))
        2
        """
        model = fitted_snapshot(self)
        with model._computing(outputs) as compute:
            if is_dask(outputs):
                if path is None:
                    raise ValueError("Candidates of a Dask collection are written in shards: give a path.")
                return ShardedCandidates.build_chunks(outputs, model.embedding_, path, compute=compute, dtype=dtype)
            checked = model._check_outputs(outputs, "outputs")
            return SharedCandidates.build(checked, model.embedding_, path, dtype=dtype, compute=compute)

    @contextmanager
    def _computing(self, *arrays: Any) -> Iterator[Compute]:
        """Compute in the model's precision, on its device or on that of the tensors given now or to ``fit``."""
        if hasattr(self, "candidates_"):
            arrays = (*arrays, getattr(self.regression_, "anchors", None), self.candidates_.outputs)
        compute = resolve_compute(self.dtype, self.device, *arrays)
        with compute.active(), show_progress(self.verbose):
            yield compute

    def _embed(self, X: Samples, compute: Compute) -> Array:
        """Return z(x), (n, p), on the device if it fits there."""
        checked = self.regression_.check(X)
        if n_columns(checked) is not None:
            validate_data(self, X, reset=False, skip_check_array=True)
        n, p = n_samples(checked), self.n_components_
        if compute.block_rows(compute.itemsize * p, n) < n:
            Z = np.empty((n, p), compute.dtype)
        else:
            Z = compute.zeros((n, p), compute.dtype)
        for rows, block in self.regression_.predict_blocks(checked, compute):
            Z[rows] = compute.asarray(block) if is_tensor(Z) else to_numpy(block)
            del block  # before the next one is computed
        return Z

    def _embed_pairs(self, X: Samples, y: Samples, compute: Compute) -> tuple[Array, Samples]:
        """Return z(x) and the validated true outputs, one per input."""
        Z, Y = self._embed(X, compute), self._check_outputs(y, "y")
        if len(Z) != n_samples(Y):
            raise ValueError(f"X has {len(Z)} examples, y has {n_samples(Y)}.")
        return Z, Y

    def _check_outputs(self, Y: Samples, name: str) -> Samples:
        Y = self.output_kernel_.check(Y, name)
        known = self.candidates_.outputs
        self.output_kernel_.check_same_kind(Y, name, known, "the outputs that the model was fitted on")
        return Y

    def _candidates(self, candidates: Any, n_examples: int) -> Candidates:
        require_embedded(candidates)
        return as_candidates(candidates, self.candidates_, self._check_outputs, n_examples)

    def __sklearn_tags__(self) -> Any:
        return declare_sparse_inputs_and_outputs(super().__sklearn_tags__())
