import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small problems gain nothing by threads; before NumPy is imported

import pytest
from hypothesis import settings

from psilearn import computing
from tests.problems import KINDS, Problem, make
from tools.check import HOUSES

# The same examples in every run; ``pytest --hypothesis-profile=default`` draws new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
# Their subject is what Windows does not have: signals, limits of resources, links, pipes and permissions of files.
NEEDS_POSIX = [
    "lab/lab_tests/datasets/test_home.py",
    "lab/lab_tests/fuzz",
    "lab/lab_tests/test_benchmarks.py",
    "packages/psilearn-chem/chem_tests/molecules/test_chunk_files.py",
    "packages/psilearn-chem/chem_tests/test_full_disk.py",
    "tests/_backend/test_memory_limits.py",
    "tests/_utils/test_worker_processes.py",
    "tests/app/cli/test_kills.py",
    "tests/app/cli/test_signals.py",
    "tests/app/test_output_files.py",
    "tests/test_memory.py",
]
NOT_INSTALLED = [house for house in HOUSES if not house.is_installed]
IGNORED = [house.tests for house in NOT_INSTALLED] + (NEEDS_POSIX if sys.platform == "win32" else [])
DATA_HOME = Path(os.environ.get("PSILEARN_DATA", Path.home() / "psilearn-data"))
HAS_GPU_DRIVER = sys.platform == "win32" or Path("/dev/nvidiactl").exists()
BACKENDS = ["numpy", *([pytest.param("cpu", id="torch")] if find_spec("torch") else [])]
BACKENDS += [pytest.param("cuda", marks=pytest.mark.cuda)] if HAS_GPU_DRIVER else []


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what cannot run here, also if it is named on the command line."""
    root = Path(__file__).parent
    return any(collection_path.is_relative_to(root / path) for path in IGNORED) or None


def pytest_report_header() -> list[str]:
    """Name what is not tested."""
    missing = {house.name: house.missing for house in NOT_INSTALLED} | (
        {} if find_spec("torch") else {"GPU": ["torch"]}
    )
    return [f"not tested: {name}, which needs {', '.join(packages)}" for name, packages in missing.items()]


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Compute in NumPy, on torch's CPU and on a GPU: for modules with ``usefixtures("backend")``."""
    if request.param == "numpy":
        yield request.param
        return
    with computing("float64", request.param):
        yield request.param


@pytest.fixture(autouse=True)
def numpy_unless_asked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keep a backend that still stands for its module out of the tests there that do not use it."""
    if "backend" in request.fixturenames:
        yield
        return
    with computing():
        yield


@pytest.fixture(scope="session", autouse=True)
def single_threaded_networks() -> None:
    """Networks of a few units gain nothing by threads, and lose much where other work holds the cores."""
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)


@pytest.fixture(scope="session")
def pd() -> ModuleType:
    """Return pandas, or skip the test."""
    return pytest.importorskip("pandas")


@pytest.fixture(params=KINDS)
def problem(request: pytest.FixtureRequest) -> Problem:
    return make(request.param)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose file is not in the data home, ``@pytest.mark.data("usps/usps.h5")``, or that needs a GPU."""
    if item.get_closest_marker("cuda") and not _finds_gpu():
        pytest.skip("torch finds no GPU")
    for mark in item.iter_markers("data"):
        missing = [name for name in mark.args if not (DATA_HOME / name).exists()]
        if missing:
            pytest.skip(f"not in the data home {DATA_HOME}: {', '.join(missing)}")


def _finds_gpu() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())
