"""Loaders of datasets without their checksums, and files that experiments store."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow
from pyarrow import parquet
from scipy import sparse

from psilearn_lab.datasets import load_mediamill, load_usps
from psilearn_lab.datasets.catalogue import DATASETS
from psilearn_lab.datasets.dataset import Form
from psilearn_lab.datasets.home import RemoteFile
from psilearn_lab.datasets.metabolites import load_metabolites
from psilearn_lab.experiments import Context, Metric, Record, Row
from psilearn_lab.fuzz.target import Target
from psilearn_lab.fuzz.targets.seeds import new_seed
from psilearn_lab.fuzz.targets.spectra import SPECTRA


def _shrink(name: str, kind: str, files: tuple[str, ...], **sizes: Any) -> Callable[[], None]:
    """Return a function that replaces a dataset of the catalogue by a small one without checksums."""

    def prepare() -> None:
        form = Form(kind, tuple(RemoteFile(file) for file in files))
        DATASETS[name] = replace(DATASETS[name], forms=(form,), **sizes)

    return prepare


def _from_home(load: Callable[[], Any]) -> Callable[[Path], Any]:
    """Return a loader whose data home is the folder of the input."""

    def read(folder: Path) -> Any:
        os.environ["PSILEARN_DATA"] = str(folder)
        return load()

    return read


def _write_usps(folder: Path) -> None:
    rng = np.random.default_rng(0)
    with h5py.File(new_seed(folder) / "usps.h5", "w") as file:
        for name, n in (("train", 3), ("test", 2)):
            file[f"{name}/data"] = rng.random((n, 256)).astype(np.float32)
            file[f"{name}/target"] = np.arange(n)


def _write_npz(folder: Path) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.random((5, 3)), sparse.csr_matrix(rng.random((5, 2)) < 0.5, dtype=np.int8)
    parts = {"Y_data": Y.data, "Y_indices": Y.indices, "Y_indptr": Y.indptr, "Y_shape": np.array(Y.shape)}
    is_test = np.arange(5) > 2
    np.savez_compressed(new_seed(folder) / "rows.npz", X=X, is_test=is_test, **parts)
    np.savez(new_seed(folder) / "rows.npz", X=X, Y=Y.toarray(), is_test=is_test)


def _write_metabolites(folder: Path) -> None:
    seed = new_seed(folder)
    columns: dict[str, Any] = {
        **{name: [getattr(spectrum, name) for spectrum in SPECTRA] for name in ("precursor_mz", "formula", "smiles")},
        "mz": [spectrum.mz for spectrum in SPECTRA],
        "intensity": [spectrum.intensity for spectrum in SPECTRA],
        "inchikey14": ["A" * 14, "B" * 14],
        "fold": [0, 1],
        "license": ["CC0", "CC BY"],
        "noncommercial": [False, True],
    }
    parquet.write_table(pyarrow.table(columns), seed / "spectra.parquet")
    for name in ("candidates", "unlabelled"):
        parquet.write_table(
            pyarrow.table({"smiles": ["CCO", "COC"], "inchikey14": ["A", "B"]}), seed / f"{name}.parquet"
        )


def _write_record(folder: Path) -> None:
    row = Row("Toy", "OEL", Metric("loss", "lower"), 0.5, paper=0.6, parameters={"p": 3}, seconds={"fit": 1.0})
    record = Record(
        *("toys", "toy", "A toy problem", 0, False, {"pairs": 50}, "1f", [row], ["a note"], {"a.png": "a"}, 1.0),
        *("2026-01-01 12:00", {"numpy": "2"}),
    )
    record.save(new_seed(folder))


def _write_arrays(folder: Path) -> None:
    _read_arrays(new_seed(folder))


def _read_arrays(folder: Path) -> Any:
    context = Context({}, seed=0, n_jobs=None, log=lambda text: None, scratch=folder)
    return context.compute_once("loss", lambda: {"loss": np.arange(20.0), "name": np.array(["a", "bc"])})


TARGETS = (
    Target(
        "load-usps",
        _write_usps,
        _from_home(load_usps),
        prepare=_shrink("usps", "hdf5", ("usps.h5",), n_train=3, n_test=2),
    ),
    Target(
        "load-npz",
        _write_npz,
        _from_home(load_mediamill),
        prepare=_shrink("mediamill", "npz", ("rows.npz",), n_train=3, n_test=2, n_features=3, n_outputs=2),
    ),
    Target(
        "load-metabolites",
        _write_metabolites,
        _from_home(load_metabolites),
        prepare=_shrink(
            "metabolites",
            "metabolites",
            ("spectra.parquet", "candidates.parquet", "unlabelled.parquet"),
            n_train=2,
            n_outputs=2,
        ),
    ),
    Target("record", _write_record, lambda folder: Record.load(folder / "toy.json")),
    Target("stored-arrays", _write_arrays, _read_arrays),
)
