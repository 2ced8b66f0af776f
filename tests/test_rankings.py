"""Rankings as ranks and as orders: both forms are equivalent, and an error names the row that is not a ranking."""

from itertools import permutations
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context

from psilearn.kernels import Hamming, Kemeny, Lehmer
from psilearn.metrics import kendall_tau, pairwise_accuracy, spearman_rho
from psilearn.rankings import all_rankings, from_orders, is_orders, ranks_from_item_numbers, to_orders
from tests.kernels.kernel_cases import PROPERTY
from tests.kernels.kernel_cases import permutations as rank_rows

KERNELS = [Kemeny, Hamming, Lehmer]
NAN = float("nan")


@PROPERTY
@given(ranks=rank_rows)
def test_orders_and_ranks_are_equivalent(ranks):
    orders = to_orders(ranks)
    back, items = from_orders(orders)
    np.testing.assert_array_equal(back, ranks)
    assert items == [chr(97 + i) for i in range(ranks.shape[1])]
    for row, order in zip(ranks, orders, strict=True):
        names = order.split(">")
        assert [row["abcde".index(name)] for name in names] == sorted(row)


@PROPERTY
@given(ranks=rank_rows, seed=st.integers(0, 99))
def test_partial_orders_keep_the_order_of_items(ranks, seed):
    rng = np.random.default_rng(seed)
    partial = np.where(rng.random(ranks.shape) < 0.3, NAN, np.minimum(ranks, 2))
    partial[:, :2] = [1, 2]
    items = "abcde"[: ranks.shape[1]]
    back, _ = from_orders(to_orders(partial, items), items, partial=True)
    np.testing.assert_array_equal(np.isnan(back), np.isnan(partial))
    np.testing.assert_array_equal(Kemeny(partial=True)(back), Kemeny(partial=True)(partial))


def test_items_are_sorted_and_numbers_by_value():
    assert from_orders(["10>9>x>2"])[1] == ["2", "9", "10", "x"]
    ranks, items = from_orders([" red wine > beer "], items=["beer", "red wine"])
    assert ranks.tolist() == [[2, 1]] and items == ["beer", "red wine"]
    assert to_orders(np.arange(1, 28)[None])[0].startswith("1>2>3")  # more items than letters


@pytest.mark.parametrize("K", [1, 2, 3, 5])
def test_all_rankings_are_all_permutations_in_order(K):
    assert all_rankings(K).tolist() == [list(p) for p in permutations(range(1, K + 1))]
    assert len(all_rankings(K)) == factorial(K)


def test_item_numbers_become_ranks():
    np.testing.assert_array_equal(ranks_from_item_numbers(np.array([[1, 2, 0]])), [[3, 1, 2]])


def test_too_many_rankings_raise_before_they_are_built():
    with pytest.raises(MemoryError, match=r"All 20! rankings of 20 items.*give candidates"):
        all_rankings(20)
    with pytest.raises(ValueError, match=r"All 500! rankings of 500 items are too many to list"):
        all_rankings(500)


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        (["a>b>c", "a>b"], r"in row 1: 'a>b' leaves out c; .*partial=True"),
        (["a>b>c", "a>b=c"], r"in row 1: 'a>b=c' ties items"),
        (["a>b>c", "a>b>d"], r"in row 1: 'a>b>d' names 'd'; the items are a, b, c"),
        (["a>b>a"], r"in row 0: 'a>b>a' names a more than once"),
        (["a>>b"], r"in row 0: 'a>>b' has an empty name"),
        (
            ["a", "b"],
            r"items of orders, whose row 0 is 'a', must be at least 2 different names, as in 'b>c>a'; got \['a'\]",
        ),
        ([], r"is empty"),
    ],
)
def test_errors_about_orders_name_the_row(orders, message):
    with pytest.raises(ValueError, match=message):
        from_orders(orders)


