"""The simple competitor of SMI2Mol: the graph of the training molecule with the nearest SMILES."""

from __future__ import annotations

from sklearn.neighbors import NearestNeighbors

from psilearn.kernels import Graph, Substrings
from psilearn_lab.experiments.smi2mol_task import Molecules


def nearest_graphs(train: Molecules, texts: list[str], kernel: Substrings) -> list[Graph]:
    """Return the graph of the training molecule whose text is nearest to each text by the cosine of features."""
    kernel.fit(train.texts)
    neighbors = NearestNeighbors(n_neighbors=1, algorithm="brute", metric="cosine").fit(kernel.features(train.texts))
    nearest = neighbors.kneighbors(kernel.features(texts), return_distance=False)[:, 0]
    return [train.graphs[i] for i in nearest]
