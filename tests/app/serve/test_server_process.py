"""A real process of the command ``psilearn serve``."""

import logging
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

pytest.importorskip("uvicorn", reason="the service needs the extra psilearn[app]")

from psilearn import IOKR, save_model
from psilearn.app.cli import app
from psilearn.app.serve import ServedModel, create_app
from psilearn.app.serve.server_process import bind_socket
from tests.app.serve.clients import post, rows_problem

START = "import sys; from psilearn.app.cli import app; app(sys.argv[1:])"
CLIENT = httpx.Client(verify=False)  # loading certificates takes longer than an answer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "rows"
    save_model(rows_problem()[2], path)
    return path


@pytest.fixture(autouse=True)
def original_logs():
    """Remove the log that a command writes to the standard error of its test."""
    yield
    for name in ("psilearn.app.serve", "uvicorn"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True


@contextmanager
def started(*arguments):
    """Run the command until it answers; yield the process and its address. In the end, its log has no error or data."""
    command = [sys.executable, "-c", START, "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        assert line.startswith("http://"), line + process.stderr.read()
        wait_until_ready(line.strip())
        yield process, line.strip()
    finally:
        process.terminate()
        log = process.communicate(timeout=60)[1]
    assert "Traceback" not in log and '"level": "error"' not in log and "109.0648" not in log, log


def wait_until_ready(url):
    for _ in range(900):
        try:
            return CLIENT.get(f"{url}/healthz").raise_for_status()
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError("the service does not answer")


def test_a_process_answers_as_the_library_does_and_stops_on_a_signal(folder):
    X, _, model = rows_problem()
    with started(folder, "--workers", "2") as (process, url):
        answer = CLIENT.post(f"{url}/v1/predict", json={"inputs": X[:5].tolist()})
        assert np.array_equal(answer.json()["outputs"], model.predict(X[:5])) and answer.json()["model"] == "rows"
        host, port = re.match(r"http://(.*):(\d+)", url).groups()
        with socket.create_connection((host, int(port))) as slow:
            slow.sendall(b"GET /healthz HTTP/1.1\r\nHost:")  # never ends
            assert CLIENT.get(f"{url}/healthz").status_code == 200
        process.terminate()
        log = process.stderr.read()
        assert process.wait(30) in (0, 128 + signal.SIGTERM)
    assert '"path": "/v1/predict", "status": 200' in log


def test_the_command_reports_errors_in_one_line(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("PSILEARN_TOKEN", raising=False)
    for arguments, message in [
        ((tmp_path / "nothing",), "does not exist"),
        ((folder, "--host", "0.0.0.0"), "a token is required"),
        ((folder, "--host", "127.example.org"), "a token is required"),
        ((folder, "--device", "gpu"), "device must be None, 'cpu' or 'cuda'"),
        ((folder, "--host", "192.0.2.1", "--token-file", tmp_path / "nothing"), "nothing is not a file"),
        (
            (folder, "--candidates", tmp_path),
            "none of the models is one, or the package psilearn-chem is not installed",
        ),
    ]:
        result = CliRunner().invoke(app, ["serve", *map(str, arguments)])
        assert result.exit_code == 2 and message in result.output and len(result.output.splitlines()) == 1
    monkeypatch.setenv("PSILEARN_TOKEN", "short")
    result = CliRunner().invoke(app, ["serve", str(folder)])
    assert result.exit_code == 2 and "16 to 1000" in result.output


def test_a_device_is_checked_before_models_are_loaded_and_computes_the_same(folder, monkeypatch):
    torch = pytest.importorskip("torch")
    X, _, model = rows_problem()
    served = ServedModel.load(folder, "cpu")
    assert served.model.device == "cpu"
    answer = post(create_app([served]), "/v1/topk", {"inputs": X[:5].tolist(), "k": 3}).json()["results"]
    np.testing.assert_allclose([result["distances"] for result in answer], model.predict_topk(X[:5], 3).distances)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device='cuda' requires a GPU, but torch finds none"):
        ServedModel.load("nothing", "cuda")
    result = CliRunner().invoke(app, ["serve", str(folder), "--device", "cuda"])
    assert result.exit_code == 2 and "requires a GPU" in result.output and len(result.output.splitlines()) == 1


def test_a_pipeline_is_rejected_by_name(tmp_path):
    X, Y, _ = rows_problem()
    save_model(make_pipeline(StandardScaler(), IOKR()).fit(X, Y), tmp_path / "scaled.psi")
    result = CliRunner().invoke(app, ["serve", str(tmp_path / "scaled.psi")])
    assert result.exit_code == 2 and "scaled.psi is a pipeline: serve its last step" in result.output


def test_answers_are_not_delayed_by_the_socket():
    with bind_socket("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # else asyncio leaves TCP_NODELAY off: 40 ms per answer
