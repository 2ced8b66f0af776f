"""Save and load fitted models without pickle: a JSON manifest and arrays, from which nothing is executed."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psilearn._utils import validation
from psilearn._utils.array_files import ArrayFile, FileFormat
from psilearn._utils.samples import n_columns, n_samples
from psilearn.decoding import SharedCandidates
from psilearn.embedding import Embedding
from psilearn.estimators import IOKR, KDE, OEL
from psilearn.io.encoding import Decoder, Encoder
from psilearn.io.model_codecs import ESTIMATORS
from psilearn.kernels import Kernel
from psilearn.regression import KernelRegression

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

FORMAT = FileFormat("psilearn.model", 1, "saved model", "Fit the model and save it again.")
KERNEL_PARTS = ("left", "right", "kernel", "kernel_", "output_kernel")  # attributes of kernels that are kernels
OPTIONAL_PARTS = ("base", "base_")  # that may be None
MAX_KERNELS = 1000


def save_model(model: Any, path: str | Path, *, notes: dict[str, Any] | None = None, overwrite: bool = False) -> None:
    """Save a fitted model in one file.

    The file is a safetensors file: arrays as tensors, and in its metadata the classes and parameters as JSON text and a
    SHA-256 of all contents. It is not a pickle. The loaded model predicts, ranks and embeds as the saved one does; only
    ``partial_fit`` requires a new fit.

    The model is written to a temporary file in the same folder, which is renamed when it is complete: if saving is
    interrupted or fails, for example on a full disk, the previous file stays, and other processes always load either
    the previous or the new model.

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
        The file, such as "tagger.psi". Missing folders are created.
    notes : dict, default=None
        JSON data to keep with the model, which :func:`read_notes` returns.
    overwrite : bool, default=False
        Whether a saved model at this path is replaced. Other files are never replaced.

    Raises
    ------
    FileExistsError
        If the file exists.
    OSError
        If the file cannot be written.
    TypeError
        If the model contains objects that cannot be saved without pickle.
    ValueError
        If the model is not fitted.

    See Also
    --------
    load_model : Load a saved model.
    read_notes : Return the notes of a saved model.
    check_model_path : Check before a long training that its model can be saved.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from psilearn import OEL, load_model, save_model
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> model = OEL(n_components=3).fit(X, np.hstack([X, X**2]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder, "curve.psi"))
    ...     loaded = load_model(Path(folder, "curve.psi"))
    >>> bool(np.all(loaded.predict(X) == model.predict(X)))
    True
    """
    notes = _check_notes(notes)
    path = check_model_path(path, overwrite=overwrite)
    estimator = _fitted_estimator(model)
    encoder = Encoder()
    data = encoder.encode(estimator, type(estimator).__name__)
    FORMAT.write(path, {"model": data, "notes": notes}, encoder.arrays)


def check_model_path(path: str | Path, *, overwrite: bool = False) -> Path:
    """Check that a model can be saved, without writing anything.

    Parameters
    ----------
    path : str or Path
        The file.
    overwrite : bool, default=False
        Whether a saved model at this path may be replaced.

    Returns
    -------
    Path
        The path.

    Raises
    ------
    FileExistsError
        If the path exists, and is not a saved model that may be replaced.
    OSError
        If there is no permission to write.

    See Also
    --------
    save_model : Save a model.

    Examples
    --------
    >>> from psilearn.io import check_model_path
    >>> check_model_path("new.psi").name
    'new.psi'
    """
    path = validation.check_path(path, "path")
    FORMAT.check_path(path, overwrite=validation.check_bool(overwrite, "overwrite"))
    return path


def load_model(path: str | Path, *, mapped: bool = False) -> IOKR | KDE | OEL | Pipeline:
    """Load a saved model.

    Files of unknown origin are safe to load: only numbers, texts, arrays and the names of registered classes are read,
    and nothing is executed. The cost is proportional to the size of the file: see the section *Saving models* of the
    guide. If the steps of a pipeline were saved with another version of scikit-learn, a
    :class:`~sklearn.exceptions.InconsistentVersionWarning` is issued; a step without what this version needs is
    rejected.

    Parameters
    ----------
    path : str or Path
        The file that :func:`save_model` wrote.
    mapped : bool, default=False
        Whether the arrays are mapped from the file, so that processes that load the same model share their memory. The
        file must not be changed in place meanwhile; replacing it by :func:`save_model` is safe.

    Returns
    -------
    IOKR, KDE, OEL or Pipeline
        The fitted model. Its ``partial_fit`` requires a new fit. A pipeline predicts from what it was fitted on, such
        as texts; ``pipeline[:-1].transform(X)`` are the inputs of ``pipeline[-1]``, which has ``predict_topk``.

    Raises
    ------
    ValueError
        If the file is not a saved model of this version, or is damaged; or if it needs an application that is not
        installed. The message names the file.

    See Also
    --------
    save_model : Save a fitted model.
    load_with_notes : Load a model and its notes at once.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from psilearn import IOKR, load_model, save_model
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(IOKR(alpha=1e-3).fit(X, X), Path(folder, "line.psi"))
    ...     load_model(Path(folder, "line.psi"))
    IOKR(alpha=0.001)
    """
    return load_with_notes(path, mapped=mapped)[0]


def load_with_notes(path: str | Path, *, mapped: bool = False) -> tuple[IOKR | KDE | OEL | Pipeline, dict[str, Any]]:
    """Load a saved model and its notes, from one opened file.

    Parameters
    ----------
    path : str or Path
        The file that :func:`save_model` wrote.
    mapped : bool, default=False
        Whether the arrays are mapped from the file, as in :func:`load_model`.

    Returns
    -------
    model : IOKR, KDE, OEL or Pipeline
        The fitted model.
    notes : dict
        The notes, empty if there are none.

    Raises
    ------
    ValueError
        As :func:`load_model`.

    See Also
    --------
    load_model : Load the model alone.
    read_notes : Return the notes alone.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from psilearn import IOKR, save_model
    >>> from psilearn.io import load_with_notes
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(IOKR().fit(X, X), Path(folder, "line.psi"), notes={"data": "a line"})
    ...     load_with_notes(Path(folder, "line.psi"))
    (IOKR(), {'data': 'a line'})
    """
    path, mapped = validation.check_path(path, "path"), validation.check_bool(mapped, "mapped")
    file = FORMAT.read(path, mapped=mapped)
    with FORMAT.convert_errors(path):
        notes = _notes_of(file)
        model = Decoder(file.arrays, file.n_bytes).decode(file.content["model"])
        problems = _find_problems(_last_step(model))
        if problems:
            raise ValueError(f"its contents are not those of a fitted model ({', '.join(problems)})")
    return model, notes


def read_notes(path: str | Path) -> dict[str, Any]:
    """Return the notes of a saved model.

    Parameters
    ----------
    path : str or Path
        The file that :func:`save_model` wrote.

    Returns
    -------
    dict
        The notes, empty if there are none.

    Raises
    ------
    ValueError
        If the file is not a saved model of this version, or its header is damaged. The arrays are not read.

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
    ...     save_model(IOKR().fit(X, X), Path(folder, "line.psi"), notes={"data": "a line"})
    ...     read_notes(Path(folder, "line.psi"))
    {'data': 'a line'}
    """
    path = validation.check_path(path, "path")
    file = FORMAT.read(path, mapped=True, verify=False)
    with FORMAT.convert_errors(path):
        return _notes_of(file)


def _notes_of(file: ArrayFile) -> dict[str, Any]:
    notes = file.content["notes"]
    if not isinstance(notes, dict):
        raise ValueError("its notes are damaged")
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
        "dtype": _is_dtype(getattr(model, "dtype", None)),
        "n_components_": type(p) is int,
        "regression_": _is_regression(getattr(model, "regression_", None), p),
        "embedding_": _is_embedding(getattr(model, "embedding_", None), p),
        "candidates_": _is_candidates(getattr(model, "candidates_", None), p),
        "output_kernel_": _is_kernel(getattr(model, "output_kernel_", None)),
        "eigenvalues_": _is_vector(getattr(model, "eigenvalues_", None)),
        "approximation_error_": _is_number(getattr(model, "approximation_error_", None)),
        "input_approximation_error_": _is_number(getattr(model, "input_approximation_error_", None)),
        "calibration_scores_": _are_scores(getattr(model, "calibration_scores_", np.empty(0))),
        "n_features_in_": _is_width(getattr(model, "n_features_in_", None), getattr(model, "regression_", None)),
    }
    return [name for name, is_valid in parts.items() if not is_valid]


def _is_regression(value: Any, p: Any) -> bool:
    return (
        isinstance(value, KernelRegression)
        and _is_kernel(value.kernel)
        and value.triangle is None
        and value.moment is None
        and _are_samples(value.anchors, value.kernel)
        and _is_matrix(value.coefficients, n_samples(value.anchors), p)
        and _is_number(value.approximation_error)
    )


def _is_embedding(value: Any, p: Any) -> bool:
    return (
        isinstance(value, Embedding)
        and _is_kernel(value.kernel)
        and _are_samples(value.landmarks, value.kernel)
        and _is_matrix(value.basis, n_samples(value.landmarks), p)
    )


def _is_candidates(value: Any, p: Any) -> bool:
    return (
        isinstance(value, SharedCandidates)
        and _is_embedding(value.embedding, p)
        and _are_outputs(value.outputs, value.embedding)
        and _is_vector(value.squared_norms, n_samples(value.outputs))
        and (value.g is None or _is_matrix(value.g, n_samples(value.outputs), p))
    )


def _are_samples(value: Any, kernel: Kernel) -> bool:
    if n_samples(value):  # constant outputs need no landmarks
        kernel.check(value, "its samples")  # of the right kind, finite
    return True


def _are_outputs(value: Any, embedding: Any) -> bool:
    kernel, landmarks = embedding.kernel, embedding.landmarks
    if n_samples(value) and n_samples(landmarks):
        outputs = kernel.check(value, "its candidates")
        kernel.check_same_kind(outputs, "its candidates", landmarks, "the outputs of its embedding")
        shapes = [part.shape[1:] for part in (value, landmarks) if hasattr(part, "shape")]
        return len(shapes) < 2 or bool(shapes[0] == shapes[1])
    return _are_samples(value, kernel)


def _is_width(value: Any, regression: Any) -> bool:
    """Return whether a number of features is that of the inputs of a regression, if they have one."""
    width = n_columns(getattr(regression, "anchors", None))
    return value is None or (type(value) is int and width in (None, value))


def _is_dtype(value: Any) -> bool:
    validation.check_precision(value, "dtype")
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int) and math.isfinite(value)


def _are_scores(value: Any) -> bool:
    """Return whether values are calibration scores, which are infinite where no candidate was the truth."""
    return isinstance(value, np.ndarray) and _is_vector(np.where(value == np.inf, 0, value))


def _is_matrix(value: Any, n_rows: int, n_columns: Any) -> bool:
    is_matrix = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.shape == (n_rows, n_columns)
    return is_matrix and bool(np.isfinite(value).all())


def _is_vector(value: Any, size: int | None = None) -> bool:
    is_vector = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == 1
    return is_vector and size in (None, len(value)) and bool(np.isfinite(value).all())


def _is_kernel(value: Any) -> bool:
    """Return whether a value is a kernel whose parts are kernels too, and not more than its use can handle.

    A part that occurs several times counts as often as it is evaluated: with few shared parts, a small file could
    otherwise describe a kernel of exponential size.
    """
    size = _count_kernels(value, {})
    return size is not None and size <= MAX_KERNELS


def _count_kernels(value: Any, counts: dict[int, int | None]) -> int | None:
    """Return the number of kernels in a kernel with repetitions, or None if a part is not a kernel."""
    if id(value) not in counts:
        parts = _parts_of(value)
        sizes = None if parts is None else [_count_kernels(part, counts) for part in parts]
        is_valid = sizes is not None and None not in sizes
        counts[id(value)] = 1 + sum(size or 0 for size in sizes or []) if is_valid else None
    return counts[id(value)]


def _parts_of(value: Any) -> list[Any] | None:
    """Return the direct parts of a kernel, or None if the value is not a kernel."""
    if not isinstance(value, Kernel):
        return None
    attributes = dict(vars(value))
    parts = [attributes[name] for name in KERNEL_PARTS if name in attributes]
    parts += [attributes[name] for name in OPTIONAL_PARTS if attributes.get(name) is not None]
    listed = attributes.get("kernels", [])
    return [*parts, *listed] if isinstance(listed, list | tuple) else None
