"""Checks of single parameters: a valid value is returned as a plain number, an invalid one is named in the error."""

from fractions import Fraction

import numpy as np
import pytest

from psilearn._utils.validation import (
    check_count,
    check_fraction,
    check_non_negative,
    check_open_fraction,
    check_positive,
    check_precision,
    check_rows,
)

NOT_NUMBERS = [True, False, np.True_, "1", b"1", None, [1.0], np.array([1.0]), 1 + 0j, object]
NOT_FINITE = [np.nan, np.inf, -np.inf, float("nan"), np.float32("nan")]


@pytest.mark.parametrize("value", [0.5, 2, np.float64(0.5), np.float32(0.5), np.int64(3), np.uint8(3), Fraction(1, 2)])
def test_positive_returns_a_plain_float(value):
    assert check_positive(value, "gamma") == value
    assert type(check_positive(value, "gamma")) is float


@pytest.mark.parametrize("value", [0, 0.0, -0.0, -1, -1e-300, np.float32(-2), *NOT_FINITE, *NOT_NUMBERS], ids=repr)
def test_positive_rejects_other_values(value):
    with pytest.raises(ValueError, match="gamma must be a finite number > 0; got") as error:
        check_positive(value, "gamma")
    assert repr(value) in str(error.value)


def test_an_integer_larger_than_every_float_is_not_a_finite_number():
    with pytest.raises(ValueError, match="gamma must be a finite number > 0; got"):
        check_positive(10**400, "gamma")
    with pytest.raises(ValueError, match=r"supervision must be a number in \[0, 1\]; got"):
        check_fraction(10**400, "supervision")


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, 0.25, np.float64(0.5), np.float32(0.5), np.int64(1), Fraction(1, 2)])
def test_fraction_returns_a_plain_float(value):
    assert check_fraction(value, "supervision") == value
    assert type(check_fraction(value, "supervision")) is float


@pytest.mark.parametrize("value", [-1e-300, 1.0000001, -1, 2, *NOT_FINITE, *NOT_NUMBERS], ids=repr)
def test_fraction_rejects_other_values(value):
    with pytest.raises(ValueError, match=r"supervision must be a number in \[0, 1\]; got") as error:
        check_fraction(value, "supervision")
    assert repr(value) in str(error.value)


@pytest.mark.parametrize("value", [1, 7, np.int64(7), np.uint8(7), np.int32(1)])
def test_count_returns_a_plain_integer(value):
    assert check_count(value, "k") == value
    assert type(check_count(value, "k")) is int


@pytest.mark.parametrize("value", [0, -1, np.int64(0), 1.0, 2.5, np.float64(2), *NOT_FINITE, *NOT_NUMBERS], ids=repr)
def test_count_rejects_other_values(value):
    with pytest.raises(ValueError, match="k must be an integer ≥ 1; got") as error:
        check_count(value, "k")
    assert repr(value) in str(error.value)


def test_open_and_half_open_ranges():
    assert check_non_negative(0, "weight") == 0
    with pytest.raises(ValueError, match="weight must be a finite number ≥ 0; got -1"):
        check_non_negative(-1, "weight")
    assert check_open_fraction(0.5, "share") == 0.5
    for value in (0, 1, np.nan):
        with pytest.raises(ValueError, match="share must be a number between 0 and 1, both excluded; got"):
            check_open_fraction(value, "share")


@pytest.mark.parametrize("value", ["float64", np.float32, np.dtype("float64"), "tf32", float])
def test_precision_returns_a_dtype(value):
    expected = np.float32 if isinstance(value, str) and value == "tf32" else value
    assert check_precision(value, "dtype") == np.dtype(expected)


@pytest.mark.parametrize("value", [None, "float16", int, "half precision", 3], ids=repr)
def test_precision_rejects_other_values(value):
    with pytest.raises(ValueError, match='dtype must be "float64", "float32" or "tf32"; got'):
        check_precision(value, "dtype")


@pytest.mark.parametrize(
    "value", [[0, 3], [-4, -1], np.array([0, 3], np.int8), range(0, 4, 3), slice(None, None, 3)], ids=repr
)
def test_rows_are_numbers_from_0(value):
    assert check_rows(value, 4, "rows").tolist() == [0, 3]


@pytest.mark.parametrize("value", [None, 3, "a", [4], [-5], [True], [1.0], [[1]], [None], np.array(3), {}.keys])
def test_other_rows_are_named(value):
    with pytest.raises((TypeError, ValueError), match="rows must be"):
        check_rows(value, 4, "rows")
    assert check_rows([], 4, "rows").dtype == np.intp
