"""CSV files of rankings: both layouts, and errors that name the line."""

import csv
import gzip
import io
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from psilearn.rankings import to_orders
from psilearn_lab.datasets import read_orders_csv, read_ranks_csv

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def rankings(draw):
    """Draw X (n, d), ranks Y (n, K) and names of the features, which may need quotes."""
    n, d, K = draw(st.integers(1, 5)), draw(st.integers(0, 3)), draw(st.integers(2, 5))
    X = draw(hnp.arrays(np.float64, (n, d), elements=st.floats(-1e6, 1e6)))
    Y = np.array([draw(st.permutations(range(1, K + 1))) for _ in range(n)])
    names = st.text("xyz,\"' é", min_size=1).map(str.strip).filter(bool)
    return X, Y, draw(st.lists(names, min_size=d, max_size=d, unique=True))


def table(header, *columns, quoting=csv.QUOTE_MINIMAL, end="\n"):
    text = io.StringIO()
    writer = csv.writer(text, quoting=quoting, lineterminator=end)
    writer.writerow(header)
    writer.writerows([cell for part in row for cell in part] for row in zip(*columns, strict=True))
    return text.getvalue()


def letters(K):
    return [chr(97 + i) for i in range(K)]


@quick
@given(data=rankings(), windows=st.booleans(), packed=st.booleans(), quoted=st.booleans())
def test_both_layouts_are_read_as_written(tmp_path, data, windows, packed, quoted):
    X, Y, names = data
    K = Y.shape[1]
    how = {"quoting": csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL, "end": "\r\n" if windows else "\n"}
    cells = [[repr(value) for value in row] for row in X.tolist()]
    items = [f"L{i + 1}" for i in range(K)]
    texts = {
        read_ranks_csv: table([*items, *names], Y.tolist(), cells, **how),
        read_orders_csv: table(["ranking", *names], [[order] for order in to_orders(Y)], cells, **how),
    }
    for read, text in texts.items():
        (tmp_path / "file").write_bytes(gzip.compress(text.encode()) if packed else text.encode())
        bunch = read(tmp_path / "file")
        np.testing.assert_array_equal(bunch.X, X)
        np.testing.assert_array_equal(bunch.Y, Y)
        assert bunch.X.dtype == np.float64 and bunch.Y.dtype == np.int64
        assert bunch.feature_names == names
        assert bunch.item_names == (items if read is read_ranks_csv else letters(K))


@pytest.fixture
def file(tmp_path):
    def write(text):
        (tmp_path / "d.csv").write_text(text, encoding="utf-8")
        return tmp_path / "d.csv"

    return write


def test_features_may_be_in_any_column(file):
    bunch = read_ranks_csv(file("L2,Length,L1\n1,0.5,2\n\n2, 1e3 ,1.0\n"))
    assert bunch.feature_names == ["Length"] and bunch.item_names == ["L2", "L1"]
    assert bunch.X.tolist() == [[0.5], [1000]] and bunch.Y.tolist() == [[1, 2], [2, 1]]


def test_columns_of_ranks_by_prefix_or_by_name(file):
    path = file("L1,r.1,r.2,r3\n7,1,2,5\n")
    assert read_ranks_csv(path, ranks="r.").item_names == ["r.1", "r.2"]
    bunch = read_ranks_csv(path, ranks=["r.2", "r.1"])
    assert bunch.item_names == ["r.2", "r.1"] and bunch.Y.tolist() == [[2, 1]]
    assert bunch.feature_names == ["L1", "r3"]


def test_quoted_cells_and_a_byte_order_mark(file):
    bunch = read_orders_csv(file('\ufeff"size, cm", "the ranking"\n"0.5", "b > c>a"\n'), order="the ranking")
    assert bunch.feature_names == ["size, cm"] and bunch.Y.tolist() == [[3, 1, 2]]


def test_items_are_sorted_by_value_or_given(file):
    path = file("x,ranking\n1,10>9>2\n")
    assert read_orders_csv(path).item_names == ["2", "9", "10"]
    bunch = read_orders_csv(path, items=["10", "2", "9"])
    assert bunch.item_names == ["10", "2", "9"] and bunch.Y.tolist() == [[1, 3, 2]]


def test_partial_rankings(file):
    ranks = read_ranks_csv(file("x,L1,L2,L3\n1,1,,2\n2,NaN,1,?\n3,1,2,2\n4,3,1,2\n"), partial=True)
    orders = read_orders_csv(file("x,ranking\n1,a>c\n2,b\n3,a>b=c\n4,b>c>a\n"), partial=True)
    expected = [[1, np.nan, 2], [np.nan, 1, np.nan], [1, 2, 2], [3, 1, 2]]
    for bunch in (ranks, orders):
        np.testing.assert_array_equal(bunch.Y, expected)
        assert bunch.Y.dtype == np.float64 and bunch.X.tolist() == [[1], [2], [3], [4]]


RANKS, ORDERS = "x,L1,L2,L3\n0.5,3,1,2\n", "x,ranking\n0.5,b>c>a\n"


