from importlib.util import find_spec

import pytest

from psilearn.datasets import data_home
from tests.problems import KINDS, Problem, make


@pytest.fixture(scope="session", autouse=True)
def single_threaded_networks() -> None:
    """Networks of a few units gain nothing by threads, and lose much where other work holds the cores."""
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)


@pytest.fixture(params=KINDS)
def problem(request: pytest.FixtureRequest) -> Problem:
    return make(request.param)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose file is not in the data home: ``@pytest.mark.data("usps/usps.h5")``."""
    for mark in item.iter_markers("data"):
        missing = [name for name in mark.args if not (data_home() / name).exists()]
        if missing:
            pytest.skip(f"not in the data home {data_home()}: {', '.join(missing)}")
