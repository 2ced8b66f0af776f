"""Each format is read as it was written, and a damaged file raises an error or gives valid data."""

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab_tests.datasets import formats
from psilearn_lab.datasets import read_mulan, read_svmlight_multilabel, read_xc

READERS = {
    "sparse arff": (lambda X, Y: formats.arff(X, Y, dense=False), read_mulan),
    "dense arff": (lambda X, Y: formats.arff(X, Y, dense=True), read_mulan),
    "xc": (formats.xc, read_xc),
}
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
each_format = pytest.mark.parametrize("name", READERS)


def assert_valid(bunch):
    assert bunch.X.format == bunch.Y.format == "csr" and bunch.X.shape[0] == bunch.Y.shape[0]
    assert bunch.X.dtype == np.float64 and bunch.Y.dtype == np.int8
    assert np.isfinite(bunch.X.data).all() and (bunch.Y.data == 1).all() and (bunch.X.data != 0).all()
    assert bunch.X.has_canonical_format and bunch.Y.has_canonical_format


def assert_equal(bunch, X, Y):
    assert_valid(bunch)
    np.testing.assert_array_equal(bunch.X.toarray(), X)
    np.testing.assert_array_equal(bunch.Y.toarray(), Y)


@each_format
@quick
@given(data=formats.multilabel(), windows=st.booleans(), packed=st.booleans())
def test_round_trip(tmp_path, name, data, windows, packed):
    write, read = READERS[name]
    content = write(*data).replace("\n", "\r\n" if windows else "\n").encode()
    (tmp_path / "file").write_bytes(gzip.compress(content) if packed else content)
    assert_equal(read(tmp_path / "file"), *data)


@quick
@given(data=formats.multilabel(), first=st.integers(0, 1))
def test_round_trip_svmlight(tmp_path, data, first):
    X, Y = data
    (tmp_path / "file").write_text(formats.svmlight(X, Y, first))
    kept = X.any(axis=1) | Y.any(axis=1)  # an empty row is an empty line, which the format skips
    if kept.any():
        sizes = {"n_features": X.shape[1], "n_labels": Y.shape[1]}
        assert_equal(read_svmlight_multilabel(tmp_path / "file", **sizes, zero_based=first == 0), X[kept], Y[kept])
        bunch = read_svmlight_multilabel(tmp_path / "file", zero_based=first == 0)
        assert bunch.X.shape[1] == np.flatnonzero(X.any(axis=0)).max(initial=-1) + 1


@each_format
@quick
@given(data=formats.multilabel(), cut=st.floats(0, 1))
def test_a_truncated_file_never_gives_other_rows(tmp_path, name, data, cut):
    write, read = READERS[name]
    text = write(*data)
    short = text[: int(cut * (len(text) - 1))]
    (tmp_path / "file").write_text(short)
    try:
        bunch = read(tmp_path / "file")
    except ValueError as error:
        assert str(tmp_path / "file") in str(error)
        return
    # ARFF does not state the number of rows, and the last number may have lost digits without an error
    whole = bunch.X.shape[0] - (name != "sparse arff" and not short.endswith("\n"))
    np.testing.assert_array_equal(bunch.X.toarray()[:whole], data[0][:whole])
    np.testing.assert_array_equal(bunch.Y.toarray()[:whole], data[1][:whole])
    assert name != "xc" or bunch.X.shape[0] == len(data[0])


@pytest.mark.parametrize("name", [*READERS, "svmlight"])
@settings(quick, max_examples=150)
@given(data=formats.multilabel(), place=st.floats(0, 1), gone=st.integers(0, 6), junk=st.binary(max_size=5))
def test_a_damaged_file_raises_with_its_name_or_gives_valid_data(tmp_path, name, data, place, gone, junk):
    write, read = READERS.get(name, (lambda X, Y: formats.svmlight(X, Y, 1), read_svmlight_multilabel))
    content = write(*data).encode()
    at = int(place * len(content))
    (tmp_path / "file").write_bytes(content[:at] + junk + content[at + gone :])
    try:
        bunch = read(tmp_path / "file")
    except ValueError as error:
        assert str(tmp_path / "file") in str(error)
    else:
        assert_valid(bunch)
