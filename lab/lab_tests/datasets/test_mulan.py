"""Files of Mulan and MEKA: layouts, labels and errors that name the line."""

import numpy as np
import pytest

from psilearn_lab.datasets import read_mulan

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
        ("{0 1}\n{1 1,2 0.5", r"d.arff, line 9: the row is truncated"),
        ("{7 1}\n", r"line 8: attribute 7 does not exist: the 3 of"),
        ("{0 1,0 2}\n", r"line 8: attribute 0 occurs twice"),
        ("{0}\n", r"line 8: a sparse row must hold pairs 'index value', not '0}'"),
        ("{0 1,}\n", r"line 8: a sparse row must hold pairs"),
        ("{0 1,,1 1}\n", r"line 8: a sparse row must hold pairs"),
        ("{0,1 2 1}\n", r"line 8: a sparse row must hold pairs"),
        ("{0 1},{5}\n", r"line 8: a sparse row must hold pairs"),
        ("{-1 1}\n", r"line 8: a sparse row must hold pairs"),
        ("{0 '1}\n", r"line 8: a sparse row must hold pairs"),
        ("{9 x}\n", r"line 8: attribute 9 does not exist: there are 3"),
        (f"{{{2**64} 1}}\n", r"line 8: an attribute number is too large"),
        ("0,1,0\n?,1,0\n", r"line 9: the value of f1 is missing \('\?'\); fill it in"),
        ("{2 ?}\n", r"line 8: the value of f2 is missing"),
        ("nan,1,0\n", r"line 8: the value of attribute 0 is nan"),
        ("{2 -inf}\n", r"line 8: the value of attribute 2 is -inf"),
        ("0,2,0\n", r"line 8: attribute 1 has the value 2; its header lists \(0.0, 1.0\)"),
        ("{1 0.5}\n", r"line 8: attribute 1 has the value 0.5"),
        ("1_0,1,0\n", r"line 8: the value of f1 is '1_0'"),
        ("0,1,0\n0,'1,0\n", r"line 9: quotes that do not close"),
        ("1,2\n", r"line 8: 2 values for 3 attributes"),
        ("1,x,0\n", r"line 8: the value of 'a tag' is 'x'"),
        ("", r"no data rows after 3 attributes"),
    ],
)
def test_malformed_rows_raise_with_their_line(files, rows, words):
    with pytest.raises(ValueError, match=words):
        read_mulan(*files(rows))


def test_malformed_files_raise_with_their_name(files):
    with pytest.raises(ValueError, match=r"line 1: a web page or XML instead of data"):
        read_mulan(*files("", header="<html>\n"))
    with pytest.raises(ValueError, match=r"d.xml is not an XML file of labels"):
        read_mulan(*files("0,0,0\n", xml='<?xml version="1.0" encoding="unknown"?><labels/>'))
    with pytest.raises(ValueError, match=r"d.xml is not an XML file of labels"):
        read_mulan(*files("0,0,0\n", xml="<labels>"))
    with pytest.raises(ValueError, match=r"1 of 1 labels are not attributes"):
        read_mulan(*files("0,0,0\n", xml='<labels><label name="other"/></labels>'))
    with pytest.raises(ValueError, match=r"0 of 0 labels"):
        read_mulan(*files("0,0,0\n", xml="<html></html>"))
    arff, xml = files("0,0,0\n")
    with pytest.raises(FileNotFoundError, match=r"absent.xml cannot be read"):
        read_mulan(arff, xml.with_name("absent.xml"))
    with pytest.raises(ValueError, match=r"is a folder; an XML file of labels is expected"):
        read_mulan(arff, xml.parent)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("@relation r\n@attribute a numeric\n", r"line 2: the file ends after 1 attributes, before @data"),
        ("@relation r\n@data\n", r"line 2: @data must be alone in a line after the attributes"),
        ("@attribute a numeric\n@data 1\n", r"line 2: @data must be alone"),
        ("@attribute a string\n@data\n", r"line 1: attribute a: its type 'string' is not numeric"),
        ("@attribute a\n@data\n", r"line 1: attribute a: its type '' is not numeric"),
        ("@attribute a {0,1\n@data\n", r"line 1: attribute a: the list of its values has no closing brace"),
        ("@attribute a {red,green}\n@data\n", r"line 1: attribute a: its values {red,green} are words"),
        ("@attribute a {'x,0}\n@data\n", r"line 1: attribute a: quotes that do not close"),
        ("@attribute 'a numeric\n@data\n", r"line 1: not an ARFF header"),
        ("column,column\n", r"line 1: not an ARFF header: 'column,column'"),
    ],
)
def test_malformed_headers_raise_with_their_line(files, header, words):
    with pytest.raises(ValueError, match=words):
        read_mulan(*files("", header=header))