def test_an_order_is_a_string():
    with pytest.raises(TypeError, match=r"in row 1 must be a string such as 'b>c>a'; got 3"):
        from_orders(["a>b", 3])
    with pytest.raises(ValueError, match="at least 2 different names"):
        from_orders(["a>b"], items=["a", "a"])
    with pytest.raises(TypeError, match=r"must be names, that is strings; got \[1, 2\]"):
        from_orders(["1>2"], items=[1, 2])
    with pytest.raises(TypeError, match=r"y in row 1 must be a string such as 'b>c>a'; got None"):
        Kemeny().check(["a>b", None], "y")
    with pytest.raises(ValueError, match=r"y holds orders in a column, shape \(2, 1\): give them as one sequence"):
        Kemeny().check(np.array([["a>b"], ["b>a"]]), "y")


def test_errors_of_to_orders(pd):
    with pytest.raises(ValueError, match="items names 2 items, but ranks has 3 columns"):
        to_orders([[1, 2, 3]], ["a", "b"])
    with pytest.raises(ValueError, match=r"shape \(n, K\).*\(3,\)"):
        to_orders([1, 2, 3])
    with pytest.raises(ValueError, match=r"without '>', '=' and spaces at their ends; got 'a>b'"):
        to_orders([[1, 2]], ["a>b", "c"])
    assert to_orders(pd.DataFrame({"beer": [2], "wine": [1]})).tolist() == ["wine>beer"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            [1, 1, 3],
            r"y in row 1 is not a ranking of 3 items, \[1, 1, 3\]: 1 occurs 2 times, 2 is missing.*partial=True",
        ),
        ([0, 1, 2], r"y in row 1 .*Ranks begin with 1.*'b>c>a'"),
        ([1, 2, 4], r"3 is missing"),
        ([1.5, 2, 3], r"1 is missing"),
        ([1, 2, NAN], r"y in row 1 is not a ranking of 3 items, \[1, 2, nan\]: 3 is missing.*NaN.*partial=True"),
    ],
)
def test_errors_about_ranks_name_the_row(kernel, row, message):
    with pytest.raises(ValueError, match=message):
        kernel().check([[1, 2, 3], row], "y")


@pytest.mark.parametrize("kernel", KERNELS)
def test_errors_about_rows_of_unequal_length_name_the_rows(kernel):
    with pytest.raises(ValueError, match="row 0 has 3 ranks, row 1 has 2"):
        kernel().check([[1, 2, 3], [1, 2]], "y")


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_value_that_is_not_a_collection_of_rankings_raises(kernel):
    for value in (3, None, np.array(3.0), "a>b", {"a>b"}):
        with pytest.raises(TypeError, match="A must be an array or a sequence of objects"):
            kernel()(value)
    for empty in (np.empty((0, 3)), []):
        with pytest.raises(ValueError, match="A is empty"):
            kernel()(empty)
    with pytest.raises(ValueError, match="items of A, whose row 0 is 'one', must be at least 2 different names"):
        kernel()(["one", "two"])
    with pytest.raises(ValueError, match=r"A has 3 columns.*B has 2"):
        kernel()([[1, 2, 3]], [[1, 2]])
    with pytest.raises(ValueError, match="infinity"):
        kernel(partial=True)([[1, np.inf, 3]])


def test_errors_about_partial_rankings():
    with pytest.raises(ValueError, match="y in row 1 does not rank any item"):
        Kemeny(partial=True).check([[1, NAN], [NAN, NAN]], "y")
    for all_tied in ([2, 2], [NAN, 1]):
        with pytest.raises(ValueError, match="y in row 1 does not prefer any item to another"):
            Kemeny(partial=True).check([[1, 2], all_tied], "y")
    with pytest.raises(ValueError, match="y in row 0 has a rank below 1: 1 is preferred, and an unknown rank is NaN"):
        Kemeny(partial=True).check([[1, 2, -1]], "y")
    assert Hamming(partial=True)([[NAN, 1]], [[2, 1], [1, 2]]).tolist() == [[0.5, 0.0]]  # a single place is information
    with pytest.raises(ValueError, match=r"y in row 1: 'b>c' omits or ties items.*the ranks that Hamming compares"):
        Hamming(partial=True, items=["a", "b", "c"]).check(["a>b>c", "b>c"], "y")
    with pytest.raises(ValueError, match="y ranks 3 items per row, but items has 2 names"):
        Kemeny(items=["a", "b"]).check([[1, 2, 3]], "y")
    with pytest.raises(ValueError, match=r"y in row 0 has the rank 2.5: Hamming requires integers from 1 to 3"):
        Hamming(partial=True).check([[1, 2.5, NAN]], "y")


