"""Schemas of jobs that rank spectra."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, FailFast, Field, StrictStr

from psilearn.app.serve.http_schemas import FiniteNumber, StrictModel

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
