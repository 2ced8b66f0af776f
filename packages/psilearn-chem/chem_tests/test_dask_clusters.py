"""Libraries that are built and embedded by the workers of a cluster."""

import numpy as np
import pytest
from typer.testing import CliRunner

from psilearn import OEL
from psilearn.app.cli import app
from psilearn.decoding import ShardedCandidates
from psilearn.kernels import Tanimoto
from psilearn_chem import candidate_commands
from psilearn_chem.molecules import CandidateLibrary, Fingerprints, MoleculeList, library

distributed = pytest.importorskip("distributed")
SMILES = ["CCO", "COC", "CCC", "CCCC", "c1ccccc1", "CC(=O)O", "CCN", "CNC", "CCCl", "OCCO"]


@pytest.fixture(scope="module")
def address():
    """Start a scheduler and a worker in this process."""
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster:
        yield cluster.scheduler_address


def test_a_library_built_by_workers_is_the_same(tmp_path, address):
    file = tmp_path / "molecules.smi"
    file.write_text("\n".join(f"{smiles} m{i}" for i, smiles in enumerate(SMILES)))
    expected = CandidateLibrary.build(file, tmp_path / "here", Fingerprints(("morgan",)))
    arguments = ["candidates", "build", str(file), "-o", str(tmp_path / "there"), "--fingerprints", "morgan"]
    done = CliRunner().invoke(app, [*arguments, "--scheduler", address])
    assert done.exit_code == 0, done.output
    assert CandidateLibrary.open(tmp_path / "there").hash == expected.hash


def test_encrypted_connections_use_the_certificates_of_the_configuration(tmp_path):
    pytest.importorskip("cryptography")
    import dask

    file = tmp_path / "molecules.smi"
    file.write_text("CCO a\nCOC b\n")
    security = distributed.Security.temporary()
    settings = {}
    for part, name in {"ca_file": "ca-file", "client_cert": "client.cert", "client_key": "client.key"}.items():
        certificate = tmp_path / f"{part}.pem"
        certificate.write_text(getattr(security, f"tls_{part}"))
        settings[f"distributed.comm.tls.{name}"] = str(certificate)
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options, protocol="tls://", security=security) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        arguments = ["candidates", "build", str(file), "-o", str(tmp_path / "library"), "--fingerprints", "morgan"]
        with dask.config.set(settings):
            done = CliRunner().invoke(app, [*arguments, "--scheduler", address])
    assert done.exit_code == 0, done.output
    assert len(CandidateLibrary.open(tmp_path / "library")) == 2


def test_a_library_embedded_in_shards_ranks_the_same(tmp_path, address, monkeypatch):
    built = CandidateLibrary.build(MoleculeList(SMILES, [""] * 10), tmp_path / "library", Fingerprints(("morgan",)))
    model = OEL(output_kernel=Tanimoto(packed=True), n_components=4).fit(np.eye(10), built.bits)
    monkeypatch.setattr(library, "SHARD_ROWS", 4)
    with distributed.Client(address):
        shards = built.embedded(model, build=True, on_cluster=True)
    assert isinstance(shards, ShardedCandidates) and len(shards.shards) == 3
    found = built.embedded(model)
    assert isinstance(found, ShardedCandidates)
    expected = model.candidate_set(np.array(built.bits))
    Z = model.embed(np.eye(10))
    np.testing.assert_array_equal(found.nearest(Z, 3).indices, expected.nearest(Z, 3).indices)
    np.testing.assert_array_equal(
        found.per_example([slice(3, 6)]).nearest(Z[:1], 2).indices,
        expected.per_example([slice(3, 6)]).nearest(Z[:1], 2).indices,
    )


def test_a_scheduler_that_does_not_answer_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(candidate_commands, "CONNECT_SECONDS", 0.2)
    file = tmp_path / "molecules.smi"
    file.write_text("CCO a\n")
    done = CliRunner().invoke(
        app, ["candidates", "build", str(file), "-o", str(tmp_path / "x"), "--scheduler", "tcp://127.0.0.1:1"]
    )
    assert done.exit_code == 2 and "No Dask scheduler answers" in done.output
