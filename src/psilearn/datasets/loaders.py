"""One loader a dataset: files from the data home or the public source, checked against the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from psilearn.datasets.catalogue import DATASETS, Dataset
from psilearn.datasets.mulan import read_mulan
from psilearn.datasets.ranking_files import read_orders_csv, read_ranks_csv
from psilearn.datasets.xc import read_xc


def load_usps() -> Bunch:
    """Load the USPS digits, 16×16 pixels in [0, 1], cut in halves.

    Returns
    -------
    Bunch with ``X`` (9298, 128) upper halves, ``Y`` (9298, 128) lower halves, ``digits`` (9298,), the original split as
    indices ``train`` (7291) and ``test`` (2007), ``DESCR``, ``licence`` and ``source``. The paper pairs the first 1000
    of ``train`` and takes the lower halves of the last 6000 as unlabeled outputs. Reading needs the extra
    ``psilearn[data]``.
    """
    return _load("usps")


def load_bibtex() -> Bunch:
    """Load Bibtex: tags of bibliography entries.

    Returns
    -------
    Bunch with CSR ``X`` (7395, 1836) and ``Y`` (7395, 159), the original split as indices ``train`` (4880) and ``test``
    (2515), ``feature_names``, ``label_names``, ``DESCR``, ``licence`` and ``source``.
    """
    return _load("bibtex")


def load_bookmarks() -> Bunch:
    """Load Bookmarks: tags of bookmarked pages.

    No checksum of the rows (73 MB) is known: the number of bytes, rows, features and labels is checked instead.

    Returns
    -------
    Bunch with CSR ``X`` (87856, 2150) and ``Y`` (87856, 208), the split of the paper as indices ``train`` (the first
    60000) and ``test`` (27856), ``feature_names``, ``label_names``, ``DESCR``, ``licence`` and ``source``.
    """
    return _load("bookmarks")


def load_corel5k() -> Bunch:
    """Load Corel5k with Mulan's features: words that describe an image.

    The paper used other features (37152 dimensions, 260 labels): its figures are not comparable.

    Returns
    -------
    Bunch with CSR ``X`` (5000, 499) and ``Y`` (5000, 374), the original split as indices ``train`` (4500) and ``test``
    (500), ``feature_names``, ``label_names``, ``DESCR``, ``licence`` and ``source``.
    """
    return _load("corel5k")


def load_delicious() -> Bunch:
    """Load Delicious: tags of web pages.

    Returns
    -------
    Bunch with CSR ``X`` (16105, 500) and ``Y`` (16105, 983), the original split as indices ``train`` (12920) and
    ``test`` (3185), ``feature_names``, ``label_names``, ``DESCR``, ``licence`` and ``source``.
    """
    return _load("delicious")


def load_mediamill() -> Bunch:
    """Load Mediamill: concepts in shots of broadcast news.

    Taken from a converted file in the data home, whose features are rounded to single precision and which has no names,
    or from Mulan's ARFF files put there; nothing is downloaded.

    Returns
    -------
    Bunch with dense ``X`` (43907, 120) and CSR ``Y`` (43907, 101), the original split as indices ``train`` (30993) and
    ``test`` (12914), ``feature_names`` and ``label_names`` (None where unknown), ``DESCR``, ``licence`` and ``source``.
    """
    bunch = _load("mediamill")
    bunch.X = bunch.X.toarray() if sparse.issparse(bunch.X) else bunch.X
    return bunch


def load_eurlex4k() -> Bunch:
    """Load EUR-Lex-4K: EuroVoc descriptors of documents of European law.

    Taken from a converted file in the data home, whose features are rounded to single precision, or from the text files
    of the Extreme Classification Repository put there; nothing is downloaded.

    Returns
    -------
    Bunch with CSR ``X`` (19348, 5000) and ``Y`` (19348, 3993), the repository's split as indices ``train`` (15539) and
    ``test`` (3809), ``feature_names`` and ``label_names`` (None: unknown), ``DESCR``, ``licence`` and ``source``.
    """
    return _load("eurlex4k")


def load_label_ranking(name: str) -> Bunch:
    """Load one of the label-ranking datasets; their sources give no split.

    Parameters
    ----------
    name : str
        ``"cold"``, ``"diau"``, ``"dtt"`` or ``"heat"``: genes of yeast, 2465 rows, 24 features and 4, 7, 4 or 6 items;
        ``"sushi"``: 5000 users, 125 features (categories one-hot) and 10 items.

    Returns
    -------
    Bunch with ``X`` (n, d) of float64, ``Y`` (n, K) of int64, ``feature_names``, ``item_names``, ``DESCR``,
    ``licence`` and ``source``. ``Y`` holds ranks, not an order: ``Y[i, j]`` is the rank of item j, and 1 is preferred.
    """
    known = [dataset.name for dataset in DATASETS.values() if dataset.is_ranking]
    if name not in known:
        raise ValueError(f"name must be one of {', '.join(known)}; got {name!r}.")
    return _load(name)


def _load(name: str) -> Bunch:
    dataset = DATASETS[name]
    kind, paths = dataset.fetch()
    parts = _READERS[kind](paths)  # train and test, or all rows at once
    bunch = _join(parts)
    _check_sizes(dataset, paths, [part.Y.shape[0] for part in parts], bunch)
    if dataset.has_split:
        bunch.train = np.arange(dataset.n_train)
        bunch.test = np.arange(dataset.n_train, dataset.n_train + dataset.n_test)
    return Bunch(
        **bunch,
        DESCR=dataset.description,
        licence=dataset.licence,
        source=dataset.source,
    )


def _join(parts: list[Bunch]) -> Bunch:
    """Return the rows of all parts, one below the other; names are those of the first."""
    names = ("feature_names", "item_names" if "item_names" in parts[0] else "label_names")
    joined = Bunch(**{key: parts[0].get(key) for key in names})
    for key in ("X", "Y", "digits"):
        if key in parts[0]:
            blocks = [part[key] for part in parts]
            joined[key] = sparse.vstack(blocks, "csr") if sparse.issparse(blocks[0]) else np.concatenate(blocks)
    return joined


def _check_sizes(dataset: Dataset, paths: list[Path], rows: list[int], bunch: Bunch) -> None:
    """Refuse files, complete as they may look, that are not the dataset's."""
    split = [dataset.n_train, dataset.n_test]
    expected = (split if len(rows) == 2 else [sum(split)], dataset.n_features, dataset.n_outputs)
    found = (rows, bunch.X.shape[1], bunch.Y.shape[1])
    if found != expected:
        raise ValueError(
            f"{', '.join(map(str, paths))}: {found[0]} rows, {found[1]} features and {found[2]} outputs; "
            f"{dataset.name} has {expected[0]}, {expected[1]} and {expected[2]}. Get the files again: {dataset.source}"
        )


