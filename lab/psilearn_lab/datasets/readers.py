"""Readers of the formats of the catalogue; each returns training and test rows, or all rows as one part."""

from __future__ import annotations

import subprocess
from array import array
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from hashlib import md5
from pathlib import Path
from shutil import which
from typing import Any
from xml.etree import ElementTree

import arff
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils import Bunch

from psilearn.rankings import from_orders
from psilearn.utils import decompressed_limit
from psilearn_lab.arrays import read_npz as read_arrays

TEST_SHARE = 5  # Debian: one source package in five is in the test part


def read_mulan(rows: Path, labels: Path) -> Bunch:
    """Read an ARFF file of numbers, sparse or dense, whose labels an XML file names.

    The rows are read one by one, so the memory is that of the CSR matrix, not of a dense one.
    """
    try:
        with rows.open(encoding="utf-8") as file:
            is_sparse = any(line.startswith("{") for line in file)
        return _read_arff(rows, labels, arff.LOD_GEN if is_sparse else arff.DENSE_GEN)
    except arff.ArffException as error:
        raise ValueError(f"{rows}: {error}") from error


def _read_arff(rows: Path, labels: Path, layout: int) -> Bunch:
    with rows.open(encoding="utf-8") as file:
        content = arff.load(file, return_type=layout)
        names = [name for name, _ in content["attributes"]]
        for name, values in content["attributes"]:
            if values == "STRING" or (isinstance(values, list) and values[0] != "0"):  # 0 is omitted in sparse rows
                raise ValueError(f"attribute {name} has the values {values!r:.60}; they must be numbers, 0 first")
        matrix = _to_csr(content["data"], len(names))
    tree = ElementTree.parse(labels)
    named = {str(element.get("name")) for element in tree.iter() if element.tag.rpartition("}")[2] == "label"}
    is_label = np.array([name in named for name in names])
    if not named or len(named) != is_label.sum():
        raise ValueError(f"{is_label.sum()} of {len(named)} labels of {labels} are attributes")
    Y = matrix[:, is_label]
    if not np.isin(Y.data, (0, 1)).all():
        raise ValueError(f"a label has the value {Y.data[~np.isin(Y.data, (0, 1))][0]:g}; labels are 0 or 1")
    return Bunch(
        X=matrix[:, ~is_label],
        Y=Y.astype(np.int8),
        feature_names=[name for name, label in zip(names, is_label, strict=True) if not label],
        label_names=[name for name, label in zip(names, is_label, strict=True) if label],
    )


def _to_csr(rows: Iterator[Any], width: int) -> sparse.csr_matrix:
    """Return rows, dicts of column → value or lists of all values, as a CSR matrix without zeros."""
    values, columns, ends = array("d"), array("i"), array("q", [0])
    for row in rows:
        items = row if isinstance(row, dict) else {j: value for j, value in enumerate(row) if value}
        columns.extend(items.keys())
        values.extend(map(float, items.values()))
        ends.append(len(values))
    matrix = sparse.csr_matrix((np.array(values), np.array(columns), np.array(ends)), (len(ends) - 1, width))
    if not np.isfinite(matrix.data).all():
        raise ValueError("a value is missing or not finite")
    matrix.eliminate_zeros()
    return matrix


MAX_LABELS = 100_000  # of a file of the Extreme Classification Repository, each of which takes memory


def read_xc(path: Path) -> Bunch:
    """Read a file of the Extreme Classification Repository: the sizes, then rows as svmlight has them, from zero."""
    with path.open("rb") as file:
        n, n_features, n_labels = map(int, file.readline().split())
        if not 0 <= n_labels <= MAX_LABELS:
            raise ValueError(f"the first line states {n_labels!r:.40} labels")
        X, labels = load_svmlight_file(file, n_features=n_features, multilabel=True, zero_based=True)
    if len(labels) != n:
        raise ValueError(f"{len(labels)} rows, but the first line states {n}; the file may be truncated")
    binarizer = MultiLabelBinarizer(classes=range(n_labels), sparse_output=True)
    return Bunch(X=X, Y=binarizer.fit_transform([map(int, row) for row in labels]).astype(np.int8))


def read_ranks(path: Path) -> Bunch:
    """Read a CSV text with features A1, A2, … and ranks L1, L2, …, where 1 is the preferred item."""
    table = pd.read_csv(path)
    ranks = table.filter(regex=r"^L\d+$")
    return _rankings(table.drop(columns=ranks.columns), ranks.to_numpy(np.int64), list(ranks.columns))


