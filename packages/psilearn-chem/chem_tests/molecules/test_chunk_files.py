"""Stored chunks of fingerprints are used only if they are exactly as they were written for the same molecules."""

import os

import numpy as np
import pytest

from chem_tests.chemistry import smiles_list
from psilearn_chem.molecules import Fingerprints
from psilearn_chem.molecules.fingerprints import read_chunk, remove_chunks, write_chunk

SMILES = smiles_list()[:30]


@pytest.fixture
def chunk(tmp_path):
    """Return the file of the chunk of SMILES."""
    Fingerprints()(SMILES, cache=tmp_path)
    return next(tmp_path.iterdir())


def check_recomputed(chunk, monkeypatch):
    """Assert that the chunk is computed once more, and read afterwards."""
    calls = []
    compute_bits = Fingerprints._compute_bits

    def count(self, molecules):
        calls.append(1)
        return compute_bits(self, molecules)

    monkeypatch.setattr(Fingerprints, "_compute_bits", count)
    tables = [Fingerprints()(SMILES, cache=chunk.parent) for _ in range(2)]
    assert len(calls) == 1
    expected = Fingerprints()(SMILES)
    for table in tables:
        np.testing.assert_array_equal(table.bits, expected.bits)
        assert table.formulas == expected.formulas and table.canonical_smiles == expected.canonical_smiles


def test_a_chunk_is_read_as_it_was_written(tmp_path):
    table = (np.arange(6, dtype=np.uint8).reshape(3, 2), ["CH4", "", "H2O"], ["C", "", "O"])
    write_chunk(tmp_path, "key", table)
    bits, formulas, canonical_smiles = read_chunk(tmp_path, "key", (3, 2))
    np.testing.assert_array_equal(bits, table[0])
    assert (formulas, canonical_smiles) == table[1:]
    assert read_chunk(tmp_path, "key", (2, 2)) is read_chunk(tmp_path, "key", (3, 3)) is None
    assert read_chunk(tmp_path, "other", (3, 2)) is None


def test_every_changed_byte_is_detected(tmp_path):
    write_chunk(tmp_path, "key", (np.arange(6, dtype=np.uint8).reshape(3, 2), ["CH4", "", "H2O"], ["C", "", "O"]))
    file = tmp_path / "key.chunk"
    content = file.read_bytes()
    for i in range(len(content)):
        file.write_bytes(content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :])
        assert read_chunk(tmp_path, "key", (3, 2)) is None
        file.write_bytes(content[:i])
        assert read_chunk(tmp_path, "key", (3, 2)) is None


def test_a_truncated_chunk_is_computed_again(chunk, monkeypatch):
    chunk.write_bytes(chunk.read_bytes()[:100])
    check_recomputed(chunk, monkeypatch)


def test_the_chunk_of_other_molecules_is_not_used(chunk, monkeypatch):
    name, folder = chunk.name, chunk.parent
    chunk.unlink()
    Fingerprints()(SMILES[::-1], cache=folder)
    next(folder.iterdir()).rename(folder / name)
    check_recomputed(chunk, monkeypatch)


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_links_and_pipes_are_replaced(chunk, tmp_path, monkeypatch, kind):
    elsewhere = chunk.rename(tmp_path.parent / f"{tmp_path.name}-elsewhere")
    if kind == "link":
        chunk.symlink_to(elsewhere)
    else:
        os.mkfifo(chunk)
    check_recomputed(chunk, monkeypatch)
    assert chunk.is_file() and not chunk.is_symlink()


def test_removal_keeps_files_of_others(chunk):
    (chunk.parent / f".{chunk.name}.123.tmp").write_bytes(b"unfinished")
    (chunk.parent / "notes.txt").write_text("x")
    remove_chunks(chunk.parent)
    assert [file.name for file in chunk.parent.iterdir()] == ["notes.txt"]
    (chunk.parent / "notes.txt").unlink()
    remove_chunks(chunk.parent)
    assert not chunk.parent.exists()
