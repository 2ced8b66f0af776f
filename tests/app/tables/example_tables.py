"""One small problem in all forms and formats of tables."""

import csv
from pathlib import Path

import numpy as np

N, N_FEATURES = 60, 4
NAMES = [f"x{j}" for j in range(1, N_FEATURES + 1)]
TAGS = ["a", "b", "c", "d"]


def make_problem(seed=0):
    """Return counts X and the labels that they determine."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (N, N_FEATURES)).astype(float)
    X[:, 0] += 1  # no empty row
    Y = (X > 2).astype(int)
    return X, Y


def write_csv(path, columns):
    """Write columns, by name, as CSV."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t" if str(path).endswith(".tsv") else ",")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def label_columns(X, Y):
    """Return the columns of inputs and of 0/1 labels."""
    return {
        **{name: [f"{value:g}" for value in X[:, j]] for j, name in enumerate(NAMES)},
        **{f"tag_{tag}": Y[:, j].tolist() for j, tag in enumerate(TAGS)},
    }


def tag_texts(Y, names=TAGS, separator=";"):
    """Return label sets as joined texts."""
    return [separator.join(name for name, label in zip(names, row, strict=True) if label) for row in Y]


def read_csv(path):
    """Return the header and the rows of a CSV file."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, rows
