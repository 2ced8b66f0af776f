"""Size limits and groups of labels: counts, lists and the nearest set against brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psilearn._backend import Compute
from psilearn.decoding import AllLabelSets
from psilearn.decoding.label_sets.set_limits import MAX_COUNT, SetLimits
from psilearn.embedding import Embedding
from psilearn.kernels import Dice, Linear
from tests.decoding.label_sets.set_cases import all_sets, distances, draw_case
from tests.kernels.kernel_cases import PROPERTY

limits = st.tuples(
    st.integers(2, 7), st.integers(0, 2), st.integers(2, 7), st.sampled_from(["free", "at_most_one", "exactly_one"])
)


def make_limits(L, smallest, largest, rule, seed):
    """Limits, or None if they allow no set."""
    groups = None if rule == "free" else np.random.default_rng(seed).integers(-1, 3, L)
    rule = "at_most_one" if rule == "free" else rule
    arguments = {"min_labels": smallest, "max_labels": largest, "label_groups": groups, "group_rule": rule}
    try:
        SetLimits.of(L, smallest, largest, groups, rule)
    except ValueError:
        return None
    return arguments


def allowed(sets, min_labels, max_labels, label_groups, group_rule):
    sizes = sets.sum(axis=1)
    keep = (sizes >= min_labels) & (sizes <= max_labels)
    if label_groups is not None:
        for group in np.unique(label_groups[label_groups >= 0]):
            n = sets[:, label_groups == group].sum(axis=1)
            keep &= n == 1 if group_rule == "exactly_one" else n <= 1
    return sets[keep]


@pytest.mark.parametrize("kernel", [Dice(), Linear()], ids=repr)
@PROPERTY
@given(case=limits, seed=st.integers(0, 10**6))
def test_the_nearest_allowed_set_is_that_of_brute_force(kernel, case, seed):
    arguments = make_limits(*case, seed)
    if arguments is None:
        return
    embedding, Z = draw_case(kernel, case[0], 8, seed, 1.0)
    sets = allowed(all_sets(case[0]), **arguments)
    candidates = AllLabelSets(embedding, sets, **arguments)
    np.testing.assert_array_equal(candidates.listed.outputs, sets)
    assert candidates.max_size == len(sets)
    D = distances(embedding, Z, sets)
    for k in (1, 3):
        top = candidates.nearest(Z, k)
        np.testing.assert_allclose(top.distances, np.sort(D, axis=1)[:, :k], atol=1e-9)
        assert (candidates.match(top.nearest) >= 0).all()
        np.testing.assert_allclose(distances(embedding, Z, top.nearest).diagonal(), D.min(axis=1), atol=1e-9)


def test_groups_are_searched_with_numpy_on_a_device_too():
    torch = pytest.importorskip("torch")
    embedding, Z = draw_case(Dice(), 8, 10, 0, 1.0)
    sets = AllLabelSets(embedding, embedding.landmarks, label_groups=[0, 0, 0, 1, 1, -1, -1, -1])
    found = sets.nearest(Z, 1, Compute.of("float64", torch.device("cpu")))
    np.testing.assert_array_equal(found.nearest, sets.nearest(Z, 1).nearest)


def test_counts_are_those_of_lists_and_are_bounded():
    for L, smallest, largest in product([1, 5], [0, 1], [1, 4]):
        bounds = SetLimits.of(L, smallest, largest, None, "at_most_one")
        assert bounds.count() == len(list(bounds.iter_sets()))
    assert SetLimits.of(1000, 0, None, None, "at_most_one").count() == MAX_COUNT
    assert SetLimits.of(100, 0, 2, None, "at_most_one").count() == 1 + 100 + 4950


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"min_labels": -1}, "min_labels must be an integer ≥ 0; got -1"),
        ({"max_labels": 1.5}, "max_labels must be an integer ≥ 0; got 1.5"),
        ({"min_labels": 3, "max_labels": 2}, "No label set is allowed: sets have at least 3 labels"),
        ({"label_groups": [0, 1]}, r"label_groups must be 4 integers.*got shape \(2,\)"),
        ({"label_groups": [0, 0, 0, 0], "group_rule": "one"}, "group_rule must be one of at_most_one, exactly_one"),
        ({"label_groups": [0, 0, 1, 1], "group_rule": "exactly_one", "max_labels": 1}, "2 required groups"),
        ({"n_labels": 3}, "n_labels=3, but the outputs of the model have 4 labels"),
    ],
)
def test_invalid_limits_raise(arguments, message):
    embedding, Z = draw_case(Dice(), 4, 5, 0, 1.0)
    with pytest.raises(ValueError, match=message):
        AllLabelSets(embedding, embedding.landmarks, **arguments).nearest(Z, 1)


def test_only_the_empty_set_may_be_allowed():
    embedding, Z = draw_case(Dice(), 6, 8, 0, 1.0)
    top = AllLabelSets(embedding, embedding.landmarks, max_labels=0).nearest(Z, 1)
    assert not top.nearest.any()
    np.testing.assert_allclose(top.distances, distances(embedding, Z, np.zeros((1, 6), dtype=int)))


@given(
    groups=st.lists(st.integers(-1, 3), min_size=4, max_size=4),
    rule=st.sampled_from(["at_most_one", "exactly_one"]),
    size=st.integers(1, 2),
)
@PROPERTY
def test_ties_between_groups_go_to_the_lowest_labels(groups, rule, size):
    landmarks = np.array([[1, 1, 1, 1]])  # all labels weigh the same
    try:
        SetLimits.of(4, size, None, groups, rule)
    except ValueError:
        return
    embedding = Embedding(Dice(), landmarks, np.eye(1))
    sets = AllLabelSets(embedding, landmarks, min_labels=size, label_groups=groups, group_rule=rule)
    Z = np.array([[1.0], [0.0]])
    np.testing.assert_array_equal(sets.nearest(Z, 1).nearest, sets.listed.nearest(Z, 1).nearest)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label_groups": [0, 0, -5, 1]}, "label_groups must be 4 integers"),
        ({"group_rule": "exactly_one"}, "needs label_groups"),
        ({"n_labels": 3}, "have 4 labels"),
    ],
)
def test_inconsistent_limits_are_rejected(arguments, message):
    embedding, Z = draw_case(Dice(), 4, 5, 0, 1.0)
    with pytest.raises(ValueError, match=message):
        AllLabelSets(embedding, embedding.landmarks, **arguments).nearest(Z, 1)


def test_the_limits_are_shown():
    assert repr(AllLabelSets(min_labels=1, max_labels=3)) == "AllLabelSets(min_labels=1, max_labels=3)"


@pytest.mark.parametrize("groups", [["abcd"], list("abcd"), [None] * 4, [0.5] * 4, [[0]] * 4, "abcd"])
def test_groups_that_are_not_numbers_are_rejected(groups):
    with pytest.raises(ValueError, match="label_groups must be 4 integers"):
        SetLimits.of(4, 0, None, groups, "at_most_one")
