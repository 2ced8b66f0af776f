"""A cost model of fits, embeddings and searches on a cluster: flops, bytes moved and seconds.

    python -m psilearn_lab.benchmarks.cluster_model                       the table of docs/scale.md
    python -m psilearn_lab.benchmarks.cluster_model --rate 5e9 --workers 10

It is a model: seconds = flops / (workers × rate) + bytes per worker / bandwidth + tasks × overhead of the scheduler.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from psilearn_lab.benchmarks.measurement import Run

SELECTION = 500  # flops in the time that one distance takes for everything but its product, measured


@dataclass(frozen=True)
class Cluster:
    """The speed of a cluster of single-threaded workers."""

    workers: int
    rate: float  # flops per second of a worker, in float64; twice as many in float32
    bandwidth: float = 1e9  # bytes per second of a worker, network and disk
    overhead: float = 1e-3  # seconds of the scheduler per task


@dataclass(frozen=True)
class Cost:
    """What a step costs in all."""

    flops: float
    n_bytes: float
    tasks: int

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.n_bytes + other.n_bytes, self.tasks + other.tasks)

    def seconds(self, cluster: Cluster) -> float:
        """Return the time on a cluster."""
        work = self.flops / (cluster.workers * cluster.rate)
        return work + self.n_bytes / (cluster.workers * cluster.bandwidth) + self.tasks * cluster.overhead


def fit_cost(n: int, d: int, q: int, d_y: int, r: int, rows: int, workers: int) -> Cost:
    """Return the cost of the sums of a fit: kernel values, triangular solutions and products, with their reduction."""
    per_row = 2 * d * q + 2 * q * q + 2 * q * r + 2 * (2 * d_y * r + r * r) + r * r
    chunks = -(-n // rows)
    data = 8 * n * (2 * d + 4 * d_y)  # the inputs are read twice, the outputs four times
    landmarks = 8 * workers * (q * d + q * q + r * d_y + r * r)
    sums = 8 * chunks * (q * q + q * r + r * r)
    return Cost(n * per_row, data + landmarks + sums, 6 * chunks + chunks // 2)


def unlabeled_cost(m: int, d_y: int, r: int, rows: int, workers: int) -> Cost:
    """Return the cost of the moment of m unlabeled outputs."""
    chunks = -(-m // rows)
    n_bytes = 8 * 2 * m * d_y + 8 * workers * (r * d_y + r * r) + 8 * chunks * r * r
    return Cost(m * (2 * d_y * r + 2 * r * r), n_bytes, 2 * chunks + chunks // 3)


def embedding_cost(c: int, d_y: int, r: int, p: int, rows: int, workers: int) -> Cost:
    """Return the cost of c candidates in shards, which are written and read again in float32."""
    n_bytes = c * (8 * d_y + 2 * 4 * p + 8 * d_y) + 8 * workers * (r * d_y + r * p)
    return Cost(c * (2 * d_y * r + 2 * r * p), n_bytes, -(-c // rows))


def search_cost(c: int, p: int, queries: int, k: int, rows: int) -> Cost:
    """Return the cost of an exact search for some queries; products are float32, which counts as half."""
    shards = -(-c // rows)
    return Cost(queries * c * (p + SELECTION), 4 * c * p + shards * queries * (4 * p + 24 * k), shards)


def main() -> None:
    """Print the model for 10⁷ pairs, 10⁹ unlabeled outputs and 10⁹ candidates."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--rate", type=float, default=2e10, help="flops per second of a worker in float64")
    options = parser.parse_args()
    cluster = Cluster(options.workers, options.rate)
    sizes = {"d": 200, "q": 2000, "d_y": 200, "r": 1000}
    steps = {
        "fit, 10⁷ pairs": fit_cost(10**7, **sizes, rows=50_000, workers=cluster.workers),
        "moment, 10⁹ unlabeled": unlabeled_cost(10**9, 200, 1000, 500_000, cluster.workers),
        "embed, 10⁹ candidates": embedding_cost(10**9, 200, 1000, 200, 500_000, cluster.workers),
        "search, 10⁹ candidates, 1000 queries": search_cost(10**9, 200, 1000, 10, 500_000),
    }
    rows = [[name, cost.flops, cost.n_bytes / 1e9, cost.tasks, cost.seconds(cluster)] for name, cost in steps.items()]
    title = f"model: {cluster.workers} workers of {cluster.rate:.0e} flops per second, q = 2000, r = 1000, p = 200"
    Run().show_table(title, ["step", "flops", "GB moved", "tasks", "seconds"], rows)


if __name__ == "__main__":
    main()
