"""The rows of a dataset, read from any of the accepted forms of its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import Bunch

from psilearn.utils import (
    convert_read_errors,
    decompressed_limit,
    explain_missing,
    make_csr,
    read_npz,
    require_regular_file,
)
from psilearn_lab.datasets.catalogue import DATASETS
from psilearn_lab.datasets.dataset import Dataset
from psilearn_lab.datasets.mulan import read_mulan
from psilearn_lab.datasets.ranking_files import read_orders_csv, read_ranks_csv
from psilearn_lab.datasets.xc import read_xc


def load_dataset(name: str) -> Bunch:
    """Return the rows of a dataset with its split, names, description, license and source."""
    dataset = DATASETS[name]
    kind, paths = dataset.fetch()
    parts = _READERS[kind](paths)  # training and test rows, or all rows as one part
    bunch = _join(parts)
    _check_sizes(dataset, paths, [part.Y.shape[0] for part in parts], bunch)
    if dataset.has_split:
        bunch.train = np.arange(dataset.n_train)
        bunch.test = np.arange(dataset.n_train, dataset.n_train + dataset.n_test)
    return Bunch(**bunch, DESCR=dataset.description, licence=dataset.licence, source=dataset.source)


def load_lines(name: str) -> Bunch:
    """Return the lines of a dataset that consists of one text per row, as ``smiles``."""
    dataset = DATASETS[name]
    path = dataset.fetch()[1][0]
    with convert_read_errors(path, "a text file"):
        lines = path.read_text("ascii").split()
        if len(lines) != dataset.n_train:
            raise ValueError(f"it has {len(lines)} lines, expected {dataset.n_train}")
    return Bunch(smiles=lines, DESCR=dataset.description, licence=dataset.licence, source=dataset.source)


def _join(parts: list[Bunch]) -> Bunch:
    """Return the rows of all parts, one below the other; names are those of the first part."""
    names = ("feature_names", "item_names" if "item_names" in parts[0] else "label_names")
    joined = Bunch(**{key: parts[0].get(key) for key in names})
    for key in ("X", "Y", "digits"):
        if key in parts[0]:
            blocks = [part[key] for part in parts]
            joined[key] = sparse.vstack(blocks, "csr") if sparse.issparse(blocks[0]) else np.concatenate(blocks)
    return joined


def _check_sizes(dataset: Dataset, paths: list[Path], rows: list[int], bunch: Bunch) -> None:
    """Raise an error if the files, although complete, do not have the sizes of the dataset."""
    split = [dataset.n_train, dataset.n_test]
    expected = (split if len(rows) == 2 else [sum(split)], dataset.n_features, dataset.n_outputs)
    sizes = (rows, bunch.X.shape[1], bunch.Y.shape[1])
    if sizes != expected:
        raise ValueError(
            f"{', '.join(map(str, paths))}: {sizes[0]} rows, {sizes[1]} features and {sizes[2]} outputs; "
            f"{dataset.name} has {expected[0]}, {expected[1]} and {expected[2]}. Download the files again: "
            f"{dataset.source}"
        )


def _read_mulan(paths: list[Path]) -> list[Bunch]:
    """Return one part per ARFF file; the last path is the XML file of labels."""
    *rows, labels = paths
    parts = [read_mulan(path, labels) for path in rows]
    for path, part in zip(rows, parts, strict=True):
        if (part.feature_names, part.label_names) != (parts[0].feature_names, parts[0].label_names):
            raise ValueError(f"{path}: other attributes, or in another order, than in {rows[0]}.")
    return parts


def _read_npz(paths: list[Path]) -> list[Bunch]:
    """Return training and test rows of a file with X, Y and is_test; a CSR matrix is stored in its three parts."""
    arrays = read_npz(paths[0])
    with convert_read_errors(paths[0], "a file of a dataset"):
        is_test = arrays["is_test"]  # (n,)
        X, Y = _make_matrix(arrays, "X", np.float64), _make_matrix(arrays, "Y", np.int8)
        if is_test.dtype != bool or not is_test.shape == X.shape[:1] == Y.shape[:1] or X.ndim != 2 or Y.ndim != 2:
            raise ValueError(f"X has shape {X.shape}, Y {Y.shape} and is_test {is_test.shape} with {is_test.dtype}")
        return [Bunch(X=X[rows], Y=Y[rows]) for rows in (~is_test, is_test)]


def _make_matrix(arrays: Mapping[str, NDArray[Any]], name: str, dtype: type) -> NDArray[Any] | sparse.csr_matrix:
    """Return an array, or the CSR matrix of its three parts."""
    if name in arrays:
        return arrays[name].astype(dtype)
    entries, indices, indptr = (arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return make_csr(sparse.csr_matrix, (entries.astype(dtype), indices, indptr), arrays[f"{name}_shape"].tolist())


def _read_hdf5(paths: list[Path]) -> list[Bunch]:
    """Return training and test rows of USPS: the upper and the lower half of each image."""
    with explain_missing("load_usps reads HDF5: install the extra psilearn[data]."):
        import h5py
    path, parts = paths[0], []
    require_regular_file(path, "an HDF5 file")
    with convert_read_errors(path, "an HDF5 file"), h5py.File(path) as file:
        for name in ("train", "test"):
            pixels, digits = file[f"{name}/data"], file[f"{name}/target"]
            n_bytes = pixels.size * max(8, pixels.dtype.itemsize) + digits.size * digits.dtype.itemsize
            if pixels.shape != (digits.size, 256) or digits.ndim != 1 or n_bytes > decompressed_limit(path):
                raise ValueError(f"{name}/data has shape {pixels.shape} and {name}/target {digits.shape}")
            rows = pixels[:].astype(np.float64)
            parts.append(Bunch(X=rows[:, :128], Y=rows[:, 128:], digits=digits[:]))
    return parts


_READERS: dict[str, Callable[[list[Path]], list[Bunch]]] = {
    "hdf5": _read_hdf5,
    "mulan": _read_mulan,
    "npz": _read_npz,
    "orders": lambda paths: [read_orders_csv(path) for path in paths],
    "ranks": lambda paths: [read_ranks_csv(path) for path in paths],
    "xc": lambda paths: [read_xc(path) for path in paths],
}
