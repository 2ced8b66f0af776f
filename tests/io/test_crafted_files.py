"""Files that were crafted to cost much more than their size, or to be used unread: each is rejected by name."""

import os
import re
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from psilearn import IOKR, OEL, load_model, save_model
from psilearn._utils import array_files
from psilearn.io import FileFormat, read_notes
from psilearn.io.saved_models import FORMAT
from psilearn.kernels import Gaussian, Graph, HierarchicalDice, Hierarchy, Linear, WeisfeilerLehman
from tests.sealed_files import edit, seal, split

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 3))
TAGS = np.eye(4, dtype=int)[RNG.integers(0, 4, 20)]


@pytest.fixture
def path(tmp_path):
    save_model(OEL(Gaussian(0.3), Linear(), alpha=1e-3, n_components=2).fit(X, X), tmp_path / "m")
    return tmp_path / "m"


def assert_rejected(path, message, megabytes=64):
    """Loading fails with an error that names the file, in time and memory proportional to its size."""
    n_bytes = path.stat().st_size
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message) as caught:
            load_model(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(path) in str(caught.value)
    assert peak < 64 * n_bytes + megabytes * 1e6


def nest(depth, make):
    """Return data in which each object refers to the one before twice."""
    data = {"kind": "list", "items": [1, 2], "id": 1000}
    for i in range(depth):
        data = {**make(data, {"kind": "reference", "id": data["id"]}), "id": 1001 + i}
    return data


def as_list(data, reference):
    return {"kind": "list", "items": [data, reference]}


def as_dict(data, reference):
    return {"kind": "dict", "items": {"a": data, "b": reference}}


def as_tuple_in_list(data, reference):
    return {"kind": "list", "items": [{"kind": "tuple", "items": [data, reference]}]}


@pytest.mark.parametrize("make", [as_list, as_dict, as_tuple_in_list])
def test_references_that_double_at_each_level(path, make):
    """9 kB once needed 4.3 GB when the value was shown or hashed."""
    edit(FORMAT, path, lambda content, _: content["model"]["state"].update(alpha=nest(40, make)))
    assert_rejected(path, "its references repeat its values|nested more than")


def test_references_to_a_large_array(path):
    items = [{"kind": "array", "rows": "big", "id": 1000}, *[{"kind": "reference", "id": 1000}] * 100]

    def tamper(content, arrays):
        arrays["big"] = np.zeros(100_000)
        content["model"]["state"].update(alpha={"kind": "list", "items": items})

    edit(FORMAT, path, tamper)
    assert_rejected(path, "its references repeat its values")


def test_references_that_nest_deeply(path):
    """The JSON text is flat: each object refers to the one before."""
    items = [{"kind": "list", "items": [], "id": 1000}]
    for i in range(5000):
        items.append({"kind": "list", "items": [{"kind": "reference", "id": 1000 + i}], "id": 1001 + i})
    edit(FORMAT, path, lambda content, _: content["model"]["state"].update(alpha={"kind": "list", "items": items}))
    assert_rejected(path, "nested more than 100 levels deep|references repeat")


@pytest.mark.parametrize("depth", [150, 100_000])
def test_values_that_nest_deeply(path, depth):
    header, data = split(path)
    nested = '{"kind":"list","items":[' * depth + "]}" * depth
    content = header["__metadata__"]["content"]
    header["__metadata__"]["content"] = content.replace('"alpha":0.001', f'"alpha":{nested}')
    assert header["__metadata__"]["content"] != content
    path.write_bytes(seal(header, data))
    assert_rejected(path, "nested more than|RecursionError")


@pytest.mark.parametrize(
    ("dtype", "shape", "size"),
    [
        ("U8", [10**8, 0], 0),
        ("U8", [0, 10**8], 0),
        ("F64", [10**15, 0], 0),
        ("U8", [10**8], 0),
        ("F64", [2**61], 0),
        ("F64", [2**32, 2**32], 0),
        ("U8", [-1], 0),
        ("U8", [True], 1),
        ("U8", [1.0], 1),
        ("U8", "8", 8),
        ("U8", [1] * 40, 1),
        ("F64", [1], 4),
        ("F4", [2], 1),
        ("U0", [10**8], 0),
        ("<U0", [10**8], 0),
        ("O", [1], 8),
        (["U8"], [8], 8),
    ],
)
def test_tensors_that_are_larger_than_the_file(path, dtype, shape, size):
    """Zero-width texts of shape (10⁸,) once took 4 GB."""
    header, data = split(path)
    end = max(entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")
    header["more"] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
    path.write_bytes(seal(header, data + bytes(size)))
    assert_rejected(path, "that can be used")


@pytest.mark.parametrize("offsets", [[0, 8], [-8, 0], [8, 0], [0], [0.0, 8.0], None, [10**9, 10**9 + 8], [True, 9]])
def test_tensors_that_overlap_or_leave_gaps(path, offsets):
    header, data = split(path)
    header["more"] = {"dtype": "U8", "shape": [8], "data_offsets": offsets}
    path.write_bytes(seal(header, data))
    assert_rejected(path, "that can be used")


@pytest.mark.parametrize("change", ["width", "more", "order", "shape", "content"])
def test_texts_that_are_wider_than_the_file(path, change):
    data = {"kind": "array", "texts": "t", "ends": "e", "width": 3, "shape": [2000]}
    ends = np.arange(1, 2001)
    data.update({"width": {"width": 10**6}, "more": {"width": 1}, "shape": {"shape": [2000, 0]}}.get(change, {}))
    texts = np.full(2000, 97, np.uint8) if change != "content" else np.full(2000, 255, np.uint8)
    if change == "more":
        ends[:] = 0
        ends[-1] = 2000
    elif change == "order":
        ends[::2] = 2000

    def tamper(content, arrays):
        arrays.update(t=texts, e=ends)
        content["model"]["state"].update(alpha=data)

    edit(FORMAT, path, tamper)
    assert_rejected(path, "that can be used")


def hierarchical(tmp_path, parents):
    save_model(IOKR(Gaussian(0.3), HierarchicalDice(Hierarchy([-1, 0, 0, 1])), alpha=1e-3).fit(X, TAGS), tmp_path / "m")
    listed = {"kind": "list", "items": [{"kind": "list", "items": entry} for entry in parents]}

    def replace(data):
        if isinstance(data, dict):
            if data.get("kind") == "psilearn.kernels.Hierarchy":
                data["state"]["parents"] = listed
            data = list(data.values())
        for item in data if isinstance(data, list) else ():
            replace(item)

    edit(FORMAT, tmp_path / "m", lambda content, _: replace(content))
    return tmp_path / "m"


def test_a_chain_of_labels_in_a_hierarchy(tmp_path):
    """8000 labels, 293 kB, once took 1.9 GB."""
    assert_rejected(hierarchical(tmp_path, [[], *([i] for i in range(8000))]), "columns, but the hierarchy has")


def test_a_cycle_of_labels_in_a_hierarchy(tmp_path):
    start = time.perf_counter()
    assert_rejected(hierarchical(tmp_path, [[50_000], *([i] for i in range(50_000))]), "has a cycle")
    assert time.perf_counter() - start < 60  # not quadratic: that took many minutes


def test_a_hierarchy_that_is_a_chain_has_a_limit():
    chain = Hierarchy([-1, *range(19_999)])
    with pytest.raises(ValueError, match="20,000 labels of the hierarchy have more than 20,000,000 ancestors"):
        chain.close(np.zeros((1, 20_000)))
    assert Hierarchy([-1, *range(999)]).close(np.eye(1000)[-1:]).sum() == 1000


@pytest.mark.parametrize("changes", [{"depth": 10**9}, {"depth": -1}, {"depth": "3"}, {"n_features": 2**31}])
def test_a_depth_of_graph_kernels(tmp_path, changes):
    graphs = [Graph("C" * n, [(i, i + 1, 1) for i in range(n - 1)]) for n in range(1, 9)]
    save_model(IOKR(WeisfeilerLehman(2), Linear(), alpha=1e-2).fit(graphs, X[:8]), tmp_path / "m")
    edit(
        FORMAT,
        tmp_path / "m",
        lambda content, _: (
            content["model"]["state"]["regression_"]["state"]["kernel"]["state"].update(changes)
            if "state" in content["model"]["state"]["regression_"]["state"]["kernel"]
            else content["model"]["state"]["input_kernel"]["state"].update(changes)
        ),
    )
    assert_rejected(tmp_path / "m", "depth must be|n_features must be")


def candidates_of(content):
    return content["model"]["state"]["candidates_"]["state"]


@pytest.mark.parametrize(
    "outputs",
    [
        np.full((20, 3), np.nan),
        np.full((20, 3), np.inf),
        X[:, :2],
        X[:, 0],
        X[:19],
        X[:, :, None],
        np.zeros((20, 3), bool)[:, :0],
    ],
    ids=["NaN", "infinite", "narrow", "1-D", "fewer", "3-D", "zero-width"],
)
def test_outputs_of_candidates_are_validated(path, outputs):
    def tamper(content, arrays):
        arrays["new"] = np.ascontiguousarray(outputs)
        candidates_of(content)["outputs"] = {"kind": "array", "rows": "new"}

    edit(FORMAT, path, tamper)
    assert_rejected(path, "that can be used")


@pytest.mark.parametrize(
    "items", [["a"] * 20, [1] * 20, [None] * 20, [{"kind": "list", "items": ["a", "b", "c"]}] * 20]
)
def test_outputs_of_candidates_that_are_lists_of_something_else(path, items):
    edit(FORMAT, path, lambda content, _: candidates_of(content).update(outputs={"kind": "list", "items": items}))
    assert_rejected(path, "that can be used")


@pytest.mark.parametrize("width", [2, 4, -1, 10**9, True, "3", 3.0])
def test_the_number_of_features_is_that_of_the_inputs(path, width):
    edit(FORMAT, path, lambda content, _: content["model"]["state"].update(n_features_in_=width))
    assert_rejected(path, "n_features_in_")


@pytest.mark.parametrize(
    "changes",
    [
        {"eigenvalues_": "new"},
        {"approximation_error_": {"kind": "float", "value": "nan"}},
        {"calibration_scores_": "new"},
        {"dtype": "float16"},
        {"dtype": {"kind": "dtype", "name": "O"}},
        {"dtype": {"kind": "dtype", "name": "U1000000000"}},
        {"dtype": {"kind": "dtype", "name": "i4,f8"}},
        {
            "alpha": {
                "kind": "csr",
                "container": "csr_matrix",
                "shape": [0, 2**40],
                "data": "",
                "indices": "",
                "indptr": "",
            }
        },
        {"alpha": {"kind": "array", "items": {"kind": "list", "items": []}, "shape": [10**9, 0]}},
        {"alpha": {"kind": "array", "bytes": "new", "dtype": "S0"}},
        {"alpha": {"kind": "reference", "id": []}},
        {"alpha": {"kind": "reference"}},
        {"alpha": {"kind": "float", "value": [1]}},
        {"alpha": {"kind": "float", "value": "9" * 5000}},
    ],
)
def test_other_values_that_are_rejected(path, changes):
    def tamper(content, arrays):
        arrays["new"] = np.array([np.nan])
        for name, value in changes.items():
            value = {"kind": "array", "rows": "new"} if value == "new" else value
            content["model"]["state"][name] = value

    edit(FORMAT, path, tamper)
    if "9999" in str(changes):
        assert load_model(path).alpha == np.inf  # rejected when the model is fitted again
    else:
        assert_rejected(path, "that can be used")


def test_bytes_of_bool_arrays(path):
    header, data = split(path)
    header["more"] = {"dtype": "BOOL", "shape": [2], "data_offsets": [len(data), len(data) + 2]}
    path.write_bytes(seal(header, data + b"\x01\x02"))
    assert_rejected(path, "bool")


def test_arrays_of_unaligned_tensors_are_aligned(path):
    """Compiled code of other packages reads numbers where they must not begin on some processors."""
    header, data = split(path)
    tensors = [entry for name, entry in header.items() if name != "__metadata__"]
    for entry in tensors:
        entry["data_offsets"] = [1 + end for end in entry["data_offsets"]]
    header["first"] = {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}
    path.write_bytes(seal(header, b"\0" + data))
    for mapped in (False, True):
        arrays = FORMAT.read(path, mapped=mapped).arrays
        assert len(arrays) == len(tensors) + 1 and all(array.flags.aligned for array in arrays.values())


def test_every_error_names_the_file(path, monkeypatch):
    """Errors of any type, such as an IndexError of a codec; a MemoryError is not a defect of the file."""
    error: Exception

    def fail(*_):
        raise error

    monkeypatch.setattr(array_files, "check_shape", fail)
    for error in (IndexError("list index"), KeyError("x"), RecursionError(), OverflowError(), TypeError()):
        assert_rejected(path, f"that can be used: {type(error).__name__}")
    error = MemoryError("Unable to allocate 9 TiB")
    with pytest.raises(MemoryError, match=f"^{re.escape(str(path))}: Unable"):
        load_model(path)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file of Linux that cannot be read")
def test_an_error_of_the_disk_names_the_file():
    with pytest.raises(OSError, match="/proc/self/mem"):
        load_model("/proc/self/mem")


@pytest.mark.parametrize("width", [-1.0, "x", None])
def test_a_fitted_width_that_is_not_positive(path, width):
    def tamper(content, arrays):
        content["model"]["state"]["regression_"]["state"]["kernel"]["state"]["gamma_"] = width

    save_model(IOKR(Gaussian()).fit(X, X), path, overwrite=True)
    edit(FORMAT, path, tamper)
    with pytest.raises(ValueError, match="gamma_ of Gaussian must be a finite number > 0"):
        load_model(path).predict(X)


def test_a_file_is_opened_once(path, monkeypatch):
    """Bytes that are used are those that were hashed, even if the file is replaced while it is read."""
    opened = []
    original = os.open

    def open_and_replace(name, *arguments):
        descriptor = original(name, *arguments)
        if str(name) == str(path):
            opened.append(name)
            path.unlink()
            path.write_bytes(b"replaced")
        return descriptor

    monkeypatch.setattr(os, "open", open_and_replace)
    model = load_model(path)
    assert opened == [path] and path.read_bytes() == b"replaced" and model.n_components_ == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
@pytest.mark.parametrize("kind", ["pipe", "link", "dangling link", "folder", "device"])
def test_special_files_are_rejected_without_waiting(path, kind):
    other = path.rename(path.with_name("elsewhere"))
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path = type(path)("/dev/zero")
    else:
        path.symlink_to(other if kind == "link" else "nowhere")
    for function in (load_model, read_notes):
        with pytest.raises(ValueError, match="not a regular file") as caught:
            function(path)
        assert str(path) in str(caught.value)


def test_a_file_that_shrinks_while_it_is_read(path, monkeypatch):
    original = array_files._read

    def truncate(file, size):
        if size > 1000:
            os.truncate(path, 100)
        return original(file, size)

    monkeypatch.setattr(array_files, "_read", truncate)
    assert_rejected(path, "truncated while it was read")


def test_concurrent_writers_leave_one_of_their_models(tmp_path):
    """The last rename wins; a reader sees one whole file at any time."""
    file_format = FileFormat("tests", 1, "file", "")
    path = tmp_path / "f"
    file_format.write(path, 0, {"a": np.zeros(1000)})
    errors = []

    def write(number):
        try:
            for _ in range(30):
                file_format.write(path, number, {"a": np.full(1000 + number, float(number))})
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        file = file_format.read(path)
        assert (file.arrays["a"] == file.content).all() and len(file.arrays["a"]) == 1000 + file.content
    for thread in threads:
        thread.join()
    assert not errors and [file.name for file in tmp_path.iterdir()] == ["f"]


def test_a_full_disk_keeps_the_previous_model(path):
    before = path.read_bytes()
    code = (
        "import resource, sys; from psilearn import load_model, save_model; import numpy as np\n"
        "model = load_model(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))\n"
        "try: save_model(model, sys.argv[1], overwrite=True)\n"
        "except OSError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert "File too large" in done.stdout and str(path.parent) in done.stdout
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]
