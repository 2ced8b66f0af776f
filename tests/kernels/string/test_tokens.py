"""Tokens as numbers: the same in each process, and windows that stay within a sequence."""

import numpy as np

from psilearn.kernels.string.tokens import TokenRows, hash_token, read_tokens


def test_hashes_do_not_depend_on_the_process():
    assert hash_token("a") == 3405396810240292928
    assert hash_token("1") != hash_token(1)


def test_windows_do_not_cross_the_ends_of_sequences():
    tokens = read_tokens(["abc", "d", "ef"], ord)
    first, rows = tokens.windows(2)
    assert [chr(value) for value in tokens.values[first]] == ["a", "b", "e"]
    assert rows.tolist() == [0, 0, 2]
    assert TokenRows(np.empty(0, np.uint64), np.zeros(1, np.intp)).windows(1)[0].size == 0


def test_characters_beyond_16_bits_and_lone_surrogates():
    assert read_tokens(["\U0001f600\ud800"], ord).values.tolist() == [0x1F600, 0xD800]
