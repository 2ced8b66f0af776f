"""Jobs that rank spectra: the numbers of the command line, progress, cancel, limits and restarts."""

import csv
import io
import json
import threading
import time
from multiprocessing.connection import Connection

import numpy as np
import pytest
from typer.testing import CliRunner

from chem_tests.metabolites.mztab_rules import check_mztab
from psilearn.app.cli import app as command_line
from psilearn.app.serve import Limits, create_app
from psilearn_chem import Cleaning, Problem, Spectrum, read_spectra, write_parquet
from psilearn_chem.service.job_runner import JobRunner, ServedIdentifier
from psilearn_chem.service.job_store import JobState
from tests.app.serve.clients import call, get, post


@pytest.fixture
def served(metabolites, tmp_path):
    return ServedIdentifier.load(metabolites / "model", metabolites / "library", tmp_path / "jobs")


def make_app(served, **limits):
    return create_app([], extensions=[JobRunner(served, Limits(**limits))], limits=Limits(**limits))


def upload(app, content, format="mgf", **options):
    path = "/v1/spectra/upload"
    return call(app, ("POST", path, {"content": content, "params": {"format": format, **options}}))[0]


def wait(app, job):
    for _ in range(600):
        state = get(app, f"/v1/spectra/{job}").json()
        if state["state"] not in ("waiting", "running"):
            return state
        time.sleep(0.05)
    raise AssertionError("the job does not finish")


def test_command_line_and_service_give_the_same_numbers_for_50_spectra(metabolites, served, tmp_path):
    ranks = tmp_path / "ranks.csv"
    arguments = ["--model", metabolites / "model", "--candidates", metabolites / "library", "--by", "mass", "-k", "5"]
    result = CliRunner().invoke(
        command_line, ["metabolites", "rank", str(metabolites / "spectra.mgf"), *map(str, arguments), "-o", str(ranks)]
    )
    assert result.exit_code == 0, result.output
    app = make_app(served)
    answer = upload(app, (metabolites / "spectra.mgf").read_bytes(), by="mass", top=5)
    assert answer.status_code == 202, answer.text
    job = answer.json()["id"]
    state = wait(app, job)
    assert state == {"id": job, "state": "finished", "done": 50, "total": 50, "error": None, "n_problems": 0}
    assert get(app, f"/v1/spectra/{job}/results", params={"format": "csv"}).content == ranks.read_bytes()

    content = get(app, f"/v1/spectra/{job}/results").json()
    rows = list(csv.DictReader(io.StringIO(ranks.read_text())))
    listed = [(spectrum, candidate) for spectrum in content["spectra"] for candidate in spectrum["candidates"]]
    assert len(content["spectra"]) == 50 and len(listed) == len(rows)
    for row, (spectrum, candidate) in zip(rows, listed, strict=True):
        assert row["smiles"] == candidate["smiles"] and row["spectrum"] == spectrum["name"]
        assert row["feature_id"] == spectrum["feature_id"] == spectrum["name"][1:] + "7"
        assert row["distance"] == f"{candidate['distance']:.6f}" and float(row["rank"]) == candidate["rank"]
        assert row["in_set"] == ("yes" if candidate["in_set"] else "no")
        assert row["trained_on"] == ("yes" if candidate["trained_on"] else "no")
        assert candidate["in_set"] == (candidate["p_value"] > 0.1 + 1e-12)
        assert len(spectrum["explained"][candidate["formula"]]) == len(spectrum["mz"])
    mztab = get(app, f"/v1/spectra/{job}/results", params={"format": "mztab"}).text
    sections = check_mztab(mztab)
    assert len(sections["SME"]) == len(rows)
    times = [float(row["retention_time_in_seconds"]) for row in sections["SMF"]]
    assert times == [float(spectrum["retention_time"]) for spectrum in content["spectra"]]
    svg = get(app, f"/v1/molecules/{listed[0][1]['row']}/structure")
    assert svg.text.startswith("<svg") and svg.headers["content-type"] == "image/svg+xml"
    assert get(app, "/v1/molecules/999999/structure").status_code == 404


@pytest.mark.parametrize("name", ["two.mgf", "two.ms"])
def test_merged_spectra_and_whole_sets_are_those_of_the_command_line(metabolites, served, tmp_path, name):
    file, ranks = tmp_path / name, tmp_path / "ranks.csv"
    records = (metabolites / "spectra.mgf").read_text().split("\n\n")[:2]
    repeated = [*records, records[0].replace(" 0.", " 0.9")]  # another spectrum of the first feature
    file.write_text("\n\n".join(repeated if name.endswith("mgf") else map(to_sirius, repeated)))
    folders = ["--model", str(metabolites / "model"), "--candidates", str(metabolites / "library")]
    options = ["--by", "mass", "-k", "1", "--merge", "name", "--whole-set", "--coverage", "0.99", "-o", str(ranks)]
    result = CliRunner().invoke(command_line, ["metabolites", "rank", str(file), *folders, *options])
    assert result.exit_code == 0, result.output
    app = make_app(served)
    options = {"by": "mass", "top": 1, "merge": "name", "whole_set": True, "coverage": 0.99}
    job = upload(app, file.read_bytes(), file.suffix[1:], **options).json()["id"]
    assert wait(app, job)["done"] == 2
    content = get(app, f"/v1/spectra/{job}/results", params={"format": "csv"}).content
    assert content == ranks.read_bytes() and content.count(b"\n") > 3


