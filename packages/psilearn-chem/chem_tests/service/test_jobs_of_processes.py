"""A real process of the command ``psilearn serve``."""

import json
import logging
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import pytest

from psilearn import save_model
from tests.app.serve.clients import rows_problem

# The reader of files is not needed here, and takes seconds to import.
START = """
import sys, psilearn_chem.service.upload_parser as parser
parser.PRELOADED = []
from psilearn.app.cli import app
app(sys.argv[1:])
"""
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


def test_jobs_survive_a_killed_process_and_a_graceful_stop(metabolites, tmp_path):
    options = [metabolites / "model", "--candidates", metabolites / "library", "--jobs", tmp_path / "jobs"]
    spectrum = {"mz": [50.0, 60.0], "intensity": [1.0, 2.0], "precursor_mz": 109.0648, "adduct": "[M+H]+"}
    long = {"spectra": [spectrum] * 300}
    with started(*options) as (process, url):
        first = CLIENT.post(f"{url}/v1/spectra", json={"spectra": [spectrum]}).raise_for_status().json()["id"]
        result = wait_for_result(url, first)
        jobs = [CLIENT.post(f"{url}/v1/spectra", json=long).raise_for_status().json()["id"] for _ in range(3)]
        process.kill()
    assert not is_finished(tmp_path, jobs[-1])
    with started(*options) as (process, url):  # continues with the jobs
        assert wait_for_result(url, first) == result
        results = [wait_for_result(url, job) for job in jobs]
        assert results[0] == results[1] == results[2] and len(json.loads(results[0])["spectra"]) == 300
        left = [CLIENT.post(f"{url}/v1/spectra", json=long).raise_for_status().json()["id"] for _ in range(3)]
        process.terminate()
        assert process.wait(30) in (0, 128 + signal.SIGTERM)
    assert not is_finished(tmp_path, left[-1])  # as after the first process: the next one continues


def is_finished(folder, job):
    assert (folder / "jobs" / job / "request.json").exists()
    return (folder / "jobs" / job / "result" / "state.json").exists()


def wait_for_result(url, job):
    for _ in range(600):
        if CLIENT.get(f"{url}/v1/spectra/{job}").json()["state"] == "finished":
            return CLIENT.get(f"{url}/v1/spectra/{job}/results").content
        time.sleep(0.1)
    raise AssertionError("the job does not finish")
