import numpy as np

from psilearn.decoding.all_rankings import FoundRows


def test_equal_rows_have_equal_numbers_whenever_they_come():
    rng, found = np.random.default_rng(0), FoundRows()
    blocks = [rng.integers(0, 2, (17, 3)) for _ in range(4)]
    numbers = [found.number(block) for block in blocks]
    everything, every_number = np.concatenate(blocks), np.concatenate(numbers)
    assert len(found) == len(np.unique(everything, axis=0)) == every_number.max() + 1
    np.testing.assert_array_equal(found.take(every_number), everything)
    first = [int(np.flatnonzero(every_number == number)[0]) for number in range(len(found))]
    assert first == sorted(first), "numbers are in the order of appearance"
