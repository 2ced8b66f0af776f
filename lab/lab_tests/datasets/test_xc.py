"""Files of the Extreme Classification Repository and of svmlight."""

import numpy as np
import pytest

from psilearn_lab.datasets import read_svmlight_multilabel, read_xc


def test_rows_without_labels_or_features(tmp_path):
    (tmp_path / "f.txt").write_text("5 3 4\n0,3 1:0.5\n 2:1\n2\n\n1:7\n\n\n")
    bunch = read_xc(tmp_path / "f.txt")
    np.testing.assert_array_equal(bunch.X.toarray(), [[0, 0.5, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 7, 0]])
    np.testing.assert_array_equal(bunch.Y.toarray(), [[1, 0, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0], [0] * 4, [0] * 4])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2 3\n", r"f.txt, line 1: three numbers are expected"),
        ("0 1:1\n", r"line 1: three numbers are expected"),
        ("-1 3 2\n", r"line 1: three numbers are expected"),
        ("2 3 2\n0 1:1\n", r"line 2: the file ends after 1 of 2 rows"),
        ("1 3 2\n0 1:1\n0 1:1\n", r"line 3: more rows than the 1"),
        ("1 3 2\n0 3:1\n", r"line 2: feature 3 does not exist: the 3 of the file have the numbers 0 to 2"),
        ("1 3 2\n0 -1:1\n", r"line 2: feature -1 does not exist"),
        ("1 3 2\n2 1:1\n", r"line 2: label 2 does not exist"),
        ("1 3 2\n0 1:nan\n", r"line 2: the value of feature 1 is nan"),
        ("1 3 2\n0 1:1e999\n", r"line 2: the value of feature 1 is inf"),
        ("2 3 2\n\n0 1:1 2:1 1:2\n", r"line 3: feature 1 occurs twice"),
        ("1 3 2\n1,1 1:1\n", r"line 2: label 1 occurs twice"),
        ("1 3 2\n0 1:x\n", r"line 2: a row must be"),
        ("1 3 2\n0 1:1:1\n", r"line 2: a row must be"),
        ("1 3 2\n0 1\n", r"line 2: a row must be"),
        ("1 3 2\n0,,1 1:1\n", r"line 2: a row must be"),
        ("1 3 2\n0.5 1:1\n", r"line 2: a row must be"),
        ("1 3 2\n0 1:1_0\n", r"line 2: a row must be"),
        ("1 3 2\n0 ١:1\n", r"line 2: a row must be"),
        (f"1 3 2\n0 {2**64}:1\n", r"line 2: a row must be"),
        (f"1 {2**70} 2\n0 1:1\n", r"columns are more than can be numbered"),
    ],
)
def test_malformed_xc_raises_with_its_line(tmp_path, text, words):
    (tmp_path / "f.txt").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        read_xc(tmp_path / "f.txt")


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("1 0:1\n", {}, r"line 1: feature 0, but features are counted from 1; pass zero_based=True"),
        ("# nothing\n\n", {}, r"f.svm: no rows"),
        ("0 1:1\n0 4:1\n", {"n_features": 3}, r"line 2: feature 4 does not exist: .* numbers 1 to 3"),
        ("0 4:1\n", {"n_features": 4, "zero_based": True}, r"line 1: feature 4 does not exist: .* numbers 0 to 3"),
        ("5 1:1\n", {"n_labels": 5}, r"line 1: label 5 does not exist"),
        ("-1 1:1\n", {}, r"line 1: label -1 does not exist"),
        ("1 qid:3 1:1\n", {}, r"line 1: a row must be"),
        ("1 1:1\n", {"n_features": 5.0}, r"n_features must be an integer"),
        ("1 1:1\n", {"n_labels": "3"}, r"n_labels must be an integer"),
    ],
)
def test_malformed_svmlight_raises_with_its_line(tmp_path, text, options, words):
    (tmp_path / "f.svm").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_svmlight_multilabel(tmp_path / "f.svm", **options)
