"""Readers of tables: all formats of one table agree, and bad files are reported with their line."""

import gzip
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from psilearn.app.tables import read_table, table_formats
from tests.app.tables.example_tables import NAMES, TAGS, label_columns, make_problem, write_csv


def as_array(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def write_arff(path, X, Y):
    header = ["@relation toy", *(f"@attribute {name} numeric" for name in NAMES)]
    header += [f"@attribute tag_{tag} {{0,1}}" for tag in TAGS]
    rows = [",".join(f"{value:g}" for value in row) for row in np.hstack([X, Y])]
    path.write_text("\n".join([*header, "@data", *rows]))


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "arff", "parquet"])
def test_formats_with_named_columns_agree(tmp_path, ending):
    X, Y = make_problem()
    path = tmp_path / f"table.{ending}"
    columns = label_columns(X, Y)
    if ending == "arff":
        write_arff(path, X, Y)
    elif ending == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        numbers = np.hstack([X, Y]).T
        table = pyarrow.table(dict(zip(columns, numbers, strict=True)))
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    elif ending == "csv.gz":
        path.write_bytes(gzip.compress(write_csv(tmp_path / "plain.csv", columns).read_bytes()))
    else:
        write_csv(path, columns)
    table = read_table(path)
    assert table.names == table.number_names == (*NAMES, *(f"tag_{tag}" for tag in TAGS))
    np.testing.assert_array_equal(as_array(table.numbers), np.hstack([X, Y]))


