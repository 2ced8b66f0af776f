"""The formats of the catalogue: the same data from each of them, and errors for malformed files."""

import numpy as np
import pytest

from psilearn_lab.datasets.readers import (
    parse_packages,
    read_debian,
    read_mulan,
    read_npz,
    read_orders,
    read_ranks,
    read_usps,
    read_xc,
)

HEADER = "@relation r\n\n% a comment\n@attribute f1 numeric\n@attribute 'a tag' {0,1}\n@attribute f2 numeric\n@DATA\n"
XML = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="a tag"></label></labels>'


@pytest.fixture
def mulan(tmp_path):
    """Return a function that reads rows below a header and an XML file of labels."""

    def read(rows, header=HEADER, xml=XML):
        (tmp_path / "d.arff").write_text(header + rows)
        (tmp_path / "d.xml").write_text(xml)
        return read_mulan(tmp_path / "d.arff", tmp_path / "d.xml")

    return read


def test_sparse_and_dense_rows_are_the_same_data(mulan):
    for part in (mulan("{0 1.5,1 1}\n{}\n{2 -2}\n"), mulan("1.5,1,0\n0,0,0\n0,0,-2\n")):
        np.testing.assert_array_equal(part.X.toarray(), [[1.5, 0], [0, 0], [0, -2]])
        np.testing.assert_array_equal(part.Y.toarray(), [[1], [0], [0]])
        assert part.label_names == ["a tag"] and part.feature_names == ["f1", "f2"]
        assert part.X.dtype == np.float64 and part.Y.dtype == np.int8


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("{7 1}\n", "Bad @DATA instance format"),
        ("{0}\n", "Invalid layout"),
        ("0,x,0\n", "nominal|Data value|Bad"),
        ("x,0,0\n", "numerical"),
        ("1,2\n", "Bad"),
        ("nan,0,1\n", "not finite"),
    ],
)
def test_malformed_rows_raise(mulan, rows, words):
    with pytest.raises(ValueError, match=words):
        mulan(rows)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"header": HEADER.replace("f1 numeric", "f1 string")}, "attribute f1 has the values 'STRING'"),
        ({"header": HEADER.replace("f1 numeric", "f1 {red,green}")}, "they must be numbers, 0 first"),
        ({"header": HEADER.replace("{0,1}", "numeric")}, "a label has the value 2"),
        ({"xml": '<labels><label name="other"/></labels>'}, "0 of 1 labels"),
        ({"xml": "<html/>"}, "0 of 0 labels"),
    ],
)
def test_columns_that_are_not_numbers_or_labels_raise(mulan, changes, words):
    with pytest.raises(ValueError, match=words):
        mulan("0,2,0\n" if "numeric" in words or "value 2" in words else "0,0,0\n", **changes)


def test_rows_of_the_extreme_classification_repository(tmp_path):
    path = tmp_path / "d.txt"
    path.write_text("3 4 2\n0,1 2:0.5\n 0:1 3:2\n1 1:-1\n")
    data = read_xc(path)
    np.testing.assert_array_equal(data.X.toarray(), [[0, 0, 0.5, 0], [1, 0, 0, 2], [0, -1, 0, 0]])
    np.testing.assert_array_equal(data.Y.toarray(), [[1, 1], [0, 0], [0, 1]])
    path.write_text("4 4 2\n0,1 2:0.5\n")
    with pytest.raises(ValueError, match="1 rows, but the first line states 4"):
        read_xc(path)


def test_ranks_and_orders_are_the_same_rankings(tmp_path):
    ranks, orders = tmp_path / "ranks.csv", tmp_path / "orders.txt"
    ranks.write_text("A1,L1,L2,L3\n0.5,2,1,3\n1,3,2,1\n")
    orders.write_text("A1,ranking\n0.5,b>a>c\n1,c>b>a\n")
    first, second = read_ranks(ranks), read_orders(orders)
    assert first.Y.tolist() == second.Y.tolist() == [[2, 1, 3], [3, 2, 1]]
    assert first.X.tolist() == second.X.tolist() == [[0.5], [1.0]]
    assert first.item_names == ["L1", "L2", "L3"] and second.item_names == ["a", "b", "c"]
    assert first.feature_names == second.feature_names == ["A1"]


STANZAS = """Package: zip
Description: archiver, with options: many
 a longer text
Tag: role::program, scope::utility,
 use::compressing
Section: utils

Package: untagged
Description: no tags

Package: abc-data
Source: abc (1.0-2)
Tag: role::app-data
"""


def test_stanzas_of_apt_cache_become_sorted_rows():
    table = parse_packages(STANZAS)
    assert table.to_numpy().tolist() == [
        ["abc-data", "abc", "", "", "role::app-data"],
        ["zip", "zip", "utils", "archiver, with options: many a longer text",
         "role::program;scope::utility;use::compressing"],
    ]  # fmt: skip
    with pytest.raises(FileNotFoundError, match="lists no package with tags"):
        parse_packages("Package: untagged\n")


def test_packages_of_one_source_are_in_the_same_part(tmp_path):
    path = tmp_path / "packages.csv"
    names = [f"source-{i % 20}" for i in range(60)]
    rows = [f"p{i},{name},games,null,a::b;c" for i, name in enumerate(names)]
    path.write_text("\n".join(["package,source,section,description,tags", *rows]) + "\n")
    data = read_debian(path)
    assert sorted([*data.train, *data.test]) == list(range(60)) and len(data.test)
    assert not {names[i] for i in data.train} & {names[i] for i in data.test}
    assert data.texts == ["null"] * 60 and data.tags == [["a::b", "c"]] * 60 and data.packages[0] == "p0"


def test_arrays_that_are_declared_and_not_there_are_not_allocated(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "usps.h5"
    with h5py.File(path, "w") as file:
        for name in ("train", "test"):
            file.create_dataset(f"{name}/data", (10**9, 256), "f4", chunks=(1024, 256))
            file[f"{name}/target"] = np.arange(3)
    with pytest.raises(ValueError, match="far more than the file"):
        read_usps(path)
    parts = {"Y_data": np.ones(1), "Y_indices": np.zeros(1, int), "Y_indptr": np.array([0, 1])}
    np.savez(path.with_suffix(".npz"), X=np.eye(1), is_test=[False], Y_shape=np.empty((10**9, 0)), **parts)
    with pytest.raises(ValueError, match="too many values"):
        read_npz(path.with_suffix(".npz"))