def test_quoted_names_match_with_and_without_quotes(files):
    header = "@attribute 'it\\'s, {a}' {0,1}\n@attribute \"b \\\"c\\\"\"\t{0, 1}\n@attribute d\\'e real\n@data\n"
    xml = """<labels><label name="it's, {a}"><label name="&quot;b \\&quot;c\\&quot;&quot;"/></label></labels>"""
    bunch = read_mulan(*files("1,0,2\n", header=header, xml=xml))
    assert bunch.label_names == ["it's, {a}", 'b "c"'] and bunch.feature_names == ["d\\'e"]


def test_words_and_quoted_values_are_numbers(files):
    header = "@relation r\n@attribute f {NO,YES}\n@attribute 'a tag' {'0','1'}\n@attribute f2 {0,1,2}\n@data\n"
    bunch = read_mulan(*files("YES,'1',2\nNO,'0',0\n{0 YES, 1\t'1'}\n{ }\n", header=header))
    np.testing.assert_array_equal(bunch.X.toarray(), [[1, 2], [0, 0], [1, 0], [0, 0]])
    np.testing.assert_array_equal(bunch.Y.toarray().ravel(), [1, 0, 1, 0])


def test_an_omitted_entry_of_a_sparse_row_is_the_first_listed_value(files):
    header = "@relation r\n@attribute f {3,0}\n@attribute 'a tag' {1,0}\n@attribute f2 numeric\n@data\n"
    bunch = read_mulan(*files("{}\n{0 0,1 0}\n0,0,0\n{2 5}\n3,1,1\n", header=header))
    np.testing.assert_array_equal(bunch.X.toarray(), [[3, 0], [0, 0], [0, 0], [3, 5], [3, 1]])
    np.testing.assert_array_equal(bunch.Y.toarray().ravel(), [1, 0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"line 6: attribute 0 has the value 0; its header lists \(1.0, 2.0\)"):
        read_mulan(*files("0,1,0\n", header=header.replace("{3,0}", "{1,2}")))


def test_repeated_names_raise_only_for_labels(files):
    twice = HEADER.replace("f2", "f1")
    assert read_mulan(*files("1,0,2\n", header=twice)).feature_names == ["f1", "f1"]
    with pytest.raises(ValueError, match=r"several attributes are named 'a tag', which is a label"):
        read_mulan(*files("0,0,0\n", header=HEADER.replace("f2", "'a tag'")))


def test_a_numeric_label_must_be_binary(files):
    header = HEADER.replace("{0,1}", "numeric")
    assert read_mulan(*files("0,1,0\n", header=header)).Y.sum() == 1
    with pytest.raises(ValueError, match=r"d.arff, line 9: a label has the value 2; labels are 0 or 1"):
        read_mulan(*files("0,1,0\n0,2,0\n", header=header))


@pytest.mark.parametrize(("count", "labels"), [("2", [[1, 2]]), ("-1", [[3]]), ("3", [[1, 2, 3]])])
def test_labels_are_counted_by_the_relation(files, count, labels):
    header = f"@relation 'name: -C {count} -split 5'\n" + "".join(f"@attribute {i} numeric\n" for i in (1, 2, 3))
    arff, _ = files("1,1,1\n", header=header + "@data\n")
    assert [[int(name) for name in read_mulan(arff).label_names]] == labels


def test_without_xml_the_relation_must_state_the_number_of_labels(files):
    arff, _ = files("0,0,0\n")
    with pytest.raises(ValueError, match=r"d.arff: the relation does not state the number of labels"):
        read_mulan(arff)
    arff, _ = files("0,0,0\n", header=HEADER.replace("@relation r", "@relation 'r: -C 9'"))
    with pytest.raises(ValueError, match=r"9 labels of 3 attributes"):
        read_mulan(arff)