def assert_raises(read, path, line, words, **parameters):
    with pytest.raises(ValueError, match=rf"^{re.escape(str(path))}, line {line}: .*{words}") as caught:
        read(path, **parameters)
    assert " in row " not in str(caught.value)


both = pytest.mark.parametrize(("read", "good"), [(read_ranks_csv, RANKS), (read_orders_csv, ORDERS)])


@both
@pytest.mark.parametrize("cell", ["", "?", "nan", "inf", "red", "1_0", "٣"])
def test_features_that_are_not_finite_numbers_raise(file, read, good, cell):
    path = file(good + good.splitlines()[1].replace("0.5", cell))
    assert_raises(read, path, 3, rf"the feature x is {re.escape(repr(cell))}, but .* finite numbers: .* one-hot")


@both
def test_rows_must_have_one_cell_per_column(file, read, good):
    width = good.partition("\n")[0].count(",") + 1
    assert_raises(read, file(good + "\n" + good.splitlines()[1] + ",7\n"), 4, rf"{width + 1} cells for {width} columns")
    assert_raises(read, file(good + "0.5\n"), 3, rf"1 cells for {width} columns")


@both
def test_an_open_quote_raises(file, read, good):
    assert_raises(read, file(good + '"' + good.splitlines()[1]), 3, "no cells separated by commas")


@both
def test_headers(file, read, good):
    header, row = good.splitlines()
    assert_raises(read, file(f"x,{header}\n0.5,{row}\n"), 1, "several columns are named 'x'")
    assert_raises(read, file(f",{header}\n0,{row}\n"), 1, "column 1 has no name")
    assert_raises(read, file(f"{header}\n"), 1, "no rows after the header")
    assert_raises(read, file("\n \n"), 1, "no header")
    assert_raises(read, file("\nx,y\n1,2\n"), 2, "the columns are x, y")


@both
def test_a_file_that_is_not_a_text_raises(tmp_path, file, read, good):
    assert_raises(read, file("<html>no such page</html>"), 1, "a web page")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(good.encode())[:-6])
    with pytest.raises(ValueError, match=r"cut.gz, line .*truncated"):
        read(tmp_path / "cut.gz")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ("1,1,2", r"the row is not a ranking of 3 items, \[1, 1, 2\]: 1 occurs 2 times, 3 is missing"),
        ("1,2,4", "3 is missing"),
        ("0,1,2", "Ranks begin with 1"),
        ("1.5,2,3", "1 is missing"),
        ("1,,2", "the rank in column L2 is ''; .*partial=True"),
        ("1,2,inf", "the rank in column L3 is 'inf'"),
        ("c,a,b", "the rank in column L1 is 'c'"),
    ],
)
def test_rows_that_are_not_ranks_raise(file, cells, words):
    assert_raises(read_ranks_csv, file(f"{RANKS}\n0.5,{cells}\n"), 4, words)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (",?,nan", "the row does not rank any item"),
        ("1,none,2", r"the rank in column L2 is 'none'; ranks are numbers from 1 on\."),
        ("1,inf,2", "the rank in column L2 is 'inf'"),
    ],
)
def test_rows_that_are_not_partial_ranks_raise(file, cells, words):
    assert_raises(read_ranks_csv, file(f"{RANKS}0.5,{cells}\n"), 3, words, partial=True)


def test_missing_columns_of_ranks_raise(file):
    path = file(RANKS)
    assert_raises(
        read_ranks_csv, path, 1, "0 columns are named 'R' and a number.*the columns are x, L1, L2, L3", ranks="R"
    )
    assert_raises(
        read_ranks_csv, path, 1, "no column 'L4', 'L5' of ranks; the columns are x, L1", ranks=["L1", "L4", "L5"]
    )
    assert_raises(read_ranks_csv, path, 1, "at least 2 columns of ranks", ranks=["L1"])
    assert_raises(read_ranks_csv, file("x,L1\n0.5,1\n"), 1, "1 columns are named 'L' and a number.*at least 2")
    with pytest.raises(ValueError, match="ranks names a column more than once"):
        read_ranks_csv(path, ranks=["L1", "L1"])


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("b>b>a", "the order: 'b>b>a' names b more than once"),
        ("b>a", "leaves out c"),
        ("b>d>a", "names 'd'; the items are a, b, c"),
        ("a>b>c>d", "names 'd'"),
        ("a>b=c", "ties items.*partial=True"),
        ("a>>b", "has an empty name"),
        ("", "has an empty name"),
    ],
)
def test_rows_that_are_not_orders_raise(file, order, words):
    assert_raises(read_orders_csv, file(f"{ORDERS}\n0.5,{order}\n"), 4, words)


def test_orders_of_too_few_items(file):
    assert_raises(read_orders_csv, file("x,ranking\n0.5,a\n"), 2, "at least 2 different names")
    assert_raises(read_orders_csv, file("x,ranking\n0.5,a>b\n1,b>c\n"), 3, "names 'c'", items=["a", "b"], partial=True)


def test_a_missing_column_of_orders_raises(file):
    assert_raises(
        read_orders_csv, file(ORDERS), 1, "no column 'order' of orders; the columns are x, ranking", order="order"
    )