def test_svmlight_has_a_column_of_labels_and_only_features_that_occur(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("0,2 1:0.5 2000000000:2\n 1:1 # no label\n\n1 7:-3\n")
    table = read_table(path)
    assert table.number_names == ("1", "7", "2000000000")
    assert table.texts == {"labels": ["0,2", "", "1"]} and table.outputs == ("labels",)
    np.testing.assert_array_equal(table.numbers.toarray(), [[0.5, 0, 2], [1, 0, 0], [0, -3, 0]])
    np.testing.assert_array_equal(table.get_numbers(["7", "3", "1"]).toarray(), [[0, 0, 0.5], [0, 0, 1], [-3, 0, 0]])


def test_meka_files_mark_their_labels_and_words_are_texts(tmp_path):
    path = tmp_path / "rows.arff"
    path.write_text(
        "@relation 'toy: -C 1'\n@attribute tag {0,1}\n@attribute color {red,'dark blue',2}\n@attribute size numeric\n"
        "@data\n1,'dark blue',2.5\n0,red,1\n% comment\n0, 2, 0\n0,red,?\n"
    )
    table = read_table(path)
    assert table.outputs == ("tag",) and table.texts == {"color": ["dark blue", "red", "2", "red"]}
    np.testing.assert_array_equal(table.numbers, [[1, 2.5], [0, 1], [0, 0], [0, np.nan]])
    assert table.places.tolist() == [6, 7, 9, 10]
    path.write_text(
        "@relation r\n@attribute a {1,0}\n@attribute b {x,y}\n@attribute c real\n@data\n{1 y}\n{0 0,2 3}\n{}\n"
    )
    table = read_table(path)
    assert table.texts == {"b": ["y", "x", "x"]} and table.number_names == ("c", "a")
    np.testing.assert_array_equal(table.numbers.toarray(), [[0, 1], [3, 0], [0, 1]])


def test_cells_of_csv(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('\ufeff"a, b",text,missing,code\n1e-3,"two\nlines",NA,01\n-2, plain ,5,02\n\n3,"say ""hi""",?,10\n')
    table = read_table(path, text_columns=["code"])
    assert table.names == ("a, b", "text", "missing", "code")
    assert table.texts == {"text": ["two\nlines", "plain", 'say "hi"'], "code": ["01", "02", "10"]}
    np.testing.assert_array_equal(table.numbers, [[1e-3, np.nan], [-2, 5], [3, np.nan]])
    assert table.places.tolist() == [2, 4, 6]
    assert table.get_texts("missing") == ["", "5", ""]


@pytest.mark.parametrize(("header", "row"), [("a;b", "1;2"), ("a\tb", "1\t2"), (",a,b", "0,1,2")])
def test_other_separators_and_unnamed_row_numbers(tmp_path, header, row):
    path = tmp_path / "table.csv"
    path.write_text(f"{header}\n{row}\n")
    table = read_table(path)
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.numbers, [[1, 2]])


@pytest.mark.parametrize("cells", [2, 4, 1_000_000])
def test_the_chunks_of_a_csv_file_do_not_change_the_table(tmp_path, monkeypatch, cells):
    monkeypatch.setattr(table_formats, "CHUNK_CELLS", cells)
    path = write_csv(tmp_path / "table.csv", {"late": [1, 2, 3, "x"], "number": [1, 2, "", 4]})
    table = read_table(path)
    assert table.texts == {"late": ["1", "2", "3", "x"]}
    np.testing.assert_array_equal(table.numbers.ravel(), [1, 2, np.nan, 4])
    assert table.places.tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv.gz", "a,b\n1,2\n", "t.csv.gz ends in .gz, but is not compressed by gzip: rename or compress it."),
        ("t.csv", "a,b\n1,2\n3\n", "t.csv, line 3: 1 cell for 2 columns; add the missing cells, which may be empty."),
        ("t.csv", "a,b\n1,2,3\n", "line 2: 3 cells for 2 columns; a cell that contains the separator must be quoted."),
        (
            "t.csv",
            'a,b\n1,"2\n3,4\n',
            'line 2: the row that begins here cannot be read: a cell begins with " but has no closing',
        ),
        ("t.csv", "a,b,a\n1,2,3\n", "line 1: several columns are named 'a': rename or remove all but one."),
        ("t.csv", "1.5,2\n1,2\n", "line 1: the header is missing: the first line must name the columns"),
        ("t.csv", "1,1\n1,2\n", "line 1: the header is missing: the first line must name the columns"),
        ("t.csv", "a,b\r1,2\r", "line 1: the lines end with CR, as on old Macs: save it with LF or CRLF line ends."),
        ("t.csv", "a,,b\n1,2,3\n", "line 1: column 2 has no name: the first line must name all columns."),
        ("t.csv", "a,b\n", "line 1: no rows after the header of 2 columns"),
        ("t.csv", "", "t.csv: the file is empty."),
        ("t.csv", "a,b\n1,\0\n", "line 2: binary content"),
        ("t.csv", "a\n" + "x" * 200_000 + "\n", "line 2: the row that begins here cannot be read"),
        ("t.xlsx", "a", "does not end in a known format: .csv"),
        ("t.parquet.gz", "a", "does not end in a known format"),
        ("t.parquet", "a,b\n1,2\n", "is not a Parquet file that can be read"),
        ("t.svm", "1 a:b\n", "line 1: a row must be"),
        (
            "t.arff",
            "@relation r\n@attribute a {x,y}\n@data\nz\n",
            "line 4: Data value z not found in nominal declaration",
        ),
        (
            "t.arff",
            "@relation r\n@attribute a {x,y}\n@data\n1\n",
            "line 4: Data value 1 not found in nominal declaration",
        ),
        ("t.arff", "@relation r\n@attribute a {x,y\n@data\nx\n", "line 2: an attribute must be a name and numeric or"),
        ("t.arff", "@relation r\n@attribute a {" + "a," * 40 + "b c}\n@data\na\n", "line 2: an attribute must be"),
        ("t.arff", "@relation r\n@attribute a real\n@data\n1\nx%d%\n", "line 5: Invalid numerical value"),
        ("t.arff", "@relation r\n@attribute a real\n@data\n{0 ?}\n", "line 4: a value is missing or infinite"),
        ("t.arff", "@relation r\n@attribute a real\n@data\n1\n{0 1}\n", "line 5: a row lists places and values"),
        ("t.arff", "@relation r\n@attribute a string\n@data\nx\n", "the attribute 'a' is a string; list its values"),
        ("t.arff", "@relation r\n@attribute a real\n@data\n", "no data rows after 1 attributes"),
        ("t.svm", "1 1:1\n1 2:nan\n1 3:1\n", "line 2: a row must be 'label,label index:value"),
        ("t.svm", "1 1:1\n1.5 2:1\n", "line 2: a row must be"),
        ("t.svm", "1 1:1_0\n", "line 1: a row must be"),
        (
            "t.arff",
            "@relation r\n@attribute a real\n@attribute a real\n@data\n1,2\n",
            "line 3: Bad @ATTRIBUTE name a at line 3, this name is already in use",
        ),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError) as error:
        read_table(tmp_path / name)
    assert message in str(error.value) and name in str(error.value)