@pytest.mark.parametrize("kernel", KERNELS)
def test_orders_give_the_kernel_of_their_ranks(kernel, pd):
    ranks = all_rankings(4)[::5]
    orders = to_orders(ranks, ["x", "y", "z", "w"])  # w < x < y < z: other columns, the same rankings
    by_name = ranks[:, [3, 0, 1, 2]]
    for form in (orders, list(orders), pd.Series(orders)):
        np.testing.assert_array_equal(kernel()(kernel().check(form)), kernel()(by_name))
    np.testing.assert_array_equal(kernel().paired(orders, orders[::-1]), kernel().paired(by_name, by_name[::-1]))
    np.testing.assert_array_equal(kernel().diag(orders), kernel().diag(by_name))


def test_mixed_forms_and_items_raise(pd):
    with pytest.raises(ValueError, match="same items: A: orders of a, b; B: ranks"):
        Kemeny()(["a>b"], [[1, 2]])
    with pytest.raises(ValueError, match="A: orders of a, b; B: orders of a, c"):
        Kemeny()(["a>b"], ["a>c"])
    with pytest.raises(ValueError, match=r"partial orders, such as 'a>b': name all items"):
        Kemeny(partial=True).check(["a>b"])
    later = pd.Series(["a>b>c", "b=a>c"], index=[5, 9])  # the index of a random split
    with pytest.raises(ValueError, match="such as 'a>b>c': name all items"):
        Kemeny(partial=True).check(later)
    with pytest.raises(ValueError, match="A in row 1: 'b=a>c' omits or ties items"):
        Hamming(partial=True, items=["a", "b", "c"])(later)
    items = Kemeny(partial=True, items=["a", "b", "c"])
    assert items(["a>b"], ["a>b>c", "b>a"]).round(4).tolist() == [[0.3333, -0.3333]]


def test_only_strings_are_orders(pd):
    assert is_orders(["a>b"]) and is_orders(np.array(["a>b"])) and is_orders(pd.Series(["a>b"]))
    assert not is_orders([[1, 2]]) and not is_orders("a>b") and not is_orders([]) and not is_orders(np.array([1.0]))


@pytest.mark.parametrize("kernel", [Kemeny, Hamming, Lehmer])
def test_features_have_the_kernel_as_inner_product(kernel):
    ranks = all_rankings(4)
    psi = kernel().features(ranks)
    np.testing.assert_allclose(psi @ psi.T, kernel()(ranks), atol=1e-14)
    norms = np.sum(psi**2, axis=1)
    assert norms.max() == pytest.approx(1)
    if kernel is not Lehmer:
        np.testing.assert_allclose(norms, 1)


def test_kendalls_distance_hamming_distance_and_the_lehmer_code():
    ranks = all_rankings(4)
    discordant = [
        [sum((a[i] - a[j]) * (b[i] - b[j]) < 0 for i in range(4) for j in range(i)) for b in ranks] for a in ranks
    ]
    np.testing.assert_allclose(Kemeny().squared_distances(ranks), 4 / 6 * np.array(discordant), atol=1e-13)
    moved = [[np.sum(a != b) for b in ranks] for a in ranks]
    np.testing.assert_allclose(Hamming().squared_distances(ranks), 2 / 4 * np.array(moved), atol=1e-13)
    code = np.array([[sum(row[j] > row[i] for j in range(i)) for i in range(4)] for row in ranks])
    assert len(np.unique(code, axis=0)) == 24
    squared = np.sum((code[:, None] - code[None]) ** 2, axis=2)
    np.testing.assert_allclose(Lehmer().squared_distances(ranks), 4 * squared / (1 + 4 + 9), atol=1e-13)
    np.testing.assert_allclose(Lehmer().features(ranks).mean(axis=0), 0, atol=1e-14)


