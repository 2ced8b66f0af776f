"""A network that predicts the embedding of a molecule from its SMILES as a string of characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer

from psilearn_lab.neural import NeuralRegressor

CHARACTERS = "^$CNOFHcno123456789()[]=#+-"


def make_network(settings: Mapping[str, Any], max_length: int, device: str | None) -> Pipeline:
    """Return a perceptron on the characters at each position and on hashed counts of substrings.

    The number of epochs is found by early stopping on a tenth of the training pairs.
    """
    substrings = HashingVectorizer(
        analyzer="char",
        ngram_range=(1, max_length),
        lowercase=False,
        norm=None,
        alternate_sign=False,
        n_features=settings["columns"],
    )
    positions = FunctionTransformer(one_hot, kw_args={"n_positions": settings["positions"]})
    network = NeuralRegressor(
        settings["hidden"],
        dropout=settings["dropout"],
        learning_rate=settings["learning_rate"],
        epochs=settings["epochs"],
        patience=settings["patience"],
        batch_size=settings["batch_size"],
        standardize=False,
        device=device,
    )
    return make_pipeline(make_union(substrings, positions), network)


def one_hot(texts: Sequence[str], n_positions: int) -> Any:
    """Return one column per position, from both ends of a text, and character; other characters have no column."""
    code = {character: k for k, character in enumerate(CHARACTERS)}
    rows, columns = [], []
    for i, text in enumerate(texts):
        for shift, part in ((0, text), (n_positions, text[::-1])):
            for place, character in enumerate(part[:n_positions]):
                if character in code:
                    rows.append(i)
                    columns.append((shift + place) * len(CHARACTERS) + code[character])
    shape = len(texts), 2 * n_positions * len(CHARACTERS)
    return sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
