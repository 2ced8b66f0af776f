"""Checks of single parameters: what passes comes back as a plain number, what does not is named."""

from fractions import Fraction

import numpy as np
import pytest

from psilearn._utils.validation import check_count, check_fraction, check_positive

NO_NUMBERS = [True, False, np.True_, "1", b"1", None, [1.0], np.array([1.0]), 1 + 0j, object]
NOT_FINITE = [np.nan, np.inf, -np.inf, float("nan"), np.float32("nan")]


@pytest.mark.parametrize("value", [0.5, 2, np.float64(0.5), np.float32(0.5), np.int64(3), np.uint8(3), Fraction(1, 2)])
def test_positive_returns_a_plain_float(value):
    assert check_positive(value, "gamma") == value
    assert type(check_positive(value, "gamma")) is float


@pytest.mark.parametrize("value", [0, 0.0, -0.0, -1, -1e-300, np.float32(-2), *NOT_FINITE, *NO_NUMBERS], ids=repr)
def test_positive_refuses_all_else(value):
    with pytest.raises(ValueError, match="gamma must be a finite number > 0; got") as error:
        check_positive(value, "gamma")
    assert repr(value) in str(error.value)


def test_an_integer_beyond_all_floats_is_not_a_finite_number():
    with pytest.raises(ValueError, match="gamma must be a finite number > 0; got"):
        check_positive(10**400, "gamma")
    with pytest.raises(ValueError, match=r"supervision must be a number in \[0, 1\]; got"):
        check_fraction(10**400, "supervision")


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, 0.25, np.float64(0.5), np.float32(0.5), np.int64(1), Fraction(1, 2)])
def test_fraction_returns_a_plain_float(value):
    assert check_fraction(value, "supervision") == value
    assert type(check_fraction(value, "supervision")) is float


@pytest.mark.parametrize("value", [-1e-300, 1.0000001, -1, 2, *NOT_FINITE, *NO_NUMBERS], ids=repr)
def test_fraction_refuses_all_else(value):
    with pytest.raises(ValueError, match=r"supervision must be a number in \[0, 1\]; got") as error:
        check_fraction(value, "supervision")
    assert repr(value) in str(error.value)


@pytest.mark.parametrize("value", [1, 7, np.int64(7), np.uint8(7), np.int32(1)])
def test_count_returns_a_plain_integer(value):
    assert check_count(value, "k") == value
    assert type(check_count(value, "k")) is int


@pytest.mark.parametrize("value", [0, -1, np.int64(0), 1.0, 2.5, np.float64(2), *NOT_FINITE, *NO_NUMBERS], ids=repr)
def test_count_refuses_all_else(value):
    with pytest.raises(ValueError, match="k must be an integer ≥ 1; got") as error:
        check_count(value, "k")
    assert repr(value) in str(error.value)
