"""Multi-label data in the layouts of Mulan (an ARFF file, and an XML file that names the labels) and of MEKA."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from psilearn.utils import convert_read_errors, raise_for_document_type, require_regular_file, validation
from psilearn_lab.datasets.arff import Arff, read_arff
from psilearn_lab.datasets.sparse_rows import to_label_matrix


def read_mulan(arff: str | Path, xml: str | Path | None = None) -> Bunch:
    r"""Read a multi-label file in the layout of Mulan or of MEKA.

    Parameters
    ----------
    arff : str or Path
        The file of attributes and rows, sparse (``{3 1,17 1}``) or dense (``0,1,0.5``), compressed with gzip or not.
        An attribute is numeric, or lists its values, which are numbers or yes and no: an entry that is omitted in a
        sparse row is the first listed value.
    xml : str or Path, default=None
        The file that names the attributes which are labels. Without it the relation must state, as those of MEKA do,
        how many attributes are labels: ``@relation 'name: -C 5'`` for the first five, ``-C -5`` for the last five.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``X`` : CSR matrix of float64 of shape (n, d), the features.
        - ``Y`` : CSR matrix of int8 of shape (n, L), the labels, stored as ones.
        - ``feature_names`` : list of d str, in the order of the file.
        - ``label_names`` : list of L str, in the order of the file.

    Raises
    ------
    ValueError
        If a value is missing, is a word or is not finite, or a line is malformed; the message names the line.

    See Also
    --------
    read_xc : The format of the Extreme Classification Repository.
    read_svmlight_multilabel : The format of svmlight.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psilearn_lab.datasets import read_mulan
    >>> lines = "@relation 'toy: -C 1'", "@attribute tag {0,1}", "@attribute size numeric", "@data", "{0 1,1 2.5}", "{}"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "toy.arff"
    ...     _ = path.write_text("\n".join(lines))
    ...     toy = read_mulan(path)
    >>> toy.X.toarray().tolist(), toy.Y.toarray().tolist(), toy.label_names
    ([[2.5], [0.0]], [[1], [0]], ['tag'])
    """
    file = read_arff(validation.check_path(arff, "arff"))
    is_label = (
        _find_named_labels(file, validation.check_path(xml, "xml")) if xml is not None else _find_counted_labels(file)
    )
    X = file.matrix[:, ~is_label]
    X.eliminate_zeros()
    names = [attribute.name for attribute in file.attributes]
    return Bunch(
        X=X,
        Y=to_label_matrix(file.rows, file.matrix[:, is_label]),
        feature_names=[name for name, label in zip(names, is_label, strict=True) if not label],
        label_names=[name for name, label in zip(names, is_label, strict=True) if label],
    )


def _find_named_labels(file: Arff, xml: Path) -> NDArray[np.bool_]:
    """Return which attributes an XML file names as labels."""
    labels = _read_label_names(xml)
    # the XML may contain a quoted name with or without its quotes
    names = [attribute.raw_name if attribute.raw_name in labels else attribute.name for attribute in file.attributes]
    missing = sorted(labels.difference(names))
    if missing or not labels:
        first = f", the first {missing[0]!r}" if missing else ""
        raise ValueError(
            f"{xml}: {len(missing)} of {len(labels)} labels are not attributes of {file.rows.path}{first}."
        )
    repeated = [name for name, count in Counter(names).items() if count > 1 and name in labels]
    if repeated:
        raise ValueError(f"{file.rows.path}: several attributes are named {repeated[0]!r}, which is a label of {xml}.")
    return np.array([name in labels for name in names])


def _read_label_names(xml: Path) -> set[str]:
    """Return the names of the elements ``label``; a document type, whose entities could expand, is rejected."""
    names: set[str] = set()

    def add_element(tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition("}")[2] == "label":
            names.add(attributes.get("name", ""))

    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartElementHandler = add_element
    parser.StartDoctypeDeclHandler = raise_for_document_type
    require_regular_file(xml, "an XML file of labels")
    with convert_read_errors(xml, "an XML file of labels"), xml.open("rb") as file:
        parser.ParseFile(file)
    return names


def _find_counted_labels(file: Arff) -> NDArray[np.bool_]:
    """Return which attributes are labels by the number in the relation."""
    count = re.search(r"(?:^|\s)-C\s+(-?\d+)(?:\s|$)", file.relation)
    if count is None:
        raise ValueError(
            f"{file.rows.path}: the relation does not state the number of labels (-C 5); give the XML file of labels."
        )
    width = len(file.attributes)
    n_labels = int(count[1]) if len(count[1]) < 10 else 0
    if not 0 < abs(n_labels) <= width:
        raise ValueError(
            f"{file.rows.path}: {count[1][:20]} labels of {width} attributes; give the XML file of labels."
        )
    columns = np.arange(width)
    return columns < n_labels if n_labels > 0 else columns >= width + n_labels
