"""Routes of jobs that rank spectra, and their schemas."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import BaseModel, FailFast, Field, StrictStr

from psilearn.app.serve.http_schemas import ERRORS, FiniteNumber, StrictModel
from psilearn.app.serve.json_values import ParsingRoute, check_size
from psilearn.app.serve.request_guard import UPLOAD_PATH
from psilearn_chem.molecules import Adduct
from psilearn_chem.molecules.smiles import draw_svg
from psilearn_chem.service.job_runner import PEAKS, RESULT_FILES, JobRunner

Text = Annotated[StrictStr, Field(max_length=200)]
JobId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


class RankOptions(StrictModel):
    """How candidates are found and ranked, as in ``psilearn metabolites rank``."""

    adduct: Text | None = Field(None, description="Adduct of spectra that state none, such as [M+H]+.")
    by: Literal["auto", "formula", "mass"] = "auto"
    ppm: Annotated[float, Field(gt=0, le=1000)] = 10.0
    top: Annotated[int, Field(ge=1, le=1000)] = 10
    any_adduct: bool = Field(False, description="Also accept adducts on which the model was not trained.")
    coverage: Annotated[float, Field(ge=0, le=1)] = 0.9
    ties: Literal["expected", "optimistic", "pessimistic"] = "expected"
    merge: Literal["feature", "name", "molecule"] | None = Field(
        None, description="Merge spectra of one ion, which share their feature id (else name), name or molecule."
    )
    whole_set: bool = Field(False, description="Also list molecules of the conformal set beyond the first top.")


class UploadOptions(RankOptions):
    """The format of an uploaded file, and how its spectra are ranked."""

    format: Literal["mgf", "msp", "mzml", "ms", "massbank", "parquet"]


class SpectrumPeaks(StrictModel):
    """A spectrum."""

    mz: Annotated[list[FiniteNumber], Field(min_length=1), FailFast()]
    intensity: Annotated[list[FiniteNumber], Field(min_length=1), FailFast()]
    precursor_mz: FiniteNumber | None = None
    adduct: Text | None = None
    formula: Text | None = None
    name: Text = ""


class SpectraRequest(StrictModel):
    """Spectra as lists of peaks, to be ranked."""

    spectra: Annotated[list[SpectrumPeaks], Field(min_length=1), FailFast()]
    options: RankOptions = Field(default_factory=lambda: RankOptions.model_validate({}))


class JobResponse(BaseModel):
    """The state of a job. Its results are at ``/v1/spectra/{id}/results``, once it is finished."""

    id: JobId
    state: Literal["waiting", "running", "finished", "failed", "cancelled"]
    done: int
    total: int | None
    error: str | None
    n_problems: int


class JobList(BaseModel):
    """The jobs, oldest first."""

    jobs: list[JobResponse]


MEDIA_TYPES = {"json": "application/json", "csv": "text/csv; charset=utf-8", "mztab": "text/tab-separated-values"}
Kind = Literal["json", "csv", "mztab"]
Job = Annotated[JobId, Path()]
MAX_LISTED = 100
BINARY = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
UPLOAD_BODY: dict[str, Any] = {"requestBody": {"required": True, "content": BINARY}}  # which FastAPI does not parse


class SpectraService:
    """Accepts jobs within the limits and answers for their state."""

    def __init__(self, runner: JobRunner) -> None:
        self.runner = runner
        self.store = runner.store

    def create(self, options: RankOptions, payload: bytes, name: str) -> JobResponse:
        """Store a job, add it to the queue and return its state."""
        if options.adduct is not None:
            Adduct.parse(options.adduct)  # raises a ValueError
        job = self.runner.accept(options.model_dump(exclude={"format"}), payload, name)
        if job is None:
            raise HTTPException(429, "Too many jobs wait; try again later.", {"Retry-After": "5"})
        return self.describe(job)

    def describe(self, job: str) -> JobResponse:
        """Return the state of a job; raise an error with status 404 if there is none."""
        if not self.store.exists(job):
            raise HTTPException(404, "There is no such job.")
        return JobResponse(id=job, **asdict(self.store.read_state(job)))

    def read_result(self, job: str, kind: Kind) -> bytes:
        """Return a result; raise an error with status 409 if the job is not finished."""
        state = self.describe(job)
        content = self.store.read_result(job, RESULT_FILES[kind])
        if content is None:
            raise HTTPException(409, f"The job has no results: it is {state.state}.")
        return content

    def delete(self, job: str) -> JobResponse:
        """Cancel a job that is not finished, or remove a finished one; return its last state."""
        state = self.describe(job)
        if state.state in ("waiting", "running"):
            self.store.cancel(job)
            return state.model_copy(update={"state": "cancelled"})
        if self.store.has_result(job):  # a process may still hold the folder of a cancelled job
            self.store.remove(job)
        return state


def make_spectra_router(runner: JobRunner) -> APIRouter:
    """Return the routes."""
    service = SpectraService(runner)
    limits = runner.limits
    router = APIRouter(prefix="/v1", responses=ERRORS, tags=["spectra"], route_class=ParsingRoute)

    @router.post("/spectra", status_code=202)
    async def rank_peaks(request: SpectraRequest) -> JobResponse:
        """Rank spectra that are sent as lists of peaks."""
        check_size(len(request.spectra), limits.spectra, "spectra")
        for i, spectrum in enumerate(request.spectra):
            check_size(max(len(spectrum.mz), len(spectrum.intensity)), limits.peaks, f"peaks of spectra[{i}]")
        payload = json.dumps([spectrum.model_dump() for spectrum in request.spectra]).encode()
        return await run_in_threadpool(service.create, request.options, payload, PEAKS)

    @router.post(UPLOAD_PATH.removeprefix("/v1"), status_code=202, openapi_extra=UPLOAD_BODY)
    async def rank_file(request: Request, options: Annotated[UploadOptions, Query()]) -> JobResponse:
        """Rank the spectra of a file, which is the body of the request."""
        payload = await request.body()
        return await run_in_threadpool(service.create, options, payload, f"upload.{options.format}")

    @router.get("/spectra")
    def list_jobs() -> JobList:
        """List the latest jobs, oldest first."""
        jobs = service.store.ids()[-MAX_LISTED:]
        return JobList(jobs=[service.describe(job) for job in jobs if service.store.exists(job)])

    @router.get("/spectra/{job}")
    def show_job(job: Job) -> JobResponse:
        """Return the state of a job."""
        return service.describe(job)

    @router.delete("/spectra/{job}")
    def cancel_or_remove_job(job: Job) -> JobResponse:
        """Cancel a job that is not finished, or remove a finished one."""
        return service.delete(job)

    @router.get("/spectra/{job}/results")
    def show_results(job: Job, format: Kind = "json") -> Response:
        """Return the results of a finished job as JSON, CSV or mzTab-M."""
        name = RESULT_FILES[format]
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(service.read_result(job, format), media_type=MEDIA_TYPES[format], headers=headers)

    @router.get("/molecules/{row}/structure")
    def draw_molecule(row: Annotated[int, Path(ge=0)]) -> Response:
        """Draw a molecule of the library, given its row, as SVG."""
        library = runner.served.library
        if row >= len(library):
            raise HTTPException(404, "The library has no such row.")
        return Response(draw_svg(library.get_smiles([row])[0]), media_type="image/svg+xml")

    return router
