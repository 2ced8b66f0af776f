"""Clients of the service inside this process, and small models."""

import asyncio

import httpx
import numpy as np
from scipy import sparse

from psilearn import IOKR, OEL
from psilearn.app.serve import ServedModel, create_app
from psilearn.kernels import Dice, Gaussian, Kemeny

BASE = "http://127.0.0.1:8000"


def call(app, *requests, base=BASE):
    """Send requests (method, path, options) at the same time and return the responses."""

    async def run():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            calls = [client.request(method, path, **options) for method, path, options in requests]
            return await asyncio.gather(*calls)

    return asyncio.run(run())


def post(app, path, content, **options):
    """Post JSON and return the response."""
    return call(app, ("POST", path, {"json": content, **options}))[0]


def get(app, path, **options):
    return call(app, ("GET", path, options))[0]


def rows_problem():
    """Return inputs, outputs and a calibrated model of rows."""
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    Y = np.column_stack([np.sin(3 * X[:, 0]), X[:, 1] * X[:, 2]])
    model = OEL(Gaussian(2.0), Gaussian(3.0), alpha=1e-4, n_components=8).fit(X[:40], Y[:40])
    return X, Y, model.calibrate(X[40:], Y[40:], candidates=Y)


def label_set_problem():
    """Return sparse inputs, 0/1 rows and a model of label sets."""
    rng = np.random.default_rng(1)
    X = sparse.random(50, 30, density=0.2, format="csr", random_state=2)
    Y = (rng.random((50, 6)) < 0.4).astype(float)
    Y[:, 0] = 1
    return X, Y, IOKR(Gaussian(0.5), Dice(), alpha=1e-3).fit(X, Y)


def ranking_problem():
    """Return inputs, rankings and a model of rankings."""
    rng = np.random.default_rng(3)
    X = rng.random((40, 4))
    Y = np.argsort(np.argsort(X + 0.1 * rng.random((40, 4)), axis=1), axis=1) + 1.0
    return X, Y, IOKR(Gaussian(1.0), Kemeny(), alpha=1e-3).fit(X, Y)


def letters(first, second):
    """Compare two texts by their common letters."""
    return float(len(set(first) & set(second)))


def text_problem():
    """Return texts and a model from texts to texts."""
    words = ["tea", "cat", "dog", "good", "ace", "cage", "toad", "goat"]
    return words, IOKR(letters, letters, alpha=1e-6).fit(words, words)


def common_edges(first, second):
    """Compare two graphs, as tuples of edges, by their common edges."""
    return float(len(set(first) & set(second)))


def graph_problem():
    """Return graphs and a model from graphs to graphs; its kernel needs edges as tuples."""
    graphs = [((0, 1), (1, 2)), ((0, 1),), ((1, 2), (2, 3)), ((0, 3), (2, 3), (0, 1))]
    return graphs, IOKR(common_edges, common_edges, alpha=1e-6).fit(graphs, graphs)


def serve(model, name="model", **options):
    return create_app([ServedModel(name, model)], **options)
