"""Multi-label data as text of pairs: the Extreme Classification Repository's format and svmlight's."""

from __future__ import annotations

from itertools import repeat
from pathlib import Path

from sklearn.utils import Bunch

from psilearn._utils import validation
from psilearn.datasets.sparse_rows import Rows, binary, fault, read_lines


def read_xc(path: str | Path) -> Bunch:
    r"""Read a file of the Extreme Classification Repository's format.

    The first line holds the numbers of rows, features and labels; each row its labels and its features, all counted
    from zero: ``3,17 0:0.5 8:1.25``. A row without labels begins with a space.

    Parameters
    ----------
    path : path
        the text, packed with gzip or not.

    Returns
    -------
    Bunch with CSR ``X`` (n, d) of float64 and ``Y`` (n, l) of int8 ones.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "toy.txt"
    ...     _ = path.write_text("2 3 2\n0,1 2:0.5\n 0:1\n")
    ...     toy = read_xc(path)
    >>> toy.X.toarray().tolist(), toy.Y.toarray().tolist()
    ([[0.0, 0.0, 0.5], [1.0, 0.0, 0.0]], [[1, 1], [0, 0]])
    """
    path = Path(path)
    lines = read_lines(path)
    number, header = next(lines)
    sizes = header.split()
    if len(sizes) != 3 or not all(size.isascii() and size.isdigit() for size in sizes):
        raise fault(path, number, f"three numbers are expected, of rows, features and labels, not {header[:60]!r}.")
    n, n_features, n_labels = map(int, sizes)
    features, labels = Rows(path), Rows(path)
    for number, line in lines:
        if len(features) < n:
            _add(features, labels, number, line)
        elif line.strip():
            raise fault(path, number, f"a further row after the {n} that the first line announces.")
    if len(features) < n:
        raise fault(path, number, f"the file ends after {len(features)} of {n} rows: it is cut off; get it again.")
    return _bunch(features, labels, n_features, n_labels)


def read_svmlight_multilabel(
    path: str | Path, n_features: int | None = None, n_labels: int | None = None, zero_based: bool = False
) -> Bunch:
    r"""Read a multi-label file of svmlight's (LIBSVM's) format: ``3,17 1:0.5 9:1.25``.

    Labels are columns of Y, counted from zero. A row without labels begins with a space or with its first feature;
    what follows ``#`` is a comment, and lines with nothing else are skipped.

    Parameters
    ----------
    path : path
        the text, packed with gzip or not.
    n_features, n_labels : int, optional
        numbers of columns; by default as many as the file uses. Give them where several files belong together.
    zero_based : bool
        whether features are counted from 0 instead of 1.

    Returns
    -------
    Bunch with CSR ``X`` (n, d) of float64 and ``Y`` (n, l) of int8 ones.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "toy.svm"
    ...     _ = path.write_text("0,1 3:0.5\n 1:1 # no label\n")
    ...     toy = read_svmlight_multilabel(path)
    >>> toy.X.toarray().tolist(), toy.Y.toarray().tolist()
    ([[0.0, 0.0, 0.5], [1.0, 0.0, 0.0]], [[1, 1], [0, 0]])
    """
    path, first = Path(path), 0 if zero_based else 1
    features, labels = Rows(path), Rows(path)
    for number, raw in read_lines(path):
        line = raw.partition("#")[0]
        if line.strip():
            _add(features, labels, number, line)
    if not features:
        raise ValueError(f"{path}: no rows; the file may be cut off.")
    columns, _ = features.entries()
    if first and (columns == 0).any():
        features.refuse(columns == 0, "feature 0, but features are counted from 1; pass zero_based=True.")
    for size, name in ((n_features, "n_features"), (n_labels, "n_labels")):
        if size is not None:
            validation.check_count(size, name)
    if n_features is None:
        n_features = int(columns.max(initial=first - 1)) + 1 - first
    if n_labels is None:
        n_labels = int(labels.entries()[0].max(initial=-1)) + 1
    return _bunch(features, labels, n_features, n_labels, first)


def _add(features: Rows, labels: Rows, number: int, line: str) -> None:
    """Append the row ``labels features``."""
    words = line.split()
    tags = words.pop(0) if words and not line[0].isspace() and ":" not in words[0] else ""
    try:
        if "_" in line or not line.isascii():  # Python would take 1_000 and digits of other scripts for numbers
            raise ValueError("characters that belong to no number.")
        marks = list(map(int, tags.split(","))) if tags else []
        columns, values = zip(*(word.split(":") for word in words), strict=True) if words else ((), ())
        labels.add(number, marks, repeat(1.0, len(marks)))
        features.add(number, map(int, columns), map(float, values))
    except (ValueError, OverflowError) as error:
        message = f"a row must be 'label,label index:value index:value …', not {line[:60]!r} ({error})."
        raise fault(features.path, number, message) from error


def _bunch(features: Rows, labels: Rows, n_features: int, n_labels: int, first: int = 0) -> Bunch:
    X = features.matrix(n_features, "feature", first)
    X.eliminate_zeros()
    return Bunch(X=X, Y=binary(labels, labels.matrix(n_labels, "label")))
