"""Requests and files that try to harm a service of rows and metabolites; the benchmark sends a thousand of them."""

import asyncio
import time

import httpx
import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="the service needs the extra psilearn[app]")
from chem_tests.service.conftest import metabolites  # noqa: F401  (a fixture)
from psilearn.app.serve import Limits, ServedModel, create_app
from psilearn_chem.service.job_runner import JobRunner, ServedIdentifier
from psilearn_chem.service.upload_parser import UploadError, read_upload, start_reader_server
from psilearn_lab.benchmarks import hostile_requests
from psilearn_lab.benchmarks.hostile_files import list_hostile_files
from psilearn_lab.benchmarks.hostile_requests import REQUESTS, send_hostile
from tests.app.serve.browser import running
from tests.app.serve.clients import rows_problem


def test_hostile_requests_leave_the_service_answering(metabolites, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(hostile_requests, "PATIENCE", 60.0)  # on a busy machine
    X, _, model = rows_problem()
    identifier = ServedIdentifier.load(metabolites / "model", metabolites / "library", tmp_path / "jobs")
    limits = Limits(parse_seconds=2, parse_bytes=2**26, jobs=3)
    with running(
        create_app([ServedModel("rows", model)], extensions=[JobRunner(identifier, limits)], limits=limits)
    ) as url:
        answers = asyncio.run(send_hostile(int(url.rpartition(":")[2]), 2 * len(REQUESTS)))
        assert "500" not in answers and "none" not in answers, answers
        assert answers["202"] >= 3 and answers["429"] > 0 and answers["422"] > 0
        with httpx.Client(base_url=url, verify=False) as client:
            outputs = client.post("/v1/predict", json={"inputs": X[:5].tolist()}).json()["outputs"]
            assert np.array_equal(outputs, model.predict(X[:5]))
            while states := [job for job in client.get("/v1/spectra").json()["jobs"] if job["state"] in RUNNING]:
                assert len(states) <= 3
                time.sleep(0.1)
    assert not list(tmp_path.glob("jobs/*/upload.*"))  # each file was read or given up


RUNNING = ("waiting", "running")


def test_hostile_files_are_given_up_with_a_reason(tmp_path):
    start_reader_server()
    limits = Limits(parse_seconds=5, parse_bytes=2**26)
    for number, (format, content) in enumerate(list_hostile_files()):
        assert len(content) < 2_000_000
        path = tmp_path / f"upload{number}.{format}"
        path.write_bytes(content)
        try:
            result = read_upload(path, None, limits)
        except UploadError as error:
            assert 10 < len(str(error)) < 400 and str(tmp_path) not in str(error)
        else:
            assert sum(map(len, result.spectra)) <= 1000, (format, content[:50])  # equal peaks are one peak
