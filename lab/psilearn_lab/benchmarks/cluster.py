"""Dask with two single-threaded workers: overhead against streaming on one machine, killed workers, and memory.

Inputs have 200 features and are generated chunk by chunk; outputs are 10 tags of 500 prototypes, compared by Dice. The
overhead is measured in wall seconds and in CPU seconds of all processes, which other work on the machine disturbs less.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone

from psilearn import OEL
from psilearn.kernels import Dice, Gaussian
from psilearn_lab.benchmarks.measurement import Array, Figures, Run, median_of_each, run_in_child
from psilearn_lab.fuzz.harness import resident_bytes

N_FEATURES, N_TAGS, N_PROTOTYPES = 200, 10, 500
MAX_OVERHEAD = 1.3
N_KILLS = 20
MAX_WAIT = 300  # seconds until a worker has been restarted
SELECTION = 500  # flops in the time that one distance takes for everything but its product, measured
BUDGET = 2**28  # bytes that each process may need above its imports
OPTIONS = {"processes": True, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}


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


def make_rows(part: int, start: int, stop: int) -> Array:
    """Return inputs (part 0) or outputs (part 1) of consecutive examples, the same in any process."""
    shared, rng = np.random.default_rng(0), np.random.default_rng([0, start])
    prototypes = (shared.random((N_PROTOTYPES, N_TAGS)) < 0.3).astype(float)
    classes = rng.integers(0, N_PROTOTYPES, stop - start)
    if part:
        return prototypes[classes]
    centers = shared.standard_normal((N_PROTOTYPES, N_FEATURES))
    return centers[classes] + rng.standard_normal((stop - start, N_FEATURES))


def write_rows(folder: Path, n: int, step: int) -> None:
    """Write n examples as two .npy files."""
    X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=float, shape=(n, N_FEATURES))
    Y = np.lib.format.open_memmap(folder / "Y.npy", mode="w+", dtype=float, shape=(n, N_TAGS))
    for start in range(0, n, step):
        stop = min(start + step, n)
        X[start:stop], Y[start:stop] = (make_rows(part, start, stop) for part in (0, 1))


def read_rows(path: str, start: int, stop: int) -> Array:
    """Return rows of a .npy file."""
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def generate(part: int, start: int, stop: int, pause: float) -> Array:
    """Return generated inputs (part 0) or outputs (part 1), after a pause."""
    sleep(pause)
    return make_rows(part, start, stop)


def chunked(
    function: Callable[..., Array], arguments: tuple[Any, ...], n: int, step: int, width: int, *rest: Any
) -> Any:
    """Return a Dask array whose chunks are function(*arguments, start, stop, *rest)."""
    import dask.array as da
    from dask.delayed import delayed

    load = delayed(function, pure=True)
    bounds = [(start, min(start + step, n)) for start in range(0, n, step)]
    return da.concatenate([da.from_delayed(load(*arguments, i, j, *rest), (j - i, width), float) for i, j in bounds])


def generated(n: int, step: int, pause: float = 0.0) -> tuple[Any, Any]:
    """Return generated inputs and outputs as Dask arrays."""
    return tuple(chunked(generate, (part,), n, step, (N_FEATURES, N_TAGS)[part], pause) for part in (0, 1))


def make_model(q: int) -> OEL:
    """Return the unfitted model."""
    return OEL(Gaussian(0.002), Dice(), alpha=1e-5, n_components=30, input_landmarks=q, output_landmarks=q // 3)


@contextmanager
def cluster(memory_limit: Any = "auto") -> Iterator[Any]:
    """Start two workers and yield their client, after a small fit for which everything was imported."""
    import dask
    import distributed

    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "6h"}),  # the nannies alone replace lost workers
        distributed.LocalCluster(**OPTIONS, memory_limit=memory_limit) as workers,
        distributed.Client(workers) as client,
    ):
        make_model(30).fit(*generated(600, 150))
        yield client


def cpu_seconds(client: Any = None) -> float:
    """Return the CPU seconds of this process and of the workers so far."""
    return process_time() + (sum(client.run(process_time).values()) if client is not None else 0.0)


def fit_streaming(folder: str, q: int, **_: Any) -> Figures:
    """Fit memory-mapped files on one machine."""
    X, Y = (np.load(Path(folder, name), mmap_mode="r") for name in ("X.npy", "Y.npy"))
    start, cpu = perf_counter(), cpu_seconds()
    model = make_model(q).fit(X, Y)
    return {"wall": perf_counter() - start, "cpu": cpu_seconds() - cpu, "idle": 0.0, "check": check_value(model)}


def fit_dask(folder: str, q: int, n: int, step: int) -> Figures:
    """Fit the same files on two workers."""
    with cluster() as client:
        X, Y = (
            chunked(read_rows, (str(Path(folder, name)),), n, step, width)
            for name, width in (("X.npy", N_FEATURES), ("Y.npy", N_TAGS))
        )
        start, cpu = perf_counter(), cpu_seconds(client)
        model = make_model(q).fit(X, Y)
        wall, cpu = perf_counter() - start, cpu_seconds(client) - cpu
        idle = cpu_seconds(client)
        sleep(wall / 2)
        idle = 2 * (cpu_seconds(client) - idle)  # what the processes use in the same time without any task
        return {"wall": wall, "cpu": cpu, "idle": idle, "check": check_value(model)}


def check_value(model: OEL) -> float:
    """Return a number that two equal models share."""
    return float(np.abs(model.embed(make_rows(0, 0, 50))).sum())


def kill_workers(n_kills: int, n: int, step: int, q: int) -> Figures:
    """Kill a worker in the middle of a fit, of an embedding and of a search in turn; count the answers that changed."""
    queries = make_rows(0, 0, 100)
    with cluster() as client, tempfile.TemporaryDirectory() as folder:
        model: Any = make_model(q).fit(*generated(n, step))
        outputs = generated(n, step)[1]
        candidates: Any = model.candidate_set(outputs, Path(folder, "undisturbed"))
        tasks: list[Callable[[int], Array]] = [
            lambda _: make_model(q).fit(*generated(n, step, 0.05)).embed(queries),
            lambda i: np.asarray(model.candidate_set(generated(n, step, 0.05)[1], Path(folder, str(i))).g[: 2 * step]),
            lambda _: model.predict_topk(queries, 10, candidates).indices,
        ]
        expected = [tasks[0](0), np.asarray(candidates.g[: 2 * step]), tasks[2](0)]
        changed = killed = 0
        for i in range(n_kills):
            answer, was_killed = run_and_kill(tasks[i % 3], i, 0.02 if i % 3 == 2 else 0.6, client)
            killed += was_killed
            changed += not np.array_equal(answer, expected[i % 3])
        return {"kills": killed, "changed": changed}


def run_and_kill(task: Callable[[int], Array], i: int, delay: float, client: Any) -> tuple[Array, bool]:
    """Return the answer of a task during which a worker was killed, and whether it was still running then."""
    client.wait_for_workers(2, timeout=MAX_WAIT)
    pids = list(client.run(os.getpid).values())
    answers: list[Array] = []
    thread = threading.Thread(target=lambda: answers.append(task(i)))
    thread.start()
    sleep(delay)
    was_running = thread.is_alive()
    os.kill(pids[i % 2], signal.SIGKILL)
    thread.join()
    return answers[0], was_running


def fit_within(n: int, step: int, q: int) -> Figures:
    """Return the peak of the client and of the workers above their imports, while generated chunks are summed."""
    with config_context(working_memory=BUDGET / 2**22), cluster("2GiB") as client:
        baselines = client.run(resident_bytes, peak=False)
        own = resident_bytes(peak=False)
        make_model(q).fit(*generated(n, step))
        peaks = client.run(resident_bytes, peak=True)
        worst = max(peaks[worker] - baselines[worker] for worker in baselines)
        return {"client": resident_bytes(peak=True) - own, "worker": worst, "data": n * (N_FEATURES + N_TAGS) * 8}


def generate_tags(start: int, stop: int, width: int) -> Array:
    """Return random sets of tags, the same in any process."""
    return (np.random.default_rng([1, start]).random((stop - start, width)) < 0.1).astype(float)


def time_steps(n: int, step: int, q: int, width: int) -> Figures:
    """Return the CPU seconds of the workers and the flops of the model for each step of the cost model.

    Outputs have ``width`` columns and 5 · ``width`` landmarks, the model has ``width`` components.
    """
    import distributed

    r = 5 * width
    with cluster() as client, tempfile.TemporaryDirectory() as folder:
        X, y = generated(n, step)[0].persist(), chunked(generate_tags, (), n, step, width, width).persist()
        distributed.wait([X, y])
        model = make_model(q).set_params(output_landmarks=r, n_components=width, supervision=0.5)
        fitted = clone(model).fit(X, y)
        queries = make_rows(0, 0, 1000)
        shards: list[Any] = []
        steps: dict[str, tuple[Callable[[], Any], Cost]] = {
            "fit": (lambda: clone(model).fit(X, y), fit_cost(n, N_FEATURES, q, width, r, step, 2)),
            "fit and moment of as many unlabeled outputs": (
                lambda: clone(model).fit(X, y, unlabeled=y),
                fit_cost(n, N_FEATURES, q, width, r, step, 2) + unlabeled_cost(n, width, r, step, 2),
            ),
            "embedding of candidates": (
                lambda: shards.append(fitted.candidate_set(y, Path(folder, "shards"))),
                embedding_cost(n, width, r, width, step, 2),
            ),
            "exact search, 1000 queries": (
                lambda: fitted.predict_topk(queries, 10, shards[0]),
                search_cost(n, width, 1000, 10, step),
            ),
        }
        return {name: [_worker_seconds(client, run_step), cost.flops] for name, (run_step, cost) in steps.items()}


def _worker_seconds(client: Any, run_step: Callable[[], Any]) -> float:
    """Return the CPU seconds of the workers during a step, less what they use in the same time without tasks."""
    start, before = perf_counter(), sum(client.run(process_time).values())
    run_step()
    wall, used = perf_counter() - start, sum(client.run(process_time).values()) - before
    before = sum(client.run(process_time).values())
    sleep(1.0)
    return float(used - wall * (sum(client.run(process_time).values()) - before))


def measure(run: Run) -> Figures:
    """Print and return overheads, kills and peaks."""
    show_model(run)
    return {
        "overhead": measure_overhead(run),
        "kills": measure_kills(run),
        "memory": measure_memory(run),
        "steps": measure_steps(run),
    }


def measure_steps(run: Run) -> Figures:
    """Compare the flops of the cost model with CPU seconds, step by step."""
    sizes: dict[str, Any] = run.select(
        {"n": 50_000, "step": 5000, "q": 1000, "width": 200}, {"n": 1000, "step": 250, "q": 30, "width": 5}
    )
    figures = run_in_child("cluster", "time_steps", **sizes)
    rows = [[name, *figures[name], figures[name][1] / figures[name][0]] for name in figures if "bytes" not in name]
    run.show_table(f"cost model, {sizes}", ["step", "CPU s", "flops of the model", "flops per CPU s"], rows)
    return figures


def measure_kills(run: Run) -> Figures:
    """Kill workers, and check that no answer changes."""
    kills = run.select(N_KILLS, 3)
    figures = run_in_child("cluster", "kill_workers", n_kills=kills, n=8000, step=500, q=60)
    found = f"{figures['kills']} kills of a running task, {figures['changed']} changed answers"
    run.check_claim("killed workers change no answer", figures["changed"] == 0, found)
    return figures


def measure_memory(run: Run) -> Figures:
    """Measure the memory of each process with ten times its budget of data."""
    rows = run.select(10 * BUDGET // (8 * (N_FEATURES + N_TAGS)), 8000)
    figures = run_in_child("cluster", "fit_within", n=rows, step=10_000, q=100)
    mib = {name: figures[name] / 2**20 for name in ("data", "client", "worker")}
    found = f"data {mib['data']:.0f} MiB, client {mib['client']:.0f} MiB, worker {mib['worker']:.0f} MiB"
    is_within = max(mib["client"], mib["worker"]) <= BUDGET / 2**20
    run.check_claim(f"each process stays within {BUDGET / 2**20:.0f} MiB for 10 times as much data", is_within, found)
    return figures


def measure_overhead(run: Run) -> Figures:
    """Time both routes in turns, with several sizes of chunks."""
    n, q = run.select((1_000_000, 300), (4000, 60))
    steps = run.select([50_000, 12_500], [1000])
    turns: dict[str, list[Figures]] = {"streaming": [], **{f"chunks of {step:,}": [] for step in steps}}
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder), n, max(steps))
        for _ in range(run.repeats):
            turns["streaming"].append(run_in_child("cluster", "fit_streaming", folder=folder, q=q))
            for step in steps:
                arguments: dict[str, Any] = {"folder": folder, "q": q, "n": n, "step": step}
                turns[f"chunks of {step:,}"].append(run_in_child("cluster", "fit_dask", **arguments))
    medians = {name: median_of_each(results) for name, results in turns.items()}
    base = medians["streaming"]
    rows: list[list[object]] = [
        [name, row["wall"], row["cpu"], row["idle"], row["wall"] / base["wall"], row["cpu"] / base["cpu"]]
        for name, row in medians.items()
    ]
    run.show_table(
        f"fit of {n:,} × {N_FEATURES}, q = {q}",
        ["route", "wall s", "CPU s", "idle CPU s", "wall ratio", "CPU ratio"],
        rows,
    )
    ratio = min(medians[f"chunks of {step:,}"]["cpu"] for step in steps) / base["cpu"]
    run.check_claim(
        f"Dask needs at most {MAX_OVERHEAD} times the CPU of streaming", ratio <= MAX_OVERHEAD, f"{ratio:.2f}"
    )
    return medians


def show_model(run: Run, workers: int = 100, rate: float = 2e10) -> None:
    """Print the model for 10⁷ pairs, 10⁹ unlabeled outputs and 10⁹ candidates.

    Seconds are flops / (workers × rate) + bytes per worker / bandwidth + tasks × overhead of the scheduler.
    """
    cluster = Cluster(workers, rate)
    sizes = {"d": 200, "q": 2000, "d_y": 200, "r": 1000}
    steps = {
        "fit, 10⁷ pairs": fit_cost(10**7, **sizes, rows=50_000, workers=cluster.workers),
        "moment, 10⁹ unlabeled": unlabeled_cost(10**9, 200, 1000, 500_000, cluster.workers),
        "embed, 10⁹ candidates": embedding_cost(10**9, 200, 1000, 200, 500_000, cluster.workers),
        "search, 10⁹ candidates, 1000 queries": search_cost(10**9, 200, 1000, 10, 500_000),
    }
    rows = [[name, cost.flops, cost.n_bytes / 1e9, cost.tasks, cost.seconds(cluster)] for name, cost in steps.items()]
    title = f"model: {cluster.workers} workers of {cluster.rate:.0e} flops per second, q = 2000, r = 1000, p = 200"
    run.show_table(title, ["step", "flops", "GB moved", "tasks", "seconds"], rows)
