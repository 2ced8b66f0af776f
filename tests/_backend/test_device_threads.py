"""Computations in several streams of a GPU give the results of one stream."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn.model_selection import ShuffleSplit  # noqa: E402

from psilearn import OELCV  # noqa: E402
from psilearn._backend import Compute, map_in_streams  # noqa: E402
from psilearn._backend.torch_precision import full_precision, join_team, tensor_cores  # noqa: E402
from psilearn.kernels import Gaussian  # noqa: E402
from psilearn.model_selection import split_scores  # noqa: E402


def test_a_thread_of_a_team_does_not_wait_for_the_lock_of_its_caller():
    from threading import Thread

    entered = []

    def compute():
        with join_team(), full_precision(exclusive=True), tensor_cores(enabled=True):
            entered.append(torch.get_float32_matmul_precision())

    with full_precision(exclusive=True):
        thread = Thread(target=compute)
        thread.start()
        thread.join(timeout=20)
        assert entered == ["highest"]  # the team leaves the precision as it is
    assert not thread.is_alive()


@pytest.mark.cuda
def test_results_come_in_order_and_errors_are_raised():
    compute = Compute.of("float64", torch.device("cuda"))
    matrices = [torch.randn((40, 40), dtype=torch.float64, device="cuda") for _ in range(20)]

    def eigenvalues(M):
        with compute.active():
            return torch.linalg.eigvalsh(M + M.T).cpu().numpy()

    with compute.active():
        found = list(map_in_streams(eigenvalues, matrices, compute.device))
        for values, M in zip(found, matrices, strict=True):
            np.testing.assert_allclose(values, eigenvalues(M), rtol=1e-10, atol=1e-10)
        with pytest.raises(ZeroDivisionError):
            list(map_in_streams(lambda number: 1 / number, [1, 0, 2], compute.device))


@pytest.mark.cuda
def test_a_search_in_streams_equals_one_after_the_other(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 5))
    Y, U = X[:, :3] + 0.1 * rng.standard_normal((120, 3)), rng.standard_normal((80, 3))
    options = {
        "alphas": [1e-4, 1e-2],
        "n_components": [3, 10, 20],
        "supervisions": [0, 0.3, 1],
        "cv": ShuffleSplit(4, test_size=0.2, random_state=0),
        "refit": False,
        "device": "cuda",
    }

    def scores():
        kernels = [Gaussian(0.05), Gaussian(0.2)]
        return OELCV(kernels, Gaussian(0.5), **options).fit(X, Y, unlabeled=U).cv_results_["split2_test_score"]

    found = scores()
    monkeypatch.setattr(split_scores, "MAX_SHARED_ORDER", 0)
    np.testing.assert_array_equal(found, scores())
