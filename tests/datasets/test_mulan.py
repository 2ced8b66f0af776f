import numpy as np
import pytest

from psilearn.datasets import read_mulan

HEADER = "@relation r\n\n% a comment\n@attribute f1 numeric\n@attribute 'a tag' {0,1}\n@attribute f2 numeric\n@DATA\n"
XML = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="a tag"></label></labels>'


@pytest.fixture
def files(tmp_path):
    def write(rows, header=HEADER, xml=XML):
        (tmp_path / "d.arff").write_text(header + rows)
        (tmp_path / "d.xml").write_text(xml)
        return tmp_path / "d.arff", tmp_path / "d.xml"

    return write


def test_sparse_and_dense_rows_are_the_same_data(files):
    sparse = read_mulan(*files("{0 1.5,1 1}\n{}\n{2 -2}\n"))
    dense = read_mulan(*files("1.5,1,0\n0,0,0\n0,0,-2\n"))
    for part in (sparse, dense):
        np.testing.assert_array_equal(part.X.toarray(), [[1.5, 0], [0, 0], [0, -2]])
        np.testing.assert_array_equal(part.Y.toarray(), [[1], [0], [0]])
        assert part.label_names == ["a tag"] and part.feature_names == ["f1", "f2"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("{0 1}\n{1 1,2 0.5", r"d.arff, line 9: the row is cut off"),
        ("{7 1}\n", r"line 8: attribute 7 does not exist: the 3 of"),
        ("{0 1,0 2}\n", r"line 8: attribute 0 stands twice"),
        ("{0}\n", r"line 8: a sparse row must hold distinct pairs"),
        ("1,2\n", r"line 8: 2 values for 3 attributes"),
        ("1,x,0\n", r"line 8: the value of 'a tag' is 'x'"),
        ("", r"no data rows after 3 attributes"),
    ],
)
def test_malformed_rows_are_named(files, rows, words):
    with pytest.raises(ValueError, match=words):
        read_mulan(*files(rows))


def test_malformed_files_are_named(files):
    with pytest.raises(ValueError, match=r"line 1: a web page or XML instead of data"):
        read_mulan(*files("", header="<html>\n"))
    with pytest.raises(ValueError, match=r"d.xml: not an XML file of labels"):
        read_mulan(*files("0,0,0\n", xml="<labels>"))
    with pytest.raises(ValueError, match=r"1 of 1 labels are no attribute"):
        read_mulan(*files("0,0,0\n", xml='<labels><label name="other"/></labels>'))
    with pytest.raises(ValueError, match=r"0 of 0 labels"):
        read_mulan(*files("0,0,0\n", xml="<html></html>"))
