"""A real process of the command ``psilearn serve``."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("uvicorn", reason="the service needs the extra psilearn[serve]")

from psilearn import save_model
from psilearn.cli import app
from psilearn.serve.server_process import bind_socket
from tests.serve.clients import rows_problem

START = "import sys; from psilearn.cli import app; app(sys.argv[1:])"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "rows"
    save_model(rows_problem()[2], path)
    return path


def start(*arguments, **environment):
    command = [sys.executable, "-c", START, "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    line = process.stderr.readline()
    assert line.startswith("http://"), line + process.stderr.read()
    return process, line.strip()


def wait_until_ready(url):
    for _ in range(900):
        try:
            return httpx.get(f"{url}/healthz").raise_for_status()
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError("the service does not answer")


def test_a_process_answers_as_the_library_does_and_stops_on_a_signal(folder):
    X, _, model = rows_problem()
    process, url = start(folder, "--workers", "2")
    try:
        wait_until_ready(url)
        answer = httpx.post(f"{url}/v1/predict", json={"inputs": X[:5].tolist()})
        assert np.array_equal(answer.json()["outputs"], model.predict(X[:5])) and answer.json()["model"] == "rows"
        host, port = re.match(r"http://(.*):(\d+)", url).groups()
        with socket.create_connection((host, int(port))) as slow:
            slow.sendall(b"GET /healthz HTTP/1.1\r\nHost:")  # never ends
            assert httpx.get(f"{url}/healthz").status_code == 200
    finally:
        process.send_signal(signal.SIGTERM)
        log = process.communicate(timeout=30)[1]
    assert process.returncode in (0, 128 + signal.SIGTERM)
    assert '"path": "/v1/predict", "status": 200' in log and "Traceback" not in log


def test_the_command_reports_errors_in_one_line(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("PSILEARN_TOKEN", raising=False)
    for arguments, message in [
        ((tmp_path / "nothing",), "does not exist"),
        ((folder, "--host", "0.0.0.0"), "a token is required"),
        ((folder, "--host", "192.0.2.1", "--token-file", tmp_path / "nothing"), "nothing"),
    ]:
        result = CliRunner().invoke(app, ["serve", *map(str, arguments)])
        assert result.exit_code == 2 and message in result.output and len(result.output.splitlines()) == 1
    monkeypatch.setenv("PSILEARN_TOKEN", "short")
    result = CliRunner().invoke(app, ["serve", str(folder)])
    assert result.exit_code == 2 and "16 to 1000" in result.output


def test_finished_jobs_survive_a_killed_process_and_waiting_ones_are_resumed(metabolites, tmp_path):
    pytest.importorskip("rdkit", reason="molecules need the extra psilearn[chem]")
    options = [metabolites / "model", "--candidates", metabolites / "library", "--jobs", tmp_path / "jobs"]
    peaks = {"spectra": [{"mz": [50.0, 60.0], "intensity": [1.0, 2.0], "precursor_mz": 123.0441, "adduct": "[M+H]+"}]}
    process, url = start(*options)
    try:
        wait_until_ready(url)
        job = httpx.post(f"{url}/v1/spectra", json=peaks).raise_for_status().json()["id"]
        result = wait_for_result(url, job)
    finally:
        process.kill()
        process.communicate()
    waiting = tmp_path / "jobs" / ("a" * 32)  # as a process leaves it that is killed after it accepted a job
    shutil.copytree(tmp_path / "jobs" / job, waiting, ignore=shutil.ignore_patterns("result"))
    (waiting / "peaks.json").write_text(json.dumps([{"formula": None, "name": "", **peaks["spectra"][0]}]))
    process, url = start(*options)
    try:
        wait_until_ready(url)
        assert wait_for_result(url, job) == result
        assert wait_for_result(url, waiting.name) == result
    finally:
        process.send_signal(signal.SIGTERM)
        log = process.communicate(timeout=60)[1]
    assert "Traceback" not in log and "123.0441" not in log


def wait_for_result(url, job):
    for _ in range(600):
        if httpx.get(f"{url}/v1/spectra/{job}").json()["state"] == "finished":
            return httpx.get(f"{url}/v1/spectra/{job}/results").content
        time.sleep(0.1)
    raise AssertionError("the job does not finish")


def test_answers_are_not_delayed_by_the_socket():
    with bind_socket("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # else asyncio leaves TCP_NODELAY off: 40 ms per answer