def to_sirius(record):
    """Return a record of an MGF file as a compound of a SIRIUS file."""
    fields = dict(line.split("=", 1) for line in record.splitlines() if "=" in line)
    peaks = "\n".join(line for line in record.splitlines() if line[:1].isdigit())
    head = f">compound {fields['TITLE']}\n>parentmass {fields['PEPMASS']}\n>ionization {fields['ADDUCT']}"
    return f"{head}\n\n>ms2\n{peaks}\n"


def test_peaks_as_json_give_the_numbers_of_the_library(metabolites, served):
    raw = read_spectra(metabolites / "spectra.mgf", cleaning=None).spectra[:3]
    fields = [
        {"mz": s.mz.tolist(), "intensity": s.intensity.tolist(), "precursor_mz": s.precursor_mz, "name": s.name}
        for s in raw
    ]
    fields.append({"mz": [-1.0], "intensity": [1.0], "name": "wrong"})
    app = make_app(served)
    job = post(app, "/v1/spectra", {"spectra": fields, "options": {"adduct": "[M+H]+"}}).json()["id"]
    assert wait(app, job)["n_problems"] == 1
    content = get(app, f"/v1/spectra/{job}/results").json()
    assert content["problems"][0]["source"] == "wrong"
    expected = list(served.identifier.rank([Cleaning()(spectrum) for spectrum in raw], served.library))
    for spectrum, ranking in zip(content["spectra"], expected, strict=True):
        assert np.array_equal([candidate["distance"] for candidate in spectrum["candidates"]], ranking.distances)
        assert np.array_equal([candidate["p_value"] for candidate in spectrum["candidates"]], ranking.p_values)
        assert spectrum["confidence"] == 1 - ranking.p_values[1]


@pytest.mark.parametrize(
    ("content", "format", "message"),
    [
        (b"", "mgf", "no spectrum"),
        (b"\x00\xff" * 1000, "mzml", "the file"),
        (b"PAR1" + b"\xff" * 1000 + b"PAR1", "parquet", "the file"),
        (b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "b">]><mzML>&a;</mzML>', "mzml", "document type"),
    ],
)
def test_files_that_cannot_be_read_fail_with_a_reason_and_without_a_path(served, content, format, message):
    app = make_app(served)
    text = read_reason(app, upload(app, content, format).json()["id"])
    assert message in text and str(served.jobs) not in text
    assert get(app, "/healthz").status_code == 200


def read_reason(app, job):
    """Return why a job failed, or why its records could not be used."""
    state = wait(app, job)
    return state["error"] or json.dumps(get(app, f"/v1/spectra/{job}/results").json()["problems"])


def test_a_file_that_needs_much_memory_or_time_is_given_up(served, metabolites, tmp_path):
    peaks = np.sort(np.random.default_rng(0).random(2_000_000)) + 50
    write_parquet([Spectrum(peaks, peaks, precursor_mz=100.0)], tmp_path / "large.parquet")
    content = (tmp_path / "large.parquet").read_bytes()
    app = make_app(served, parse_bytes=2**20)
    assert "memory" in read_reason(app, upload(app, content, "parquet").json()["id"]).lower()
    app = make_app(served, parse_seconds=1)
    content = (metabolites / "spectra.mgf").read_bytes() * 200
    reason = read_reason(app, upload(app, content).json()["id"])
    assert "time" in reason or "1 s" in reason
    app = make_app(served, peaks=2)
    assert "the limit is 2" in read_reason(app, upload(app, content[:5000]).json()["id"])
    app = make_app(served, job_peaks=20)
    assert "peaks; the limit is 20" in read_reason(app, upload(app, content[:5000]).json()["id"])
    named = content[:5000].replace(b"TITLE=", b"TITLE=" + b"a" * 1000, 1)
    assert "the limit is 500" in read_reason(app, upload(app, named).json()["id"])


def test_invalid_jobs_are_rejected(served):
    app = make_app(served, spectra=2, peaks=3)
    peaks = {"mz": [1.0], "intensity": [1.0]}
    assert post(app, "/v1/spectra", {"spectra": [peaks] * 3}).status_code == 413
    assert post(app, "/v1/spectra", {"spectra": [{"mz": [1.0] * 4, "intensity": [1.0] * 4}]}).status_code == 413
    assert post(app, "/v1/spectra", {"spectra": [peaks], "options": {"adduct": "nonsense"}}).status_code == 422
    assert post(app, "/v1/spectra", {"spectra": [peaks], "options": {"ppm": -1}}).status_code == 422
    assert upload(app, b"", "exe").status_code == 422
    for job in ("0" * 32, "x" * 32, "../../etc/passwd", "%2e%2e"):
        assert get(app, f"/v1/spectra/{job}").status_code in (404, 422)
        assert get(app, f"/v1/spectra/{job}/results").status_code in (404, 422)
    assert list(served.jobs.iterdir()) == []


