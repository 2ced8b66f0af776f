"""A command on a full disk ends with an error that names the file, and finishes its work once there is space."""

import contextlib
import re

import pytest
from typer.testing import CliRunner

pytest.importorskip("resource", reason="limits of POSIX")

import resource

from chem_tests.chemistry import smiles_list
from psilearn.app.cli import app
from psilearn_chem import CandidateLibrary
from psilearn_chem.molecules import MoleculeList, fingerprints


@contextlib.contextmanager
def largest_file(n_bytes):
    """Let the system reject writes beyond a size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_build_on_a_full_disk_names_the_file_and_is_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprints, "CHUNK_SIZE", 50)
    smiles = smiles_list()
    expected = CandidateLibrary.build(MoleculeList(smiles, smiles), tmp_path / "expected")
    (tmp_path / "molecules.smi").write_text("\n".join(f"{text} {text}" for text in smiles))
    command = ["candidates", "build", str(tmp_path / "molecules.smi"), "-o", str(tmp_path / "lib"), "--jobs", "1"]
    failed_files = set()
    sizes = {file.name: file.stat().st_size for file in expected.path.iterdir()}
    for limit in (0, 100, 2000, 15000, sizes["library.safetensors"] - 1):
        with largest_file(limit):
            result = CliRunner().invoke(app, command)
        assert result.exit_code == 2 and result.output.count("\n") == 1, result.output
        match = re.fullmatch(r"Error: \[Errno \d+\] File too large: '(.*)'\n", result.output)
        failed_files.add(match[1].rpartition("/")[2].split(".")[2])
        with pytest.raises((FileNotFoundError, ValueError)):
            CandidateLibrary.open(tmp_path / "lib")
    assert CliRunner().invoke(app, command).exit_code == 0
    assert CandidateLibrary.open(tmp_path / "lib").hash == expected.hash
    assert sorted(file.name for file in (tmp_path / "lib").iterdir()) == sorted(sizes)
    assert failed_files == {"chunk", "safetensors"}  # of the drafts
