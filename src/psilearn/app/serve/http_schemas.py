"""Schemas of requests and responses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictStr

FiniteNumber = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Name = Annotated[StrictStr, Field(max_length=100)]


class StrictModel(BaseModel):
    """A JSON object without further fields."""

    model_config = ConfigDict(extra="forbid")


class ErrorResponse(BaseModel):
    """Why a request was rejected."""

    detail: Any


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse} for status in (400, 401, 403, 404, 408, 413, 421, 422, 429, 431, 503)
}

# Items are validated by the model that takes them, one after the other until the first is wrong.
Items = Annotated[list[Any], Field(min_length=1)]


class InputsRequest(StrictModel):
    """Inputs of a model."""

    model: Name | None = Field(None, description="Name of the model; by default the first one.")
    inputs: Items = Field(description="Rows of numbers, sparse rows, rows of a table, texts, graphs or other objects.")


class PredictRequest(InputsRequest):
    """Inputs, and candidates as in the library."""

    candidates: Literal["known", "near", "all"] | Items | None = None


class TopKRequest(PredictRequest):
    """Inputs whose k nearest candidates are asked for."""

    k: Annotated[int, Field(strict=True, ge=1)] = 10


class SetsRequest(PredictRequest):
    """Inputs whose conformal sets are asked for."""

    coverage: Annotated[float, Field(strict=True, ge=0, le=1)] = 0.9
    limit: Annotated[int, Field(strict=True, ge=1)] = Field(100, description="Number of members that are returned.")


class PredictResponse(BaseModel):
    """One output per input: a list of numbers, a sparse row as indices and values, a text or another object."""

    model: str
    outputs: list[Any]


class NearestCandidates(BaseModel):
    """Candidates of one input, nearest first, with squared distances in the output space."""

    outputs: list[Any]
    distances: list[float | None]


class TopKResponse(BaseModel):
    """The nearest candidates of each input."""

    model: str
    results: list[NearestCandidates]


class ConformalSet(NearestCandidates):
    """The first members of a conformal set, and its size."""

    size: int


class SetsResponse(BaseModel):
    """The conformal set of each input."""

    model: str
    coverage: float
    results: list[ConformalSet]


class EmbedResponse(BaseModel):
    """The predicted embedding z(x) of each input."""

    model: str
    embeddings: list[list[float]]


class ModelDescription(BaseModel):
    """What a model takes and returns."""

    name: str
    estimator: str
    input_kind: Literal["rows", "sparse rows", "texts", "numbers", "graphs", "objects", "spectra", "table rows"]
    input_width: int | None
    output_kind: Literal["rows", "sparse rows", "texts", "numbers", "graphs", "objects", "spectra", "table rows"]
    output_width: int | None
    n_candidates: int
    n_components: int
    calibrated: bool
    columns: list[str] | None = Field(None, description="Names of the columns of a table row.")
    text_columns: list[str] | None = Field(None, description="Those of them that have texts; the others have numbers.")
    image_width: int | None = Field(None, description="Pixels per line, if inputs and outputs are parts of images.")


class ModelsResponse(BaseModel):
    """The models of the service, and its parts that other packages add, by their names."""

    version: str
    models: list[ModelDescription]
    extensions: dict[str, dict[str, Any]] = Field(description="What each extension has to say, such as its adducts.")


class Health(BaseModel):
    """The service answers."""

    status: Literal["ok"] = "ok"