def test_the_queue_is_bounded_and_waiting_jobs_can_be_cancelled(served, monkeypatch):
    monkeypatch.setattr(JobRunner, "_run", lambda self, job: None)  # jobs wait forever
    app = make_app(served, jobs=2)
    peaks = {"spectra": [{"mz": [1.0], "intensity": [1.0]}]}
    answers = [post(app, "/v1/spectra", peaks) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [202, 202, 429] and "retry-after" in answers[2].headers
    job = answers[0].json()["id"]
    assert get(app, f"/v1/spectra/{job}").json()["state"] == "waiting"
    assert get(app, f"/v1/spectra/{job}/results").status_code == 409
    assert call(app, ("DELETE", f"/v1/spectra/{job}", {}))[0].json()["state"] == "cancelled"
    assert get(app, f"/v1/spectra/{job}").json()["state"] == "cancelled"
    assert len(get(app, "/v1/spectra").json()["jobs"]) == 2
    monkeypatch.undo()
    runner = JobRunner(served, Limits())
    runner.start()  # as after a restart
    runner._thread.shutdown(wait=True)
    states = sorted(runner.store.read_state(job).state for job in runner.store.ids())
    assert states == ["cancelled", "finished"]


def test_a_cancelled_job_is_removed_only_after_its_process_has_left_it(served, monkeypatch):
    monkeypatch.setattr(JobRunner, "_run", lambda self, job: None)  # jobs wait forever
    app = make_app(served)
    job = post(app, "/v1/spectra", {"spectra": [{"mz": [1.0], "intensity": [1.0]}]}).json()["id"]
    for _ in range(2):
        assert call(app, ("DELETE", f"/v1/spectra/{job}", {}))[0].json()["state"] == "cancelled"
        assert get(app, f"/v1/spectra/{job}").json()["state"] == "cancelled"
    monkeypatch.undo()
    JobRunner(served, Limits())._run(job)
    assert call(app, ("DELETE", f"/v1/spectra/{job}", {}))[0].json()["state"] == "cancelled"
    assert list(served.jobs.iterdir()) == []


def test_a_running_job_is_cancelled_or_left_to_the_next_process(served, metabolites):
    runner = JobRunner(served, Limits())
    content = (metabolites / "spectra.mgf").read_bytes()
    options = {
        "adduct": None,
        "by": "mass",
        "ppm": 10.0,
        "top": 3,
        "any_adduct": False,
        "coverage": 0.9,
        "ties": "expected",
    }
    job = runner.store.create(options, content, "upload.mgf")
    original = runner.store.write_progress

    def cancel_then_write(job, done, total):
        runner.store.cancel(job)
        original(job, done, total)

    runner.store.write_progress = cancel_then_write
    runner._run(job)
    assert runner.store.read_state(job) == JobState("cancelled")
    stopped = runner.store.create(options, content, "upload.mgf")
    runner.store.write_progress = lambda *_: runner._stop.set()
    runner._run(stopped)
    assert runner.store.read_state(stopped).state == "waiting"
    again = JobRunner(served, Limits(kept_jobs=1))
    assert [job for job in again.store.ids() if not again.store.has_result(job)] == [stopped]
    again.start()
    again._thread.shutdown(wait=True)
    assert (
        again.store.ids() == [stopped] and again.store.read_state(stopped).state == "finished"
    )  # the older one is gone
    again.store.remove(stopped)
    assert again.store.ids() == []


def test_the_reading_of_a_file_can_be_stopped(served, metabolites, monkeypatch):
    runner = JobRunner(served, Limits())
    monkeypatch.setattr(Connection, "poll", lambda self, timeout=0: time.sleep(0.01))  # never answers
    options = {
        "adduct": None,
        "by": "mass",
        "ppm": 10.0,
        "top": 3,
        "any_adduct": False,
        "coverage": 0.9,
        "ties": "expected",
    }
    for stop, state in ((runner.store.cancel, "cancelled"), (lambda job: runner._stop.set(), "running")):
        job = runner.store.create(options, b"", "upload.mgf")
        timer = threading.Timer(0.2, stop, [job])
        timer.start()
        runner._run(job)
        timer.join()
        assert runner.store.read_state(job).state == state


def test_results_are_limited(served, metabolites):
    app = make_app(served, ranked=10)
    state = wait(app, upload(app, (metabolites / "spectra.mgf").read_bytes(), by="mass").json()["id"])
    assert state["state"] == "failed" and "choose a smaller top" in state["error"]


def test_spectra_without_candidates_are_problems(served):
    assert isinstance(next(served.identifier.rank([Spectrum([50.0], [1.0])], served.library)), Problem)
