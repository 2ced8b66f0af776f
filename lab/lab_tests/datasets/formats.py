"""Small multi-label data, written in each format that can be read."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

VALUES = st.floats(-1e6, 1e6).map(float) | st.just(0.0)


@st.composite
def multilabel(draw):
    """Draw X (n, d) and Y (n, l) with many zeros."""
    n, d, n_labels = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    X = draw(hnp.arrays(np.float64, (n, d), elements=VALUES, fill=st.just(0.0)))
    Y = draw(hnp.arrays(np.int8, (n, n_labels), elements=st.integers(0, 1)))
    return X, Y


def pairs(row, mark, first=0):
    return [f"{j + first}{mark}{float(row[j])!r}" for j in np.flatnonzero(row)]


def arff(X, Y, dense):
    """Write labels as the last attributes, counted in the relation as MEKA does."""
    lines = [f"@relation 'toy: -C -{Y.shape[1]}'"]
    lines += [f"@attribute 'x {j}' numeric" for j in range(X.shape[1])]
    lines += [f"@attribute y{j} {{0,1}}" for j in range(Y.shape[1])]
    lines.append("@data")
    for row in np.hstack([X, Y]):
        lines.append(",".join(map(repr, row.tolist())) if dense else "{" + ",".join(pairs(row, " ")) + "}")
    return "\n".join(lines) + "\n"


def xc(X, Y):
    rows = [" ".join([",".join(map(str, np.flatnonzero(y))), *pairs(x, ":")]) for x, y in zip(X, Y, strict=True)]
    return "\n".join([f"{len(X)} {X.shape[1]} {Y.shape[1]}", *rows]) + "\n"


def svmlight(X, Y, first):
    rows = [" ".join([",".join(map(str, np.flatnonzero(y))), *pairs(x, ":", first)]) for x, y in zip(X, Y, strict=True)]
    return "".join(f"{row} # {i}\n" if row.strip() else "" for i, row in enumerate(rows))