def test_parquet_types(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {
        "flag": [True, False, None],
        "count": [1, 2, 3],
        "word": pyarrow.array(["x", None, "x"]).dictionary_encode(),
        "long": pyarrow.array(["p", "q", "r"], pyarrow.large_string()),
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", text_columns={"count"})
    assert table.texts == {"word": ["x", "", "x"], "long": ["p", "q", "r"], "count": ["1", "2", "3"]}
    np.testing.assert_array_equal(table.numbers.ravel(), [1, 0, np.nan])
    parquet.write_table(pyarrow.table({"list": [[1], [2]]}), tmp_path / "list.parquet")
    with pytest.raises(ValueError, match="the column 'list' has the type list"):
        read_table(tmp_path / "list.parquet")
    parquet.write_table(pyarrow.table({"a": np.zeros(20_000_000, np.int8)}), tmp_path / "bomb.parquet")
    with pytest.raises(ValueError, match=r"20,000,000 rows of 1 columns, which need over 200 times"):
        read_table(tmp_path / "bomb.parquet")


@pytest.mark.parametrize(
    ("n_rows", "length", "message"),
    [(2_000_000, 100_000, "over 200 times"), (10, 200_000, "more than 131,072 characters")],
)
def test_a_parquet_file_of_one_long_text_in_many_rows_is_rejected(tmp_path, n_rows, length, message):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = pyarrow.DictionaryArray.from_arrays(np.zeros(n_rows, np.int32), pyarrow.array(["x" * length]))
    parquet.write_table(pyarrow.table({"a": texts}), tmp_path / "t.parquet", compression="zstd")
    assert (tmp_path / "t.parquet").stat().st_size < 10_000
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.parquet")


def test_equal_texts_of_a_parquet_file_are_kept_once(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = pyarrow.DictionaryArray.from_arrays(np.zeros(60_000, np.int32), pyarrow.array(["x" * 100_000]))
    parquet.write_table(pyarrow.table({"a": texts}), tmp_path / "t.parquet", compression="zstd")
    cells = read_table(tmp_path / "t.parquet").texts["a"]  # 6 GB if each cell had a text of its own
    assert len(cells) == 60_000 and len({id(cell) for cell in cells}) == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", ",".join(f"a{i}" for i in range(100_001)), "more than 100,000 columns"),
        ("t.arff", "@relation r\n" + "".join(f"@attribute a{i} real\n" for i in range(100_001)), "100,000 are allowed"),
        ("t.csv", "a\n" + "1" * 5_000_000, "the line is longer than 4,194,304 bytes"),
    ],
)
def test_tables_that_are_too_wide_are_rejected(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / name)


def test_reading_needs_16_bytes_per_number_and_the_texts_of_two_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(table_formats, "CHUNK_CELLS", 20_000)  # a tenth, for which 64 MB become 6.4
    path, n_rows = tmp_path / "t.csv", 20_000
    path.write_text(",".join(f"x{j}" for j in range(10)) + "\n" + ("0.125," * 9 + "1\n") * n_rows)
    tracemalloc.start()
    try:
        table = read_table(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert table.numbers.shape == (n_rows, 10)
    assert peak < 16 * table.numbers.size + 6.4e6
