"""Blocks that fit into a stated memory, and a refusal before memory runs out."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context

from psilearn._backend import NUMPY, block_rows, host_available_bytes, iter_blocks

PROPERTY = settings(max_examples=100, deadline=None, derandomize=True)
working_memories = st.sampled_from([0, 0.001, 0.5, 1, 16, 1024])


@PROPERTY
@given(n=st.integers(0, 500), bytes_per_row=st.integers(0, 2**22), memory=working_memories)
def test_blocks_cover_every_row_once_in_order(n, bytes_per_row, memory):
    with config_context(working_memory=memory):
        blocks = list(iter_blocks(n, bytes_per_row))
    assert [row for block in blocks for row in range(n)[block]] == list(range(n))
    assert all(block.start < block.stop <= n for block in blocks)


@PROPERTY
@given(n=st.integers(1, 500), bytes_per_row=st.integers(1, 2**22), memory=working_memories)
def test_a_block_is_one_row_or_fits_into_the_working_memory(n, bytes_per_row, memory):
    with config_context(working_memory=memory):
        rows = block_rows(bytes_per_row, n)
    assert 1 <= rows <= n
    assert rows == 1 or rows * bytes_per_row <= memory * 2**20
    assert rows == n or (rows + 1) * bytes_per_row > memory * 2**20  # no smaller than it must be


def test_more_working_memory_makes_fewer_blocks():
    counts = []
    for memory in (1, 2, 4):
        with config_context(working_memory=memory):
            counts.append(len(list(iter_blocks(64, 2**18))))
    assert counts == [16, 8, 4]


def test_an_allocation_that_cannot_succeed_is_refused_with_its_size_and_the_remedy(monkeypatch):
    monkeypatch.setattr("psilearn._backend.compute.host_available_bytes", lambda: 10**9)
    with pytest.raises(
        MemoryError, match=r"The matrix of shape \(1000000, 1000000\) needs 8,000,000,000,000 bytes"
    ) as e:
        NUMPY.require_memory((10**6, 10**6), "The matrix", "Take fewer rows.")
    assert "1,000,000,000 bytes are available" in str(e.value)
    assert "Take fewer rows." in str(e.value)


def test_the_item_size_counts(monkeypatch):
    monkeypatch.setattr("psilearn._backend.compute.host_available_bytes", lambda: 500)
    NUMPY.require_memory((10, 10), "The mask", "Take fewer rows.", itemsize=1)
    with pytest.raises(MemoryError, match="needs 800 bytes"):
        NUMPY.require_memory((10, 10), "The matrix", "Take fewer rows.")


def test_what_fits_exactly_is_allowed(monkeypatch):
    monkeypatch.setattr("psilearn._backend.compute.host_available_bytes", lambda: 800)
    NUMPY.require_memory((10, 10), "The matrix", "Take fewer rows.")
    with pytest.raises(MemoryError, match="needs 808 bytes"):
        NUMPY.require_memory((101,), "The vector", "Take fewer rows.")


def test_nothing_is_refused_where_the_system_does_not_say(monkeypatch):
    monkeypatch.setattr("psilearn._backend.compute.host_available_bytes", lambda: None)
    NUMPY.require_memory((10**9, 10**9), "The matrix", "Take fewer rows.")


def test_a_small_allocation_is_allowed_now():
    NUMPY.require_memory((2, 2), "The matrix", "Take fewer rows.")


def test_available_memory_is_what_the_system_reports(monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "MemTotal:  10 kB\nMemFree:  2 kB\nMemAvailable:  3 kB\n")
    assert host_available_bytes() == 3 * 1024


def test_available_memory_is_unknown_where_no_line_reports_it(monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "MemTotal:  10 kB\n")
    assert host_available_bytes() is None


def test_available_memory_is_unknown_where_no_file_reports_it(monkeypatch):
    def missing(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    assert host_available_bytes() is None
