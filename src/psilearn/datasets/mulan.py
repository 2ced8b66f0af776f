"""Multi-label data in Mulan's layout: an ARFF file, sparse or dense, and an XML file that names the labels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from psilearn.datasets.home import RemoteFile, github

_COMMIT = "43f6389095ad71984264db4387a8074b22bc7d4a"
_ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S+)\s""", re.IGNORECASE)


def load_bibtex() -> Bunch:
    """Load Bibtex: tags of bibliography entries.

    Returns
    -------
    Bunch with CSR ``X`` (7395, 1836) and ``Y`` (7395, 159), the original split as indices ``train`` (4880) and ``test``
    (2515), ``feature_names`` and ``label_names``.

    References
    ----------
    Katakis, Tsoumakas and Vlahavas, *Multilabel text classification for automated tag suggestion*, 2008.
    """
    train, test, labels = (
        _mulan_file(f"bibtex/bibtex{ending}", sha256)
        for ending, sha256 in (
            ("-train.arff", "8dcc9de6e0b2cebaec8c1f4fac78431adeeb73cfd3ab879b530a66d366e59174"),
            ("-test.arff", "9b03329cde64d3f994bdf7fbbac3f3b10fe185c311cb9ae725475f59c7f3f922"),
            (".xml", "08fe20013c1e75dcf1888c185f5187c95e76495b8518ce289b4d3afce38d1232"),
        )
    )
    label_file = labels.fetch()
    parts = [read_mulan(file.fetch(), label_file) for file in (train, test)]
    n_train, n = parts[0].X.shape[0], sum(part.X.shape[0] for part in parts)
    return Bunch(
        X=sparse.vstack([part.X for part in parts], "csr"),
        Y=sparse.vstack([part.Y for part in parts], "csr"),
        train=np.arange(n_train),
        test=np.arange(n_train, n),
        feature_names=parts[0].feature_names,
        label_names=parts[0].label_names,
        source=train.url,
        DESCR="Bibtex: words of bibliography entries → tags of Bibsonomy users (Katakis et al., 2008).",
    )


def read_mulan(arff: str | Path, xml: str | Path) -> Bunch:
    """Read a multi-label file of Mulan's layout.

    Parameters
    ----------
    arff : path
        attributes and rows, sparse (``{3 1,17 1}``) or dense (``0,1,0.5``).
    xml : path
        names the attributes that are labels.

    Returns
    -------
    Bunch with CSR ``X`` and ``Y`` (0/1), ``feature_names`` and ``label_names`` in the order of the file.
    """
    arff, xml = Path(arff), Path(xml)
    try:
        labels = {str(node.get("name")) for node in ElementTree.parse(xml).iter() if node.tag.endswith("label")}
    except ElementTree.ParseError as error:
        raise ValueError(f"{xml}: not an XML file of labels ({error}).") from error
    names, matrix = _read_arff(arff)
    is_label = np.array([name in labels for name in names])
    missing = labels - set(names)
    if missing or not labels:
        raise ValueError(f"{xml}: {len(missing)} of {len(labels)} labels are no attribute of {arff.name}.")
    return Bunch(
        X=matrix[:, ~is_label],
        Y=matrix[:, is_label].astype(np.int8),
        feature_names=[name for name, label in zip(names, is_label, strict=True) if not label],
        label_names=[name for name, label in zip(names, is_label, strict=True) if label],
    )


def _mulan_file(path: str, sha256: str) -> RemoteFile:
    return RemoteFile(f"mulan/{path}", github("tsoumakas/mulan", _COMMIT, f"data/multi-label/{path}"), sha256)


def _read_arff(path: Path) -> tuple[list[str], Any]:
    """Return attribute names and all values as one CSR matrix."""
    names: list[str] = []
    columns: list[int] = []
    values: list[float] = []
    ends = [0]
    in_data = False
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, raw in enumerate(file, 1):
            line = raw.strip()
            if not line or line.startswith("%"):
                continue
            if not in_data:
                attribute = _ATTRIBUTE.match(line)
                if attribute:
                    names.append(attribute[1].strip("'\""))
                elif line.lower().startswith("@data"):
                    in_data = True
                elif not line.lower().startswith("@relation"):
                    raise ValueError(f"{path}, line {number}: not an ARFF header: {line[:60]!r}.")
                continue
            try:
                entries = _sparse_row(line, len(names)) if line.startswith("{") else _dense_row(line, len(names))
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
            columns.extend(entries)
            values.extend(entries.values())
            ends.append(len(columns))
    if len(ends) == 1:
        raise ValueError(f"{path}: no data rows after {len(names)} attributes.")
    matrix = sparse.csr_matrix((np.array(values), np.array(columns, dtype=np.intp), ends), (len(ends) - 1, len(names)))
    matrix.sort_indices()
    return names, matrix


def _sparse_row(line: str, width: int) -> dict[int, float]:
    if not line.endswith("}"):
        raise ValueError("the row is cut off before its closing brace.")
    pairs = [entry.split() for entry in line[1:-1].split(",") if entry.strip()]
    row = {int(pair[0]): float(pair[1]) for pair in pairs if len(pair) == 2}
    if len(row) != len(pairs):
        raise ValueError("a sparse row must hold distinct pairs 'index value'.")
    if row and not 0 <= min(row) <= max(row) < width:
        raise ValueError(f"attribute numbers from {min(row)} to {max(row)}; there are {width} attributes.")
    return row


def _dense_row(line: str, width: int) -> dict[int, float]:
    entries = [float(entry) for entry in line.split(",")]
    if len(entries) != width:
        raise ValueError(f"{len(entries)} values for {width} attributes.")
    return {i: value for i, value in enumerate(entries) if value}
