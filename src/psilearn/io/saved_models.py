"""Save and load fitted models without pickle: a JSON manifest and arrays, from which nothing is executed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psilearn._utils import validation
from psilearn._utils.encoding import Decoder, Encoder
from psilearn._utils.folder_writer import FolderWriter
from psilearn._utils.folders import FolderFormat, ManifestFolder
from psilearn._utils.samples import n_samples
from psilearn.decoding import SharedCandidates
from psilearn.embedding import Embedding
from psilearn.estimators import IOKR, KDE, OEL
from psilearn.io.kernel_checks import is_kernel
from psilearn.io.model_codecs import ESTIMATORS
from psilearn.kernels import Kernel
from psilearn.regression import KernelRegression

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

FORMAT = FolderFormat("psilearn.model", 3, "saved model", "Fit the model and save it again.", replaceable=True)


def save_model(model: Any, path: str | Path, *, notes: dict[str, Any] | None = None, overwrite: bool = False) -> None:
    """Save a fitted model in a folder.

    The folder contains one .npy file per array and ``manifest.json``, which is written last with the size and the
    SHA-256 of each file. No file is a pickle. The loaded model predicts, ranks and embeds as the saved one does; only
    ``partial_fit`` requires a new fit.

    If saving is interrupted or fails, for example on a full disk, the folder is as before: without a model, or with the
    previous one. Other processes can load the previous model until it is replaced.

    Parameters
    ----------
    model : IOKR, KDE, OEL, a scikit-learn Pipeline that ends with one of them, or a search
        The fitted model without a ``regressor``. Of a search such as :class:`~psilearn.OELCV`, the best estimator is
        saved. Its kernels must be kernels of :mod:`psilearn.kernels` or of an installed application (no functions and
        no classes of your own), and its inputs and outputs arrays, CSR matrices, objects of an installed application
        such as spectra, or lists of texts, numbers, lists and tuples. Tensors are loaded as arrays. The other steps
        of a pipeline are scalers, imputers, encoders, text vectorizers, PCA, TruncatedSVD, ColumnTransformer or
        FeatureUnion of scikit-learn, without functions.
    path : str or Path
        The folder: a new or empty one, or one in which saving was interrupted.
    notes : dict, default=None
        JSON data to keep with the model, which :func:`read_notes` returns.
    overwrite : bool, default=False
        Whether a saved model in the folder is replaced. Until the new one is complete, both are on the disk.

    Raises
    ------
    FileExistsError
        If the folder contains anything else.
    OSError
        If the folder cannot be written, or another process is saving a model in it.
    TypeError
        If the model contains objects that cannot be saved without pickle.
    ValueError
        If the model is not fitted.

    See Also
    --------
    load_model : Load a saved model.
    read_notes : Return the notes of a saved model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from psilearn import OEL, load_model, save_model
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> model = OEL(n_components=3).fit(X, np.hstack([X, X**2]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder, "model"))
    ...     loaded = load_model(Path(folder, "model"))
    >>> bool(np.all(loaded.predict(X) == model.predict(X)))
    True
    """
    encoded = encode_model(model, notes)
    with claim_model_folder(path, overwrite=overwrite) as writer:
        encoded.write(writer)


def claim_model_folder(path: str | Path, *, overwrite: bool = False) -> FolderWriter:
    """Check that a model can be saved in a folder, and keep other processes from saving one there.

    The result is the argument of :meth:`EncodedModel.write` and a context manager: a training claims the folder of its
    result before it starts.
    """
    return FORMAT.claim(validation.check_path(path, "path"), overwrite=validation.check_bool(overwrite, "overwrite"))


@dataclass(frozen=True)
class EncodedModel:
    """A model as JSON data and arrays."""

    data: Any
    arrays: Mapping[str, NDArray[Any]]
    notes: dict[str, Any]

    def write(self, writer: FolderWriter) -> None:
        """Write the model into a claimed folder."""
        for name, array in self.arrays.items():
            writer.save_array(name, array)
        writer.finish({"model": self.data, "notes": self.notes})


def encode_model(model: Any, notes: dict[str, Any] | None = None) -> EncodedModel:
    """Encode a fitted model; raise an error as :func:`save_model` does if it cannot be saved."""
    notes = _check_notes(notes)
    estimator = _fitted_estimator(model)
    encoder = Encoder()
    data = encoder.encode(estimator, type(estimator).__name__)
    return EncodedModel(data, encoder.arrays, notes)


def load_model(path: str | Path) -> IOKR | KDE | OEL | Pipeline:
    """Load a saved model.

    Folders of unknown origin are safe to load: only numbers, texts, arrays and the names of registered classes are
    read, and nothing is executed. If the steps of a pipeline were saved with another version of scikit-learn, a
    :class:`~sklearn.exceptions.InconsistentVersionWarning` is issued; a step without what this version needs is
    rejected.

    Parameters
    ----------
    path : str or Path
        The folder that :func:`save_model` wrote.

    Returns
    -------
    IOKR, KDE, OEL or Pipeline
        The fitted model. Its ``partial_fit`` requires a new fit. A pipeline predicts from what it was fitted on, such
        as texts; ``pipeline[:-1].transform(X)`` are the inputs of ``pipeline[-1]``, which has ``predict_topk``.

    Raises
    ------
    ValueError
        If the folder is not a saved model of this version, or is damaged; or if it needs an application that is not
        installed.

    See Also
    --------
    save_model : Save a fitted model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from psilearn import IOKR, load_model, save_model
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(IOKR(alpha=1e-3).fit(X, X), Path(folder, "model"))
    ...     load_model(Path(folder, "model"))
    IOKR(alpha=0.001)
    """
    return FORMAT.read(validation.check_path(path, "path"), _decode_model)


def read_notes(path: str | Path) -> dict[str, Any]:
    """Return the notes of a saved model.

    Parameters
    ----------
    path : str or Path
        The folder that :func:`save_model` wrote.

    Returns
    -------
    dict
        The notes, empty if there are none.

    Raises
    ------
    ValueError
        If the folder is not a saved model of this version, or is damaged.

    See Also
    --------
    save_model : Save a fitted model with notes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from psilearn import IOKR, save_model
    >>> from psilearn.io import read_notes
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(IOKR().fit(X, X), Path(folder, "model"), notes={"data": "a line"})
    ...     read_notes(Path(folder, "model"))
    {'data': 'a line'}
    """
    return FORMAT.read(validation.check_path(path, "path"), _notes_of, verify=False)


def _decode_model(folder: ManifestFolder) -> IOKR | KDE | OEL | Pipeline:
    """Return the model of a folder; reject contents that are not those of a fitted model."""
    with folder.convert_errors():
        model = Decoder(folder.load_array).decode(folder.content["model"])
        problems = _find_problems(_last_step(model))
    if problems:
        raise folder.error(f"its contents are not those of a fitted model ({', '.join(problems)})")
    return model


def _notes_of(folder: ManifestFolder) -> dict[str, Any]:
    notes = folder.content.get("notes")
    if not isinstance(notes, dict):
        raise folder.error("its notes are damaged")
    return notes


def _check_notes(notes: dict[str, Any] | None) -> dict[str, Any]:
    """Return notes that strict JSON can represent."""
    notes = {} if notes is None else notes
    try:
        json.dumps(notes, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"notes must be JSON data: {error}.") from error
    if not isinstance(notes, dict):
        raise TypeError(f"notes must be a dict; got {type(notes).__name__}.")
    return notes


def _last_step(model: Any) -> Any:
    """Return the estimator at the end of a pipeline, or the model itself."""
    return _last_step(model.steps[-1][1]) if getattr(model, "steps", None) else model


def _fitted_estimator(model: Any) -> Any:
    """Return a copy of a fitted model that can be saved, with the best estimator instead of a search."""
    if hasattr(model, "refit"):
        if not hasattr(model, "best_estimator_"):
            raise ValueError(
                f"This {type(model).__name__} has no best estimator to save: fit it with refit=True, or fit and save "
                f"an estimator with best_params_."
            )
        model = model.best_estimator_
    if getattr(model, "steps", None):
        name, last = model.steps[-1]
        return _copy(model, steps=[*model.steps[:-1], (name, _fitted_estimator(last))])
    if type(model) not in ESTIMATORS:
        names = ", ".join(cls.__name__ for cls in ESTIMATORS)
        raise TypeError(
            f"Only {names}, searches over them and pipelines that end with one of them can be saved; got a model of "
            f"type {type(model).__name__}. Use joblib.dump(model, file), and load only files that you trust."
        )
    if not hasattr(model, "regression_"):
        raise ValueError(f"This {type(model).__name__} is not fitted: there is nothing to save.")
    if model.regressor is not None or not isinstance(model.regression_, KernelRegression):
        raise TypeError(
            "A model with a regressor cannot be saved without pickle, because the regressor is an object of another "
            "library. Use joblib.dump(model, file), and load only files that you trust."
        )
    return _copy(model, device=None if model.device is None else str(model.device))


def _copy(model: Any, **changes: Any) -> Any:
    """Return a shallow copy with other attributes, without what pickle calls."""
    copied = object.__new__(type(model))
    vars(copied).update(vars(model), **changes)
    return copied


def _find_problems(model: Any) -> list[str]:
    """Return the names of parts of a loaded model that have the wrong kind or do not fit the other parts."""
    if type(model) not in ESTIMATORS:
        return [type(model).__name__]
    p = getattr(model, "n_components_", None)
    parts = {
        "regressor": model.regressor is None,
        "device": model.device is None or isinstance(model.device, str),
        "n_components_": type(p) is int,
        "regression_": _is_regression(getattr(model, "regression_", None), p),
        "embedding_": _is_embedding(getattr(model, "embedding_", None), p),
        "candidates_": _is_candidates(getattr(model, "candidates_", None), p),
        "output_kernel_": is_kernel(getattr(model, "output_kernel_", None)),
        "eigenvalues_": _is_vector(getattr(model, "eigenvalues_", None)),
        "approximation_error_": isinstance(getattr(model, "approximation_error_", None), float | int),
        "input_approximation_error_": isinstance(getattr(model, "input_approximation_error_", None), float | int),
        "calibration_scores_": _is_vector(getattr(model, "calibration_scores_", np.empty(0))),
        "n_features_in_": type(getattr(model, "n_features_in_", 0)) is int,
    }
    return [name for name, is_valid in parts.items() if not is_valid]


def _is_regression(value: Any, p: Any) -> bool:
    return (
        isinstance(value, KernelRegression)
        and is_kernel(value.kernel)
        and value.triangle is None
        and value.moment is None
        and _are_samples(value.anchors, value.kernel)
        and _is_matrix(value.coefficients, n_samples(value.anchors), p)
        and isinstance(value.approximation_error, float | int)
    )


def _is_embedding(value: Any, p: Any) -> bool:
    return (
        isinstance(value, Embedding)
        and is_kernel(value.kernel)
        and _are_samples(value.landmarks, value.kernel)
        and _is_matrix(value.basis, n_samples(value.landmarks), p)
    )


def _is_candidates(value: Any, p: Any) -> bool:
    return (
        isinstance(value, SharedCandidates)
        and _is_embedding(value.embedding, p)
        and _is_vector(value.squared_norms, n_samples(value.outputs))
        and (value.g is None or _is_matrix(value.g, n_samples(value.outputs), p))
    )


def _are_samples(value: Any, kernel: Kernel) -> bool:
    if n_samples(value):  # constant outputs need no landmarks
        kernel.check(value, "its samples")  # of the right kind, finite
    return True


def _is_matrix(value: Any, n_rows: int, n_columns: Any) -> bool:
    is_matrix = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.shape == (n_rows, n_columns)
    return is_matrix and bool(np.isfinite(value).all())


def _is_vector(value: Any, size: int | None = None) -> bool:
    is_vector = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == 1
    return is_vector and size in (None, len(value))
