"""Multi-label data as text of pairs: the formats of the Extreme Classification Repository and of svmlight."""

from __future__ import annotations

from itertools import repeat
from pathlib import Path

from sklearn.utils import Bunch

from psilearn.utils import validation
from psilearn_lab.datasets.sparse_rows import SparseRows, line_error, read_lines, to_label_matrix

MAX_DIGITS = 40  # of a number in the first line


def read_xc(path: str | Path) -> Bunch:
    r"""Read a multi-label file in the format of the Extreme Classification Repository.

    The first line contains the numbers of rows, features and labels. Each row contains its labels and its features, all
    counted from zero: ``3,17 0:0.5 8:1.25``. A row without labels begins with a space.

    Parameters
    ----------
    path : str or Path
        The text file, compressed with gzip or not.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``X`` : CSR matrix of float64 of shape (n, d), the features.
        - ``Y`` : CSR matrix of int8 of shape (n, L), the labels, stored as ones.

    Raises
    ------
    ValueError
        If the file is truncated or a line is malformed; the message names the line.

    See Also
    --------
    read_svmlight_multilabel : The same rows without the first line.
    read_mulan : The format of Mulan and MEKA.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psilearn_lab.datasets import read_xc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "toy.txt"
    ...     _ = path.write_text("2 3 2\n0,1 2:0.5\n 0:1\n")
    ...     toy = read_xc(path)
    >>> toy.X.toarray().tolist(), toy.Y.toarray().tolist()
    ([[0.0, 0.0, 0.5], [1.0, 0.0, 0.0]], [[1, 1], [0, 0]])
    """
    path = validation.check_path(path, "path")
    lines = read_lines(path)
    number, header = next(lines)
    sizes = header.split()
    if len(sizes) != 3 or not all(size.isascii() and size.isdigit() and len(size) <= MAX_DIGITS for size in sizes):
        message = f"three numbers are expected, of rows, features and labels, not {header[:60]!r}."
        raise line_error(path, number, message)
    n, n_features, n_labels = map(int, sizes)
    features, labels = SparseRows(path), SparseRows(path)
    for number, line in lines:
        if len(features) < n:
            _add_row(features, labels, number, line)
        elif line.strip():
            raise line_error(path, number, f"more rows than the {n} that the first line states.")
    if len(features) < n:
        message = f"the file ends after {len(features)} of {n} rows: it is truncated; download it again."
        raise line_error(path, number, message)
    return _make_bunch(features, labels, n_features, n_labels)


def read_svmlight_multilabel(
    path: str | Path, n_features: int | None = None, n_labels: int | None = None, zero_based: bool = False
) -> Bunch:
    r"""Read a multi-label file in the format of svmlight (LIBSVM): ``3,17 1:0.5 9:1.25``.

    Labels are columns of Y, counted from zero. A row without labels begins with a space or with its first feature. The
    text after ``#`` is a comment, and lines without other text are skipped.

    Parameters
    ----------
    path : str or Path
        The text file, compressed with gzip or not.
    n_features : int, default=None
        The number of features; by default the largest that the file uses. Give it if several files belong together.
    n_labels : int, default=None
        The number of labels; by default the largest that the file uses. Give it if several files belong together.
    zero_based : bool, default=False
        Whether features are counted from 0 instead of 1.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``X`` : CSR matrix of float64 of shape (n, d), the features.
        - ``Y`` : CSR matrix of int8 of shape (n, L), the labels, stored as ones.

    Raises
    ------
    ValueError
        If a line is malformed; the message names the line.

    See Also
    --------
    read_xc : The same rows after a first line with the sizes.
    read_mulan : The format of Mulan and MEKA.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psilearn_lab.datasets import read_svmlight_multilabel
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "toy.svm"
    ...     _ = path.write_text("0,1 3:0.5\n 1:1 # no label\n")
    ...     toy = read_svmlight_multilabel(path)
    >>> toy.X.toarray().tolist(), toy.Y.toarray().tolist()
    ([[0.0, 0.0, 0.5], [1.0, 0.0, 0.0]], [[1, 1], [0, 0]])
    """
    validation.check_bool(zero_based, "zero_based")
    path, first = validation.check_path(path, "path"), 0 if zero_based else 1
    features, labels = SparseRows(path), SparseRows(path)
    for number, raw in read_lines(path):
        line = raw.partition("#")[0]
        if line.strip():
            _add_row(features, labels, number, line)
    if not features:
        raise ValueError(f"{path}: no rows; the file may be truncated.")
    columns, _ = features.entries()
    if first:
        features.raise_for_entry(columns == 0, "feature 0, but features are counted from 1; pass zero_based=True.")
    for size, name in ((n_features, "n_features"), (n_labels, "n_labels")):
        if size is not None:
            validation.check_count(size, name)
    if n_features is None:
        n_features = int(columns.max(initial=first - 1)) + 1 - first
    if n_labels is None:
        n_labels = int(labels.entries()[0].max(initial=-1)) + 1
    return _make_bunch(features, labels, n_features, n_labels, first)


def _add_row(features: SparseRows, labels: SparseRows, number: int, line: str) -> None:
    """Append the row ``label,label index:value index:value …``."""
    words = line.split()
    label_word = words.pop(0) if words and not line[0].isspace() and ":" not in words[0] else ""
    try:
        if "_" in line or not line.isascii():  # Python would read 1_000 and digits of other scripts as numbers
            raise ValueError("characters that do not belong to a number.")
        row_labels = list(map(int, label_word.split(","))) if label_word else []
        columns, values = zip(*(word.split(":") for word in words), strict=True) if words else ((), ())
        labels.add(number, row_labels, repeat(1.0, len(row_labels)))
        features.add(number, map(int, columns), map(float, values))
    except (ValueError, OverflowError) as error:
        message = f"a row must be 'label,label index:value index:value …', not {line[:60]!r} ({error})."
        raise line_error(features.path, number, message) from error


def _make_bunch(features: SparseRows, labels: SparseRows, n_features: int, n_labels: int, first: int = 0) -> Bunch:
    """Return the rows as checked matrices X and Y."""
    X = features.to_csr(n_features, "feature", first)
    X.eliminate_zeros()
    return Bunch(X=X, Y=to_label_matrix(labels, labels.to_csr(n_labels, "label")))
