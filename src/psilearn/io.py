"""Models on disk without pickle: a JSON manifest and plain arrays. Loading one executes nothing.

A saved model is a folder with ``manifest.json`` and ``.npy`` files. The manifest names classes of this library only,
by their names in a fixed table; a name that is not there is refused, and arrays that would need unpickling are too.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from psilearn._backend import off_device
from psilearn.chem.spectra.spectrum import Spectrum
from psilearn.decoding import CandidateSet
from psilearn.embedding import Embedding
from psilearn.estimators import IOKR, KDE, OEL
from psilearn.kernels import Kernel
from psilearn.landmarks import Landmarks

FORMAT, VERSION = "psilearn.model", 1
MANIFEST = "manifest.json"
ESTIMATORS = {cls.__name__: cls for cls in (IOKR, KDE, OEL)}
RECORDS: dict[str, Any] = {cls.__name__: cls for cls in (CandidateSet, Embedding)}
LEFT_OUT = ("_continuation",)  # what partial_fit goes on from


def save_model(model: Any, path: str | Path, *, notes: dict[str, Any] | None = None) -> None:
    """Write a fitted IOKR, KDE or OEL into a new folder.

    What is saved predicts, ranks and embeds as the model does. ``partial_fit`` cannot go on from it.

    Parameters
    ----------
    model : fitted estimator
        with kernels of this library and without ``regressor``; inputs and outputs that are arrays, CSR matrices,
        spectra, or lists of strings, numbers or lists of them; tensors come back as arrays.
    path : folder
        made, or empty.
    notes : dict, optional
        plain data that is kept with it and found again by :func:`read_notes`.
    """
    path = Path(path)
    if type(model).__name__ not in ESTIMATORS or type(model) is not ESTIMATORS[type(model).__name__]:
        raise TypeError(f"Only {', '.join(ESTIMATORS)} can be saved; got {type(model).__name__}.")
    if not hasattr(model, "embedding_"):
        raise ValueError(f"This {type(model).__name__} is not fitted: there is nothing to save.")
    if model.regressor is not None or hasattr(model, "regressor_"):
        raise TypeError(
            "A model with a regressor cannot be saved without pickle, because the regressor is an object of another "
            "library. Use joblib.dump(model, file), and load only files that you trust."
        )
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{path} exists and is not an empty folder: choose another one for the model.")
    writer = _Writer(path)
    state = {name: value for name, value in vars(model).items() if name not in LEFT_OUT}
    state["device"] = None if model.device is None else str(model.device)
    described = {"estimator": type(model).__name__, "state": {k: writer.encode(v, k) for k, v in state.items()}}
    manifest = {"format": FORMAT, "version": VERSION, "notes": notes or {}, **described}
    text = json.dumps(manifest, indent=1, allow_nan=False)
    path.mkdir(parents=True, exist_ok=True)
    for name, array in writer.arrays.items():
        np.save(path / name, array, allow_pickle=False)
    (path / MANIFEST).write_text(text, encoding="utf-8")


def load_model(path: str | Path) -> Any:
    """Return the model that was saved in a folder.

    Raises
    ------
    ValueError
        where the folder is no saved model, of another version, or damaged. Files of unknown origin are safe to open:
        only numbers, texts and names of this library's own classes are read.
    """
    path = Path(path)
    manifest = _manifest(path)
    try:
        cls = ESTIMATORS[manifest["estimator"]]
        model = cls()
        known = set(model.get_params(deep=False))
        decode = _Reader(path).decode
        state = {name: decode(value) for name, value in manifest["state"].items()}
        for later in ("regressor", "device"):  # not there in models from before they were
            state.setdefault(later, None)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OSError, EOFError, RecursionError) as error:
        raise ValueError(f"{path} is no model that can be used: {type(error).__name__}: {error}") from error
    odd = [name for name in state if name not in known and not name.endswith("_")]
    if odd or not known <= set(state) or not _fits(state):
        raise ValueError(f"{path} is no model that can be used: its state is not that of a fitted {cls.__name__}.")
    model.__dict__.update(state)
    model._continuation = None
    return model


def _fits(state: dict[str, Any]) -> bool:
    """Return whether the fitted parts are of the right kinds and suit each other."""
    embedding, candidates, coef = (state.get(name) for name in ("embedding_", "candidates_", "dual_coef_"))
    scores = state.get("calibration_scores_", np.empty(0))
    return (
        state["regressor"] is None
        and not {"regressor_", "directions_"} & set(state)
        and isinstance(embedding, Embedding)
        and isinstance(candidates, CandidateSet)
        and isinstance(coef, np.ndarray)
        and coef.ndim == 2
        and coef.shape[1] == embedding.n_components == state.get("n_components_")
        and isinstance(scores, np.ndarray)
        and scores.ndim == 1
        and scores.dtype == np.float64
        and isinstance(state.get("input_kernel_"), Kernel)
        and isinstance(state.get("output_kernel_"), Kernel)
    )


def read_notes(path: str | Path) -> dict[str, Any]:
    """Return the notes that were saved with a model."""
    notes = _manifest(Path(path)).get("notes", {})
    if not isinstance(notes, dict):
        raise ValueError(f"{path} is no model that can be used: its notes are damaged.")
    return notes


def _manifest(path: Path) -> dict[str, Any]:
    if not (path / MANIFEST).is_file():
        raise ValueError(f"{path} is no saved model: it has no {MANIFEST}.")
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        found = manifest["format"], manifest["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path / MANIFEST} is not the manifest of a model.") from error
    if found != (FORMAT, VERSION):
        raise ValueError(f"{path} holds {found[0]!r}, version {found[1]!r}; this psilearn reads {FORMAT} {VERSION}.")
    return dict(manifest)


@cache
def _parametrised() -> dict[str, type[BaseEstimator]]:
    """Return the objects made of plain parameters that may be named: the kernels of this library, and landmarks."""
    from psilearn import kernels

    found = {name: getattr(kernels, name) for name in kernels.__all__}
    abstract = (Kernel, kernels.RankingKernel, kernels.Pairwise)  # the last holds a function
    known: dict[str, type[BaseEstimator]] = {
        name: cls
        for name, cls in found.items()
        if isinstance(cls, type) and issubclass(cls, Kernel) and cls not in abstract
    }
    from psilearn.chem import spectrum_kernels

    chem = {name: getattr(spectrum_kernels, name) for name in ("ProbabilityProduct", "PrecursorMass")}
    return {**known, **chem, "Landmarks": Landmarks}


class _Writer:
    """Turns values into plain data; arrays are put aside under names of files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.arrays: dict[str, Any] = {}
        self._known: dict[int, dict[str, Any]] = {}  # what occurs twice is written once
        self._alive: list[Any] = []

    def encode(self, value: Any, where: str) -> Any:
        """Return plain data that :class:`_Reader` turns back into the value."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if id(value) in self._known:
            return self._known[id(value)]
        made = self._encode(value, where)
        if not isinstance(value, list | tuple | dict):
            self._known[id(value)] = made
            self._alive.append(value)
        return made

    def _encode(self, value: Any, where: str) -> Any:
        value = off_device(value)
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            return {"array": self._put(value)}
        if isinstance(value, np.ndarray):
            return {"objects": [self.encode(v, where) for v in value.tolist()]}
        if sparse.issparse(value):
            value = value.tocsr()
            kind = "csr_array" if isinstance(value, sparse.sparray) else "csr_matrix"
            parts = [self._put(part) for part in (value.data, value.indices, value.indptr)]
            return {kind: parts, "shape": list(value.shape)}
        if isinstance(value, list | tuple) and value and all(isinstance(item, Spectrum) for item in value):
            return {"spectra": self._spectra(value)}
        if isinstance(value, list | tuple):
            return {type(value).__name__: [self.encode(item, where) for item in value]}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": {key: self.encode(item, where) for key, item in value.items()}}
        name = type(value).__name__
        if _parametrised().get(name) is type(value):
            return {"object": name, "state": {k: self.encode(v, where) for k, v in vars(value).items()}}
        if RECORDS.get(name) is type(value):
            fields = {f.name: self.encode(getattr(value, f.name), where) for f in dataclasses.fields(value) if f.init}
            return {"record": name, "state": fields}
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return None  # chosen already
        raise TypeError(
            f"{where} holds an object of type {name}, which cannot be saved without pickle. Models whose kernels are "
            f"those of psilearn.kernels (no functions, no classes of your own) and whose inputs and outputs are "
            f"arrays, CSR matrices, spectra, or lists of texts and numbers can be."
        )

    def _put(self, array: Any) -> str:
        name = f"array{len(self.arrays):03d}.npy"
        self.arrays[name] = array
        return name

    def _spectra(self, spectra: Any) -> dict[str, Any]:
        texts = ("adduct", "formula", "smiles", "name")
        return {
            "sizes": self._put(np.array([len(s) for s in spectra])),
            "mz": self._put(np.concatenate([s.mz for s in spectra])),
            "intensity": self._put(np.concatenate([s.intensity for s in spectra])),
            "precursor_mz": [s.precursor_mz for s in spectra],
            **{part: [getattr(s, part) for s in spectra] for part in texts},
        }


class _Reader:
    """Turns plain data back into values."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._arrays: dict[str, Any] = {}

    def decode(self, value: Any) -> Any:
        """Return the value that :class:`_Writer` encoded."""
        if not isinstance(value, dict):
            if isinstance(value, list):
                raise ValueError("a list without its kind")
            return value
        if "object" in value:
            return self._filled(_parametrised()[value["object"]], value["state"])
        if "record" in value:
            return RECORDS[value["record"]](**{k: self.decode(v) for k, v in value["state"].items()})
        if len(value) == 2 and "shape" in value:
            kind = next(key for key in value if key != "shape")
            parts = tuple(self._array(name) for name in value[kind])
            return {"csr_array": sparse.csr_array, "csr_matrix": sparse.csr_matrix}[kind](
                parts, shape=tuple(value["shape"])
            )
        ((kind, content),) = value.items()
        readers: dict[str, Callable[[Any], Any]] = {
            "float": float,
            "array": self._array,
            "spectra": self._spectra,
            "list": lambda items: [self.decode(item) for item in items],
            "tuple": lambda items: tuple(self.decode(item) for item in items),
            "dict": lambda items: {key: self.decode(item) for key, item in items.items()},
            "objects": self._objects,
        }
        return readers[kind](content)

    def _filled(self, cls: type[BaseEstimator], state: dict[str, Any]) -> BaseEstimator:
        """Return an object with these parameters and fitted values."""
        values = {name: self.decode(value) for name, value in state.items()}
        parameters = set(cls._get_param_names())
        odd = [name for name in values if name not in parameters and not name.endswith("_")]
        if odd or not parameters <= set(values):
            raise ValueError(f"the state of {cls.__name__} has {', '.join(values)}")
        made = cls(**{name: values[name] for name in parameters})
        made.__dict__.update({name: value for name, value in values.items() if name not in parameters})
        return made

    def _array(self, name: str) -> Any:
        if Path(name).name != name or not name.endswith(".npy"):
            raise ValueError(f"{name!r} is not the name of an array")
        if name not in self._arrays:
            self._arrays[name] = np.load(self.path / name, allow_pickle=False)
        return self._arrays[name]

    def _objects(self, items: list[Any]) -> Any:
        values = np.empty(len(items), dtype=object)
        values[:] = [self.decode(item) for item in items]
        return values

    def _spectra(self, parts: dict[str, Any]) -> list[Spectrum]:
        sizes = self._array(parts["sizes"])
        ends = np.cumsum(sizes)
        mz, intensity = self._array(parts["mz"]), self._array(parts["intensity"])
        texts = [parts[name] for name in ("precursor_mz", "adduct", "formula", "smiles", "name")]
        return [
            Spectrum(mz[end - size : end], intensity[end - size : end], *known)
            for size, end, *known in zip(sizes, ends, *texts, strict=True)
        ]