def read_orders(path: Path) -> Bunch:
    """Read a CSV text whose column ``ranking`` has orders such as ``f>a>d``, the preferred item first."""
    table = pd.read_csv(path)
    return _rankings(table.drop(columns="ranking"), *from_orders(list(table["ranking"]), None, False, "the order"))


def _rankings(features: pd.DataFrame, Y: NDArray[Any], items: list[str]) -> Bunch:
    return Bunch(X=features.to_numpy(np.float64), Y=Y, feature_names=list(features.columns), item_names=items)


def read_npz(path: Path) -> list[Bunch]:
    """Read training and test rows of a file with X, Y and is_test; a CSR matrix is stored in its parts."""
    arrays = read_arrays(path)
    is_test, X, Y = arrays["is_test"], _make_matrix(arrays, "X", np.float64), _make_matrix(arrays, "Y", np.int8)
    return [Bunch(X=X[rows], Y=Y[rows]) for rows in (~is_test, is_test)]


def _make_matrix(arrays: Mapping[str, NDArray[Any]], name: str, dtype: type) -> NDArray[Any] | sparse.csr_matrix:
    if name in arrays:
        return arrays[name].astype(dtype)
    parts = (arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    n_rows, n_columns = arrays[f"{name}_shape"]
    return sparse.csr_matrix(tuple(parts), (n_rows, n_columns), dtype=dtype)


def read_usps(path: Path) -> list[Bunch]:
    """Read training and test rows of USPS: the upper and the lower half of each image."""
    import h5py

    with h5py.File(path) as file:
        declared = sum(file[name]["data"].nbytes for name in ("train", "test"))
        if declared > decompressed_limit(path):
            raise ValueError(f"its images have {declared:,} bytes, far more than the file: it is damaged")
        groups = [(file[name]["data"][:].astype(np.float64), file[name]["target"][:]) for name in ("train", "test")]
    return [Bunch(X=rows[:, :128], Y=rows[:, 128:], digits=digits) for rows, digits in groups]


def read_debian(path: Path) -> Bunch:
    """Read descriptions and tags of packages from a table or, if it is not there, from ``apt-cache dumpavail``."""
    if path.exists():
        table = pd.read_csv(path, keep_default_na=False)
    elif which("apt-cache"):
        command = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=True)
        table = parse_packages(command.stdout.decode())
    else:
        raise FileNotFoundError("there is no command apt-cache")
    is_test = np.array([int(md5(source.encode()).hexdigest(), 16) % TEST_SHARE == 0 for source in table["source"]])
    return Bunch(
        texts=list(table["description"]),
        tags=[tags.split(";") for tags in table["tags"]],
        packages=list(table["package"]),
        train=np.flatnonzero(~is_test),
        test=np.flatnonzero(is_test),
    )


def parse_packages(text: str) -> pd.DataFrame:
    """Return the table of the packages with tags among the stanzas of ``apt-cache dumpavail``."""
    rows = []
    for stanza in text.split("\n\n"):
        lines = stanza.replace("\n ", " ").splitlines()  # a field continues in lines that begin with a space
        fields = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if "Tag" in fields:
            package = fields["Package"]
            source = fields.get("Source", package).split(" ")[0]  # without a version
            tags = ";".join(tag.strip() for tag in fields["Tag"].split(","))
            rows.append((package, source, fields.get("Section", ""), fields.get("Description", ""), tags))
    if not rows:
        raise FileNotFoundError("apt-cache dumpavail lists no package with tags")
    table = pd.DataFrame(rows, columns=["package", "source", "section", "description", "tags"])
    return table.sort_values("package", ignore_index=True)


def _read_each(read: Callable[[Path], Bunch], paths: list[Path]) -> list[Bunch]:
    return [read(path) for path in paths]


def _read_mulan_parts(paths: list[Path]) -> list[Bunch]:
    """Return one part per ARFF file; the last path is the XML file of labels."""
    *rows, labels = paths
    parts = [read_mulan(path, labels) for path in rows]
    for path, part in zip(rows, parts, strict=True):
        if (part.feature_names, part.label_names) != (parts[0].feature_names, parts[0].label_names):
            raise ValueError(f"{path}: other attributes, or in another order, than in {rows[0]}")
    return parts


READERS: dict[str, Callable[[list[Path]], list[Bunch]]] = {
    "hdf5": lambda paths: read_usps(paths[0]),
    "mulan": _read_mulan_parts,
    "npz": lambda paths: read_npz(paths[0]),
    "orders": partial(_read_each, read_orders),
    "ranks": partial(_read_each, read_ranks),
    "xc": partial(_read_each, read_xc),
}
