"""Collections of any form: finding equal objects, choosing some, putting collections together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from psilearn._utils import samples
from psilearn._utils.samples import concat, describe_shape, distinct, match, n_columns, n_samples, take

PROPERTY = settings(max_examples=50, deadline=None, derandomize=True)


@st.composite
def messy_csr(draw):
    """CSR rows with explicit zeros, negative zeros and indices in any order."""
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.permutations(range(width)).flatmap(lambda p: st.integers(0, width).map(lambda k: p[:k]))))
    indices = [column for row in rows for column in row]
    data = draw(st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.0]), min_size=len(indices), max_size=len(indices)))
    indptr = np.cumsum([0, *map(len, rows)])
    return sparse.csr_matrix((np.array(data), np.array(indices, dtype=int), indptr), shape=(len(rows), width))


entries = st.sampled_from([0.0, -0.0, 1.0, 2.5])
FORMS = {
    "floats": hnp.arrays(np.float64, st.tuples(st.integers(0, 8), st.integers(1, 3)), elements=entries),
    "integers": hnp.arrays(np.int64, st.tuples(st.integers(0, 8), st.integers(1, 3)), elements=st.integers(0, 2)),
    "bools": hnp.arrays(bool, st.tuples(st.integers(0, 8), st.integers(1, 3))),
    "fortran": hnp.arrays(np.float64, (6, 2), elements=entries).map(np.asfortranarray),
    "numbers": hnp.arrays(np.float64, st.integers(0, 8), elements=entries),
    "strings": st.lists(st.text("ab", max_size=2), min_size=1).map(np.array),
    "object array": st.lists(st.text("ab", max_size=2), min_size=1).map(lambda words: np.array(words, dtype=object)),
    "csr": messy_csr(),
    "words": st.lists(st.text("ab", max_size=2)),
    "tuples": st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1))),
    "sets": st.lists(st.frozensets(st.integers(0, 2))),
}
every_form = pytest.mark.parametrize("form", FORMS)


def items(A):
    """The objects one by one, as something that == compares."""
    if sparse.issparse(A):
        A = A.toarray()
    return [tuple(row) if getattr(A, "ndim", 1) == 2 else row for row in A]


@every_form
@PROPERTY
@given(data=st.data())
def test_distinct_objects_rebuild_the_collection(form, data):
    A = data.draw(FORMS[form])
    first, inverse = distinct(A)
    assert items(take(take(A, first), inverse)) == items(A)


@every_form
@PROPERTY
@given(data=st.data())
def test_no_two_distinct_objects_are_equal(form, data):
    A = data.draw(FORMS[form])
    kept = items(take(A, distinct(A).first))
    assert all(a != b for i, a in enumerate(kept) for b in kept[:i])


@every_form
@PROPERTY
@given(data=st.data())
def test_distinct_objects_stand_in_the_order_of_their_first_appearance(form, data):
    A = data.draw(FORMS[form])
    first, inverse = distinct(A)
    everything = items(A)
    assert first.tolist() == [i for i, item in enumerate(everything) if item not in everything[:i]]
    assert len(inverse) == len(everything)


@every_form
@PROPERTY
@given(data=st.data())
def test_match_finds_the_first_equal_object(form, data):
    C = data.draw(FORMS[form])
    cut = data.draw(st.integers(0, n_samples(C)))
    A, B = take(C, slice(0, cut)), take(C, slice(cut, None))
    others = items(B)
    expected = [others.index(item) if item in others else -1 for item in items(A)]
    assert match(A, B).tolist() == expected


@every_form
@PROPERTY
@given(data=st.data())
def test_concat_puts_one_after_the_other(form, data):
    A = data.draw(FORMS[form])
    cut = data.draw(st.integers(0, n_samples(A)))
    parts = [take(A, slice(0, cut)), take(A, slice(cut, None))]
    assert items(concat(parts)) == items(parts[0]) + items(parts[1]) == items(A)
    assert type(concat(parts)) is type(A)
    assert concat([A]) is A


@every_form
@PROPERTY
@given(data=st.data())
def test_take_chooses_by_number_and_by_slice(form, data):
    A = data.draw(FORMS[form])
    n = n_samples(A)
    index = np.array(data.draw(st.lists(st.integers(0, n - 1))) if n else [], dtype=np.intp)
    assert items(take(A, index)) == [items(A)[i] for i in index]
    assert items(take(A, slice(1, 3))) == items(A)[1:3]
    assert type(take(A, index)) is type(A)


def test_an_object_stands_where_it_first_appeared():
    first, inverse = distinct(["b", "a", "b", "c", "a"])
    assert first.tolist() == [0, 1, 3]
    assert inverse.tolist() == [0, 1, 0, 2, 1]


@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix])
def test_the_two_zeros_are_one_number(form):
    A = form(np.array([[0.0, 1.0], [-0.0, 1.0]]))
    assert distinct(A).inverse.tolist() == [0, 0]
    assert match(form(np.array([[0.0, -0.0]])), form(np.array([[1.0, 0.0], [-0.0, 0.0]]))).tolist() == [1]
    assert distinct(np.array([0.0, -0.0])).inverse.tolist() == [0, 0]


def test_csr_rows_are_equal_however_they_are_stored():
    """[1, 0, 2]: in order, out of order, with an explicit zero, and with an entry in two parts."""
    data = np.array([1.0, 2.0, 2.0, 1.0, 1.0, 0.0, 2.0, 1.0, 1.0, 1.0])
    indices = np.array([0, 2, 2, 0, 0, 1, 2, 2, 0, 2])
    A = sparse.csr_matrix((data, indices, np.array([0, 2, 4, 7, 10])), shape=(4, 3))
    assert (A.toarray() == [1, 0, 2]).all()
    assert distinct(A).inverse.tolist() == [0, 0, 0, 0]
    assert match(A, sparse.csr_matrix([[1.0, 0.0, 2.0]])).tolist() == [0, 0, 0, 0]


def test_looking_for_equal_rows_does_not_change_a_csr_matrix():
    A = sparse.csr_matrix((np.array([2.0, 0.0, 1.0]), np.array([2, 1, 0]), np.array([0, 3])), shape=(1, 3))
    distinct(A)
    assert A.indices.tolist() == [2, 1, 0]
    assert A.data.tolist() == [2.0, 0.0, 1.0]


def test_equal_entries_in_other_places_make_other_rows():
    assert len(distinct(sparse.csr_matrix([[1, 0], [0, 1]])).first) == 2
    assert len(distinct(sparse.csr_matrix([[1, 0], [2, 0]])).first) == 2


@pytest.mark.parametrize(("left", "right"), [(np.int64, np.float64), (bool, np.int8), (np.float32, np.float64)])
@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix])
def test_equal_rows_match_across_dtypes(form, left, right):
    A = form(np.array([[1, 0], [1, 1]], dtype=left))
    B = form(np.array([[1, 1], [0, 0], [1, 0]], dtype=right))
    assert match(A, B).tolist() == [2, 0]


def test_dense_and_csr_rows_match():
    A, B = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[0.0, 0.0], [1.0, 0.0]])
    for left, right in ((sparse.csr_matrix(A), B), (A, sparse.csr_matrix(B))):
        assert match(left, right).tolist() == [1, -1]


def test_one_csr_part_makes_the_whole_csr():
    whole = concat([np.eye(2), sparse.csr_matrix([[3.0, 0.0]])])
    assert sparse.issparse(whole)
    assert whole.format == "csr"
    assert whole.toarray().tolist() == [[1, 0], [0, 1], [3, 0]]


def test_strings_of_different_lengths_match():
    assert match(np.array(["a", "abc"]), np.array(["abc", "ab", "a"])).tolist() == [2, 0]


def test_words_of_a_list_match_words_of_an_array():
    assert match(["b", "z"], np.array(["a", "b"])).tolist() == [1, -1]
    assert match(np.array(["b", "z"]), ["a", "b"]).tolist() == [1, -1]


def test_lists_sets_dicts_and_arrays_are_equal_by_what_they_hold():
    things = [[1, [2]], {1, 2}, {"a": [1]}, np.array([1.0, 2.0])]
    copies = [[1, [2]], {2, 1}, {"a": [1]}, np.array([1.0, 2.0])]
    assert distinct(things + copies).inverse.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert match([[1, [3]], {1}, {"a": [2]}, np.array([[1.0, 2.0]])], things).tolist() == [-1] * 4


def test_what_cannot_be_hashed_is_equal_to_itself_alone():
    class Graph:
        __hash__ = None

    one, other = Graph(), Graph()
    assert distinct([one, other, one]).inverse.tolist() == [0, 1, 0]


def test_single_precision_matches_the_double_it_came_from():
    Y = np.random.default_rng(0).standard_normal((5, 3))
    assert match(Y, Y.astype(np.float32)).tolist() == [0, 1, 2, 3, 4]


def test_rows_of_an_object_array_are_not_mixed_up():
    A = np.array([[str(i), "x"] for i in range(50)], dtype=object)
    first, inverse = distinct(A)
    assert (take(A, first)[inverse] == A).all()


def test_objects_that_a_sequence_makes_when_asked_are_not_mixed_up():
    class Lazy:
        def __len__(self):
            return 50

        def __getitem__(self, i):
            if i >= 50:
                raise IndexError
            return [i]

    first, inverse = distinct(Lazy())
    assert [Lazy()[i] for i in first[inverse]] == [[i] for i in range(50)]


def test_what_a_collection_says_of_itself():
    for A in (np.zeros((3, 2)), sparse.csr_matrix((3, 2))):
        assert (n_samples(A), n_columns(A), describe_shape(A)) == (3, 2, "shape (3, 2)")
    assert (n_samples(np.zeros(4)), n_columns(np.zeros(4)), describe_shape(np.zeros(4))) == (4, None, "shape (4,)")
    assert (n_samples(["a", "b"]), n_columns(["a", "b"]), describe_shape(["a", "b"])) == (2, None, "2 objects")


# Many rows, long rows


@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix])
@pytest.mark.parametrize("chunk", [1, 100, 2**20])
@pytest.mark.parametrize("width", [1, 4, 5, 50])
def test_long_rows_are_told_apart_by_their_digests(form, width, chunk, monkeypatch):
    monkeypatch.setattr("psilearn._utils.samples.CHUNK_BYTES", chunk)
    pool = np.random.default_rng(0).integers(0, 3, (20, width)).astype(float)
    A = pool[np.random.default_rng(1).integers(0, 20, 60)]
    rows = [tuple(row) for row in A.tolist()]
    first, inverse = distinct(form(A))
    assert first.tolist() == [i for i, row in enumerate(rows) if row not in rows[:i]]
    assert [rows[i] for i in first[inverse]] == rows
    assert match(form(A), form(pool)).tolist() == [[tuple(row) for row in pool.tolist()].index(row) for row in rows]


def test_canonical_csr_rows_are_not_copied(monkeypatch):
    A = sparse.csr_matrix(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [1.0, 0.0, 2.0]]))
    monkeypatch.setattr(sparse.csr_matrix, "copy", None)
    assert distinct(A).inverse.tolist() == [0, 1, 0]


def test_keys_are_made_one_after_the_other():
    keys = samples.object_keys(np.zeros((3, 100)))
    assert iter(keys) is keys
    assert [len(key) for key in keys] == [16, 16, 16]


def test_rows_without_columns_are_equal():
    assert distinct(np.empty((3, 0))).inverse.tolist() == [0, 0, 0]
    assert match(np.empty((2, 0)), np.empty((3, 0))).tolist() == [0, 0]


def test_rows_of_different_widths_do_not_match():
    with pytest.raises(ValueError, match="dimension"):
        match(np.zeros((2, 3)), np.zeros((2, 4)))


def test_rows_in_a_file_match(tmp_path):
    stored = np.memmap(tmp_path / "rows", np.uint8, "w+", shape=(4, 40))
    stored[1, 3] = stored[2, 3] = 1
    assert distinct(stored).inverse.tolist() == [0, 1, 1, 0]
    assert match(np.eye(1, 40, 3), stored).tolist() == [1]


FLOAT_FORMS = [np.asarray, sparse.csr_matrix, sparse.csr_array]


@pytest.mark.parametrize("form_a", FLOAT_FORMS)
@pytest.mark.parametrize("form_b", FLOAT_FORMS)
def test_numbers_match_in_the_lower_precision(form_a, form_b):
    A = np.array([[0.1, 0.0], [0.0, 0.3], [0.7, 0.2]])
    B = A[[2, 0]]
    for narrow, wide in ((np.float32, np.float64), (np.float64, np.float32)):
        assert match(form_a(A.astype(narrow)), form_b(B.astype(wide))).tolist() == [1, -1, 0]


def test_integers_are_not_rounded_to_match():
    assert match(np.array([16777217]), np.array([16777216.0], np.float32)).tolist() == [-1]
