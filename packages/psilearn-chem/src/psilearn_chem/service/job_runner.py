"""Ranks the spectra of jobs in one thread per process, and encodes the results."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter

from psilearn import computing
from psilearn.app.serve.json_values import to_json_numbers
from psilearn.app.serve.request_log import LOGGER
from psilearn.app.serve.served_models import check_device
from psilearn.app.serve.service_limits import Limits
from psilearn_chem import CandidateLibrary, Cleaning, MetaboliteIdentifier, Problem, Query, Ranking, Spectrum
from psilearn_chem.metabolites.mztab import format_mztab
from psilearn_chem.metabolites.rank_files import format_table
from psilearn_chem.molecules.subformulas import explain_peaks
from psilearn_chem.service.job_store import JobState, JobStore
from psilearn_chem.service.upload_parser import UploadError, check_spectra, read_upload, start_reader_server
from psilearn_chem.spectra import SpectrumReadResult
from psilearn_chem.spectra.merging import merge_groups
from psilearn_chem.spectra.records import feature_id

PEAKS = "peaks.json"  # the data of jobs that were sent as JSON
RESULT_FILES = {"json": "results.json", "csv": "ranks.csv", "mztab": "results.mztab"}
PROGRESS_SECONDS = 0.2


def encode_ranking(number: int, ranking: Ranking, library: CandidateLibrary, ppm: float) -> dict[str, Any]:
    """Return one spectrum with its ranked molecules."""
    spectrum = ranking.spectrum
    candidates = _encode_candidates(ranking, library)
    formulas = dict.fromkeys(candidate["formula"] for candidate in candidates)
    return {
        "number": number,
        "name": spectrum.name,
        "feature_id": feature_id(spectrum),
        "retention_time": spectrum.metadata.get("retention_time"),
        "precursor_mz": spectrum.precursor_mz,
        "adduct": spectrum.adduct,
        "formula": spectrum.formula,
        "mz": spectrum.mz.tolist(),
        "intensity": spectrum.intensity.tolist(),
        "found_by": ranking.how,
        "n_candidates": ranking.n_candidates,
        "set_size": ranking.set_size,
        "confidence": ranking.confidence if ranking.n_candidates > 1 else None,  # the only one has no competitor
        "candidates": candidates,
        "explained": {formula: explain_peaks(spectrum.mz, formula, spectrum.adduct, ppm) for formula in formulas},
    }


def _encode_candidates(ranking: Ranking, library: CandidateLibrary) -> list[dict[str, Any]]:
    rows = [int(row) for row in ranking.rows]
    unknown = [None] * len(rows)
    columns = {
        "row": rows,
        "rank": ranking.ranks.tolist(),
        "smiles": library.get_smiles(rows),
        "name": library.get_names(rows),
        "formula": library.get_formulas(rows),
        "distance": to_json_numbers(ranking.distances),
        "margin": to_json_numbers(ranking.margins),
        "p_value": unknown if ranking.p_values is None else to_json_numbers(ranking.p_values),
        "probability": unknown if ranking.probabilities is None else to_json_numbers(ranking.probabilities),
        "in_set": unknown if ranking.set_size is None else ranking.in_set.tolist(),
        "trained_on": ranking.trained_on.tolist(),
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


class _StoppedError(Exception):
    """The service stops; the job stays as it is."""


class _CancelledError(Exception):
    """A client cancelled the job."""


@dataclass(frozen=True)
class ServedIdentifier:
    """A metabolite model, the library in which it finds candidates, and the folder of its jobs, which is created."""

    name: str
    identifier: MetaboliteIdentifier
    library: CandidateLibrary
    jobs: Path
    device: str | None = None  # of torch; None computes with NumPy

    @classmethod
    def load(
        cls, model: str | Path, library: str | Path, jobs: str | Path, device: str | None = None
    ) -> ServedIdentifier:
        """Load a saved metabolite model and open a library, whose fingerprints must be those of the model."""
        check_device(device)
        identifier, candidates = MetaboliteIdentifier.load(model), CandidateLibrary.open(library)
        identifier.check_library(candidates)
        return cls(Path(model).stem, identifier, candidates, Path(jobs), device)

    def describe(self) -> dict[str, Any]:
        """Return what a client has to know to send spectra, as JSON data."""
        return {
            "model": self.name,
            "adducts": list(self.identifier.adducts_),
            "calibrated": hasattr(self.identifier.model_, "calibration_scores_"),
            "molecules": len(self.library),
            "library_sha256": self.library.hash,
        }


class JobRunner:
    """Computes the jobs of a store, one after the other: the part of a service that ranks spectra."""

    name = "spectra"
    page = Path(__file__).with_name("page")

    def __init__(self, served: ServedIdentifier, limits: Limits) -> None:
        self.served = served
        self.describe = served.describe  # what a client has to know to send spectra
        self.limits = limits
        self.store = JobStore(served.jobs)
        self.n_waiting = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = ThreadPoolExecutor(1, "psilearn-rank")

    def accept(self, request: dict[str, Any], payload: bytes, name: str) -> str | None:
        """Store a job, add it to the queue and return its id; return None if the queue is full."""
        with self._lock:
            if self.n_waiting >= self.limits.jobs:
                return None
            self.n_waiting += 1
        try:
            job = self.store.create(request, payload, name)
        except BaseException:
            self._leave_queue()
            raise
        self._thread.submit(self._run, job)
        return job

    def make_router(self) -> APIRouter:
        """Return the routes of jobs."""
        from psilearn_chem.service.spectra_routes import make_spectra_router

        return make_spectra_router(self)

    def start(self) -> None:
        """Prepare for uploads, and add the jobs that an earlier process did not finish."""
        start_reader_server()
        for job in filter(lambda job: not self.store.has_result(job), self.store.ids()):
            with self._lock:
                self.n_waiting += 1
            self._thread.submit(self._run, job)

    def close(self) -> None:
        """Stop the running job after its current spectrum or file; it can be resumed, as those that wait can."""
        self._stop.set()
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _run(self, job: str) -> None:
        try:
            with self.store.claim(job):
                state, files = self._compute(job)
                self.store.finish(job, state, files)
            self.store.prune(self.limits.kept_jobs)
            LOGGER.info("job", extra={"fields": {"state": state.state, "spectra": state.done}})
        except (BlockingIOError, _StoppedError):
            LOGGER.info("job left to another process")
        except Exception:
            LOGGER.exception("job")
        finally:
            self._leave_queue()

    def _leave_queue(self) -> None:
        with self._lock:
            self.n_waiting -= 1

    def _compute(self, job: str) -> tuple[JobState, dict[str, bytes]]:
        """Return the final state of a job and the files of its result."""
        try:
            request, payload = self.store.read_request(job)
            check = partial(self._check, job, time.monotonic())
            check()
            self.store.write_progress(job, 0, None)
            read = self._read(payload, request, check)
            rankings, problems = self._rank(job, request, read)
            files = self._encode(request, rankings, problems)
        except _CancelledError:
            return JobState("cancelled"), {}
        except (ValueError, OSError, MemoryError, TimeoutError) as error:
            return JobState("failed", error=str(error)[:500] or type(error).__name__), {}
        n_done = len(rankings)
        return JobState("finished", n_done, n_done + len(problems), None, len(problems)), files

    def _read(self, payload: Path, request: dict[str, Any], check: Callable[[], None]) -> SpectrumReadResult:
        adduct, merge = request["adduct"], request.get("merge")
        if payload.name != PEAKS:
            return read_upload(payload, adduct, self.limits, merge, check)
        spectra, problems = [], []
        for number, fields in enumerate(json.loads(payload.read_bytes()), 1):
            try:
                spectrum = Spectrum(**{**fields, "adduct": fields["adduct"] or adduct})
                spectra.append(Cleaning()(spectrum))
            except ValueError as error:
                problems.append(Problem(fields["name"] or f"spectrum {number}", str(error)))
        check_spectra(spectra, self.limits)
        return SpectrumReadResult(spectra if merge is None else merge_groups(spectra, merge), problems)

    def _rank(self, job: str, request: dict[str, Any], read: SpectrumReadResult) -> tuple[list[Ranking], list[Problem]]:
        identifier = self.served.identifier
        query = Query(request["by"], request["ppm"], () if request["any_adduct"] else identifier.adducts_)
        rankings: list[Ranking] = []
        problems = list(read.problems)
        start = last = time.monotonic()
        n_molecules = 0
        with computing("float64", self.served.device):
            results = identifier.rank(
                read.spectra,
                self.served.library,
                k=request["top"],
                query=query,
                coverage=request["coverage"],
                ties=request["ties"],
                whole_set=request.get("whole_set", False),
            )
            for done, result in enumerate(results, 1):
                self._check(job, start)
                if isinstance(result, Problem):
                    problems.append(result)
                else:
                    rankings.append(result)
                    n_molecules += len(result.rows)
                if n_molecules > self.limits.ranked:
                    raise UploadError(
                        f"The results have more than {self.limits.ranked:,} molecules: choose a smaller top."
                    )
                if time.monotonic() - last > PROGRESS_SECONDS:
                    last = time.monotonic()
                    self.store.write_progress(job, done, len(read.spectra))
        return rankings, problems

    def _check(self, job: str, start: float) -> None:
        """Raise an error if the job must not continue."""
        if self._stop.is_set():
            raise _StoppedError
        if self.store.is_cancelled(job):
            raise _CancelledError
        if time.monotonic() - start > self.limits.job_seconds:
            raise TimeoutError(f"The job takes more than {self.limits.job_seconds} s.")

    def _encode(self, request: dict[str, Any], rankings: list[Ranking], problems: list[Problem]) -> dict[str, bytes]:
        library = self.served.library
        content = {
            **self.served.describe(),
            "options": request,
            "spectra": [encode_ranking(i, ranking, library, request["ppm"]) for i, ranking in enumerate(rankings, 1)],
            "problems": [problem._asdict() for problem in problems],
        }
        return {
            RESULT_FILES["json"]: json.dumps(content, allow_nan=False).encode(),
            RESULT_FILES["csv"]: format_table(rankings, library).encode(),
            RESULT_FILES["mztab"]: format_mztab(rankings, library).encode(),
        }
