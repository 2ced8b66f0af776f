"""The output of ``psilearn info``: versions, linear algebra, devices and optional packages."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from psilearn import __version__

CORE = ("numpy", "scipy", "scikit-learn", "joblib", "array-api-compat", "threadpoolctl")
EXTRAS = {  # the packages that each extra installs, by the names under which they are imported
    "app": ("typer", "matplotlib", "pandas", "pyarrow", "arff", "jinja2", "prometheus_client", "fastapi", "uvicorn"),
    "plot": ("matplotlib",),
    "torch": ("torch",),
    "dask": ("dask", "distributed"),
    "ann": ("faiss",),
    "graph": ("networkx", "ot"),
    "grakel": ("grakel",),
    "strings": ("rapidfuzz",),
    "series": ("tslearn",),
}
DISTRIBUTIONS = {"arff": "liac-arff", "faiss": "faiss-cpu", "ot": "pot"}  # names of packages that differ


def describe_installation() -> Iterator[tuple[str, str]]:
    """Yield names and values, one pair per line of the output."""
    yield "psilearn", __version__
    yield "Python", f"{platform.python_version()} ({sys.executable})"
    yield "system", f"{platform.platform()}, {os.cpu_count()} cores"
    for name in CORE:
        yield name, version(name)
    yield from _describe_threads()
    yield "devices", _describe_devices()
    for extra, packages in EXTRAS.items():
        yield f"psilearn[{extra}]", _describe_extra(extra, packages)


def _describe_threads() -> Iterator[tuple[str, str]]:
    """Yield the libraries of linear algebra and threads that NumPy and SciPy loaded."""
    import scipy.linalg  # noqa: F401  loads the library
    from threadpoolctl import threadpool_info

    for library in threadpool_info():
        details = [library["internal_api"], library.get("version"), library.get("architecture")]
        text = " ".join(str(detail) for detail in details if detail)
        yield library["user_api"], f"{text}, {library['num_threads']} threads"


def _describe_devices() -> str:
    """Return the devices that torch can compute on."""
    if find_spec("torch") is None:
        return "NumPy on the CPU (GPUs need the extra psilearn[torch])"
    from torch import cuda

    names = [cuda.get_device_name(i) for i in range(cuda.device_count())] if cuda.is_available() else []
    listed = ", ".join(f"cuda:{i} ({name})" for i, name in enumerate(names))
    return f"NumPy on the CPU, torch {version('torch')} on cpu{f', {listed}' if listed else '; no GPU was found'}"


def _describe_extra(extra: str, packages: tuple[str, ...]) -> str:
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (pip install 'psilearn[{extra}]')"
    return ", ".join(f"{name} {_version_of(name)}" for name in packages)


def _version_of(package: str) -> str:
    try:
        return version(DISTRIBUTIONS.get(package, package))
    except PackageNotFoundError:
        return "(unknown version)"