@pytest.mark.parametrize("kernel", [Kemeny, Lehmer])
def test_unknown_and_tied_pairs_count_zero(kernel):
    partial = np.array([[1, NAN, 2, 2], [2, 1, NAN, NAN]])  # row 1 orders one pair
    full = np.array([[1, 2, 3, 4], [4, 1, 3, 2]])
    signs = [(0, 2), (0, 3)]  # the pairs that row 0 orders: 0 before 2 and 3
    expected = np.zeros(kernel().features(full).shape[1])
    if kernel is Kemeny:
        pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
        for pair in signs:
            expected[pairs.index(pair)] = 1 / np.sqrt(6)
    else:
        for _, j in signs:
            expected[j] -= 1 / np.sqrt(14)
    np.testing.assert_allclose(kernel(partial=True).features(partial)[0], expected, atol=1e-14)
    np.testing.assert_array_equal(kernel(partial=True)(full), kernel()(full))


def test_metrics_use_the_items_that_both_rankings_contain():
    full, partial = np.array([[2, 1, 4, 3]]), np.array([[1, 3, NAN, 2]])
    known = [0, 1, 3]
    for metric in (kendall_tau, spearman_rho, pairwise_accuracy):
        expected = metric(full[:, known], partial[:, known])
        assert metric(full, partial) == pytest.approx(expected)
        assert metric(partial, full) == pytest.approx(metric(partial[:, known], full[:, known]))
        assert metric(["b>a>d>c"], ["a>d>b"]) == pytest.approx(expected)
        assert metric(["b>a>d>c"], ["b>a>d>c"]) == 1
        with pytest.raises(ValueError, match="the same form"):
            metric(["a>b"], [[1, 2]])
        with pytest.raises(TypeError, match=r"Y_true in row 1 must be a string such as 'b>c>a'; got None"):
            metric(["a>b", None], ["a>b", "a>b"])
        with pytest.raises(ValueError, match="Y_true orders a, b, Y_pred x, y: no common item"):
            metric(["a>b"], ["x>y"])
        with pytest.raises(ValueError, match="Y_pred in row 1: 'a>b>a' names a more than once"):
            metric(["a>b", "b>a"], ["a>b", "a>b>a"])
        with pytest.raises(ValueError, match="Y_pred in row 0 has a rank below 1"):
            metric([[1, 2]], [[0, 1]])
        with pytest.raises(ValueError, match="Y_true ranks 3 items, Y_pred 2"):
            metric([[1, 2, 3]], [[1, 2]])


def test_metrics_do_not_depend_on_the_block_size():
    rng = np.random.default_rng(0)
    A, B = (np.array([rng.permutation(8) + 1 for _ in range(3000)]) for _ in range(2))
    whole = [metric(A, B).values for metric in (kendall_tau, spearman_rho, pairwise_accuracy)]
    with config_context(working_memory=0.1):
        for metric, values in zip((kendall_tau, spearman_rho, pairwise_accuracy), whole, strict=True):
            np.testing.assert_array_equal(metric(A, B).values, values)


def test_the_vectorised_reader_of_orders_agrees_with_the_general_one():
    rng = np.random.default_rng(0)
    items = ["10", "9", "b", "a", "é"]
    ranks = np.array([rng.permutation(5) + 1 for _ in range(200)])
    orders = to_orders(ranks, items)
    np.testing.assert_array_equal(from_orders(orders, items)[0], ranks)
    spaced = [order.replace(">", " > ") for order in orders]  # read by the general reader
    np.testing.assert_array_equal(from_orders(spaced, items)[0], ranks)
    with pytest.raises(ValueError, match=r"in row 1: 'a>b>10>9' leaves out é"):
        from_orders(["a>b>10>9>é", "a>b>10>9", "a>b>10>9>é>a"], items)
