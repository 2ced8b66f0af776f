"""Multi-label data in the layouts of Mulan (an ARFF file, and an XML file that names the labels) and of MEKA."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from sklearn.utils import Bunch

from psilearn.datasets.arff import Arff, read_arff
from psilearn.datasets.sparse_rows import binary


def read_mulan(arff: str | Path, xml: str | Path | None = None) -> Bunch:
    r"""Read a multi-label file of Mulan's or MEKA's layout.

    Parameters
    ----------
    arff : path
        attributes and rows, sparse (``{3 1,17 1}``) or dense (``0,1,0.5``), packed with gzip or not. Attributes are
        numeric or list their values, numbers or yes/no: an entry left out of a sparse row is the first listed value.
        Missing values, words and what is not finite are refused with their line.
    xml : path, optional
        names the attributes that are labels. Without it the relation must say, as MEKA's do, how many attributes are
        labels: ``@relation 'name: -C 5'`` for the first five, ``-C -5`` for the last five.

    Returns
    -------
    Bunch with CSR ``X`` (n, d) of float64 and ``Y`` (n, l) of int8 ones, ``feature_names`` and ``label_names`` in the
    order of the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> lines = "@relation 'toy: -C 1'", "@attribute tag {0,1}", "@attribute size numeric", "@data", "{0 1,1 2.5}", "{}"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "toy.arff"
    ...     _ = path.write_text("\n".join(lines))
    ...     toy = read_mulan(path)
    >>> toy.X.toarray().tolist(), toy.Y.toarray().tolist(), toy.label_names
    ([[2.5], [0.0]], [[1], [0]], ['tag'])
    """
    file = read_arff(Path(arff))
    is_label = _named_labels(file, Path(xml)) if xml is not None else _counted_labels(file)  # (number of attributes,)
    X = file.matrix[:, ~is_label]
    X.eliminate_zeros()
    return Bunch(
        X=X,
        Y=binary(file.rows, file.matrix[:, is_label]),
        feature_names=[a.name for a, label in zip(file.attributes, is_label, strict=True) if not label],
        label_names=[a.name for a, label in zip(file.attributes, is_label, strict=True) if label],
    )


def _named_labels(file: Arff, xml: Path) -> np.ndarray:
    try:
        nodes = [node for node in ElementTree.parse(xml).iter() if node.tag.rpartition("}")[2] == "label"]
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise ValueError(f"{xml}: not an XML file of labels ({error}).") from error
    except OSError as error:
        raise type(error)(f"{xml} cannot be read ({error.strerror or error}).") from error
    labels = {node.get("name", "") for node in nodes}
    # a quoted name may stand in the XML as it is meant or as it is written
    names = [a.written if a.written in labels else a.name for a in file.attributes]
    missing = sorted(labels.difference(names))
    if missing or not labels:
        first = f", the first {missing[0]!r}" if missing else ""
        raise ValueError(f"{xml}: {len(missing)} of {len(labels)} labels are no attribute of {file.rows.path}{first}.")
    repeated = [name for name, count in Counter(names).items() if count > 1 and name in labels]
    if repeated:
        raise ValueError(f"{file.rows.path}: several attributes are named {repeated[0]!r}, which is a label of {xml}.")
    return np.array([name in labels for name in names])


def _counted_labels(file: Arff) -> np.ndarray:
    count = re.search(r"(?:^|\s)-C\s+(-?\d+)(?:\s|$)", file.relation)
    if count is None:
        raise ValueError(f"{file.rows.path}: the relation does not count labels (-C 5); give the XML file of labels.")
    n_labels, width = int(count[1]), len(file.attributes)
    if not 0 < abs(n_labels) <= width:
        raise ValueError(f"{file.rows.path}: {n_labels} labels of {width} attributes; give the XML file of labels.")
    place = np.arange(width)
    return place < n_labels if n_labels > 0 else place >= width + n_labels