def _read_mulan_parts(paths: list[Path]) -> list[Bunch]:
    *rows, labels = paths
    parts = [read_mulan(path, labels) for path in rows]
    for path, part in zip(rows, parts, strict=True):
        if (part.feature_names, part.label_names) != (parts[0].feature_names, parts[0].label_names):
            raise ValueError(f"{path}: other attributes, or in another order, than in {rows[0]}.")
    return parts


def _read_npz(paths: list[Path]) -> list[Bunch]:
    """Return train and test rows of a file with X, Y and is_test; a CSR matrix M is stored as its parts M_data, …"""
    with np.load(paths[0], allow_pickle=False) as file:
        is_test = file["is_test"]  # (n,)

        def matrix(name: str, dtype: type) -> Any:
            if name in file:
                return file[name].astype(dtype)
            entries, indices, indptr = (file[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
            return sparse.csr_matrix((entries.astype(dtype), indices, indptr), tuple(file[f"{name}_shape"]))

        X, Y = matrix("X", np.float64), matrix("Y", np.int8)
    return [Bunch(X=X[rows], Y=Y[rows]) for rows in (~is_test, is_test)]


def _read_usps(paths: list[Path]) -> list[Bunch]:
    try:
        import h5py
    except ImportError as error:
        raise ImportError("load_usps reads HDF5: install the extra psilearn[data].") from error
    parts = []
    with h5py.File(paths[0]) as file:
        for name in ("train", "test"):
            pixels = file[f"{name}/data"][:].astype(np.float64)  # (n, 256)
            parts.append(Bunch(X=pixels[:, :128], Y=pixels[:, 128:], digits=file[f"{name}/target"][:]))
    return parts


_READERS: dict[str, Callable[[list[Path]], list[Bunch]]] = {
    "hdf5": _read_usps,
    "mulan": _read_mulan_parts,
    "npz": _read_npz,
    "orders": lambda paths: [read_orders_csv(path) for path in paths],
    "ranks": lambda paths: [read_ranks_csv(path) for path in paths],
    "xc": lambda paths: [read_xc(path) for path in paths],
}
