"""Worker processes: the same bits as in threads, also when a worker is killed; a lost scheduler is a clear error."""

import os
import signal
import threading
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from psilearn import OEL, OELCV
from psilearn._distributed.scheduling import ClusterLostError, block_budget
from psilearn.kernels import Gaussian
from tests.dask_data import to_dask

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N_CHUNKS = 12
OPTIONS = {"processes": True, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
MODEL = OEL(Gaussian(0.1), Gaussian(0.3), alpha=1e-3, n_components=4, input_landmarks=20, output_landmarks=15)


@pytest.fixture(scope="module")
def cluster():
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "6h"}),  # nannies replace lost workers
        distributed.LocalCluster(**OPTIONS, memory_limit="1GiB") as running,
    ):
        yield running


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as connected:
        yield connected


def _rows(number, columns, folder):
    """Generate one chunk, slowly if its uses are counted in a folder."""
    if folder is not None:
        (Path(folder) / f"{number}-{time.monotonic_ns()}").touch()
        time.sleep(0.02)
    rng = np.random.default_rng(number)
    X = rng.standard_normal((50, 6))
    return X if columns == 6 else np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2], X[:, 3]])


def _generated(columns, folder=None):
    from dask.delayed import delayed

    load = delayed(_rows)
    parts = [da.from_delayed(load(i, columns, folder), (50, columns), float) for i in range(N_CHUNKS)]
    return da.concatenate(parts)


def assert_same_bits(model, other):
    X = _rows(99, 6, None)
    assert np.array_equal(model.embed(X), other.embed(X))
    assert np.array_equal(model.eigenvalues_, other.eigenvalues_)
    assert np.array_equal(model.candidates_.outputs, other.candidates_.outputs)


def test_worker_processes_give_the_bits_of_threads_and_the_answer_of_one_machine(client):
    found = clone(MODEL).fit(_generated(6), _generated(3))
    with dask.config.set(scheduler="threads"):
        in_threads = clone(MODEL).fit(_generated(6), _generated(3))
        X, Y = _generated(6).compute(), _generated(3).compute()
    assert_same_bits(found, in_threads)
    expected = clone(MODEL).fit(X, Y)
    np.testing.assert_allclose(np.abs(found.embed(X)), np.abs(expected.embed(X)), rtol=0, atol=1e-12)
    lazy = found.predict(to_dask(X[:60], (30, 30)))
    assert np.array_equal(lazy.compute(), expected.predict(X[:60]))


def test_a_killed_worker_does_not_change_a_bit(cluster, client, tmp_path):
    undisturbed = clone(MODEL).fit(_generated(6), _generated(3))
    fitted = []
    fit = threading.Thread(target=lambda: fitted.append(clone(MODEL).fit(_generated(6, str(tmp_path)), _generated(3))))
    fit.start()
    while fit.is_alive():
        if len(list(tmp_path.iterdir())) > N_CHUNKS + 4:  # landmarks are gathered, and the sums have begun
            os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
            break
        time.sleep(0.002)
    else:
        pytest.fail("The fit ended before the worker was killed.")
    fit.join(60)
    assert len(fitted) == 1 and len(list(tmp_path.iterdir())) > 2 * N_CHUNKS  # chunks were computed again
    assert_same_bits(undisturbed, fitted[0])


def test_the_configuration_of_a_lost_client_does_not_matter():
    expected = clone(MODEL).fit(_generated(6), _generated(3))
    with dask.config.set(scheduler="dask.distributed"):  # what a client that was lost in use leaves behind
        assert_same_bits(expected, clone(MODEL).fit(_generated(6), _generated(3)))


def test_the_memory_of_the_workers_limits_the_blocks(client):
    assert block_budget() == 2**30 // 4


def test_a_lost_scheduler_is_a_clear_error(tmp_path):
    options = {**OPTIONS, "processes": False, "n_workers": 1}
    with (
        dask.config.set(
            scheduler="threads"
        ),  # a client that was closed in use leaves its scheduler in the configuration
        distributed.LocalCluster(**options) as lost,
        distributed.Client(lost, timeout=2) as client,
    ):
        errors = []

        def fit():
            try:
                clone(MODEL).fit(_generated(6, str(tmp_path)), _generated(3))
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=fit)
        thread.start()
        while not list(tmp_path.iterdir()):
            time.sleep(0.005)
        client.close()
        lost.close()
        thread.join(60)
    assert len(errors) == 1 and isinstance(errors[0], ClusterLostError), errors
    assert "went away" in str(errors[0])


def test_a_timeout_of_a_chunk_is_not_a_lost_scheduler(client):
    broken = _generated(6).map_blocks(_time_out, dtype=float, meta=np.empty((0, 6)))
    with pytest.raises(TimeoutError, match="of the data base") as raised:
        clone(MODEL).fit(broken, _generated(3))
    assert not isinstance(raised.value, ClusterLostError)


def _time_out(block):
    raise TimeoutError("of the data base")


@pytest.mark.parametrize("landmarks", [None, 10])
def test_a_search_on_the_cluster_has_the_scores_of_one_process(client, landmarks):
    X, Y = _rows(0, 6, None), _rows(0, 3, None)
    search = OELCV(
        [Gaussian(0.1), Gaussian(1.0)],
        Gaussian(0.3),
        alphas=[1e-4, 1e-2],
        n_components=[2, 4],
        supervisions=[0.0, 0.5],
        input_landmarks=landmarks,
        output_landmarks=landmarks,
        cv=2,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # values at the edge of the grid
        expected = clone(search).fit(X, Y)
        with joblib.parallel_config("dask"):
            found = search.fit(X, Y)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], rtol=1e-12
    )
    assert found.best_params_["alpha"] == expected.best_params_["alpha"]


def test_a_search_takes_its_data_in_memory():
    with pytest.raises(TypeError, match=r"OELCV takes its data in memory: search on a sample"):
        OELCV().fit(_generated(6), _generated(3))


def test_shards_are_built_and_searched_by_the_workers_also_if_one_is_killed(cluster, client, tmp_path):
    model = clone(MODEL).fit(_rows(0, 6, None), _rows(0, 3, None))
    outputs = _generated(3)
    expected = model.predict_topk(_rows(99, 6, None), 5, outputs.compute())
    touched = tmp_path / "touched"
    touched.mkdir()
    built = []
    slow = _generated(3, str(touched))
    build = threading.Thread(target=lambda: built.append(model.candidate_set(slow, tmp_path / "set")))
    build.start()
    while build.is_alive() and len(list(touched.iterdir())) < 4:
        time.sleep(0.002)
    os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
    build.join(60)
    assert len(built) == 1 and len(built[0].shards) == N_CHUNKS
    found = model.predict_topk(_rows(99, 6, None), 5, built[0])
    assert np.array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-12)
    lazy = model.predict_topk(to_dask(_rows(99, 6, None), (30, 20)), 5, built[0])  # shards inside of tasks
    assert np.array_equal(lazy.indices.compute(), expected.indices)
